// The audit trail on SQLite: an entry is one more row of the transaction that makes the change.

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
import * as sql from "./sql/audit.js";

export class SqliteAudit implements AuditStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;

  constructor(asker: SqliteSession) {
    this.#asker = asker;
    this.#file = asker.file;
  }

  /** Inside of the transaction that makes the change. */
  add(entry: AuditEntry, now: number): void {
    this.#file.run(sql.ADD_AUDIT, { ...auditParams(entry), now });
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
      this.#file.all(sql.LIST_AUDIT, { ...auditFilterParams(filter), now }).map(toAuditRecord),
    );
  }

  prune(params: { readonly keepMs: number; readonly limit: number }, now: number): number {
    return this.#file.run(sql.PRUNE_AUDIT, { ...params, now });
  }
}
