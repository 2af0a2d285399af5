// Declares the store's verbs for named locks, and maps their rows. Acquire and release are one statement each on
// PostgreSQL and one short transaction each on SQLite; extend, release and revoke act on the current grant alone.

import {
  LOCK_STATES,
  type LockAnswer,
  type LockFilter,
  type LockGrant,
  type LockHistoryFilter,
  type LockHistoryRecord,
  type LockRecord,
  type LockRequest,
  type LockRevocation,
  type LockState,
  type LockStats,
  type LockTidied,
} from "../locks/rules/lock.js";
import type { Row } from "./rows.js";

export interface LockStore {
  /**
   * Grants the lock if it is free or its lease has run out, and if no live waiter goes before. The
   * same token again while its grant stands: the same grant. A call that waits takes or keeps its place.
   */
  acquireLock(request: LockRequest): Promise<LockAnswer>;
  /** A waiter gives up its place. */
  leaveLockQueue(params: { readonly name: string; readonly token: string }): Promise<void>;
  /** One that expired but that nobody took may be extended. False: it is no longer held so. */
  extendLock(
    params: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number },
  ): Promise<boolean>;
  /** True also if this very grant was released before. */
  releaseLock(grant: LockGrant): Promise<boolean>;
  /** Takes the lock from whoever holds it; answers whom, or null if it was free. */
  revokeLock(params: LockRevocation): Promise<(LockGrant & { readonly holder: string }) | null>;
  /** Held locks, by name. */
  locks(filter: LockFilter): Promise<readonly LockRecord[]>;
  lockHistory(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]>;
  lockStats(): Promise<LockStats>;
  /** Ends what has run out; removes what is past its time, a bounded amount. */
  tidyLocks(params: { readonly keepMs: number; readonly limit: number }): Promise<LockTidied>;
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
