// Defines the view of an attempt that handler services get: its run, its claim, and why it should stop.

import type { LogsPolicy } from "../runs/rules/run-logs.js";
import type { Claim, ClaimedRun } from "../store/store.js";

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
};

/**
 * How far `ctx.commit` has come. While it is settling, only the database knows whether the run is
 * still held: a heartbeat that does not find the run then does not mean a loss.
 */
export type CommitPhase = "none" | "working" | "settling" | "done";
