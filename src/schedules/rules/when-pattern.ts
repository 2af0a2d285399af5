// The bare pattern of a schedule (cron, grid, one time), without anything that excludes ticks. Says
// which tick comes next, and how many there are in a range without going through them one by one.

import type { CronSchedule } from "../cron/cron.js";
import type { Work } from "../cron/days.js";
import { nextTick } from "../cron/next.js";
import { countTicks } from "./when-count.js";

const YEAR_10000_MS = 253_402_300_800_000;

/** Instants after `afterMs`, up to and including `untilMs`. */
export type TickRange = { readonly afterMs: number; readonly untilMs: number };

export interface Pattern {
  next(afterMs: number): number | null;
  count(range: TickRange, work: Work): number;
  /** Whether a tick is at that instant, also where the schedule has not begun yet. */
  matches(atMs: number): boolean;
}

export function cronPattern(schedule: CronSchedule): Pattern {
  return {
    next: (afterMs) => nextTick(schedule, afterMs),
    count: (range, work) => countTicks(schedule, range, work),
    matches: (atMs) => nextTick(schedule, atMs - 1) === atMs,
  };
}

/** `isOpen`: the grid is the same before its first tick, as that is a bound and not its beginning. */
export type Grid = { readonly firstMs: number; readonly everyMs: number; readonly isOpen: boolean };

export function gridPattern({ firstMs, everyMs, isOpen }: Grid): Pattern {
  /** How many ticks there are up to and including the instant. */
  const upTo = (atMs: number) => (atMs < firstMs ? 0 : Math.floor((atMs - firstMs) / everyMs) + 1);
  return {
    next(afterMs) {
      const tickMs = firstMs + upTo(afterMs) * everyMs;
      return tickMs < YEAR_10000_MS ? tickMs : null;
    },
    count: ({ afterMs, untilMs }) => Math.max(0, upTo(untilMs) - upTo(afterMs)),
    matches: (atMs) => (atMs >= firstMs || isOpen) && (atMs - firstMs) % everyMs === 0,
  };
}

export function oncePattern(atMs: number): Pattern {
  return {
    next: (afterMs) => (afterMs < atMs ? atMs : null),
    count: ({ afterMs, untilMs }) => (afterMs < atMs && atMs <= untilMs ? 1 : 0),
    matches: (ms) => ms === atMs,
  };
}

/** The ticks of a range interval are drawn when the last run has ended: it has no pattern. */
export const NO_PATTERN: Pattern = {
  next: () => null,
  count: () => 0,
  matches: () => false,
};

/** Fewer than `count` ticks are in the range only if the range has no more. Ascending. */
export function newestTicks(
  pattern: Pattern,
  { afterMs, untilMs }: TickRange,
  { count, work }: { readonly count: number; readonly work: Work },
): number[] {
  // First back in doubling steps until enough are in reach, then by halving to exactly as many.
  let lowMs = untilMs;
  for (let backMs = 60_000; lowMs > afterMs; backMs *= 2) {
    lowMs = Math.max(afterMs, untilMs - backMs);
    work.steps++;
    if (pattern.count({ afterMs: lowMs, untilMs }, work) >= count) break;
  }
  let highMs = untilMs;
  if (pattern.count({ afterMs: lowMs, untilMs }, work) > count) {
    while (highMs - lowMs > 1) {
      work.steps++;
      const middleMs = Math.floor((lowMs + highMs) / 2);
      if (pattern.count({ afterMs: middleMs, untilMs }, work) >= count) lowMs = middleMs;
      else highMs = middleMs;
    }
  }
  const ticks: number[] = [];
  for (
    let tickMs = pattern.next(lowMs);
    tickMs !== null && tickMs <= untilMs && ticks.length < count;
    tickMs = pattern.next(tickMs)
  ) {
    work.steps++;
    ticks.push(tickMs);
  }
  return ticks;
}
