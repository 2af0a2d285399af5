// The ticks of a definition that are to come, and where changes of the clocks touch them. Pure.

import { ConfigurationError } from "../shared/errors.js";
import { cronSchedule } from "./cron/cron.js";
import { describeTouch, dstTouches } from "./cron/dst.js";
import { gridStart, warningsFor } from "./edit.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { makeWhen } from "./rules/when.js";
import { describeWhen } from "./rules/when-words.js";
import type { CachedSchedule } from "./schedule-cache.js";

export type Preview = {
  readonly ticks: readonly Date[];
  /** Changes of the clocks that touch them. */
  readonly notes: readonly string[];
};

export type DefinitionPreview = Preview & {
  /** When it runs, in plain words. */
  readonly description: string;
  /** What whoever stores it should know. */
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

/** Of an interval that is drawn the next tick alone is known, unless a rule moves it. */
export function previewOfDrawn({ when }: CachedSchedule, nextAt: number | null): Preview {
  const at = nextAt === null ? null : when.firstAllowed(nextAt);
  return { ticks: at === null ? [] : [new Date(at)], notes: [] };
}

/** A definition that nobody has stored: as if it were made at this moment. */
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
