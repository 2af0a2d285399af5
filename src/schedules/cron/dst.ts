// Finds and describes the clock changes that touch a cron schedule, for warnings and previews. It reports the decisions of
// cron.ts and makes none.

import { type CronSchedule, GAP_MAX_MS, nextLocal } from "./cron.js";
import type { CronExpression } from "./parse.js";
import type { Stretch } from "./zone.js";

/** A clock change that skips or repeats times of a schedule. */
export type DstTouch = {
  readonly kind: "gap" | "overlap";
  /** When the clocks change. */
  readonly atMs: number;
  readonly offsetBeforeMs: number;
  readonly offsetAfterMs: number;
  /** The first of the schedule's local times that are skipped or repeated, as if they were UTC. */
  readonly localMs: readonly number[];
  /** Whether there are more times than listed. */
  readonly hasMore: boolean;
  readonly effect: "made_up" | "skipped" | "first" | "second" | "both";
  /** The tick of the first of the times; null if it has none. */
  readonly tickMs: number | null;
};

const LISTED_MAX = 3;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const HORIZON_MAX_MS = 100 * 366 * DAY_MS;

/** The changes after `fromMs`, up to `untilMs`, that touch the schedule; at most `limit` of them. */
export function dstTouches(
  schedule: CronSchedule,
  range: { readonly fromMs: number; readonly untilMs: number; readonly limit: number },
): DstTouch[] {
  const { zone } = schedule;
  const untilMs = Math.min(range.untilMs, range.fromMs + HORIZON_MAX_MS);
  zone.cover(untilMs);
  const touches: DstTouch[] = [];
  let stretch = zone.stretchAt(range.fromMs).next;
  for (; stretch && stretch.startMs <= untilMs; stretch = stretch.next) {
    if (touches.length >= range.limit) break;
    const touch = touchOf(schedule, stretch);
    if (touch) touches.push(touch);
  }
  return touches;
}

function touchOf(schedule: CronSchedule, stretch: Stretch): DstTouch | null {
  const { startMs: atMs, offsetMs: offsetAfterMs, previous } = stretch;
  if (previous === null) return null;
  const offsetBeforeMs = previous.offsetMs;
  const shiftMs = offsetAfterMs - offsetBeforeMs;
  const { expression } = schedule;
  if (expression.isWildcard && isSteady(expression, shiftMs)) return null;
  const fromMs = atMs + Math.min(offsetBeforeMs, offsetAfterMs);
  const found = localsBetween(expression, fromMs, fromMs + Math.abs(shiftMs));
  const [firstMs] = found;
  if (firstMs === undefined) return null;
  const effect = effectOf(schedule, shiftMs);
  const tickMs = {
    made_up: atMs,
    skipped: null,
    first: firstMs - offsetBeforeMs,
    second: firstMs - offsetAfterMs,
    both: firstMs - offsetBeforeMs,
  }[effect];
  return {
    kind: shiftMs > 0 ? "gap" : "overlap",
    atMs,
    offsetBeforeMs,
    offsetAfterMs,
    localMs: found.slice(0, LISTED_MAX),
    hasMore: found.length > LISTED_MAX,
    effect,
    tickMs,
  };
}

function effectOf({ expression, dst }: CronSchedule, shiftMs: number): DstTouch["effect"] {
  if (shiftMs < 0) return expression.isWildcard ? "both" : dst.overlap;
  const isMadeUp = !expression.isWildcard && dst.gap === "after" && shiftMs <= GAP_MAX_MS;
  return isMadeUp ? "made_up" : "skipped";
}

function localsBetween(expression: CronExpression, fromMs: number, untilMs: number): number[] {
  const found: number[] = [];
  const work = { steps: 0 };
  let localMs = nextLocal(expression, fromMs, work);
  while (localMs < untilMs && found.length <= LISTED_MAX) {
    found.push(localMs);
    localMs = nextLocal(expression, localMs + 1_000, work);
  }
  return found;
}

/** Whether ticks keep their distance through the shift, as every fifteen minutes does. */
function isSteady({ nextHour, nextMinute }: CronExpression, shiftMs: number): boolean {
  if (Math.abs(shiftMs) >= DAY_MS) return false;
  for (let hour = 0; hour < 24; hour++) if (nextHour[hour] !== hour) return false;
  const minutes = (Math.abs(shiftMs) % HOUR_MS) / 60_000;
  for (let minute = 0; minute < 60; minute++) {
    const moved = (minute + minutes) % 60;
    if ((nextMinute[minute] === minute) !== (nextMinute[moved] === moved)) return false;
  }
  return true;
}

/** The touch in one sentence without a full stop. */
export function describeTouch(touch: DstTouch): string {
  const { kind, atMs, offsetBeforeMs, offsetAfterMs, localMs, hasMore, effect } = touch;
  const times = localMs.map(timeText);
  const many = localMs.length > 1;
  const listed = hasMore ? `${times.join(", ")}, …` : times.join(" and ");
  const beforeMs = atMs + offsetBeforeMs;
  const afterMs = atMs + offsetAfterMs;
  const isSameDate = dateText(beforeMs) === dateText(afterMs);
  const clock = (ms: number) => (isSameDate ? timeText(ms) : `${dateText(ms)} ${timeText(ms)}`);
  const where = `on ${dateText(localMs[0] ?? afterMs)}`;
  const change = `the clocks go ${kind === "gap" ? "forward" : "back"} from ${clock(beforeMs)} to ${clock(afterMs)}`;
  const what =
    kind === "gap"
      ? many
        ? "do not exist"
        : "does not exist"
      : many
        ? "come twice"
        : "comes twice";
  const outcome = {
    made_up: `one tick at ${timeText(afterMs)}`,
    skipped: "no tick",
    first: "one tick each, at the first pass",
    second: "one tick each, at the second pass",
    both: "a tick at both passes",
  }[effect];
  return `${listed} ${what} ${where}, when ${change}: ${many ? outcome : outcome.replace(" each", "")}`;
}

/** The date of a local time: 2026-03-08. */
function dateText(localMs: number): string {
  return new Date(localMs).toISOString().slice(0, 10);
}

/** The time of day, with seconds only where there are any: 02:30. */
function timeText(localMs: number): string {
  const text = new Date(localMs).toISOString().slice(11, 19);
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}
