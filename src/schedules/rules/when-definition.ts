// The checked "when" of a schedule, as it is stored: JSON, canonical (equal schedules give equal
// JSON), and complete: with it and its creation time any instance finds the same ticks.

import type { CalendarRules } from "../calendars/calendar.js";
import type { DstPolicy } from "../cron/cron.js";

export type WhenDefinition = {
  readonly kind: "cron" | "grid" | "range" | "at";
  readonly cron: string | null;
  readonly timezone: string;
  readonly dst: DstPolicy | null;
  /** The interval of a grid; the lower bound of a range. */
  readonly everyMs: number | null;
  /** The upper bound of a range. */
  readonly everyMaxMs: number | null;
  readonly atMs: number | null;
  readonly fromMs: number | null;
  readonly untilMs: number | null;
  readonly exclude: readonly string[];
  /** Copies, so that a schedule is evaluated without the table of calendars. */
  readonly calendars: readonly { readonly name: string; readonly rules: CalendarRules }[];
};
