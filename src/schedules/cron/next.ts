// The next tick of a cron schedule. Goes from one stretch of constant offset to the next and inside
// each asks for the next local time, so a step costs some arithmetic and never formats a date.
// Its work is bounded: it looks at most a hundred years ahead, and a zone has a few stretches a year.

import type { CronSchedule } from "./cron.js";
import type { Work } from "./days.js";
import { nextLocal } from "./local.js";
import type { Stretch } from "./zone.js";

/** Beyond this a gap is no change to summer time: whole days were left out (Apia, 2011). */
export const GAP_MAX_MS = 3 * 3_600_000;

const DAY_MS = 86_400_000;
/** Days that fit a cron expression are at most 40 years apart; what changes of clocks hide comes sooner. */
const HORIZON_MS = 100 * 366 * DAY_MS;
const YEAR_10000_MS = 253_402_300_800_000;

/**
 * The first tick after `afterMs`, or null if none comes within a hundred years or before the year
 * 10000. Ticks before 1970 do not exist.
 */
export function nextTick(
  schedule: CronSchedule,
  afterMs: number,
  work: Work = { steps: 0 },
): number | null {
  if (!(afterMs < YEAR_10000_MS)) return null;
  const { expression, zone } = schedule;
  let fromMs = (Math.floor(Math.max(afterMs, -1) / 1_000) + 1) * 1_000;
  const untilMs = Math.min(fromMs + HORIZON_MS, YEAR_10000_MS);
  let stretch = zone.stretchAt(fromMs);
  // `found` is the first fitting local time at or after `soughtMs`.
  let soughtMs = Number.NEGATIVE_INFINITY;
  let found = Number.NEGATIVE_INFINITY;
  while (fromMs < untilMs) {
    work.steps++;
    const lowMs = lowestLocal(schedule, stretch, fromMs);
    // Where the clocks go back, times that were passed already are sought again.
    if (lowMs < soughtMs || found < lowMs) {
      found = nextLocal(expression, lowMs, work);
      soughtMs = lowMs;
    }
    // A time that the clocks have just jumped over.
    if (found < fromMs + stretch.offsetMs) return fromMs;
    // At the edge of the table the stretch may end sooner or later than it seems.
    if (stretch.next === null) zone.cover(Math.min(found - stretch.offsetMs, untilMs));
    if (found < highestLocal(schedule, stretch)) {
      const tick = found - stretch.offsetMs;
      return tick < untilMs ? tick : null;
    }
    if (stretch.next === null) return null;
    stretch = stretch.next;
    fromMs = stretch.startMs;
  }
  return null;
}

/**
 * Where to begin in a stretch. At the end of a gap that is made up for: where the gap begins. After
 * an overlap, for schedules of the first pass: where the second pass has ended.
 */
function lowestLocal(
  { expression, dst }: CronSchedule,
  { startMs, offsetMs, previous }: Stretch,
  fromMs: number,
): number {
  const lowMs = fromMs + offsetMs;
  if (previous === null || expression.isWildcard) return lowMs;
  const shiftMs = offsetMs - previous.offsetMs;
  if (shiftMs < 0)
    return dst.overlap === "first" ? Math.max(lowMs, startMs - shiftMs + offsetMs) : lowMs;
  const isMadeUp = fromMs === startMs && dst.gap === "after" && shiftMs <= GAP_MAX_MS;
  return isMadeUp ? lowMs - shiftMs : lowMs;
}

/** Where to end in a stretch: a schedule of the second pass leaves out what will come again. */
function highestLocal(
  { expression, dst }: CronSchedule,
  { endMs, offsetMs, next }: Stretch,
): number {
  if (next === null || expression.isWildcard || dst.overlap !== "second") return endMs + offsetMs;
  return endMs + Math.min(offsetMs, next.offsetMs);
}
