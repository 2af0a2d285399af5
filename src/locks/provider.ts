// Declares what `holdfast.lock` needs from a lock provider, and the default one: rows in the database. Users pass others as
// `new Holdfast({ locks })`. A provider is right when every case of `lockProviderCases` (`holdfast/testing`) passes on it.

import type { LockStore } from "../store/locks.js";
import type { LockVerbs } from "./rules/lock.js";

export type LockCapabilities = {
  /**
   * Durable: a fence that was granted is never granted again. Volatile: that holds only for as long
   * as the provider loses no writes.
   */
  readonly fences: "durable" | "volatile";
  /** Waiting calls are served by priority, then in order. False: the first call after a release gets the lock. */
  readonly queue: boolean;
  /** The provider keeps ended grants: `history` and `stats` report them. */
  readonly history: boolean;
};

/** A user's own provider implements the verbs and says what it can do. */
export interface LockProvider extends LockVerbs {
  /** For messages: "lease rows", "redis". */
  readonly name: string;
  readonly capabilities: LockCapabilities;
}

/** The default provider: locks are rows of the same database. The store names its verbs in one flat list, hence the mapping. */
export function leaseRows(store: LockStore): LockProvider {
  return {
    name: "lease rows",
    capabilities: { fences: "durable", queue: true, history: true },
    acquire: (request) => store.acquireLock(request),
    leaveQueue: (params) => store.leaveLockQueue(params),
    extend: (params) => store.extendLock(params),
    release: (grant) => store.releaseLock(grant),
    revoke: (params) => store.revokeLock(params),
    list: (filter) => store.locks(filter),
    history: (filter) => store.lockHistory(filter),
    stats: () => store.lockStats(),
    tidy: (params) => store.tidyLocks(params),
  };
}
