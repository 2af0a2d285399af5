// Defines the types that stores, providers and callers of named locks share. Pure.
// A grant is one lease of one name under one fence; it ends by release, by expiry, or by an operator.

import type { AuditEntry } from "../../operations/rules/audit.js";

/** Longer than most critical sections take, so that a short pause of a process loses nothing. */
export const LOCK_LEASE_DEFAULT = "6m";

/** A waiter that was silent for so long has died or given up: it keeps nobody waiting. */
export const WAITER_VOID_MS = 3_000;

/** How a grant stands. The position in this list is what the tables store: append only. */
export const LOCK_STATES = ["acquired", "released", "expired", "revoked"] as const;
export type LockState = (typeof LOCK_STATES)[number];

export type LockRequest = {
  readonly name: string;
  /** Made before sending, one for each call: a repeat after a lost answer is recognised by it. */
  readonly token: string;
  /** Who asks: `host:pid:boot-uuid`. */
  readonly holder: string;
  readonly leaseMs: number;
  /** A call that waits keeps its place in the queue; null: take it now or not at all. */
  readonly waiting: { readonly priority: number } | null;
};

export type LockAnswer =
  | {
      readonly isGranted: true;
      readonly fence: number;
      /** What is left of the lease: less than was asked for if this is the answer to a repeat. */
      readonly leaseMs: number;
      /** The holder whose lease had run out; null if the lock was free. */
      readonly takenFrom: string | null;
    }
  | {
      readonly isGranted: false;
      /** Null while the lock is free, but kept for a call that has waited longer. */
      readonly holder: string | null;
      readonly until: number | null;
    };

/** A name under the fence that its holder believes in. */
export type LockGrant = { readonly name: string; readonly fence: number };

/** A lock that is held now. */
export type LockRecord = LockGrant & {
  readonly holder: string;
  readonly acquiredAt: number;
  readonly renewedAt: number;
  readonly until: number;
  /** How many calls wait for it. */
  readonly waiting: number;
};

/** One grant, held or over. */
export type LockHistoryRecord = LockGrant & {
  readonly holder: string;
  readonly state: LockState;
  readonly acquiredAt: number;
  /** When it ended, or would have ended by itself. */
  readonly until: number;
  readonly endedAt: number | null;
  readonly note: string | null;
};

/** Grants by state within retention, and how many calls wait. `acquired`: held now. */
export type LockStats = { readonly [State in LockState]: number } & { readonly waiting: number };

export type LockFilter = {
  readonly name?: string;
  readonly limit: number;
  /** Continues after this name. */
  readonly after?: string;
};

export type LockHistoryFilter = {
  readonly name?: string;
  readonly limit: number;
  /** Newest first; continues below this fence. */
  readonly before?: number;
};

export type LockRevocation = {
  readonly name: string;
  readonly note: string | null;
  /** For the provider that keeps locks where everything else is; others leave it alone. */
  readonly audit?: AuditEntry | undefined;
};

/** What one pass of tidying did. */
export type LockTidied = {
  /** Leases that had run out and that nobody had taken over. */
  readonly expired: readonly (LockGrant & { readonly holder: string })[];
  /** How many rows of history, idle names and dead waiters are gone. */
  readonly removed: number;
  /** How many locks are held now: while there are none, nothing can run out. */
  readonly held: number;
};

/** The verbs of locks, declared once: providers have them under these names, the store under its own. */
export interface LockVerbs {
  /**
   * Grants the lock if it is free or its lease has run out by the provider's clock, and if no live
   * waiter comes first. The same token returns the same grant while it stands. With `waiting`
   * the call takes or keeps its place in the queue; a waiter that is silent for 3 s loses it.
   */
  acquire(request: LockRequest): Promise<LockAnswer>;
  /** A waiter leaves the queue. */
  leaveQueue(params: { readonly name: string; readonly token: string }): Promise<void>;
  /** Starts the lease again if this is the current grant, expired or not. False: it is not the current one. */
  extend(
    params: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number },
  ): Promise<boolean>;
  /** Ends the current grant. True also if this grant was released before. False: it was lost. */
  release(grant: LockGrant): Promise<boolean>;
  /** Takes the lock from its holder. Returns that grant, or null if the lock was free. */
  revoke(params: LockRevocation): Promise<(LockGrant & { readonly holder: string }) | null>;
  /** Held locks, by name. */
  list(filter: LockFilter): Promise<readonly LockRecord[]>;
  /** Grants, newest first. */
  history(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]>;
  stats(): Promise<LockStats>;
  /** Ends expired leases and removes history past retention, at most `limit` rows. */
  tidy(params: { readonly keepMs: number; readonly limit: number }): Promise<LockTidied>;
}
