// Excluded dates as users write them: one date ("2026-12-25"), several in a row
// ("2026-12-24..2026-12-26"), or the same every year ("12-25", "12-24..01-01"). Read strictly into
// one canonical text each, and evaluated as spans of the clock on the wall.

import { kindOf, readList, refuse } from "../../shared/nested-problems.js";
import { quoteShort } from "../../shared/suggest.js";
import { type Reach, type Span, SpanList, type SpanSource } from "./spans.js";

export const DATES_MAX = 1_000;
export const DAY_MS = 86_400_000;

const TEXT_LENGTH_MAX = 22;
const EXAMPLE = '"2026-12-25", "2026-12-24..2026-12-26", or "12-25" for every year';
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const YEARLY = /^(\d\d)-(\d\d)$/;
const LEAP_YEAR = 2000;
/** The longest wait for a leap day, as from 1896 to 1904. */
const LEAP_WAIT_YEARS = 8;

/** The dates in canonical form: sorted, each once. */
export function readDates(value: unknown, field: string): string[] {
  const example = '["2026-12-25", "12-24..12-26"]';
  const dates = readList(value, { field, countMax: DATES_MAX, example, read: readDate });
  return [...new Set(dates)].sort();
}

function readDate(value: unknown, field: string): string {
  if (typeof value !== "string") {
    return refuse(field, `must be a date such as ${EXAMPLE}, but is ${kindOf(value)}.`);
  }
  const wrong = (why: string) => refuse(field, `must be a date such as ${EXAMPLE}, but ${why}.`);
  if (value.length > TEXT_LENGTH_MAX) return wrong(`has ${value.length} characters`);
  const [first = "", last = first, ...more] = value.split("..");
  const isSpelledRight =
    more.length === 0 &&
    ((DATE.test(first) && DATE.test(last)) || (YEARLY.test(first) && YEARLY.test(last)));
  if (!isSpelledRight) return wrong(`is ${quoteShort(value)}`);
  for (const each of [first, last]) {
    if (!isRealDate(each)) return wrong(`${quoteShort(each)} is no date of the years 1970 to 9999`);
  }
  if (first === last) return first;
  // A yearly span may pass the end of the year; any other would be a mistake.
  if (DATE.test(first) && last < first) return wrong(`${quoteShort(value)} ends before it begins`);
  return `${first}..${last}`;
}

function isRealDate(text: string): boolean {
  const full = YEARLY.test(text) ? `${LEAP_YEAR}-${text}` : text;
  const [, year, month, day] = DATE.exec(full) ?? [];
  const date = dateMs(Number(year), Number(month), Number(day));
  return Number(year) >= 1970 && new Date(date).toISOString().slice(0, 10) === full;
}

/** Midnight of the date, as if the clock on the wall showed UTC. */
function dateMs(year: number, month: number, day: number): number {
  return Date.UTC(year, month - 1, day);
}

/** The dates, as times of the clock on the wall. */
export function dateSources(dates: readonly string[]): SpanSource[] {
  const once: Span[] = [];
  const sources: SpanSource[] = [];
  for (const text of dates) {
    const [first = "", last = first] = text.split("..");
    const isYearly = YEARLY.test(first);
    if (isYearly) sources.push(yearly(first, last));
    else
      once.push({ startMs: midnight(first), endMs: midnight(last) + DAY_MS, words: words(text) });
  }
  if (once.length > 0) sources.unshift(new SpanList(once));
  return sources;
}

function midnight(text: string): number {
  const [, year, month, day] = DATE.exec(text) ?? [];
  return dateMs(Number(year), Number(month), Number(day));
}

function words(text: string): string {
  const [first = "", last] = text.split("..");
  const yearly = YEARLY.test(first) ? " of every year" : "";
  return last === undefined
    ? `excluded date ${first}${yearly}`
    : `excluded dates ${first} to ${last}${yearly}`;
}

function yearly(first: string, last: string): SpanSource {
  const [fromMonth = 1, fromDay = 1] = first.split("-").map(Number);
  const [toMonth = 1, toDay = 1] = last.split("-").map(Number);
  const passesNewYear = last < first;
  const text = words(first === last ? first : `${first}..${last}`);
  return {
    firstSpan({ fromMs, untilMs }: Reach): Span | null {
      const thisYear = new Date(fromMs).getUTCFullYear();
      for (let year = thisYear - 1; year <= thisYear + LEAP_WAIT_YEARS; year++) {
        const startMs = dateMs(year, fromMonth, fromDay);
        if (startMs >= untilMs) return null;
        // In other years February 29th alone is no date; as the end of a span it is the 28th.
        const isMissing = first === "02-29" && !isLeap(year);
        if (isMissing && last === first) continue;
        const lastYear = passesNewYear ? year + 1 : year;
        const lastDay = last === "02-29" && !isLeap(lastYear) ? 28 : toDay;
        const endMs = dateMs(lastYear, toMonth, lastDay) + DAY_MS;
        if (endMs > fromMs) return { startMs, endMs, words: text };
      }
      return null;
    },
  };
}

function isLeap(year: number): boolean {
  return new Date(dateMs(year, 2, 29)).getUTCDate() === 29;
}
