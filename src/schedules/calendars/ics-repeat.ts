// Computes the occurrences of a repeated .ics event from the unambiguous part of RRULE. Any other part is refused by name,
// as a half-read rule would exclude the wrong days. Occurrences are computed on demand, so a rule may be endless.
// Times are those of the clock on the wall of the event's zone, as if they were UTC.

import { ConfigurationError } from "../../shared/errors.js";
import { quoteShort } from "../../shared/suggest.js";
import { requireZone, type Zone } from "../cron/zone.js";

export type IcsRepeat = {
  readonly every: "day" | "week" | "month" | "year";
  readonly interval: number;
  /** Weekdays of a weekly event, Monday is 0; null: the weekday of its start. */
  readonly weekdays: readonly number[] | null;
  /** The day a week begins with; it matters to every second week on several days. */
  readonly weekStart: number;
  /** The last time at which an occurrence may begin. */
  readonly untilMs: number | null;
  /** Excluded occurrences. */
  readonly except: readonly number[];
};

export type RepeatStart = {
  readonly startMs: number;
  /** UNTIL as a local time of the event. */
  readonly readUntil: (text: string) => number | string;
  /** How many occurrences may still be counted for the file; goes down. */
  readonly counts: { left: number };
};

export const COUNT_MAX = 10_000;

const DAY_MS = 86_400_000;
const INTERVAL_MAX = 1_000;
const LAST_MS = 253_402_300_800_000 - 1;
const UNITS = new Map([
  ["DAILY", "day"],
  ["WEEKLY", "week"],
  ["MONTHLY", "month"],
  ["YEARLY", "year"],
] as const);
const DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
const PARTS = "FREQ INTERVAL COUNT UNTIL BYDAY BYMONTH BYMONTHDAY WKST".split(" ");
const NUMBER = /^\d{1,6}$/;

/** Returns the rule, or its problem in words that follow "its RRULE …". */
export function readRepeat(text: string, start: RepeatStart): IcsRepeat | string {
  const { startMs } = start;
  const parts = new Map<string, string>();
  for (const each of text.trim().split(";")) {
    if (each === "") continue;
    const [name = "", value = ""] = each.toUpperCase().split("=");
    if (!PARTS.includes(name)) {
      return `has ${name.slice(0, 40) || "an empty part"}, which is not supported; known are ${PARTS.join(", ")}`;
    }
    if (parts.has(name)) return `has ${name} twice`;
    parts.set(name, value);
  }
  const every = UNITS.get((parts.get("FREQ") ?? "") as "DAILY");
  if (every === undefined) return "must have FREQ=DAILY, WEEKLY, MONTHLY or YEARLY";
  const interval = Number(parts.get("INTERVAL") ?? "1");
  if (!NUMBER.test(parts.get("INTERVAL") ?? "1") || interval < 1 || interval > INTERVAL_MAX) {
    return `must have an INTERVAL from 1 to ${INTERVAL_MAX}`;
  }
  const weekStart = DAYS.indexOf(parts.get("WKST") ?? "MO");
  if (weekStart === -1) return "has a WKST that is no weekday such as MO";
  const weekdays = readByDay(parts.get("BYDAY"), { every, startMs });
  if (typeof weekdays === "string") return weekdays;
  const dates = checkDates(parts, { every, startMs });
  if (dates !== null) return dates;
  const open = { every, interval, weekdays, weekStart, untilMs: null, except: [] };
  const untilMs = readEnd(parts, { ...start, open });
  if (typeof untilMs === "string") return untilMs;
  return { ...open, untilMs };
}

type Base = { readonly every: IcsRepeat["every"]; readonly startMs: number };

function readByDay(text: string | undefined, { every, startMs }: Base): number[] | null | string {
  if (text === undefined) return null;
  if (every !== "week") return "has BYDAY, which is supported with FREQ=WEEKLY only";
  const given = text.split(",").map((day) => DAYS.indexOf(day));
  if (given.includes(-1)) return `has a BYDAY that is no list of weekdays such as MO,WE`;
  const weekdays = [...new Set(given)].sort((a, b) => a - b);
  const first = weekdayOf(Math.floor(startMs / DAY_MS));
  if (!weekdays.includes(first)) return "has a BYDAY without the weekday on which the event begins";
  return weekdays.length === 1 ? null : weekdays;
}

