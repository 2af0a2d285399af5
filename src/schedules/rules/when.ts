// Computes the ticks of a schedule: a pattern within bounds, minus excluded times. Pure: the same definition and creation
// time give the same ticks on every instance. All work is bounded: excluded time is skipped span by span, never tick by
// tick, and no search goes more than a hundred years ahead.

import { type CalendarRules, calendarSources, dateSources } from "../calendars/calendar.js";
import {
  firstOfAll,
  onClockOf,
  type Reach,
  remembered,
  type Span,
  type SpanSource,
} from "../calendars/windows.js";
import { cronSchedule, type DstPolicy } from "../cron/cron.js";
import { instantText, requireZone, type Zone } from "../cron/zone.js";
import {
  cronPattern,
  gridPattern,
  NO_PATTERN,
  oncePattern,
  type Pattern,
  type Survey,
  type SurveyParams,
  surveyTicks,
} from "./when-pattern.js";

export type { Survey, SurveyParams } from "./when-pattern.js";

export interface When {
  readonly definition: WhenDefinition;
  /** First tick after the instant; null if none is left. Always null for ranges: theirs are drawn. */
  next(afterMs: number): number | null;
  /** Surveys the ticks in (afterMs, untilMs]. Not for ranges, which have no computed ticks. */
  survey(params: SurveyParams): Survey;
  /** The first instant at or after this one that no rule excludes; null if none is left. */
  firstAllowed(atMs: number): number | null;
  /** The rule that excludes this instant, in words, or null. */
  ruleAgainst(atMs: number): string | null;
  /** Whether the bare pattern, without bounds and exclusions, has a tick at this instant. */
  matchesPattern(atMs: number): boolean;
}

const HORIZON_MS = 100 * 366 * 86_400_000;
/** More than one a day for a hundred years: time that is excluded for longer is excluded for good. */
const JUMPS_MAX = 40_000;
/** Very many rules allow fewer jumps, so that a call takes about a second at most. */
const LOOKUPS_MAX = 4_000_000;

/**
 * `anchorMs`: the creation time. A grid without `from` has its first tick one interval after it; with
 * `from` that is the first tick.
 */
export function makeWhen(definition: WhenDefinition, anchorMs: number): When {
  const zone = requireZone(definition.timezone, "timezone");
  const pattern = patternOf(definition, anchorMs);
  const excluded = excludedTimes(definition, zone);
  const fromMs = definition.fromMs ?? Number.NEGATIVE_INFINITY;
  const untilMs = definition.untilMs ?? Number.POSITIVE_INFINITY;
  const jumpsMax = Math.min(JUMPS_MAX, Math.ceil(LOOKUPS_MAX / Math.max(1, excluded.length)));
  const spanAt = (atMs: number) =>
    excluded.length === 0 ? null : firstOfAll(excluded, { fromMs: atMs, untilMs: atMs + 1 });

  return {
    definition,

    next(afterMs) {
      let lowMs = Math.max(afterMs, fromMs - 1);
      const horizonMs = Math.min(untilMs, lowMs + HORIZON_MS);
      for (let jumps = 0; jumps <= jumpsMax; jumps++) {
        const tickMs = pattern.next(lowMs);
        if (tickMs === null || tickMs > horizonMs) return null;
        const span = spanAt(tickMs);
        if (span === null) return tickMs;
        lowMs = span.endMs - 1;
      }
      return null;
    },

    survey: (params) => surveyTicks({ pattern, excluded, fromMs, untilMs }, params),

    firstAllowed(atMs) {
      let lowMs = Math.max(atMs, fromMs);
      const horizonMs = Math.min(untilMs, lowMs + HORIZON_MS);
      for (let jumps = 0; jumps <= jumpsMax && lowMs <= horizonMs; jumps++) {
        const span = spanAt(lowMs);
        if (span === null) return lowMs;
        lowMs = span.endMs;
      }
      return null;
    },

    ruleAgainst(atMs) {
      if (atMs < fromMs) return `before \`from\` ${instantText(fromMs, zone)}`;
      if (atMs > untilMs) return `after \`until\` ${instantText(untilMs, zone)}`;
      // Goes by the order of the definition, so that the same rule is named every time.
      for (const source of excluded) {
        const span = source.firstSpan({ fromMs: atMs, untilMs: atMs + 1 });
        if (span !== null) return span.words;
      }
      return null;
    },

    matchesPattern: (atMs) => pattern.matches(atMs),
  };
}

function patternOf(definition: WhenDefinition, anchorMs: number): Pattern {
  const { kind, cron, timezone, dst, everyMs, atMs, fromMs } = definition;
  if (kind === "cron" && cron !== null) {
    return cronPattern(cronSchedule({ cron, timezone, ...(dst === null ? {} : { dst }) }));
  }
  if (kind === "grid" && everyMs !== null) {
    const isOpen = fromMs !== null;
    return gridPattern({ firstMs: fromMs ?? anchorMs + everyMs, everyMs, isOpen });
  }
  return kind === "at" && atMs !== null ? oncePattern(atMs) : NO_PATTERN;
}

function excludedTimes({ exclude, calendars }: WhenDefinition, zone: Zone): SpanSource[] {
  const dates = dateSources(exclude).map((each) => onClockOf(zone, each));
  const named = calendars.flatMap(({ name, rules }) =>
    calendarSources(rules, zone).map((each) =>
      inWords(each, `the calendar ${JSON.stringify(name)}`),
    ),
  );
  return [...dates, ...named].map(remembered);
}

function inWords(source: SpanSource, whose: string): SpanSource {
  return {
    firstSpan(reach: Reach): Span | null {
      const span = source.firstSpan(reach);
      return span === null ? null : { ...span, words: `${whose}: ${span.words}` };
    },
  };
}

/**
 * The checked "when" of a schedule as it is stored: JSON, canonical (equal schedules give equal JSON), and complete: with
 * it and the creation time any instance computes the same ticks.
 */
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
