// Ticks of whole schedules: patterns with bounds, excluded dates and calendars, and surveys of long
// ranges, which must count exactly what going through the ticks one by one would count.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type CalendarOptions, readCalendar } from "../calendars/calendar.js";
import { makeWhen, type When } from "./when.js";
import { readWhen, type WhenOptions } from "./when-options.js";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const at = (iso: string) => Date.parse(iso.includes("T") ? `${iso}Z` : `${iso}T00:00:00Z`);

type Calendars = Readonly<Record<string, CalendarOptions>>;

function when(options: WhenOptions, calendars: Calendars = {}, anchor = "2026-01-01"): When {
  const definition = readWhen(options, {
    field: "",
    nowMs: null,
    calendar: (name) => {
      const found = calendars[name];
      return found && readCalendar(found, name);
    },
    calendarNames: Object.keys(calendars),
  });
  // What is stored is JSON, so that is what must be evaluated.
  return makeWhen(JSON.parse(JSON.stringify(definition)), at(anchor));
}

function ticks(schedule: When, after: string, count: number): string[] {
  const found: string[] = [];
  let tick = schedule.next(at(after));
  while (tick !== null && found.length < count) {
    found.push(new Date(tick).toISOString().slice(0, 19).replace(/:00$/, ""));
    tick = schedule.next(tick);
  }
  return found;
}

test("a grid begins one interval after creation, or at `from`", () => {
  const every = "90m";
  expect(ticks(when({ every }), "2025-12-01", 2)).toEqual(["2026-01-01T01:30", "2026-01-01T03:00"]);
  const anchored = when({ every, from: "2026-02-01T00:10:00Z", until: "2026-02-01T03:10:00Z" });
  expect(ticks(anchored, "2025-12-01", 9)).toEqual([
    "2026-02-01T00:10",
    "2026-02-01T01:40",
    "2026-02-01T03:10",
  ]);
  expect(anchored.next(at("2026-02-01T03:10"))).toBeNull();
});

test("one time comes once, and bounds include themselves", () => {
  const once = when({ at: "2030-01-31T09:00:00Z" });
  expect(ticks(once, "2026-01-01", 5)).toEqual(["2030-01-31T09:00"]);
  const bounded = when({
    cron: "0 2 * * *",
    from: "2026-03-01T02:00:00Z",
    until: "2026-03-03T02:00:00Z",
  });
  expect(ticks(bounded, "2026-01-01", 9)).toEqual([
    "2026-03-01T02:00",
    "2026-03-02T02:00",
    "2026-03-03T02:00",
  ]);
  const within = when({ cron: "* * * * * *", from: "2026-03-01T02:00:00.500Z" });
  expect(within.next(0)).toBe(at("2026-03-01T02:00:01"));
});

test("a range has no ticks of its own, but allowed times", () => {
  const range = when({ every: "10m..15m", exclude: ["2026-12-25"], timezone: "Europe/Berlin" });
  expect(range.next(0)).toBeNull();
  expect(range.survey({ afterMs: 0, untilMs: at("2030-01-01"), newest: 1 }).count).toBe(0);
  expect(range.firstAllowed(at("2026-12-24T22:59"))).toBe(at("2026-12-24T22:59"));
  expect(range.firstAllowed(at("2026-12-24T23:00"))).toBe(at("2026-12-25T23:00"));
  const bounded = when({
    every: "10m..15m",
    from: "2026-02-01T00:00:00Z",
    until: "2026-02-02T00:00:00Z",
  });
  expect(bounded.firstAllowed(0)).toBe(at("2026-02-01"));
  expect(bounded.firstAllowed(at("2026-02-02") + 1)).toBeNull();
});

test("excluded dates are dates of the schedule's zone", () => {
  const options = { cron: "0 */6 * * *", timezone: "America/New_York" };
  const schedule = when({ ...options, exclude: ["2026-07-04", "2026-07-06..2026-07-07"] });
  expect(ticks(schedule, "2026-07-04T00:00", 6)).toEqual([
    "2026-07-05T04:00",
    "2026-07-05T10:00",
    "2026-07-05T16:00",
    "2026-07-05T22:00",
    "2026-07-08T04:00",
    "2026-07-08T10:00",
  ]);
});

