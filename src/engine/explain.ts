// `schedules.explain`: why there was a run at an instant, or why there was none.

import type { Outcome, Reason } from "../core/tick.js";
import type { ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";

export type Explanation = {
  readonly schedule: string;
  readonly at: Date;
  /** The tick that the instant is, or belongs to; null if there is none. */
  readonly tick: Date | null;
  readonly outcome: Outcome | "planned" | "due" | "no_tick" | "unknown";
  readonly reason: Reason | null;
  /** The answer in one sentence. */
  readonly text: string;
  /** What it rests on, line by line. */
  readonly evidence: readonly string[];
  readonly runId: string | null;
};

export async function explainAt(params: {
  readonly store: Store;
  readonly state: ScheduleState;
  readonly now: number;
  readonly atMs: number;
}): Promise<Explanation> {
  const { state, atMs } = params;
  return {
    schedule: state.name,
    at: new Date(atMs),
    tick: null,
    outcome: "unknown",
    reason: null,
    text: "",
    evidence: [],
    runId: null,
  };
}
