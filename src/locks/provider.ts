// What `holdfast.lock` needs from whatever keeps locks. Lease rows in the database are the default;
// others can be given as `new Holdfast({ locks })`. `lockProviderCases` of `holdfast/testing` is the
// definition: a provider is right when every case passes on it.

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
} from "./rules/lock.js";

export type LockCapabilities = {
  /**
   * Durable: a fence that was granted is never granted again. Volatile: that holds only for as long
   * as the provider loses no writes.
   */
  readonly fences: "durable" | "volatile";
  /** Calls that wait are served by priority, then in order; without it, whoever asks first after a release. */
  readonly queue: boolean;
  /** Grants that are over are kept: `history` and `stats` tell of them. */
  readonly history: boolean;
};

export interface LockProvider {
  /** For messages: "lease rows", "redis". */
  readonly name: string;
  readonly capabilities: LockCapabilities;
  /**
   * Grants the lock if it is free or its lease has run out by the provider's clock, and if no live
   * waiter goes before. The same token again while its grant stands: the same grant. With `waiting`
   * the call takes its place in the queue or keeps it; one that is silent for 3 s keeps nobody waiting.
   */
  acquire(request: LockRequest): Promise<LockAnswer>;
  /** A waiter gives up its place. */
  leaveQueue(params: { readonly name: string; readonly token: string }): Promise<void>;
  /** The lease begins anew, if this is the current grant, expired or not. False: it is not. */
  extend(
    params: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number },
  ): Promise<boolean>;
  /** Ends the current grant. True also if this very grant was released before; false: it was lost. */
  release(grant: LockGrant): Promise<boolean>;
  /** Takes the lock from whoever holds it; answers whom, or null if nobody did. */
  revoke(params: LockRevocation): Promise<(LockGrant & { readonly holder: string }) | null>;
  /** Held locks, by name. */
  list(filter: LockFilter): Promise<readonly LockRecord[]>;
  /** Grants, newest first. */
  history(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]>;
  stats(): Promise<LockStats>;
  /** Ends what has run out; removes what is past its time, a bounded amount. */
  tidy(params: { readonly keepMs: number; readonly limit: number }): Promise<LockTidied>;
}
