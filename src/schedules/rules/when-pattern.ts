// Computes the ticks of a bare pattern (cron, grid, one time) for when.ts: the next tick, and the number of ticks in a
// range without visiting each of them.

import { firstOfAll, type SpanSource } from "../calendars/windows.js";
import { type CronSchedule, nextTick } from "../cron/cron.js";
import type { Work } from "../cron/days.js";
import type { CronExpression } from "../cron/parse.js";
import type { Stretch } from "../cron/zone.js";

const YEAR_10000_MS = 253_402_300_800_000;

/** Instants after `afterMs`, up to and including `untilMs`. */
export type TickRange = { readonly afterMs: number; readonly untilMs: number };

export interface Pattern {
  next(afterMs: number): number | null;
  count(range: TickRange, work: Work): number;
  /** Whether a tick is at that instant, even before the schedule begins. */
  matches(atMs: number): boolean;
}

export function cronPattern(schedule: CronSchedule): Pattern {
  return {
    next: (afterMs) => nextTick(schedule, afterMs),
    count: (range, work) => countTicks(schedule, range, work),
    matches: (atMs) => nextTick(schedule, atMs - 1) === atMs,
  };
}

/** `isOpen`: the grid also extends before its first tick, which is only a bound. */
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

/** A random interval has no pattern: each tick is drawn when the last run has ended. */
export const NO_PATTERN: Pattern = {
  next: () => null,
  count: () => 0,
  matches: () => false,
};

