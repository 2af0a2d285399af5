// Defines the types that stores, providers and callers of named locks share. Pure.
// A grant is one lease of one name under one fence; it ends by release, by expiry, or by an operator.

import type { AuditEntry } from "../../operations/rules/audit.js";

/** Longer than most critical sections take, so that a short pause of a process loses nothing. */
export const LOCK_LEASE_DEFAULT = "6m";

/** A waiter that was silent for this long has died or given up, and loses its place. */
export const WAITER_VOID_MS = 3_000;

/** The state of a grant. The position in this list is what the tables store: append only. */
export const LOCK_STATES = ["acquired", "released", "expired", "revoked"] as const;
export type LockState = (typeof LOCK_STATES)[number];

export type LockRequest = {
  readonly name: string;
  /** Created once per call: identifies a repeat after a lost response. */
  readonly token: string;
  /** The caller: `host:pid:boot-uuid`. */
  readonly holder: string;
  readonly leaseMs: number;
  /** The execution that the caller locks for, such as the id of a run; kept with the grant. */
  readonly execution?: string | null;
  /** A call that waits keeps its place in the queue; null: take it now or not at all. */
  readonly waiting: { readonly priority: number } | null;
};

export type LockAnswer =
  | {
      readonly isGranted: true;
      readonly fence: number;
      /** The rest of the lease: less than requested if this is a repeat. */
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

/** A lock and the fence that its holder has. */
export type LockGrant = { readonly name: string; readonly fence: number };

/** A lock that is held now. */
export type LockRecord = LockGrant & {
  readonly holder: string;
  readonly execution?: string | null;
  readonly acquiredAt: number;
  readonly renewedAt: number;
  readonly until: number;
  /** How many calls wait for it. */
  readonly waiting: number;
};

/** One grant, held or over. */
export type LockHistoryRecord = LockGrant & {
  readonly holder: string;
  readonly execution?: string | null;
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
  /** For the provider that keeps locks in the database; others ignore it. */
  readonly audit?: AuditEntry | undefined;
};

/** The result of one pass of expiry and retention. */
export type LockTidied = {
  /** Expired leases that were not taken over. */
  readonly expired: readonly (LockGrant & { readonly holder: string })[];
  /** How many rows of history, idle names and dead waiters were removed. */
  readonly removed: number;
  /** How many locks are held now: while there are none, nothing can run out. */
  readonly held: number;
};

/** The verbs of locks. The store has them for locks that are rows of its database, and users' own providers. */
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

/**
 * The provider that `holdfast.lock` uses. Users pass their own as `new Holdfast({ locks })`. A provider is right when every case of
 * `lockProviderCases` (`holdfast/testing`) passes on it.
 */
export interface LockProvider extends LockVerbs {
  /** For messages: "lease rows", "redis". */
  readonly name: string;
  readonly capabilities: LockCapabilities;
}
