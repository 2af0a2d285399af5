// Defines a tick, one nominal occurrence of a schedule, and its outcome. The ledger holds one outcome with a reason for
// every tick; a long sequence of equal ones is one stretch.

import type { RunId } from "../../runs/rules/run.js";
import type { When } from "./when.js";

/** The position in this list is what the tables store: append only. */
export const OUTCOMES = ["fired", "skipped", "missed"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Why; each belongs to one outcome. The position in this list is what the tables store: append only. */
export const REASONS = [
  "on_time",
  "late",
  "catch_up",
  "stuck_reset",
  "overlap",
  "queue_full",
  "after_failure",
  "paused",
  "nobody",
  "too_old",
  "over_limit",
  "broken",
  "no_ping",
] as const;
export type Reason = (typeof REASONS)[number];

export const OUTCOME_OF: { readonly [R in Reason]: Outcome } = {
  on_time: "fired",
  late: "fired",
  catch_up: "fired",
  stuck_reset: "fired",
  overlap: "skipped",
  queue_full: "skipped",
  after_failure: "skipped",
  paused: "skipped",
  nobody: "missed",
  too_old: "missed",
  over_limit: "missed",
  broken: "missed",
  no_ping: "missed",
};

/** The facts behind the decision, kept with the tick to explain it later. */
export type Evidence = {
  /** The run that blocked the tick, or whose failure holds ticks back. */
  readonly run?: RunId;
  /** The end of the hold, of the pause, or of the wait for a check-in. */
  readonly until?: number;
  /** Runs that this tick replaced. */
  readonly replaced?: readonly RunId[];
  /** The previous poll of an instance with the scheduler on. */
  readonly lastPolledAt?: number | null;
  /** The bounds in the schedule's definition at the time. */
  readonly withinMs?: number;
  readonly limit?: number;
  readonly by?: string | null;
  readonly note?: string | null;
  readonly since?: number;
  /** Everything was paused, not this schedule alone. */
  readonly isAll?: true;
  readonly error?: string;
  /** Only for a monitor: when its job reported its start. */
  readonly beganAt?: number;
  /** For a schedule that was stuck: the next tick as it was stored. */
  readonly nextAt?: number | null;
};

/** A new row of the ledger: a tick, or a stretch of equal ones. */
export type TickEntry = {
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly reason: Reason;
  /** The run that it became. */
  readonly run: RunId | null;
  readonly evidence: Evidence | null;
};

/** All ticks of a span as one stretch; null if there are none. */
export function stretchOf(
  when: When,
  span: { readonly afterMs: number; readonly untilMs: number },
): Pick<TickEntry, "firstAt" | "lastAt" | "count"> | null {
  const budget = Number.POSITIVE_INFINITY;
  const { firstMs, lastMs, count } = when.survey({ ...span, newest: 0, budget });
  if (firstMs === null || lastMs === null) return null;
  return { firstAt: firstMs, lastAt: lastMs, count };
}

export function oneTick(
  at: number,
  reason: Reason,
  more: { readonly run?: RunId; readonly evidence?: Evidence } = {},
): TickEntry {
  const { run = null, evidence = null } = more;
  return { firstAt: at, lastAt: at, count: 1, reason, run, evidence };
}
