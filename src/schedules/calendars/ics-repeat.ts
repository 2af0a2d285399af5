// Which days a repeated event of an .ics file falls on: the part of RRULE that can be read without
// doubt. What goes beyond it is refused by name, as a rule that is half understood would exclude
// the wrong days. Occurrences are computed when asked for, so a rule without an end has none here either.
// Times are those of the clock on the wall of the event's zone, as if they were UTC.

export type IcsRepeat = {
  readonly every: "day" | "week" | "month" | "year";
  readonly interval: number;
  /** Weekdays of a weekly event, Monday is 0; null: the weekday of its start. */
  readonly weekdays: readonly number[] | null;
  /** The day a week begins with; it matters to every second week on several days. */
  readonly weekStart: number;
  /** The last time at which an occurrence may begin. */
  readonly untilMs: number | null;
  /** Occurrences that were taken out. */
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

/** The rule, or what is wrong with it in words that follow "its RRULE …". */
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
  // A count becomes its last occurrence, so that no later question has to count again.
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
