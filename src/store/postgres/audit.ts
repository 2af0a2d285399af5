// The audit trail on PostgreSQL. A change that is audited is a transaction of two statements: its own,
// and the entry. Such changes are rare, and the hot path has none of them.

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
import * as sql from "./sql/audit.js";
import type { PostgresTransactions } from "./transactions.js";

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
        if (isDone(row)) await this.#asker.within(query, sql.ADD_AUDIT, auditParams(audit));
        return row;
      }),
    );
  }

  async addAudit(entry: AuditEntry): Promise<void> {
    await this.#asker.attempt("addAudit", this.#asker.work, sql.ADD_AUDIT, auditParams(entry));
  }

  async audit(filter: AuditFilter): Promise<readonly AuditRecord[]> {
    const rows = await this.#asker.repeat("audit", sql.LIST_AUDIT, auditFilterParams(filter));
    return rows.map(toAuditRecord);
  }

  async prune(params: { readonly keepMs: number; readonly limit: number }): Promise<number> {
    return (await this.#asker.repeat("prune", sql.PRUNE_AUDIT, params)).length;
  }
}
