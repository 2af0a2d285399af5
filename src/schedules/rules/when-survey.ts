// What a schedule has in a range of time, after an outage for example: how many ticks, the first, the
// last, the newest. Between two excluded spans ticks are counted, not visited, so 200 days of every
// second cost about as much as 200 days of every hour.

import { firstOfAll, type SpanSource } from "../calendars/spans.js";
import { newestTicks, type Pattern, type TickRange } from "./when-pattern.js";

export type Survey = {
  readonly count: number;
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  /** The newest of them, ascending, at most the number asked for. */
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
/** A part is surveyed whole, so parts are kept short enough that the budget means something. */
const PART_MAX_MS = 366 * 86_400_000;
const RULES_PER_STEP = 8;

/** A range without exclusions that has ticks. */
type Part = TickRange & { readonly count: number };

export function surveyTicks(
  { pattern, excluded, fromMs, untilMs }: Surveyed,
  { afterMs, untilMs: askedMs, newest, budget = BUDGET }: SurveyParams,
): Survey {
  const work = { steps: 0 };
  const wanted = Math.max(1, newest);
  const lastMs = Math.floor(Math.min(askedMs, untilMs));
  let cursorMs = Math.floor(Math.max(afterMs, fromMs - 1, -1)) + 1;
  const horizonMs = Math.min(lastMs, cursorMs + HORIZON_MS);
  let count = 0;
  let firstMs: number | null = null;
  // The last parts, as many as hold the newest ticks.
  const parts: Part[] = [];
  let partsCount = 0;
  while (cursorMs <= horizonMs && work.steps < budget) {
    // Asking many rules is work too, though less than visiting a tick.
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
    reachedMs: isComplete ? askedMs : cursorMs - 1,
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
