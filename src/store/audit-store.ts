// The audit trail in a database. Entries are written by the verbs that make the change, in the same
// transaction and only if something was changed: every mutating verb takes one.

import type { AuditEntry, AuditNoun } from "../operations/rules/audit.js";
import type { Since } from "./operator-store.js";

/** For a verb's parameters: what is kept if it changes something. */
export type Audited = { readonly audit?: AuditEntry | undefined };

export type AuditRecord = AuditEntry & { readonly id: number; readonly at: number };

export type AuditFilter = {
  readonly since?: Since;
  readonly noun?: AuditNoun;
  readonly name?: string;
  /** The whole name of who did it. */
  readonly who?: string;
  /** Newest first; continues before this one. */
  readonly before?: number;
  readonly limit: number;
};

export interface AuditStore {
  /** For changes that are made elsewhere, such as a lock of another provider. */
  addAudit(entry: AuditEntry): Promise<void>;
  audit(filter: AuditFilter): Promise<readonly AuditRecord[]>;
}