test("yearly dates, also over the new year and on a leap day", () => {
  const daily = { cron: "0 12 * * *" };
  const winter = when({ ...daily, exclude: ["12-24..01-01"] });
  expect(ticks(winter, "2026-12-23T00:00", 2)).toEqual(["2026-12-23T12:00", "2027-01-02T12:00"]);
  expect(winter.ruleAgainst(at("2027-01-01T12:00"))).toBe(
    "excluded dates 12-24 to 01-01 of every year",
  );
  const leap = when({ ...daily, exclude: ["02-29"] });
  expect(ticks(leap, "2026-02-28T00:00", 2)).toEqual(["2026-02-28T12:00", "2026-03-01T12:00"]);
  expect(ticks(leap, "2028-02-28T00:00", 2)).toEqual(["2028-02-28T12:00", "2028-03-01T12:00"]);
});

test("calendars exclude weekends, holidays, windows; each rule is named", () => {
  const schedule = when(
    { cron: "0 9,23 * * *", timezone: "Europe/Paris", calendars: ["work", "freeze"] },
    {
      work: { days: ["mon", "tue", "wed", "thu", "fri"], dates: ["12-25"] },
      freeze: {
        windows: [
          { from: "22:00", to: "06:00", days: ["mon", "tue"] },
          { from: "2026-12-28T00:00", to: "2026-12-31T00:00" },
          { from: "2026-12-31T08:00:00Z", to: "2026-12-31T08:00:01Z" },
        ],
      },
    },
  );
  expect(ticks(schedule, "2026-12-21T12:00", 8)).toEqual([
    "2026-12-22T08:00", // Monday and Tuesday night are in the window.
    "2026-12-23T08:00",
    "2026-12-23T22:00",
    "2026-12-24T08:00",
    "2026-12-24T22:00",
    "2026-12-31T22:00", // The holiday, the weekend, three days of freeze and one second.
    "2027-01-01T08:00",
    "2027-01-01T22:00",
  ]);
  expect(schedule.ruleAgainst(at("2026-12-25T08:00"))).toBe(
    'the calendar "work": excluded date 12-25 of every year',
  );
  expect(schedule.ruleAgainst(at("2026-12-26T08:00"))).toBe(
    'the calendar "work": Saturday is not one of its days (mon to fri)',
  );
  expect(schedule.ruleAgainst(at("2026-12-21T22:00"))).toBe(
    'the calendar "freeze": blackout 22:00 to 06:00 on mon and tue',
  );
  expect(schedule.ruleAgainst(at("2026-12-29T08:00"))).toBe(
    'the calendar "freeze": blackout 2026-12-28 00:00 to 2026-12-31 00:00',
  );
  expect(schedule.ruleAgainst(at("2026-12-22T08:00"))).toBeNull();
  expect(schedule.matchesPattern(at("2026-12-26T08:00"))).toBe(true);
  expect(schedule.matchesPattern(at("2026-12-26T08:01"))).toBe(false);
});

test("a calendar's own zone wins over that of the schedule", () => {
  const options = { cron: "0 * * * *", calendars: ["c"] };
  const calendar = { windows: [{ from: "09:00", to: "17:00" }] };
  const inUtc = when(options, { c: calendar });
  expect(inUtc.ruleAgainst(at("2026-07-01T16:00"))).not.toBeNull();
  const inTokyo = when(options, { c: { ...calendar, timezone: "Asia/Tokyo" } });
  expect(inTokyo.ruleAgainst(at("2026-07-01T16:00"))).toBeNull();
  expect(inTokyo.ruleAgainst(at("2026-07-01T00:00"))).not.toBeNull();
});

test("bounds are named as rules", () => {
  const schedule = when({
    every: "1h",
    from: "2026-02-01T00:00:00Z",
    until: "2026-02-02T00:00:00Z",
    timezone: "Europe/Paris",
  });
  expect(schedule.ruleAgainst(at("2026-01-31T23:00"))).toBe(
    "before `from` 2026-02-01 01:00 Europe/Paris",
  );
  expect(schedule.ruleAgainst(at("2026-02-02T01:00"))).toBe(
    "after `until` 2026-02-02 01:00 Europe/Paris",
  );
  expect(schedule.matchesPattern(at("2026-01-31T23:00"))).toBe(true);
  expect(schedule.matchesPattern(at("2026-01-31T23:30"))).toBe(false);
});

