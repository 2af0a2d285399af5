// The default provider: locks are rows of the database that everything else is in.

import type { LockStore } from "../store/locks.js";
import type { LockProvider } from "./provider.js";

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
