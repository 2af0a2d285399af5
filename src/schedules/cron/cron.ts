// Computes the ticks of a cron schedule from its expression, its time zone and its policy for clock changes. Pure: the
// next tick depends on these three and on the previous tick, never on the present time.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { gather } from "../../shared/problems.js";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "../../shared/suggest.js";
import type { Work } from "./days.js";
import { type CronExpression, NONE, parseCron } from "./parse.js";
import { requireZone, type Stretch, type Zone } from "./zone.js";

const GAPS = ["after", "skip"] as const;
const OVERLAPS = ["first", "second", "both"] as const;

/**
 * The policy of a fixed-time schedule when the clocks change. Schedules whose minute or hour field begins with `*` follow
 * elapsed time and ignore it.
 */
export type DstOptions = {
  /**
   * A time that the clocks jump over: run once when they have jumped, or not at all.
   * @default "after"
   */
  readonly gap?: (typeof GAPS)[number] | undefined;
  /**
   * A time that comes twice: run at the first pass, at the second, or at both.
   * @default "first"
   */
  readonly overlap?: (typeof OVERLAPS)[number] | undefined;
};

/** Checked and complete. */
export type DstPolicy = {
  readonly gap: (typeof GAPS)[number];
  readonly overlap: (typeof OVERLAPS)[number];
};

export type CronOptions = {
  /** Five fields, or six with seconds first; `@daily` and the like. */
  readonly cron: string;
  /**
   * IANA name; never the zone of the host.
   * @default "UTC"
   */
  readonly timezone?: string;
  readonly dst?: DstOptions | undefined;
};

export type CronSchedule = {
  readonly expression: CronExpression;
  readonly zone: Zone;
  readonly dst: DstPolicy;
};

/** Throws a `ConfigurationError` with every problem. */
export function cronSchedule(options: CronOptions, field = ""): CronSchedule {
  const problems: Problem[] = [];
  const name = (member: string) => (field === "" ? member : `${field}.${member}`);
  const expression = gather(problems, () => parseCron(options.cron, name("cron")));
  const zone = gather(problems, () => requireZone(options.timezone, name("timezone")));
  const dst = gather(problems, () => requireDst(options.dst, name("dst")));
  if (expression && zone && dst) return { expression, zone, dst };
  throw new ConfigurationError(problems);
}

function requireDst(value: unknown, field: string): DstPolicy {
  if (value === undefined) return { gap: "after", overlap: "first" };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = value === null ? "null" : typeof value;
    const message = `must be an object such as { gap: "skip" }, but is ${kind}.`;
    throw new ConfigurationError([{ field, message }]);
  }
  const { gap = "after", overlap = "first" } = value as Record<string, unknown>;
  const problems = refuseUnknownMembers(value, ["gap", "overlap"], field);
  const isGap = isOneOf(GAPS, gap);
  const isOverlap = isOneOf(OVERLAPS, overlap);
  if (!isGap) problems.push({ field: `${field}.gap`, message: notOneOf(GAPS, gap) });
  if (!isOverlap)
    problems.push({ field: `${field}.overlap`, message: notOneOf(OVERLAPS, overlap) });
  if (problems.length === 0 && isGap && isOverlap) return { gap, overlap };
  throw new ConfigurationError(problems);
}

function isOneOf<T extends string>(allowed: readonly T[], value: unknown): value is T {
  return allowed.some((each) => each === value);
}

function notOneOf(allowed: readonly string[], value: unknown): string {
  const shown = typeof value === "string" ? quoteShort(value) : typeof value;
  const meant = typeof value === "string" ? suggest(value, allowed) : undefined;
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return `must be one of ${listShort(allowed)}, but is ${shown}.${hint}`;
}

// ── the next tick: goes through stretches of constant offset and computes the next local time in each, so a step is some
// arithmetic and never formats a date. Work is bounded by a hundred years with a few stretches a year. ──

/** A longer gap is not a change to summer time: whole days were skipped (Apia, 2011). */
export const GAP_MAX_MS = 3 * 3_600_000;

const NEXT_DAY_MS = 86_400_000;
/** Days that fit a cron expression are at most 40 years apart; clock changes hide a tick for less. */
const HORIZON_MS = 100 * 366 * NEXT_DAY_MS;
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
    // When the clocks go back, the search repeats local times that have passed.
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
 * The local time at which to begin in a stretch. After a gap whose times run late: the beginning of the gap. After an
 * overlap, for schedules of the first pass: the end of the second pass.
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

/** The local time at which to end in a stretch: a schedule of the second pass skips times that will repeat. */
function highestLocal(
  { expression, dst }: CronSchedule,
  { endMs, offsetMs, next }: Stretch,
): number {
  if (next === null || expression.isWildcard || dst.overlap !== "second") return endMs + offsetMs;
  return endMs + Math.min(offsetMs, next.offsetMs);
}

// ── the next local time of an expression, without a time zone: milliseconds since 1970-01-01T00:00 of the local clock ──

const LOCAL_DAY_MS = 86_400_000;

/** The first fitting local time at or after `fromMs`, a whole second. */
export function nextLocal(cron: CronExpression, fromMs: number, work: Work): number {
  const today = Math.floor(fromMs / LOCAL_DAY_MS);
  const day = cron.days.next(today, work);
  if (day === today) {
    const time = nextTime(cron, (fromMs - today * LOCAL_DAY_MS) / 1_000);
    if (time !== -1) return today * LOCAL_DAY_MS + time * 1_000;
    return cron.days.next(today + 1, work) * LOCAL_DAY_MS + nextTime(cron, 0) * 1_000;
  }
  return day * LOCAL_DAY_MS + nextTime(cron, 0) * 1_000;
}

/** The first fitting second of a day at or after `from`; −1 if the rest of the day has none. */
function nextTime(cron: CronExpression, from: number): number {
  const { nextSecond, nextMinute, nextHour } = cron;
  const fromHour = Math.floor(from / 3_600);
  let hour = at(nextHour, fromHour);
  if (hour === fromHour) {
    const fromMinute = Math.floor(from / 60) % 60;
    let minute = at(nextMinute, fromMinute);
    if (minute === fromMinute) {
      const second = at(nextSecond, from % 60);
      if (second !== NONE) return hour * 3_600 + minute * 60 + second;
      minute = at(nextMinute, fromMinute + 1);
    }
    if (minute !== NONE) return hour * 3_600 + minute * 60 + at(nextSecond, 0);
    hour = at(nextHour, fromHour + 1);
  }
  return hour === NONE ? -1 : hour * 3_600 + at(nextMinute, 0) * 60 + at(nextSecond, 0);
}

function at(table: Uint8Array, index: number): number {
  return table[index] ?? NONE;
}
