// Schedules as users write them: what is stored, and what is refused with which words.

import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { readCalendar } from "../calendars/calendar.js";
import { readRange, readWhen, type WhenDefinition, type WhenOptions } from "./when-options.js";

const NOW = Date.parse("2026-06-01T00:00:00Z");
const WORK = readCalendar({ days: ["mon", "tue", "wed", "thu", "fri"] }, "work");
const NEVER = readCalendar({ windows: [{ from: "00:00", to: "24:00" }] }, "never");

function read(options: unknown, nowMs: number | null = NOW): WhenDefinition {
  return readWhen(options as WhenOptions, {
    field: "schedule",
    nowMs,
    calendar: (name) => ({ work: WORK, never: NEVER })[name],
    calendarNames: ["work", "never"],
  });
}

function refused(options: unknown): string[] {
  try {
    read(options);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ field, message }) => `${field}: ${message}`);
  }
  throw new Error("It was accepted.");
}

test("every member is present, whatever was given", () => {
  expect(read({ cron: " 0  2 *\t* * ", timezone: "europe/paris", dst: { gap: "skip" } })).toEqual({
    kind: "cron",
    cron: "0 2 * * *",
    timezone: "Europe/Paris",
    dst: { gap: "skip", overlap: "first" },
    everyMs: null,
    everyMaxMs: null,
    atMs: null,
    fromMs: null,
    untilMs: null,
    exclude: [],
    calendars: [],
  });
  expect(read({ every: "10m" })).toMatchObject({
    kind: "grid",
    everyMs: 600_000,
    everyMaxMs: null,
  });
  expect(read({ every: 1_500 })).toMatchObject({ kind: "grid", everyMs: 1_500, timezone: "UTC" });
  expect(read({ every: "10m..15m" })).toMatchObject({
    kind: "range",
    everyMs: 600_000,
    everyMaxMs: 900_000,
  });
  expect(read({ every: "10m..10m" })).toMatchObject({ kind: "range", everyMaxMs: 600_000 });
  expect(read({ at: new Date("2030-01-31T09:00:00Z") })).toMatchObject({
    kind: "at",
    atMs: Date.parse("2030-01-31T09:00:00Z"),
  });
});

test("equal schedules are equal JSON", () => {
  const one = read({
    cron: "0 2 * * *",
    exclude: ["2026-12-25", "12-24", "2026-12-25..2026-12-25"],
    calendars: ["work", "work"],
    from: "2026-07-01T02:00:00+02:00",
  });
  const other = read({
    from: new Date("2026-07-01T00:00:00Z"),
    calendars: ["work"],
    exclude: ["12-24", "2026-12-25"],
    dst: { overlap: "first" },
    timezone: "UTC",
    cron: "0  2 * * *",
  });
  expect(JSON.stringify(one)).toBe(JSON.stringify(other));
  expect(JSON.parse(JSON.stringify(one))).toEqual(one);
});