/** BYMONTH and BYMONTHDAY may say again what the start says already, and nothing else. */
function checkDates(parts: ReadonlyMap<string, string>, { every, startMs }: Base): string | null {
  const start = new Date(startMs);
  const month = parts.get("BYMONTH");
  const day = parts.get("BYMONTHDAY");
  const isMonthRight = every === "year" && Number(month) === start.getUTCMonth() + 1;
  if (month !== undefined && !isMonthRight) {
    return "has BYMONTH, which is supported only with FREQ=YEARLY and the month of the start";
  }
  const isDayRight =
    (every === "month" || (every === "year" && month !== undefined)) &&
    Number(day) === start.getUTCDate();
  if (day !== undefined && !isDayRight) {
    return "has BYMONTHDAY, which is supported only if it is the day of the start (with BYMONTH if yearly)";
  }
  return null;
}

function readEnd(
  parts: ReadonlyMap<string, string>,
  { startMs, readUntil, counts, open }: RepeatStart & { readonly open: IcsRepeat },
): number | null | string {
  const until = parts.get("UNTIL");
  const count = parts.get("COUNT");
  if (until !== undefined && count !== undefined) return "has both UNTIL and COUNT";
  if (until !== undefined) {
    const untilMs = readUntil(until);
    if (typeof untilMs === "string") return `has an UNTIL that ${untilMs}`;
    return untilMs < startMs ? "has an UNTIL before the start of the event" : untilMs;
  }
  if (count === undefined) return null;
  if (!NUMBER.test(count) || Number(count) < 1 || Number(count) > COUNT_MAX) {
    return `must have a COUNT from 1 to ${COUNT_MAX}`;
  }
  counts.left -= Number(count);
  if (counts.left < 0)
    return "has a COUNT too many: use UNTIL, as those of all events are too large";
  // A count is stored as the time of its last occurrence, so that no later search counts again.
  let lastMs = startMs;
  for (let number = 1; number < Number(count); number++) {
    const nextMs = nextOccurrence({ startMs, repeat: open, fromMs: lastMs + 1 });
    if (nextMs === null) break;
    lastMs = nextMs;
  }
  return lastMs;
}

export type Occurrence = {
  readonly startMs: number;
  readonly repeat: IcsRepeat;
  readonly fromMs: number;
};

/** The first occurrence that begins at or after `fromMs`; null if there is none. */
export function nextOccurrence({ startMs, repeat, fromMs }: Occurrence): number | null {
  const untilMs = repeat.untilMs ?? LAST_MS;
  let lowMs = Math.max(fromMs, startMs);
  // One turn more than there are exceptions, which are limited.
  while (lowMs <= untilMs) {
    const foundMs = nextByRule({ startMs, repeat, fromMs: lowMs });
    if (foundMs === null || foundMs > untilMs) return null;
    if (!repeat.except.includes(foundMs)) return foundMs;
    lowMs = foundMs + 1;
  }
  return null;
}

function nextByRule(params: Occurrence): number | null {
  const { startMs, repeat, fromMs } = params;
  switch (repeat.every) {
    case "day": {
      const stepMs = repeat.interval * DAY_MS;
      return startMs + Math.ceil((fromMs - startMs) / stepMs) * stepMs;
    }
    case "week":
      return nextInWeeks(params);
    case "month":
      return nextInMonths(params, repeat.interval);
    case "year":
      return nextInMonths(params, repeat.interval * 12);
  }
}

function nextInWeeks({ startMs, repeat, fromMs }: Occurrence): number | null {
  const { interval, weekStart } = repeat;
  const startDay = Math.floor(startMs / DAY_MS);
  const timeMs = startMs - startDay * DAY_MS;
  const inWeek = (day: number) => (weekdayOf(day) - weekStart + 7) % 7;
  const firstDay = startDay - inWeek(startDay);
  const weekdays = repeat.weekdays ?? [weekdayOf(startDay)];
  const places = weekdays.map((day) => (day - weekStart + 7) % 7).sort((a, b) => a - b);
  const passed = Math.floor((Math.floor(fromMs / DAY_MS) - firstDay) / (7 * interval));
  for (let turn = passed; turn <= passed + 1; turn++) {
    for (const place of places) {
      const foundMs = (firstDay + turn * 7 * interval + place) * DAY_MS + timeMs;
      if (foundMs >= fromMs) return foundMs;
    }
  }
  return null;
}