test("if midnight comes twice, an excluded date is excluded in both its parts", () => {
  // St. John's, 2010-11-07: at 00:01 the clocks went back to 23:01 of the day before.
  const schedule = when({
    cron: "*/10 * * * *",
    timezone: "America/St_Johns",
    exclude: ["2010-11-07"],
  });
  expect(ticks(schedule, "2010-11-07T02:15", 7)).toEqual([
    "2010-11-07T02:20", // 23:50 on the 6th, first pass; 00:00 on the 7th is excluded.
    "2010-11-07T02:40", // 23:10 on the 6th again.
    "2010-11-07T02:50",
    "2010-11-07T03:00",
    "2010-11-07T03:10",
    "2010-11-07T03:20",
    "2010-11-08T03:30",
  ]);
});

test("a schedule whose ticks are all excluded ends, after bounded work", () => {
  const impossible = { c: { windows: [{ from: "00:00", to: "24:00" }] } };
  const schedule = when(
    { cron: "* * * * * *", until: "2999-01-01T00:00:00Z", calendars: ["c"] },
    impossible,
  );
  expect(schedule.next(at("2026-01-01"))).toBeNull();
  expect(schedule.firstAllowed(at("2026-01-01"))).toBeNull();
});

test("a survey says first, last, newest and how far it came", () => {
  const schedule = when({ cron: "0 2 * * *", exclude: ["2026-01-09"] });
  const range = { afterMs: at("2026-01-05T02:00"), untilMs: at("2026-01-10T02:00") };
  expect(schedule.survey({ ...range, newest: 2 })).toEqual({
    count: 4,
    firstMs: at("2026-01-06T02:00"),
    lastMs: at("2026-01-10T02:00"),
    newest: [at("2026-01-08T02:00"), at("2026-01-10T02:00")],
    isComplete: true,
    reachedMs: range.untilMs,
  });
  const nothing = schedule.survey({ afterMs: range.untilMs, untilMs: range.untilMs, newest: 3 });
  expect(nothing).toMatchObject({ count: 0, firstMs: null, lastMs: null, newest: [] });
  expect(schedule.survey({ ...range, newest: 0 })).toMatchObject({ count: 4, newest: [] });
});

test("a survey that used up its budget can be continued", () => {
  const schedule = when(
    { every: "1h", calendars: ["c"] },
    { c: { windows: [{ from: "03:00", to: "04:00" }] } },
  );
  const untilMs = at("2026-04-01");
  let afterMs = at("2026-01-01");
  let count = 0;
  for (let parts = 1; ; parts++) {
    const part = schedule.survey({ afterMs, untilMs, newest: 1, budget: 20 });
    count += part.count;
    expect(part.reachedMs).toBeGreaterThan(afterMs);
    afterMs = part.reachedMs;
    if (!part.isComplete) continue;
    expect(parts).toBeGreaterThan(3);
    break;
  }
  expect(count).toBe(90 * 23);
});

test("a long survey stops after a hundred years", () => {
  const survey = when({ every: "1d" }).survey({ afterMs: 0, untilMs: at("9999-01-01"), newest: 1 });
  expect(survey.isComplete).toBe(false);
  expect(survey.count).toBeGreaterThan(15_000);
});

test("200 days of every second are counted, not visited", () => {
  const afterMs = at("2026-01-01");
  const untilMs = afterMs + 200 * DAY;
  for (const timezone of ["UTC", "Europe/Berlin"]) {
    const schedule = when({ cron: "* * * * * *", timezone });
    // Steps are the work; the budget bounds them without a look at the clock.
    const survey = schedule.survey({ afterMs, untilMs, newest: 100, budget: 1_000 });
    expect(survey).toMatchObject({ count: 200 * 86_400, lastMs: untilMs, isComplete: true });
    expect(survey.newest).toHaveLength(100);
    expect(survey.newest[0]).toBe(untilMs - 99 * SECOND);
  }
});

