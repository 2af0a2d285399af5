// Defines the view of an attempt that handler services get: its run, its claim, and why it should stop.

import type { LogsPolicy } from "../runs/rules/run-logs.js";
import type {
  CancelledError,
  LeaseLostError,
  ShutdownError,
  SuspendedError,
  TimeoutError,
} from "../shared/errors.js";
import type { Claim, ClaimedRun } from "../store/claims.js";

export type AttemptView = {
  readonly run: ClaimedRun;
  readonly claim: Claim;
  /** Decides which of its log lines are kept. */
  readonly logs: LogsPolicy;
  /** It reported progress or log lines that may not be stored yet. */
  hasReported: boolean;
  signal(): AbortSignal;
  /** Why it should stop; null while it may go on. */
  readonly stopReason: Error | null;
  /** When the handler was called, on this instance's monotonic clock. */
  readonly startedMs: number;
  commitPhase: CommitPhase;
  /** The last call of `ctx.commit`, also if the handler does not await it. */
  committing: Promise<unknown> | null;
  /** Calls of the handler that have not ended, without its waits: while there is one the run is not suspended. */
  openCalls: number;
  /** The handler has returned or thrown: its attempt ends, whatever still waits. */
  hasReturned: boolean;
  /** From "suspending" on, the handler no longer counts: pending calls never settle, later ones do nothing. */
  suspension: "none" | "suspending";
  /** Its steps and waits; null while the handler has used none. */
  journal: AttemptJournal | null;
  abort(reason: StopReason): void;
};

/** The steps and waits of an attempt, as the parts around it know them: something has ended. */
export type AttemptJournal = { changed(): void };

export type StopReason =
  | LeaseLostError
  | CancelledError
  | TimeoutError
  | ShutdownError
  | SuspendedError;

/** Attempts that were handed back, postponed, suspended or refunded have counters of their own, and may have done work. */
export function isFirstGrant({ run, claim }: Pick<AttemptView, "run" | "claim">): boolean {
  const grants = claim.attempt + run.refunds + run.laters + run.extraAttempts;
  return grants === 1 && !claim.isSuspect;
}

/**
 * How far `ctx.commit` has come. While it is settling, only the database knows whether the run is
 * still held: a heartbeat that does not find the run then does not mean a loss.
 */
export type CommitPhase = "none" | "working" | "settling" | "done";