const REFUSED: [what: string, options: unknown, ...problems: string[]][] = [
  [
    "nothing",
    {},
    'schedule.cron: must be the only one of cron: "30 2 * * *", every: "10m" or at: "2030-01-31T09:00:00Z", but there is none of them.',
  ],
  [
    "two patterns",
    { cron: "0 2 * * *", every: "10m" },
    'schedule.every: must be the only one of cron: "30 2 * * *", every: "10m" or at: "2030-01-31T09:00:00Z", but there is cron and every.',
  ],
  [
    "dst without cron",
    { every: "10m", dst: {} },
    "schedule.dst: goes only with cron: intervals and single times follow elapsed time.",
  ],
  ["too short", { every: "10ms" }, "schedule.every: must be at least 1 s, but is 10 ms."],
  ["too long", { every: "366d" }, "schedule.every: must be at most 365 d, but is 366 d."],
  [
    "a reversed range",
    { every: "15m..10m" },
    'schedule.every: must begin with the smaller bound, as in "10m..15m", but 15 min is more than 10 min.',
  ],
  [
    "half a range",
    { every: "10m.." },
    'schedule.every: in its upper bound (as in "10m..15m") must be a duration such as "30s" (units: ms, s, m, h, d) or a number of milliseconds, but is an empty string.',
  ],
  [
    "three bounds",
    { every: "1m..2m..3m" },
    'schedule.every: must be a range such as "10m..15m", but is 1m..2m..3m.',
  ],
  [
    "a time that has passed",
    { at: "2026-01-01T00:00:00Z" },
    "schedule.at: must be in the future, but 2026-01-01 00:00 UTC has passed; it is 2026-06-01 00:00 UTC.",
  ],
  [
    "bounds the wrong way round",
    { every: "1h", from: "2027-01-01T00:00:00Z", until: "2026-12-01T00:00:00Z" },
    "schedule.until: must not be before `from`, but 2026-12-01 00:00 UTC is before 2027-01-01 00:00 UTC.",
  ],
  [
    "a time out of bounds",
    { at: "2027-01-01T00:00:00Z", until: "2026-12-01T00:00:00Z" },
    "schedule.at: must not be after `until`, but 2027-01-01 00:00 UTC is after 2026-12-01 00:00 UTC.",
  ],
  [
    "an excluded time",
    { at: "2027-01-02T00:00:00Z", calendars: ["work"] },
    'schedule.at: must not be an excluded time, but the calendar "work": Saturday is not one of its days (mon to fri).',
  ],
  [
    "an unknown calendar",
    { cron: "0 2 * * *", calendars: ["wrok"] },
    'schedule.calendars[0]: must be the name of a calendar, but wrok is unknown; there are work, never. Did you mean "work"?',
  ],
  [
    "an impossible date",
    { cron: "0 2 * * *", exclude: ["2026-02-30"] },
    'schedule.exclude[0]: must be a date such as "2026-12-25", "2026-12-24..2026-12-26", or "12-25" for every year, but 2026-02-30 is no date of the years 1970 to 9999.',
  ],
  [
    "no tick within the bounds",
    { cron: "0 0 29 2 *", from: "2026-01-01T00:00:00Z", until: "2027-01-01T00:00:00Z" },
    "schedule.cron: never happens between `from` and `until`: every tick is excluded or out of bounds.",
  ],
  [
    "nothing but excluded ticks",
    { cron: "0 2 * * *", calendars: ["never"] },
    "schedule.cron: never happens: every tick is excluded or out of bounds.",
  ],
  [
    "a range that is always excluded",
    { every: "1m..2m", calendars: ["never"] },
    "schedule.every: never happens: every tick is excluded or out of bounds.",
  ],
];

test.each(REFUSED)("%s is refused", (_, options, ...problems) => {
  expect(refused(options)).toEqual(problems);
});

test("everything wrong is named at once", () => {
  const problems = refused({
    cron: "61 * * * *",
    dst: { gap: "never" },
    timezone: "Europe/Pariss",
    from: "tomorrow",
    until: null,
    exclude: ["25.12.2026", 7],
    calendars: "work",
  });
  expect(problems.map((each) => each.split(": ")[0])).toEqual([
    "schedule.cron",
    "schedule.dst.gap",
    "schedule.timezone",
    "schedule.from",
    "schedule.until",
    "schedule.exclude[0]",
    "schedule.exclude[1]",
    "schedule.calendars",
  ]);
});

test("long texts are refused shortly", () => {
  const long = "1".repeat(100_000);
  for (const options of [
    { cron: long },
    { every: long },
    { every: `${long}..${long}` },
    { at: long },
    { every: "1m", from: long, until: long },
    { every: "1m", exclude: [long, `${long}..${long}`] },
    { every: "1m", calendars: [long] },
    { every: "1m", timezone: long },
    { every: "1m", exclude: new Array(1_001).fill("12-25") },
    { every: "1m", calendars: new Array(21).fill("work") },
  ]) {
    expect(refused(options).join().length).toBeLessThan(600);
  }
});

test("a past time is accepted without a present time, and options must be an object", () => {
  expect(read({ at: "2020-01-01T00:00:00Z" }, null).kind).toBe("at");
  for (const options of [null, [], "0 2 * * *"]) expect(refused(options)).toHaveLength(1);
});

test("a range is read for other fields too", () => {
  expect(readRange("20m..40m", "afterFailure")).toEqual({ minMs: 1_200_000, maxMs: 2_400_000 });
  expect(readRange("20m", "afterFailure")).toEqual({ minMs: 1_200_000, maxMs: 1_200_000 });
  expect(() => readRange(true, "afterFailure")).toThrow("afterFailure: must be a duration");
});
