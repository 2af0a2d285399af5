// Declares the store's verbs for named locks, and maps their rows. Acquire and release are one statement each on
// PostgreSQL and one short transaction each on SQLite; extend, release and revoke act on the current grant alone.

import {
  LOCK_STATES,
  type LockGrant,
  type LockHistoryRecord,
  type LockRecord,
  type LockState,
  type LockStats,
  type LockVerbs,
} from "../locks/rules/lock.js";
import type { Row } from "./rows.js";

/** The verbs of `LockVerbs`, which describes each, under the store's flat names. */
export interface LockStore {
  acquireLock: LockVerbs["acquire"];
  leaveLockQueue: LockVerbs["leaveQueue"];
  extendLock: LockVerbs["extend"];
  releaseLock: LockVerbs["release"];
  revokeLock: LockVerbs["revoke"];
  locks: LockVerbs["list"];
  lockHistory: LockVerbs["history"];
  lockStats: LockVerbs["stats"];
  tidyLocks: LockVerbs["tidy"];
}

// Row mappers, the same for both databases.

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
