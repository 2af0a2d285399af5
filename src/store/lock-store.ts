// What the engine asks of a database about named locks. To acquire and to release are one statement
// each on PostgreSQL, one short transaction each on SQLite; extend, release and revoke act on the
// current grant alone.

import type {
  LockAnswer,
  LockFilter,
  LockGrant,
  LockHistoryFilter,
  LockHistoryRecord,
  LockRecord,
  LockRequest,
  LockRevocation,
  LockStats,
  LockTidied,
} from "../locks/rules/lock.js";

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
