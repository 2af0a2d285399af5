// Decides what a pause of everything means for ticks: ticks during the pause are skipped and never run later; unrecorded
// ticks before it are evaluated after it, as after any downtime. Pure.

import type { Evidence } from "../../schedules/rules/tick.js";

export type Pause = {
  readonly at: number;
  /** Null: it has no end yet. */
  readonly until: number | null;
  readonly by: string | null;
  readonly note: string | null;
};

/** A stretch of time: after the first instant, up to and including the second. */
export type Span = {
  readonly afterMs: number;
  readonly untilMs: number;
  /** The pause that covers it; null if there is none. */
  readonly pause: Pause | null;
};

/** The pause that prevents a tick from firing: the one that covers it, or the one without an end. */
export function pauseAgainst(pauses: readonly Pause[], at: number): Pause | null {
  const covers = (each: Pause) => each.at <= at && (each.until === null || at < each.until);
  return pauses.find(covers) ?? pauses.find(({ until }) => until === null) ?? null;
}

/** The time between two instants, split where pauses begin and end. */
export function spansOf(
  pauses: readonly Pause[],
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
): readonly Span[] {
  const spans: Span[] = [];
  let reached = afterMs;
  const reach = (at: number, pause: Pause | null) => {
    const end = Math.min(at, untilMs);
    if (end <= reached) return;
    spans.push({ afterMs: reached, untilMs: end, pause });
    reached = end;
  };
  for (const pause of pauses.toSorted((a, b) => a.at - b.at)) {
    reach(pause.at - 1, null);
    reach(pause.until === null ? untilMs : pause.until - 1, pause);
  }
  reach(untilMs, null);
  return spans;
}

/** The evidence that is kept with skipped ticks. */
export function pauseEvidence({ at, until, by, note }: Pause): Evidence {
  return { isAll: true, since: at, ...(until === null ? {} : { until }), by, note };
}
