// Declares the verbs of leases between claim and settlement, and the errors of attempts that were taken from their holders.

import type { RunId, RunStatus } from "../runs/rules/run.js";
import type { Grant } from "./claims.js";

// Only a reclaim and an enforced cancel write these errors. They tell a run that was taken from its holder apart from one
// that its holder settled.
export const LOST_ERROR = JSON.stringify({
  code: "LEASE_EXPIRED",
  name: "LeaseExpired",
  message: "The holder fell silent and its lease expired.",
});
export const TIMEOUT_ERROR = JSON.stringify({
  code: "TIMEOUT",
  name: "TimeoutError",
  message: "The attempt ran for longer than its timeout.",
});
export const CANCEL_ERROR = JSON.stringify({
  code: "CANCEL_ENFORCED",
  name: "CancelEnforced",
  message: "The run was cancelled and its holder did not end it in time.",
});

/** What a parent gets of a child that was cancelled before it ran. */
export const CANCELLED_ERROR = JSON.stringify({
  code: "CANCELLED",
  name: "CancelledError",
  message: "The run was cancelled.",
});

/** Whether the attempt with this error was taken from its holder, who therefore did not end it. */
export function isTakenAway(error: string | null): boolean {
  return error === LOST_ERROR || error === TIMEOUT_ERROR || error === CANCEL_ERROR;
}

export type RenewParams = {
  readonly holder: number;
  readonly fences: readonly number[];
  /** A result that takes longer comes too late to be trusted. */
  readonly timeoutMs?: number;
};

type Renewal = {
  readonly fence: number;
  /** Length of the lease, counted from the renewal. */
  readonly leaseMs: number;
  readonly ids: readonly RunId[];
};

export type RenewResult = {
  readonly held: readonly Renewal[];
  /** Fences of leases that another statement has locked: neither renewed nor lost. Renew them again. */
  readonly unknown: readonly number[];
};

export type ReclaimParams = {
  readonly limit: number;
  /** A number from 0 to 1 for the jitter of retries and for schedules with a range. */
  readonly random: number;
};

export type EnforceParams = {
  /** How long a holder may take to obey a cancel. */
  readonly graceMs: number;
  /** A number from 0 to 1 for schedules with a range, whose next tick depends on the end of a run. */
  readonly random: number;
};

/** A lease is stale when its holder was silent for `silentMs`, or when it was held for `ranMs`. */
export type StaleParams = {
  readonly silentMs: number;
  readonly ranMs: number;
  /** A holder within the lease and timeout of its run keeps the run, however short the two times above are. */
  readonly respectsLeases?: boolean;
};

export type Reclaimed = Grant & {
  readonly job: string;
  readonly attempt: number;
  readonly holder: string;
  readonly end: "lost" | "timeout";
  readonly to: RunStatus;
};

export interface LeaseVerbs {
  /** Renews leases, also expired ones that nobody has reclaimed. */
  renew(params: RenewParams): Promise<RenewResult>;
  /** Records the start of these runs before their handlers are called. Returns the runs that are still held. */
  markStarted(grants: readonly Grant[]): Promise<readonly Grant[]>;
  /** Takes runs from holders that fell silent or exceeded the timeout. The policy of each run decides what follows. */
  reclaim(params: ReclaimParams): Promise<readonly Reclaimed[]>;
  /** Ends running runs whose holders did not obey a cancel in time. */
  enforceCancels(params: EnforceParams): Promise<readonly Grant[]>;
  /**
   * Ends stale leases now, however long they were granted for; returns how many. A reclaim then takes their runs: as lost
   * if the holder was silent, otherwise as timed out.
   */
  expireStale(params: StaleParams): Promise<number>;
  /** Returns the state of a grant, once no transaction under its fence is in progress. */
  state(grant: Grant): Promise<"held" | "completed" | "gone">;
}