/** Months without the day of the start (the 31st, February 29th) are left out. */
function nextInMonths({ startMs, fromMs }: Occurrence, interval: number): number | null {
  const start = new Date(startMs);
  const timeMs = startMs - Math.floor(startMs / DAY_MS) * DAY_MS;
  const day = start.getUTCDate();
  const startMonth = monthsOf(start);
  let month =
    startMonth +
    Math.floor((monthsOf(new Date(Math.min(fromMs, LAST_MS))) - startMonth) / interval) * interval;
  for (; ; month += interval) {
    const dateMs = Date.UTC(Math.floor(month / 12), month % 12, day);
    if (!(dateMs <= LAST_MS)) return null;
    const isDate = new Date(dateMs).getUTCDate() === day;
    if (isDate && dateMs + timeMs >= fromMs) return dateMs + timeMs;
  }
}

function monthsOf(date: Date): number {
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Monday is 0; 1970-01-01 was a Thursday. */
function weekdayOf(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

// Dates, times and durations as .ics files write them: "20261225", "20261225T180000Z", "P1DT2H".
// Pure and total: a problem is returned in words that follow the name of the property.

export type IcsTime = {
  /** A whole day: no time of the day was given. */
  readonly isDate: boolean;
  /** The zone of the time; null: it floats, so it means the clock of the reader. */
  readonly zone: Zone | null;
  /** The local time, as if it were UTC. */
  readonly wallMs: number;
};

const TIME = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z)?)?$/;
const DURATION =
  /^\+?P(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?$/;
const MINUTE_MS = 60_000;
const TIME_DAY_MS = 1_440 * MINUTE_MS;

/** The time of a property, in the zone its TZID names. */
export function readTime({ params, value }: IcsProperty): IcsTime | string {
  return readTimeText(value.trim(), params.get("TZID"));
}

/** All times of a property that may have several, separated by commas. */
export function readTimes({ params, value }: IcsProperty): IcsTime[] | string {
  const times: IcsTime[] = [];
  for (const text of value.split(",")) {
    const time = readTimeText(text.trim(), params.get("TZID"));
    if (typeof time === "string") return time;
    times.push(time);
  }
  return times;
}

export function readTimeText(text: string, zoneName: string | undefined): IcsTime | string {
  const [, year, month, day, hour, minute, second, z] = TIME.exec(text) ?? [];
  const right = '"20261225", "20261225T180000Z" or "20261225T180000"';
  const wrong = `must be a time such as ${right}, but is ${quoteShort(text)}`;
  if (year === undefined) return wrong;
  const isDate = hour === undefined;
  const date = `${year}-${month}-${day}`;
  // A leap second, which files may have, is read as the second before it.
  const time = isDate ? "00:00:00" : `${hour}:${minute}:${second === "60" ? "59" : second}`;
  const wallMs = Date.parse(`${date}T${time}Z`);
  const isReal = wallMs >= 0 && new Date(wallMs).toISOString().startsWith(`${date}T${time}`);
  if (!isReal) return wrong;
  if (isDate) return { isDate, zone: null, wallMs };
  const zone = readZone(z === undefined ? zoneName : "UTC");
  return typeof zone === "string" ? zone : { isDate, zone, wallMs };
}

function readZone(name: string | undefined): Zone | null | string {
  if (name === undefined) return null;
  try {
    // Some programs write "/Europe/Paris" for well-known names.
    return requireZone(name.replace(/^\//, ""), "TZID");
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return `has a TZID that ${error.problems[0]?.message.replace(/\.$/, "")}`;
  }
}

export type IcsDuration = {
  /** Weeks and days, which end at the same time of the day. */
  readonly nominalMs: number;
  /** Hours, minutes and seconds, which elapse. */
  readonly exactMs: number;
};

export function readIcsDuration(text: string): IcsDuration | string {
  const found = DURATION.exec(text.trim());
  const parts = found?.slice(1) ?? [];
  if (found === null || parts.every((each) => each === undefined)) {
    return `must be a duration such as "P1D" or "PT2H30M", but is ${quoteShort(text)}`;
  }
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((each) =>
    each === undefined ? 0 : Number(each),
  );
  return {
    nominalMs: (weeks * 7 + days) * TIME_DAY_MS,
    exactMs: (hours * 60 + minutes) * MINUTE_MS + seconds * 1_000,
  };
}

/**
 * The instant at which the clock shows that time; the first of two. A time that the clocks jump over
 * counts by the offset before the jump, as RFC 5545 has it.
 */
export function instantOf(zone: Zone, wallMs: number): number {
  const time = zone.fromLocal(wallMs);
  if (time.kind === "once") return time.atMs;
  return time.kind === "overlap" ? time.firstMs : wallMs - zone.offsetAt(time.endMs - 1);
}

// The outer shape of an .ics file (RFC 5545): folded lines joined, properties with their parameters,
// and the events among the components. Knows nothing of what the properties mean.
// Linear in the length of the text, which ics.ts limits.

export type IcsProperty = {
  readonly name: string;
  readonly params: ReadonlyMap<string, string>;
  readonly value: string;
};

/** The properties of one VEVENT, without those of components inside it, such as alarms. */
export type IcsComponent = {
  /** Where it begins, counted from 1 as an editor does. */
  readonly line: number;
  readonly properties: readonly IcsProperty[];
};

/** Returns the events, or the problem of the text in words that follow "the .ics text …". */
export function readComponents(text: string): IcsComponent[] | string {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const events: IcsComponent[] = [];
  const open: string[] = [];
  let properties: IcsProperty[] = [];
  let line = 0;
  for (let index = 0; index < lines.length; ) {
    const number = index + 1;
    let whole = lines[index++] ?? "";
    // A line that begins with a space or a tab continues the one before it.
    while (/^[ \t]/.test(lines[index] ?? "")) whole += (lines[index++] ?? "").slice(1);
    if (whole.trim() === "") continue;
    const property = readProperty(whole);
    if (property === null) return `has no property in line ${number}`;
    const { name, value } = property;
    const component = value.trim().toUpperCase();
    if (open.length === 0 && (name !== "BEGIN" || component !== "VCALENDAR")) {
      return `must be inside BEGIN:VCALENDAR and END:VCALENDAR, but line ${number} is not`;
    }
    if (name === "BEGIN") {
      open.push(component);
      if (isEvent(open)) [properties, line] = [[], number];
    } else if (name === "END") {
      if (isEvent(open)) events.push({ line, properties });
      if (open.pop() !== component) return `ends a component in line ${number} that is not open`;
    } else if (isEvent(open)) properties.push(property);
  }
  if (open.length > 0) return `ends before END:${open.at(-1)?.slice(0, 40)}`;
  if (lines.every((each) => each.trim() === "")) return "is empty";
  return events;
}

function isEvent(open: readonly string[]): boolean {
  return open.length === 2 && open[1] === "VEVENT";
}

function readProperty(line: string): IcsProperty | null {
  const [name = ""] = /^[A-Za-z0-9-]+/.exec(line) ?? [];
  if (name === "") return null;
  const params = new Map<string, string>();
  let at = name.length;
  while (line[at] === ";") {
    const equals = line.indexOf("=", at);
    if (equals === -1) return null;
    const end = endOfParam(line, equals + 1);
    if (end === -1) return null;
    const value = line.slice(equals + 1, end).replace(/^"(.*)"$/, "$1");
    params.set(line.slice(at + 1, equals).toUpperCase(), value);
    at = end;
  }
  if (line[at] !== ":") return null;
  return { name: name.toUpperCase(), params, value: line.slice(at + 1) };
}

/** Where the value of a parameter ends: at a semicolon or colon outside of quotes. */
function endOfParam(line: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < line.length; at++) {
    const char = line[at];
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === ";" || char === ":")) return at;
  }
  return -1;
}

/** Text with its escapes undone: `\,` `\;` `\n` `\\`. */
export function unescapeText(value: string): string {
  return value.replace(/\\([\\;,nN])/g, (_, char: string) => (/n/i.test(char) ? " " : char));
}
