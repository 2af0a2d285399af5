// Keeps the audit trail. The verb that makes a change writes the entry in the same transaction, and only if something
// changed: every mutating verb takes an entry.

import { type AuditEntry, type AuditNoun, VIAS } from "../operations/rules/audit.js";
import { idFragment } from "../shared/id.js";
import { type Row, textOrNull } from "./rows.js";
import { row, rows, run, type Statement, type Statements, type StoreSession } from "./session.js";
import { type Since, sinceParams } from "./statistics.js";

export const ADD_AUDIT = /* sql */ `
insert into {audit} (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values ({now}, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change)`;

const LIST = /* sql */ `
select a.id, a.at, a.via, a.who, a.scope, a.address, a.request_id, a.verb, a.noun, a.name, a.note, a.change
from {audit} a
where (:before::bigint is null or a.id < :before::bigint)
  and a.at >= coalesce(:at::bigint, {now} - :agoMs::bigint, 0)
  and (:noun::text is null or a.noun = :noun::text)
  and (:name::text is null or a.name = :name::text
    or a.noun = 'instance' and substr(a.name, 1, length(:name::text) + 1) = :name::text || ':'
    or a.noun in ('run', 'alert')
      and (replace(a.name, '-', '') like :digits::text || '%' or replace(a.name, '-', '') like '%' || :digits::text))
  and (:who::text is null or a.who = :who::text)
order by a.id desc limit :limit`;

const PRUNE = /* sql */ `
delete from {audit} where id in (
  select a.id from {audit} a where a.at < {now} - :keepMs::bigint order by a.at limit :limit) returning id`;

/** A verb's parameters: the entry to store if the verb changes something. */
export type Audited = { readonly audit?: AuditEntry | undefined };

export type AuditRecord = AuditEntry & { readonly id: number; readonly at: number };

type AuditFilter = {
  readonly since?: Since;
  readonly noun?: AuditNoun;
  /** The whole name, or for an id enough of its beginning or end. */
  readonly name?: string;
  /** The whole name of the actor. */
  readonly who?: string;
  /** Newest first; continues before this one. */
  readonly before?: number;
  readonly limit: number;
};

export class Audit {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * For changes outside of the store, such as a lock of another provider. Not repeated: that would store a second
   * entry.
   */
  async add(entry: AuditEntry): Promise<void> {
    await this.#session.write({
      ...{ verb: "audit.add", sql: ADD_AUDIT, params: auditParams(entry) },
      lost: "report",
    });
  }

  /** Newest first. */
  async list(filter: AuditFilter): Promise<readonly AuditRecord[]> {
    const params = auditFilterParams(filter);
    const found = await this.#session.read({ verb: "audit.list", sql: LIST, params });
    return found.map(toAuditRecord);
  }
}

/** Runs inside the transaction that made the change. */
export function* addAudit(entry: AuditEntry | undefined): Statements<void> {
  if (entry) yield* run(ADD_AUDIT, auditParams(entry));
}

/**
 * Executes one statement that may be repeated, and writes the entry if the statement changed something. Without an entry it
 * is one round trip. Returns the first row. By default any returned row means a change; `hasChanged` reads it from the row.
 */
export async function auditedWrite(
  session: StoreSession,
  {
    audit,
    hasChanged = (first) => first !== undefined,
    ...statement
  }: Statement & Audited & { readonly hasChanged?: (first: Row | undefined) => boolean },
): Promise<Row | undefined> {
  if (!audit) return (await session.write({ ...statement, lost: "repeat" }))[0];
  return session.transaction(statement.verb, { lost: "repeat" }, function* () {
    const changed = yield* row(statement.sql, statement.params);
    if (hasChanged(changed)) yield* addAudit(audit);
    return changed;
  });
}

/** Removes entries that are older; returns how many. */
export function* pruneAudit(params: {
  readonly keepMs: number;
  readonly limit: number;
}): Statements<number> {
  return (yield* rows(PRUNE, params)).length;
}

function toAuditRecord(row: Row): AuditRecord {
  return {
    id: Number(row.id),
    at: Number(row.at),
    via: VIAS.find((via) => via === row.via) ?? "code",
    who: String(row.who),
    scope: textOrNull(row.scope),
    address: textOrNull(row.address),
    requestId: textOrNull(row.request_id),
    verb: String(row.verb),
    noun: String(row.noun) as AuditNoun,
    name: textOrNull(row.name),
    note: textOrNull(row.note),
    change: textOrNull(row.change),
  };
}

export function auditParams(entry: AuditEntry): Row {
  const { via, who, scope, address, requestId, verb, noun, name, note, change } = entry;
  return { via, who, scope, address, requestId, verb, noun, name, note, change };
}

function auditFilterParams({ since, noun, name, who, before, limit }: AuditFilter): Row {
  const from = since ? sinceParams(since) : { at: null, agoMs: null };
  const [own, of, by, below] = [noun, name, who, before].map((each) => each ?? null);
  return { ...from, noun: own, name: of, digits: idFragment(name), who: by, before: below, limit };
}
