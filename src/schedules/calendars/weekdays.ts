// Weekdays as calendars name them, Monday first; the days that do not count are excluded.

import { kindOf, readList, refuse } from "../../shared/nested-problems.js";
import { quoteShort, suggest } from "../../shared/suggest.js";
import { DAY_MS } from "./dates.js";
import type { Reach, Span, SpanSource } from "./spans.js";

export const WEEKDAYS: readonly string[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");
const EXAMPLE = '["mon", "tue", "wed", "thu", "fri"]';
const ENTRIES_MAX = 50;

/** The weekdays, Monday first, each once; null if that is all of them. */
export function readWeekdays(value: unknown, field: string): string[] | null {
  const given = readList(value, {
    field,
    countMax: ENTRIES_MAX,
    example: EXAMPLE,
    read: readWeekday,
  });
  if (given.length === 0) {
    refuse(field, `must name at least one weekday, such as ${EXAMPLE}, but is empty.`);
  }
  const days = WEEKDAYS.filter((day) => given.includes(day));
  return days.length === WEEKDAYS.length ? null : days;
}

function readWeekday(value: unknown, field: string): string {
  const right = `one of ${WEEKDAYS.join(", ")}`;
  if (typeof value !== "string") {
    return refuse(field, `must be ${right}, but is ${kindOf(value)}.`);
  }
  const day = value.length > 20 ? "" : value.toLowerCase();
  if (WEEKDAYS.includes(day)) return day;
  const meant = suggest(day.slice(0, 3), WEEKDAYS);
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return refuse(field, `must be ${right}, but is ${quoteShort(value)}.${hint}`);
}

/** "mon to fri", "sat and sun". */
export function weekdaysText(days: readonly string[]): string {
  const first = WEEKDAYS.indexOf(days[0] ?? "");
  const last = WEEKDAYS.indexOf(days.at(-1) ?? "");
  if (days.length >= 3 && last - first === days.length - 1) return `${days[0]} to ${days.at(-1)}`;
  if (days.length <= 1) return days.join("");
  return `${days.slice(0, -1).join(", ")} and ${days.at(-1)}`;
}

/** The days that are not among these, as times of the clock on the wall. */
export function otherDays(days: readonly string[]): SpanSource {
  const counts = WEEKDAYS.map((day) => days.includes(day));
  const only = weekdaysText(days);
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      const today = Math.floor(fromMs / DAY_MS);
      for (let day = today; day < today + 7 && day * DAY_MS < untilMs; day++) {
        // 1970-01-01 was a Thursday.
        const weekday = (((day + 3) % 7) + 7) % 7;
        if (counts[weekday]) continue;
        const words = `${NAMES[weekday]} is no day of it (${only})`;
        return { startMs: day * DAY_MS, endMs: (day + 1) * DAY_MS, words };
      }
      return null;
    },
  };
}