const ZONES = [
  ["Europe/Berlin", "2026-03-29", "2026-10-25"],
  ["America/New_York", "2026-03-08", "2026-11-01"],
  ["Australia/Lord_Howe", "2026-04-05", "2026-10-04"],
  ["Pacific/Apia", "2011-12-30", "2011-09-24"],
  ["Africa/Cairo", "2026-04-24", "2026-10-30"],
  ["America/Santiago", "2026-04-05", "2026-09-06"],
  ["America/St_Johns", "2010-03-14", "2010-11-07"],
  ["UTC", "2026-02-28", "2028-02-29"],
] as const;

const CRONS = [
  "30 2 * * *",
  "0 0 * * *",
  "0 0,1,2,3 * * *",
  "*/7 * * * *",
  "15,45 * * * *",
  "5 */3 * * 1-5",
  "30 1 L * *",
  "10,50 59 23 * * *",
  "*/20 0 0-3 * * *",
  "*/30 0-59 0-23 * * *",
  "0 12 13 * 5",
];

const CALENDARS: Calendars = {
  work: { days: ["mon", "tue", "wed", "thu", "fri"] },
  night: { windows: [{ from: "22:30", to: "03:15" }], dates: ["10-25", "03-08..03-09"] },
  tokyo: {
    windows: [{ from: "01:00", to: "02:00", days: ["sun", "sat"] }],
    timezone: "Asia/Tokyo",
  },
};

const schedules = fc.record({
  zone: fc.constantFrom(...ZONES),
  season: fc.constantFrom(1, 2),
  pattern: fc.oneof(
    fc.record({
      cron: fc.constantFrom(...CRONS),
      dst: fc.record({
        gap: fc.constantFrom("after" as const, "skip" as const),
        overlap: fc.constantFrom("first" as const, "second" as const, "both" as const),
      }),
    }),
    fc.record({ every: fc.integer({ min: 60, max: 20_000 }).map((each) => each * 1_000 + 7) }),
  ),
  calendars: fc.subarray(Object.keys(CALENDARS), { maxLength: 3 }),
  beforeMs: fc.integer({ min: 0, max: 3 * DAY }),
  lengthMs: fc.integer({ min: 0, max: 6 * DAY }),
  newest: fc.integer({ min: 0, max: 50 }),
});

test("a survey counts what going through the ticks counts", () => {
  fc.assert(
    fc.property(schedules, ({ zone, season, pattern, calendars, beforeMs, lengthMs, newest }) => {
      const timezone = zone[0];
      const afterMs = at(zone[season as 1 | 2]) - beforeMs;
      const untilMs = afterMs + lengthMs;
      // The end keeps a schedule whose ticks are all excluded from being searched for a century.
      const until = new Date(untilMs + DAY);
      const schedule = when(
        { ...pattern, timezone, calendars, until } as WhenOptions,
        CALENDARS,
        "2009-12-31",
      );
      const expected: number[] = [];
      for (let tick = schedule.next(afterMs); tick !== null && tick <= untilMs; ) {
        expected.push(tick);
        tick = schedule.next(tick);
      }
      expect(schedule.survey({ afterMs, untilMs, newest })).toEqual({
        count: expected.length,
        firstMs: expected[0] ?? null,
        lastMs: expected.at(-1) ?? null,
        newest: newest === 0 ? [] : expected.slice(-newest),
        isComplete: true,
        reachedMs: untilMs,
      });
    }),
    { numRuns: 300 },
  );
});

test("a tick is one of the pattern that no rule is against, and no such one is passed over", () => {
  fc.assert(
    fc.property(schedules, ({ zone, season, pattern, calendars, beforeMs }) => {
      const timezone = zone[0];
      const afterMs = at(zone[season as 1 | 2]) - beforeMs;
      const until = new Date(afterMs + 60 * DAY);
      const bare = when({ ...pattern, timezone, until } as WhenOptions, {}, "2009-12-31");
      const schedule = when(
        { ...pattern, timezone, calendars, until } as WhenOptions,
        CALENDARS,
        "2009-12-31",
      );
      const tick = schedule.next(afterMs);
      // The pattern's ticks, looked at one by one, lead to the same.
      let naive = bare.next(afterMs);
      while (naive !== null && schedule.ruleAgainst(naive) !== null) naive = bare.next(naive);
      expect(tick).toBe(naive);
      if (tick !== null) expect(schedule.matchesPattern(tick)).toBe(true);
    }),
    { numRuns: 200 },
  );
});