/** The newest `count` ticks of the range, ascending; fewer if the range has fewer. */
function newestTicks(
  pattern: Pattern,
  { afterMs, untilMs }: TickRange,
  { count, work }: { readonly count: number; readonly work: Work },
): number[] {
  // Goes back in doubling steps until the range has enough ticks, then halves it to exactly as many.
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

// ── counting ticks of a cron schedule by multiplication: matching days × times of a day. The count must equal the number
// of steps of nextTick. Near clock changes, days have no regular length, and nextTick counts them. ──

const DAY_MS = 86_400_000;

/** Ticks after `afterMs`, up to and including `untilMs`; at most a hundred years of them. */
function countTicks(
  schedule: CronSchedule,
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
  work: Work,
): number {
  // Ticks are whole seconds, and there are none before 1970.
  let fromMs = (Math.floor(Math.max(afterMs, -1) / 1_000) + 1) * 1_000;
  const endMs = Math.floor(untilMs) + 1;
  if (fromMs >= endMs) return 0;
  schedule.zone.cover(endMs);
  let count = 0;
  let stretch: Stretch | null = schedule.zone.stretchAt(fromMs);
  for (; stretch !== null && fromMs < endMs; stretch = stretch.next) {
    work.steps++;
    const highMs = Math.min(endMs, stretch.endMs);
    const plain = plainPart(schedule, stretch);
    const plainFromMs = Math.min(Math.max(fromMs, plain.fromMs), highMs);
    const plainEndMs = Math.min(Math.max(plainFromMs, plain.endMs), highMs);
    count += countOneByOne(schedule, { fromMs, endMs: plainFromMs }, work);
    count += countLocal(schedule.expression, {
      fromMs: plainFromMs + stretch.offsetMs,
      endMs: plainEndMs + stretch.offsetMs,
      work,
    });
    count += countOneByOne(schedule, { fromMs: plainEndMs, endMs: highMs }, work);
    fromMs = highMs;
  }
  return count;
}

/** The part of a stretch in which every fitting local time is a tick. */
function plainPart(
  { expression }: CronSchedule,
  { startMs, endMs, offsetMs, previous, next }: Stretch,
): { fromMs: number; endMs: number } {
  if (expression.isWildcard) return { fromMs: startMs, endMs };
  const before = Math.abs(offsetMs - (previous?.offsetMs ?? offsetMs));
  const after = Math.abs(offsetMs - (next?.offsetMs ?? offsetMs));
  return { fromMs: startMs + before, endMs: endMs - after };
}

function countOneByOne(
  schedule: CronSchedule,
  { fromMs, endMs }: { readonly fromMs: number; readonly endMs: number },
  work: Work,
): number {
  let count = 0;
  if (fromMs >= endMs) return 0;
  let tickMs = nextTick(schedule, fromMs - 1);
  while (tickMs !== null && tickMs < endMs) {
    work.steps++;
    count++;
    tickMs = nextTick(schedule, tickMs);
  }
  return count;
}

type LocalRange = { readonly fromMs: number; readonly endMs: number; readonly work: Work };

/** Fitting local times at or after `fromMs` and before `endMs`. */
function countLocal(cron: CronExpression, { fromMs, endMs, work }: LocalRange): number {
  if (fromMs >= endMs) return 0;
  const firstDay = Math.floor(fromMs / DAY_MS);
  const lastDay = Math.floor(endMs / DAY_MS);
  const perDay = timesBefore(cron, 86_400);
  let days = 0;
  for (let day = cron.days.next(firstDay, work); day < lastDay; ) {
    work.steps++;
    days++;
    day = cron.days.next(day + 1, work);
  }
  // Counts all days but the last as whole, then corrects for the times before the start and the end.
  const before = isDay(cron, firstDay, work) ? timesBefore(cron, secondOf(fromMs)) : 0;
  const rest = isDay(cron, lastDay, work) ? timesBefore(cron, secondOf(endMs)) : 0;
  return days * perDay - before + rest;
}

function isDay(cron: CronExpression, day: number, work: Work): boolean {
  return cron.days.next(day, work) === day;
}

/** The first second of the day that is not before the time. */
function secondOf(localMs: number): number {
  return Math.ceil((localMs - Math.floor(localMs / DAY_MS) * DAY_MS) / 1_000);
}

/** How many fitting times of a day are before that second of it. */
function timesBefore({ nextHour, nextMinute, nextSecond }: CronExpression, second: number): number {
  const hour = Math.floor(second / 3_600);
  const minute = Math.floor(second / 60) % 60;
  const perMinute = valuesBefore(nextSecond, 60);
  const perHour = valuesBefore(nextMinute, 60) * perMinute;
  let count = valuesBefore(nextHour, hour) * perHour;
  if (hour >= 24 || nextHour[hour] !== hour) return count;
  count += valuesBefore(nextMinute, minute) * perMinute;
  if (nextMinute[minute] === minute) count += valuesBefore(nextSecond, second % 60);
  return count;
}

/** How many allowed values are smaller than `end`, by a table of the next allowed value for each. */
function valuesBefore(nextAllowed: Uint8Array, end: number): number {
  let count = 0;
  for (let value = nextAllowed[0] ?? end; value < end; value = nextAllowed[value + 1] ?? end) {
    count++;
  }
  return count;
}

// ── surveying a range, after downtime for example: the number of ticks, the first, the last, the newest. Between two
// excluded spans ticks are counted, not visited, so 200 days of every second cost about as much as of every hour. ──

export type Survey = {
  readonly count: number;
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  /** The newest of them, ascending, at most the requested number. */
  readonly newest: readonly number[];
  /** False: the budget was used up; the survey then covers (afterMs, reachedMs] only. */
  readonly isComplete: boolean;
  readonly reachedMs: number;
};

export type SurveyParams = {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly newest: number;
  /**
   * Steps of work: ticks visited, excluded spans passed, days counted.
   * @default 300_000
   */
  readonly budget?: number;
};

export type Surveyed = {
  readonly pattern: Pattern;
  readonly excluded: readonly SpanSource[];
  readonly fromMs: number;
  readonly untilMs: number;
};

const BUDGET = 300_000;
const HORIZON_MS = 100 * 366 * 86_400_000;
/** A part is surveyed as a whole, so parts are short enough for the budget to take effect. */
const PART_MAX_MS = 366 * 86_400_000;
const RULES_PER_STEP = 8;

/** A range without exclusions that has ticks. */
type Part = TickRange & { readonly count: number };

export function surveyTicks(
  { pattern, excluded, fromMs, untilMs }: Surveyed,
  { afterMs, untilMs: requestedMs, newest, budget = BUDGET }: SurveyParams,
): Survey {
  const work = { steps: 0 };
  const wanted = Math.max(1, newest);
  const lastMs = Math.floor(Math.min(requestedMs, untilMs));
  let cursorMs = Math.floor(Math.max(afterMs, fromMs - 1, -1)) + 1;
  const horizonMs = Math.min(lastMs, cursorMs + HORIZON_MS);
  let count = 0;
  let firstMs: number | null = null;
  // The last parts, as many as hold the newest ticks.
  const parts: Part[] = [];
  let partsCount = 0;
  while (cursorMs <= horizonMs && work.steps < budget) {
    // Evaluating many rules is work too, though less than visiting a tick.
    work.steps += 1 + Math.floor(excluded.length / RULES_PER_STEP);
    const partEndMs = Math.min(horizonMs + 1, cursorMs + PART_MAX_MS);
    const span =
      excluded.length === 0 ? null : firstOfAll(excluded, { fromMs: cursorMs, untilMs: partEndMs });
    const endMs = span === null ? partEndMs : span.startMs;
    if (endMs > cursorMs) {
      const range = { afterMs: cursorMs - 1, untilMs: endMs - 1 };
      const found = pattern.count(range, work);
      if (found > 0) {
        firstMs ??= pattern.next(range.afterMs);
        count += found;
        parts.push({ ...range, count: found });
        partsCount += found;
        while (partsCount - (parts[0]?.count ?? 0) >= wanted)
          partsCount -= parts.shift()?.count ?? 0;
      }
    }
    cursorMs = span === null ? partEndMs : span.endMs;
  }
  const ticks = newestOfParts(pattern, parts, { count: wanted, work });
  const isComplete = cursorMs > lastMs;
  return {
    count,
    firstMs,
    lastMs: ticks.at(-1) ?? null,
    newest: newest > 0 ? ticks : [],
    isComplete,
    reachedMs: isComplete ? requestedMs : cursorMs - 1,
  };
}

function newestOfParts(
  pattern: Pattern,
  parts: readonly Part[],
  { count, work }: { readonly count: number; readonly work: { steps: number } },
): number[] {
  const found: number[][] = [];
  let missing = count;
  for (const part of parts.toReversed()) {
    const ticks = newestTicks(pattern, part, { count: Math.min(missing, part.count), work });
    found.push(ticks);
    missing -= ticks.length;
  }
  return found.toReversed().flat();
}
