// Keeps the audit trail on PostgreSQL. An audited change is a transaction of two statements: its own, and the entry.
// Such changes are rare, and the hot path has none of them.

import type { AuditEntry } from "../../operations/rules/audit.js";
import {
  type AuditFilter,
  type AuditRecord,
  type AuditStore,
  auditFilterParams,
  auditParams,
  toAuditRecord,
} from "../audit.js";
import type { Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import type { PostgresTransactions } from "./transactions.js";

export const ADD_AUDIT = /* sql */ `
insert into {audit} (at, via, who, scope, address, request_id, verb, noun, name, note, change)
values ({now}, :via, :who, :scope, :address, :requestId, :verb, :noun, :name, :note, :change)`;

export const LIST_AUDIT = /* sql */ `
select a.id, a.at, a.via, a.who, a.scope, a.address, a.request_id, a.verb, a.noun, a.name, a.note, a.change
from {audit} a
where (:before::bigint is null or a.id < :before::bigint)
  and a.at >= coalesce(:at::bigint, {now} - :agoMs::bigint, 0)
  and (:noun::text is null or a.noun = :noun::text)
  and (:name::text is null or a.name = :name::text)
  and (:who::text is null or a.who = :who::text)
order by a.id desc limit :limit`;

export const PRUNE_AUDIT = /* sql */ `
delete from {audit} where id = any(array(
  select a.id from {audit} a where a.at < {now} - :keepMs::bigint order by a.at limit :limit)) returning id`;

type Change = {
  readonly what: string;
  readonly template: string;
  readonly params: object;
  /** Left out: nothing is kept of it. */
  readonly audit: AuditEntry | undefined;
  /** Whether the statement has changed anything. */
  readonly isDone: (row: Row | undefined) => boolean;
};

export class PostgresAudit implements AuditStore {
  readonly #asker: PostgresSession;
  readonly #transactions: PostgresTransactions;

  constructor(asker: PostgresSession, transactions: PostgresTransactions) {
    this.#asker = asker;
    this.#transactions = transactions;
  }

  /** The first row of a statement that may be repeated, with its entry where it has changed something. */
  async change({ what, template, params, audit, isDone }: Change): Promise<Row | undefined> {
    if (!audit) return (await this.#asker.repeat(what, template, params))[0];
    return this.#asker.patiently(what, () =>
      this.#transactions.run(async (query) => {
        const [row] = await this.#asker.within(query, template, params as Row);
        if (isDone(row)) await this.#asker.within(query, ADD_AUDIT, auditParams(audit));
        return row;
      }),
    );
  }

  async addAudit(entry: AuditEntry): Promise<void> {
    await this.#asker.attempt("addAudit", this.#asker.work, ADD_AUDIT, auditParams(entry));
  }

  async audit(filter: AuditFilter): Promise<readonly AuditRecord[]> {
    const rows = await this.#asker.repeat("audit", LIST_AUDIT, auditFilterParams(filter));
    return rows.map(toAuditRecord);
  }

  async prune(params: { readonly keepMs: number; readonly limit: number }): Promise<number> {
    return (await this.#asker.repeat("prune", PRUNE_AUDIT, params)).length;
  }
}
