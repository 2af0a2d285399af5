// Defines a run, its states and modes, and decides where it goes when an attempt ends. Pure: decisions are values; the store
// applies them under the fence, and the database adds its own now.

import { delayAfterMs, type RetryPolicy } from "./retry.js";

export type RunId = string;

export const RUN_STATUSES = ["pending", "running", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];
export type TerminalStatus = "completed" | "failed" | "cancelled";

/** Why a run exists. The position in this list is what the tables store: append only. */
export const MODES = ["enqueued", "scheduled", "manual", "test", "backfill"] as const;
export type Mode = (typeof MODES)[number];

/** How an attempt ended. The position in this list is what the tables store: append only. */
export const ATTEMPT_ENDS = [
  "failed",
  "lost",
  "timeout",
  "later",
  "handed_back",
  "cancelled",
  "suspended",
] as const;
export type AttemptEnd = (typeof ATTEMPT_ENDS)[number];

/** Whether a run whose holder stopped responding is retried, or fails. */
export const ON_LOST = ["retry", "fail"] as const;
export type OnLost = (typeof ON_LOST)[number];

/** Stored with every run, for callers and instances without the job's code. */
export type Policy = {
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly onLost: OnLost;
};

/** One step of priority is worth one minute of waiting, so nothing starves for ever. */
export const PRIORITY_STEP_MS = 60_000;
/** How often an instance may hand a run back without the attempt counting. */
export const REFUNDS_MAX = 100;
/** A handler may postpone its own run this often with `RetryLater`. */
export const LATERS_MAX = 1_000;
/** A handler whose signal was aborted has this long before its attempt is ended. */
export const ABORT_GRACE_MS = 5_000;
/** A running run that was cancelled has this long to end before its fence is raised. */
export const CANCEL_GRACE_MS = 30_000;

/** How one attempt ended, as its executor saw it. */
export type Ending =
  | { readonly kind: "completed" }
  | {
      readonly kind: "failed";
      readonly isTransient: boolean;
      /** What a server asked for; at most the longest wait of the policy, unless the job honours more. */
      readonly retryAfterMs?: number;
      readonly isBeyondMax?: boolean;
    }
  | { readonly kind: "timeout" }
  | { readonly kind: "later"; readonly delayMs: number }
  /** `delayMs`: when there is a chance that it can be started. @default 0 */
  | { readonly kind: "handed_back"; readonly delayMs?: number }
  | { readonly kind: "cancelled" };

/** Where the run goes next. A delay counts from the database's now. */
export type Transition =
  | { readonly to: TerminalStatus }
  | {
      readonly to: "pending";
      readonly end: AttemptEnd;
      readonly delayMs: number;
      readonly isRefund: boolean;
    };

export type AttemptFacts = {
  readonly attempt: number;
  /** Attempts this run may have: the policy's, plus one for every operator's retry. */
  readonly attemptsMax: number;
  readonly refunds: number;
  readonly laters: number;
  readonly retry: RetryPolicy;
  readonly isCancelRequested: boolean;
};

const COMPLETED: Transition = { to: "completed" };

/** Decides where a running run goes when its attempt has ended. */
export function settle(facts: AttemptFacts, ending: Ending, random: () => number): Transition {
  if (ending.kind === "completed") return COMPLETED;
  if (ending.kind === "cancelled" || facts.isCancelRequested) return { to: "cancelled" };
  switch (ending.kind) {
    case "failed":
    case "timeout": {
      const isTransient = ending.kind === "timeout" || ending.isTransient;
      if (!isTransient || facts.attempt >= facts.attemptsMax) return { to: "failed" };
      const asked = ending.kind === "failed" ? ending : {};
      const delayMs = delayAfterMs(
        { ...asked, retry: facts.retry, attempt: facts.attempt },
        random,
      );
      return { to: "pending", end: ending.kind, delayMs, isRefund: false };
    }
    case "later":
      return facts.laters >= LATERS_MAX
        ? { to: "failed" }
        : { to: "pending", end: "later", delayMs: ending.delayMs, isRefund: true };
    case "handed_back": {
      const isRefund = facts.refunds < REFUNDS_MAX;
      if (!isRefund && facts.attempt >= facts.attemptsMax) return { to: "failed" };
      return { to: "pending", end: "handed_back", delayMs: ending.delayMs ?? 0, isRefund };
    }
  }
}
