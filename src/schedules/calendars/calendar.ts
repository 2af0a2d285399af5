// Reads and evaluates calendars: business days, holidays, blackout windows and events of an .ics file. Schedules that use
// a calendar have no ticks in its excluded time. The rules are plain data that a schedule stores as a copy. Pure.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { gather, kindOf, readList, refuse } from "../../shared/problems.js";
import { quoteShort, refuseUnknownMembers } from "../../shared/suggest.js";
import { requireZone, type Zone } from "../cron/zone.js";
import { eventSources, type IcsEvent, readIcs } from "./ics.js";
import {
  type CalendarWindow,
  DAY_MS,
  dailySource,
  onClockOf,
  otherDays,
  type Reach,
  readWeekdays,
  readWindows,
  type Span,
  SpanList,
  type SpanSource,
  weekdaysText,
  windowSpan,
  windowText,
} from "./windows.js";

export type CalendarOptions = {
  /** The weekdays that count, such as `["mon", "tue", "wed", "thu", "fri"]`; the others are excluded. */
  readonly days?: readonly string[] | undefined;
  /** Excluded dates: `"2026-12-25"`, `"2026-12-24..2026-12-26"`, or `"12-25"` for every year. */
  readonly dates?: readonly string[] | undefined;
  /**
   * Blackout windows; `to` no longer belongs to them. Daily ones (`"22:00"` to `"06:00"`) may pass
   * midnight and may name the `days` on which they begin; single ones have two ISO instants, or two
   * local times such as `"2026-12-20T18:00"`.
   */
  readonly windows?:
    | readonly {
        readonly from: string;
        readonly to: string;
        readonly days?: readonly string[] | undefined;
      }[]
    | undefined;
  /** The text of an .ics file: its events are excluded. */
  readonly ics?: string | undefined;
  /**
   * IANA name.
   * @default the zone of the schedule
   */
  readonly timezone?: string | undefined;
};

/** A checked calendar as stored: JSON, and equal calendars are equal JSON. */
export type CalendarRules = {
  readonly timezone: string | null;
  readonly days: readonly string[] | null;
  readonly dates: readonly string[];
  readonly windows: readonly CalendarWindow[];
  readonly events: readonly IcsEvent[];
};

export const CALENDAR_MEMBERS: readonly string[] = ["days", "dates", "windows", "ics", "timezone"];

const EXAMPLE = '{ days: ["mon", "tue", "wed", "thu", "fri"], dates: ["12-25"] }';
const WINDOWS_LISTED_MAX = 3;

/** Throws a `ConfigurationError` with every problem. */
export function readCalendar(options: CalendarOptions, field: string): CalendarRules {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return refuse(field, `must be a calendar such as ${EXAMPLE}, but is ${kindOf(options)}.`);
  }
  const name = (member: string) => (field === "" ? member : `${field}.${member}`);
  const problems: Problem[] = refuseUnknownMembers(options, CALENDAR_MEMBERS, field);
  const { days, dates, windows, ics, timezone } = options;
  const isEmpty = [days, dates, windows, ics].every((each) => each === undefined);
  if (isEmpty) {
    const message = `must have one of days, dates, windows or ics, such as ${EXAMPLE}.`;
    problems.push({ field: field === "" ? "calendar" : field, message });
  }
  const given = <T, N>(member: unknown, none: N, read: () => T) =>
    member === undefined ? none : gather(problems, read);
  const rules = {
    timezone: given(timezone, null, () => requireZone(timezone, name("timezone")).name),
    days: given(days, null, () => readWeekdays(days, name("days"))),
    dates: given(dates, [], () => readDates(dates, name("dates"))),
    windows: given(windows, [], () => readWindows(windows, name("windows"))),
    events: given(ics, [], () => readIcs(ics, name("ics"))),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    timezone: rules.timezone ?? null,
    days: rules.days ?? null,
    dates: rules.dates ?? [],
    windows: rules.windows ?? [],
    events: rules.events ?? [],
  };
}

/** The excluded times of a calendar; `scheduleZone` counts where it has no zone of its own. */
export function calendarSources(rules: CalendarRules, scheduleZone: Zone): SpanSource[] {
  const { timezone, days, dates, windows, events } = rules;
  const zone = timezone === null ? scheduleZone : requireZone(timezone, "timezone");
  const ofEvents = eventSources(events, zone);
  const wall = [
    ...(days === null ? [] : [otherDays(days)]),
    ...dateSources(dates),
    ...windows.filter(({ kind }) => kind === "daily").map(dailySource),
    ...ofEvents.wall,
  ];
  const single = windows.filter(({ kind }) => kind !== "daily");
  const instants =
    single.length === 0 ? [] : [new SpanList(single.map((w) => windowSpan(w, zone)))];
  return [...wall.map((each) => onClockOf(zone, each)), ...instants, ...ofEvents.instants];
}

/** For example "mon to fri only; not on 12 dates; not 22:00 to 06:00 every day". */
export function describeCalendar(rules: CalendarRules): string {
  const { timezone, days, dates, windows, events } = rules;
  const parts: string[] = [];
  if (days !== null) parts.push(`${weekdaysText(days)} only`);
  const [firstDate] = dates;
  if (dates.length === 1) parts.push(`not on ${firstDate?.replace("..", " to ")}`);
  else if (dates.length > 1) parts.push(`not on ${dates.length} dates`);
  for (const window of windows.slice(0, WINDOWS_LISTED_MAX))
    parts.push(`not ${windowText(window)}`);
  const restCount = windows.length - WINDOWS_LISTED_MAX;
  if (restCount > 0) parts.push(`not in ${restCount} more window${restCount === 1 ? "" : "s"}`);
  const [event] = events;
  if (events.length === 1) parts.push(`not during ${JSON.stringify(event?.summary)}`);
  else if (events.length > 1) parts.push(`not during ${events.length} events`);
  const rule = parts.length === 0 ? "excludes nothing" : parts.join("; ");
  return timezone === null ? rule : `${rule}; ${timezone}`;
}

// ── excluded dates: one date ("2026-12-25"), several in a row ("2026-12-24..2026-12-26"), or the same every year
// ("12-25", "12-24..01-01"), each stored as one canonical text and evaluated as spans of local time ──

const DATES_MAX = 1_000;

const TEXT_LENGTH_MAX = 22;
const DATES_EXAMPLE = '"2026-12-25", "2026-12-24..2026-12-26", or "12-25" for every year';
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
    return refuse(field, `must be a date such as ${DATES_EXAMPLE}, but is ${kindOf(value)}.`);
  }
  const wrong = (why: string) =>
    refuse(field, `must be a date such as ${DATES_EXAMPLE}, but ${why}.`);
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
