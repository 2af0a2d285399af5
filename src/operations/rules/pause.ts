// The pause of everything: one switch for the whole database, beside each schedule's own pause. What
// it means for ticks: those that fall into it are skipped and never made up for; those before it that
// nobody had recorded are judged when it is over, as after any absence. Pure.

import type { Evidence } from "../../schedules/rules/tick.js";

export type Pause = {
  readonly at: number;
  /** Null: it is on. */
  readonly until: number | null;
  readonly by: string | null;
  readonly note: string | null;
};

/** A stretch of time: after the first instant, up to and including the second. */
export type Span = {
  readonly afterMs: number;
  readonly untilMs: number;
  /** The pause that covers it; null where it is open. */
  readonly pause: Pause | null;
};

/** The pause that keeps a tick from firing: the one it falls into, or the one that is on. */
export function pauseAgainst(pauses: readonly Pause[], at: number): Pause | null {
  const covers = (each: Pause) => each.at <= at && (each.until === null || at < each.until);
  return pauses.find(covers) ?? pauses.find(({ until }) => until === null) ?? null;
}

/** The time between two instants, cut where pauses begin and end. */
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

/** Kept with the ticks that it left out. */
export function pauseEvidence({ at, until, by, note }: Pause): Evidence {
  return { isAll: true, since: at, ...(until === null ? {} : { until }), by, note };
}
