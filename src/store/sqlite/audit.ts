// Keeps the audit trail on SQLite: an entry is one more row of the transaction that makes the change.

import type { AuditEntry } from "../../operations/rules/audit.js";
import {
  type AuditFilter,
  type AuditRecord,
  type AuditStore,
  auditFilterParams,
  auditParams,
  toAuditRecord,
} from "../audit.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";

export const ADD_AUDIT = /* sql */ `
insert into {audit} (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values (:now, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change)`;

export const LIST_AUDIT = /* sql */ `
select * from {audit} a
where (:before is null or a.id < :before)
  and a.at >= coalesce(:at, :now - :agoMs, 0)
  and (:noun is null or a.noun = :noun)
  and (:name is null or a.name = :name)
  and (:who is null or a.who = :who)
order by a.id desc limit (:limit + 0)`;

export const PRUNE_AUDIT = /* sql */ `
delete from {audit} where id in (
  select a.id from {audit} a where a.at < :now - :keepMs order by a.at limit (:limit + 0))`;

export class SqliteAudit implements AuditStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
    this.#file = asker.file;
  }

  /** Inside of the transaction that makes the change. */
  add(entry: AuditEntry, now: number): void {
    this.#file.run(ADD_AUDIT, { ...auditParams(entry), now });
  }

  /** One write transaction, with its entry where it has changed something. */
  change<T>(params: {
    readonly what: string;
    readonly audit: AuditEntry | undefined;
    readonly work: (now: number) => T;
    readonly isDone: (answer: T) => boolean;
  }): Promise<T> {
    const { what, audit, work, isDone } = params;
    return this.#asker.write(what, (now) => {
      const answer = work(now);
      if (audit && isDone(answer)) this.add(audit, now);
      return answer;
    });
  }

  async addAudit(entry: AuditEntry): Promise<void> {
    await this.#asker.write("addAudit", (now) => this.add(entry, now));
  }

  audit(filter: AuditFilter): Promise<readonly AuditRecord[]> {
    return this.#asker.read((now) =>
      this.#file.all(LIST_AUDIT, { ...auditFilterParams(filter), now }).map(toAuditRecord),
    );
  }

  prune(params: { readonly keepMs: number; readonly limit: number }, now: number): number {
    return this.#file.run(PRUNE_AUDIT, { ...params, now });
  }
}
