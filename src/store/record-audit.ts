// Rows of the audit trail as the store's records, and back; the same for both databases.

import { type AuditEntry, type AuditNoun, VIAS } from "../operations/rules/audit.js";
import type { AuditFilter, AuditRecord } from "./audit-store.js";
import { sinceParams } from "./record-operators.js";

type Row = Record<string, unknown>;

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
