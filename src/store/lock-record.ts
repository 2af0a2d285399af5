// Rows of named locks as the records that the engine knows; the same for both databases.

import {
  LOCK_STATES,
  type LockGrant,
  type LockHistoryRecord,
  type LockRecord,
  type LockState,
  type LockStats,
} from "../locks/rules/lock.js";

type Row = Record<string, unknown>;

export function toLockRecord(row: Row): LockRecord {
  return {
    ...toHeldGrant(row),
    acquiredAt: Number(row.acquired_at),
    renewedAt: Number(row.renewed_at),
    until: Number(row.until),
    waiting: Number(row.waiting),
  };
}

export function toHeldGrant(row: Row): LockGrant & { readonly holder: string } {
  return { name: String(row.name), fence: Number(row.fence), holder: String(row.holder) };
}

export function toLockHistory(row: Row): LockHistoryRecord {
  return {
    ...toHeldGrant(row),
    state: LOCK_STATES[Number(row.state)] as LockState,
    acquiredAt: Number(row.acquired_at),
    until: Number(row.until),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
    note: row.note === null ? null : String(row.note),
  };
}

export function toLockStats(row: Row): LockStats {
  return {
    acquired: Number(row.acquired),
    released: Number(row.released),
    expired: Number(row.expired),
    revoked: Number(row.revoked),
    waiting: Number(row.waiting),
  };
}
