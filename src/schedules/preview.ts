// Computes what a definition will do: its next ticks, the clock changes that touch them, and warnings for its author. Pure.

import { formatDuration } from "../shared/duration.js";
import { ConfigurationError } from "../shared/errors.js";
import { cronSchedule } from "./cron/cron.js";
import { describeTouch, dstTouches } from "./cron/dst.js";
import { gridStart } from "./edit.js";
import { describeWhen } from "./rules/describe-when.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { makeWhen } from "./rules/when.js";
import type { CachedSchedule } from "./schedule-cache.js";

export type Preview = {
  readonly ticks: readonly Date[];
  /** Changes of the clocks that touch them. */
  readonly notes: readonly string[];
};

export type DefinitionPreview = Preview & {
  /** When it runs, in plain words. */
  readonly description: string;
  /** For its author: how late it may run, and which clock changes touch it. */
  readonly warnings: readonly string[];
};

const PREVIEW_MAX = 1_000;

/** The next ticks of a definition, with notes. */
export function previewOf(
  { definition, when }: CachedSchedule,
  afterMs: number,
  count: number,
): Preview {
  if (!Number.isInteger(count) || count < 1 || count > PREVIEW_MAX)
    throw new ConfigurationError([
      {
        field: "count",
        message: `must be a whole number from 1 to ${PREVIEW_MAX}, for example 10`,
      },
    ]);
  const ticks: number[] = [];
  for (let at = when.next(afterMs); at !== null && ticks.length < count; at = when.next(at))
    ticks.push(at);
  const last = ticks.at(-1);
  const { cron, timezone, dst } = definition.when;
  if (cron === null || last === undefined)
    return { ticks: ticks.map((at) => new Date(at)), notes: [] };
  const schedule = cronSchedule({ cron, timezone, ...(dst ? { dst } : {}) });
  const touches = dstTouches(schedule, { fromMs: afterMs, untilMs: last, limit: 10 });
  return {
    ticks: ticks.map((at) => new Date(at)),
    notes: touches.map((touch) => `${describeTouch(touch)}.`),
  };
}

/** A random interval has one known tick, the next one, unless an exclusion moves it. */
export function previewOfDrawn({ when }: CachedSchedule, nextAt: number | null): Preview {
  const at = nextAt === null ? null : when.firstAllowed(nextAt);
  return { ticks: at === null ? [] : [new Date(at)], notes: [] };
}

/** Previews a definition that is not stored, as if it were created now. */
export function previewDefinition(
  definition: ScheduleDefinition,
  { now, count }: { readonly now: number; readonly count: number },
): DefinitionPreview {
  const compiled = { definition, when: makeWhen(definition.when, gridStart(now)) };
  const isDrawn = definition.when.kind === "range";
  return {
    description: describeWhen(definition.when),
    ...(isDrawn
      ? previewOfDrawn(compiled, Math.max(now, definition.when.fromMs ?? now))
      : previewOf(compiled, now, count)),
    warnings: warningsFor(definition, now),
  };
}

const WARNED_AHEAD_MS = 400 * 86_400_000;

const HOUR_MS = 3_600_000;

const WEEK_MS = 7 * 24 * HOUR_MS;

/** This many ticks ahead show how far apart they are. */
const GAPS_SEEN = 8;

/** Warnings for the author of a schedule: how late it may run, and which clock changes touch it. */
export function warningsFor(definition: ScheduleDefinition, now: number): string[] {
  const late = lateWarning(definition, now);
  return [...(late === null ? [] : [late]), ...dstWarnings(definition, now)];
}

/**
 * After an outage the newest missed tick is fired at any hour, unless `within` limits that. Null: no warning is needed.
 * Ticks less than an hour apart are never later than that; for weekly ticks, late is better than never.
 */
export function lateWarning(definition: ScheduleDefinition, now: number): string | null {
  const { when, missed, monitor } = definition;
  if (monitor || missed.run !== "latest" || missed.withinMs !== null || when.kind === "range")
    return null;
  const ticks = makeWhen(when, now);
  const gaps: number[] = [];
  for (let at = ticks.next(now), seen = 0; at !== null && seen < GAPS_SEEN; seen += 1) {
    const next = ticks.next(at);
    if (next !== null) gaps.push(next - at);
    at = next;
  }
  const [largest, smallest] = [Math.max(0, ...gaps), Math.min(WEEK_MS, ...gaps)];
  if (largest < HOUR_MS || smallest >= WEEK_MS) return null;
  return (
    `After downtime, the most recent missed tick is run whenever an instance is back, up to ${formatDuration(largest)} late ` +
    '(missed: "latest"). If that is too late to be useful, limit it: missed: { run: "latest", within: "1h" }, or missed: "skip".'
  );
}

function dstWarnings({ when }: ScheduleDefinition, now: number): string[] {
  if (when.kind !== "cron" || when.cron === null) return [];
  const { cron, timezone, dst } = when;
  const schedule = cronSchedule({ cron, timezone, ...(dst ? { dst } : {}) });
  const range = { fromMs: now, untilMs: now + WARNED_AHEAD_MS, limit: 2 };
  return dstTouches(schedule, range).map((touch) => `${describeTouch(touch)}.`);
}
