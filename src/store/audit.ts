// Declares the store's verbs for the audit trail, and maps its rows. The verb that makes a change writes the entry
// in the same transaction, and only if something changed: every mutating verb takes an entry.

import { type AuditEntry, type AuditNoun, VIAS } from "../operations/rules/audit.js";
import { type Since, sinceParams } from "./operators.js";
import type { Row } from "./rows.js";

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

// Row mappers, the same for both databases.

export function toAuditRecord(row: Row): AuditRecord {
  const text = (value: unknown) => (value === null ? null : String(value));
  return {
    id: Number(row.id),
    at: Number(row.at),
    via: VIAS.find((via) => via === row.via) ?? "code",
    who: String(row.who),
    scope: text(row.scope),
    address: text(row.address),
    requestId: text(row.request_id),
    verb: String(row.verb),
    noun: String(row.noun) as AuditNoun,
    name: text(row.name),
    note: text(row.note),
    change: text(row.change),
  };
}

export function auditParams(entry: AuditEntry): Row {
  const { via, who, scope, address, requestId, verb, noun, name, note, change } = entry;
  return { via, who, scope, address, requestId, verb, noun, name, note, change };
}

export function auditFilterParams({ since, noun, name, who, before, limit }: AuditFilter): Row {
  const from = since ? sinceParams(since) : { at: null, agoMs: null };
  const [own, of, by, below] = [noun, name, who, before].map((each) => each ?? null);
  return { ...from, noun: own, name: of, who: by, before: below, limit };
}
