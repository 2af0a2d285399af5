// One attempt as those know it who do something for it: which run, under which grant, told to stop how.

import type { LogsPolicy } from "../runs/rules/run-logs.js";
import type { Claim, ClaimedRun } from "../store/store.js";

export type AttemptView = {
  readonly run: ClaimedRun;
  readonly claim: Claim;
  /** Which of its log lines are kept. */
  readonly logs: LogsPolicy;
  /** It told something that may not be stored yet. */
  hasReported: boolean;
  signal(): AbortSignal;
  /** Why it was told to stop. */
  readonly stopReason: Error | null;
  /** When the handler began, on this instance's monotonic clock. */
  readonly startedMs: number;
  commitPhase: CommitPhase;
  /** The last call of `ctx.commit`, also if nobody waits for it. */
  committing: Promise<unknown> | null;
};

/**
 * How far a commit has come. While it is being settled nobody but the database knows whether the run
 * is still held: a heartbeat that no longer finds it says nothing.
 */
export type CommitPhase = "none" | "working" | "settling" | "done";
