// Ticks of cron schedules: the calendar, the changes of the clocks, and what must always hold.
// test/cron-oracle.test.ts compares them with an independent oracle.

import fc from "fast-check";
import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { type CronOptions, cronSchedule, type DstOptions, nextTick } from "./cron.js";
import { Zone } from "./zone.js";

const DAY = 86_400_000;
const at = (iso: string) => Date.parse(`${iso}Z`);

function ticks(options: CronOptions, from: string, count: number): string[] {
  const schedule = cronSchedule(options);
  const found: string[] = [];
  let afterMs = at(from);
  for (let i = 0; i < count; i++) {
    const tick = nextTick(schedule, afterMs);
    if (tick === null) break;
    found.push(new Date(tick).toISOString().slice(0, 19));
    afterMs = tick;
  }
  return found;
}

type Case = [what: string, cron: string, zone: string, from: string, expected: string[]];

const CALENDAR: Case[] = [
  ["strictly after", "0 2 * * *", "UTC", "2026-01-01T02:00:00", ["2026-01-02T02:00:00"]],
  ["within a second", "0 2 * * *", "UTC", "2026-01-01T01:59:59.999", ["2026-01-01T02:00:00"]],
  ["the end of a year", "59 23 31 12 *", "UTC", "2026-12-31T23:59:00", ["2027-12-31T23:59:00"]],
  ["a leap day", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00", ["2028-02-29T00:00:00"]],
  ["no leap day in 2100", "0 0 29 2 *", "UTC", "2097-01-01T00:00:00", ["2104-02-29T00:00:00"]],
  ["a leap day on Sunday", "0 0 29 2 */7", "UTC", "2088-03-01T00:00:00", ["2128-02-29T00:00:00"]],
  [
    "the last day",
    "0 0 L * *",
    "UTC",
    "2028-01-01T00:00:00",
    ["2028-01-31T00:00:00", "2028-02-29T00:00:00", "2028-03-31T00:00:00"],
  ],
  ["three before the last", "0 0 L-3 2 *", "UTC", "2027-01-01T00:00:00", ["2027-02-25T00:00:00"]],
  ["the last weekday", "0 0 LW * *", "UTC", "2026-05-01T00:00:00", ["2026-05-29T00:00:00"]],
  [
    "the weekday nearest to the 15th",
    "0 0 15W * *",
    "UTC",
    "2026-08-01T00:00:00", // Saturday in August, Tuesday in September, Sunday in November.
    ["2026-08-14T00:00:00", "2026-09-15T00:00:00", "2026-10-15T00:00:00", "2026-11-16T00:00:00"],
  ],
  ["1W stays in its month", "0 0 1W * *", "UTC", "2026-07-31T00:00:00", ["2026-08-03T00:00:00"]],
  ["31W stays in its month", "0 0 31W * *", "UTC", "2026-05-01T00:00:00", ["2026-05-29T00:00:00"]],
  ["the third Friday", "0 0 * * 5#3", "UTC", "2026-01-01T00:00:00", ["2026-01-16T00:00:00"]],
  ["the fifth Monday", "0 0 * * 1#5", "UTC", "2026-01-01T00:00:00", ["2026-03-30T00:00:00"]],
  ["the last Friday", "0 0 * * friL", "UTC", "2026-01-01T00:00:00", ["2026-01-30T00:00:00"]],
  [
    "day or weekday",
    "0 0 13 * 5",
    "UTC",
    "2026-01-01T00:00:00",
    ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"],
  ],
  [
    "the step of a star and the weekday",
    "0 0 */2 * 1",
    "UTC",
    "2026-01-01T00:00:00",
    ["2026-01-05T00:00:00", "2026-01-19T00:00:00", "2026-02-09T00:00:00"],
  ],
  [
    "Friday to Sunday by name",
    "0 0 * * fri-sun",
    "UTC",
    "2026-01-01T00:00:00",
    ["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00", "2026-01-09T00:00:00"],
  ],
  ["0 is Sunday", "0 0 * * 0", "UTC", "2026-01-01T00:00:00", ["2026-01-04T00:00:00"]],
  ["7 is Sunday", "0 0 * * 7", "UTC", "2026-01-01T00:00:00", ["2026-01-04T00:00:00"]],
  ["months by name", "0 0 1 FEB,apr *", "UTC", "2026-02-01T00:00:00", ["2026-04-01T00:00:00"]],
  ["from a number on", "20/15 * * * *", "UTC", "2026-01-01T00:00:00", ["2026-01-01T00:20:00"]],
  ["a question mark", "0 0 ? * 0", "UTC", "2026-01-01T00:00:00", ["2026-01-04T00:00:00"]],
  ["spaces and tabs", "  0\t0  1 1 * ", "UTC", "2026-01-01T00:00:00", ["2027-01-01T00:00:00"]],
  [
    "seconds",
    "10,50 59 23 * * *",
    "UTC",
    "2026-12-31T23:59:10",
    ["2026-12-31T23:59:50", "2027-01-01T23:59:10"],
  ],
  ["a nickname", "@Monthly", "UTC", "2026-01-01T00:00:00", ["2026-02-01T00:00:00"]],
  ["the first of all", "* * * * *", "UTC", "1969-01-01T00:00:00", ["1970-01-01T00:00:00"]],
];

const CLOCKS: Case[] = [
  [
    "a time in a gap is made up at its end",
    "30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00:00",
    ["2026-03-08T07:00:00", "2026-03-09T06:30:00"],
  ],
  [
    "several times in a gap are one tick",
    "0,30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00:00",
    ["2026-03-08T07:00:00", "2026-03-09T06:00:00"],
  ],
  [
    "a made-up time and a real one are one tick",
    "0 2,3 * * *",
    "America/New_York",
    "2026-03-07T12:00:00",
    ["2026-03-08T07:00:00", "2026-03-09T06:00:00"],
  ],
  [
    "a time that comes twice is its first pass",
    "30 1 * * *",
    "America/New_York",
    "2026-10-31T12:00:00",
    ["2026-11-01T05:30:00", "2026-11-02T06:30:00"],
  ],
  [
    "asked between the passes",
    "30 1 * * *",
    "America/New_York",
    "2026-11-01T05:45:00",
    ["2026-11-02T06:30:00"],
  ],
  [
    "several times around an overlap",
    "30 1,2 * * *",
    "America/New_York",
    "2026-10-31T12:00:00",
    ["2026-11-01T05:30:00", "2026-11-01T07:30:00", "2026-11-02T06:30:00"],
  ],
  [
    "a wildcard follows elapsed time through a gap",
    "30 * * * *",
    "America/New_York",
    "2026-03-08T06:00:00",
    ["2026-03-08T06:30:00", "2026-03-08T07:30:00"],
  ],
  [
    "a wildcard follows elapsed time through an overlap",
    "30 * * * *",
    "America/New_York",
    "2026-11-01T05:00:00",
    ["2026-11-01T05:30:00", "2026-11-01T06:30:00", "2026-11-01T07:30:00"],
  ],
  [
    "a wildcard minute in a missing hour does not exist",
    "*/30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00:00",
    ["2026-03-09T06:00:00"],
  ],
  [
    "half an hour is skipped",
    "15 2 * * *",
    "Australia/Lord_Howe",
    "2026-10-03T00:00:00",
    ["2026-10-03T15:30:00", "2026-10-04T15:15:00"],
  ],
  [
    "half an hour comes twice",
    "45 1 * * *",
    "Australia/Lord_Howe",
    "2026-04-04T00:00:00",
    ["2026-04-04T14:45:00", "2026-04-05T15:15:00"],
  ],
  [
    "midnight does not exist in Santiago",
    "0 0 * * *",
    "America/Santiago",
    "2026-09-05T12:00:00",
    ["2026-09-06T04:00:00", "2026-09-07T03:00:00"],
  ],
  [
    "midnight does not exist in Cairo",
    "30 0 * * *",
    "Africa/Cairo",
    "2026-04-23T12:00:00",
    ["2026-04-23T22:00:00", "2026-04-24T21:30:00"],
  ],
  [
    "midnight does not exist in Beirut",
    "0 0 * * *",
    "Asia/Beirut",
    "2026-03-28T12:00:00",
    ["2026-03-28T22:00:00", "2026-03-29T21:00:00"],
  ],
  [
    "a skipped day is skipped",
    "0 12 * * *",
    "Pacific/Apia",
    "2011-12-29T00:00:00",
    ["2011-12-29T22:00:00", "2011-12-30T22:00:00"],
  ],
  [
    "a skipped date waits",
    "0 0 30 12 *",
    "Pacific/Apia",
    "2011-06-01T00:00:00",
    ["2012-12-29T10:00:00"],
  ],
];

test.each([...CALENDAR, ...CLOCKS])("%s: %s", (_, cron, timezone, from, expected) => {
  expect(ticks({ cron, timezone }, from, expected.length)).toEqual(expected);
});

const GAP_DAY = "2026-03-07T12:00:00";
const OVERLAP_DAY = "2026-10-31T12:00:00";
const POLICIES: [DstOptions, string, string, string[]][] = [
  [{ gap: "skip" }, "30 2 * * *", GAP_DAY, ["2026-03-09T06:30:00"]],
  [{ gap: "skip" }, "0 2,3 * * *", GAP_DAY, ["2026-03-08T07:00:00", "2026-03-09T06:00:00"]],
  [{ gap: "after" }, "30 2 * * *", GAP_DAY, ["2026-03-08T07:00:00"]],
  [{ overlap: "first" }, "30 1 * * *", OVERLAP_DAY, ["2026-11-01T05:30:00", "2026-11-02T06:30:00"]],
  [
    { overlap: "second" },
    "30 1 * * *",
    OVERLAP_DAY,
    ["2026-11-01T06:30:00", "2026-11-02T06:30:00"],
  ],
  [{ overlap: "both" }, "30 1 * * *", OVERLAP_DAY, ["2026-11-01T05:30:00", "2026-11-01T06:30:00"]],
  [
    { overlap: "both" },
    "0,30 1 * * *",
    OVERLAP_DAY,
    ["2026-11-01T05:00:00", "2026-11-01T05:30:00", "2026-11-01T06:00:00", "2026-11-01T06:30:00"],
  ],
  // A wildcard schedule follows elapsed time, whatever the options say.
  [{ overlap: "first" }, "*/30 1 * * *", "2026-11-01T05:30:00", ["2026-11-01T06:00:00"]],
];

test.each(POLICIES)("%o of %s", (dst, cron, from, expected) => {
  const options = { cron, timezone: "America/New_York", dst };
  expect(ticks(options, from, expected.length)).toEqual(expected);
});

const REFUSED: [cron: unknown, message: RegExp][] = [
  ["", /^cron: must be a cron expression such as "30 2 \* \* \*".*but is empty/],
  [" \t ", /but is empty/],
  ["* * * *", /must have 5 fields .* but has 4 \(example: "30 2/],
  ["* * * * * * *", /but has 7/],
  ["*".repeat(100_000), /but has 100000 characters/],
  ["1,".repeat(50_000), /but has 100000 characters/],
  [null, /but is null/],
  [5, /but is number/],
  ["60 * * * *", /^cron: minute must be 0–59, got 60 \(example: 0,30\)\.$/],
  ["* 24 * * *", /^cron: hour must be 0–23, got 24/],
  ["* * 0 * *", /day of month must be 1–31, got 0/],
  ["* * 32 * *", /day of month must be 1–31, got 32/],
  ["* * * 13 *", /: month must be 1–12 or jan–dec, got 13/],
  ["* * * 0 *", /: month must be/],
  ["* * * * 8", /day of week must be 0–7 or sun–sat, got 8/],
  ["60 * * * * *", /second must be 0–59, got 60/],
  ["5-1 * * * *", /minute has a reversed range, "5-1"/],
  ["* * * * sat-mon", /day of week has a reversed range/],
  ["*/0 * * * *", /minute step must be 1–60, got 0/],
  ["*/61 * * * *", /minute step must be 1–60, got 61/],
  ["*/x * * * *", /step must be a whole number, got "x"/],
  ["*/-5 * * * *", /step must be a whole number, got "-5"/],
  ["1/2/3 * * * *", /more than one "\/"/],
  ["1-2-3 * * * *", /more than one "-"/],
  ["1,,2 * * * *", /has an empty entry/],
  ["1, * * * *", /has an empty entry/],
  ["- * * * *", /is missing a number/],
  ["-5 * * * *", /is missing a number/],
  ["1.5 * * * *", /must be 0–59, got "1.5"/],
  ["1e1 * * * *", /minute must be 0–59, got "/],
  ["0x5 * * * *", /minute must be 0–59, got "/],
  ["** * * * *", /minute must be 0–59, got "/],
  ["? * * * *", /minute must be 0–59, got "\?"/],
  ["L * * * *", /minute must be 0–59, got "l"/],
  ["* * * mon *", /month must be 1–12 or jan–dec, got "mon"/],
  ["* * * * january", /day of week must be 0–7 or sun–sat, got "january"/],
  ["0 0 * * 5#6", /5#3 is the third Friday/],
  ["0 0 * * 5#0", /5#3 is the third Friday/],
  ["0 0 * * L", /5L is the last Friday/],
  ["0 0 L-31 * *", /count back from the last day/],
  ["0 0 32W * *", /15W is the weekday nearest to the 15th/],
  ["0 0 31 2 *", /never happens: no year has a day that fits day of month "31", month "2"/],
  ["0 0 30,31 feb *", /never happens/],
  ["0 0 31 4,6,9,11 *", /never happens/],
  ["0 0 */31 * 1#2", /never happens/],
  ["0 0 31W 2 *", /never happens/],
  ["@dayly", /must be one of @yearly.*but is "@dayly"\. Did you mean "@daily"\?/],
  ["@reboot", /must be one of @yearly/],
  ["٣ * * * *", /minute must be 0–59, got "/],
  ["0 0\n1 * *", /must have 5 fields/],
];

test.each(REFUSED)("%o is refused", (cron, message) => {
  const take = () => cronSchedule({ cron: cron as string });
  expect(take).toThrow(ConfigurationError);
  expect(take).toThrow(message);
});

test("everything that is wrong is named at once, under the names of the caller", () => {
  const options = { cron: "", timezone: "", dst: { gap: "befor", overlp: "first" } };
  try {
    cronSchedule(options as unknown as CronOptions, 'schedule("nightly")');
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    const { problems } = error as ConfigurationError;
    expect(problems.map(({ field }) => field)).toEqual([
      'schedule("nightly").cron',
      'schedule("nightly").timezone',
      'schedule("nightly").dst.overlp',
      'schedule("nightly").dst.gap',
    ]);
  }
});

test.each([[null], [5], ["after"], [[]]])("dst: %o is refused", (dst) => {
  expect(() => cronSchedule({ cron: "0 0 * * *", dst: dst as DstOptions })).toThrow(/^dst: /);
});

test("no tick comes after the year 9999, and none is looked for beyond a century", () => {
  const daily = cronSchedule({ cron: "0 0 * * *" });
  expect(nextTick(daily, at("9999-12-31T00:00:00"))).toBeNull();
  expect(nextTick(daily, Number.NaN)).toBeNull();
  expect(nextTick(daily, Number.POSITIVE_INFINITY)).toBeNull();
  // The hour is in the gap every year.
  const timezone = "America/New_York";
  const never = cronSchedule({ cron: "30 2 * 3 0#2", timezone, dst: { gap: "skip" } });
  const work = { steps: 0 };
  expect(nextTick(never, at("2026-01-01T00:00:00"), work)).toBeNull();
  expect(work.steps).toBeLessThan(500);
});

const ZONES = [
  "UTC",
  "America/New_York",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Africa/Casablanca",
];

/** A field as text, of the values from `min` to `max`. */
function fieldOf(min: number, max: number): fc.Arbitrary<string> {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max - min });
  const item = fc.oneof(
    value.map(String),
    range,
    fc.tuple(range, step).map((parts) => parts.join("/")),
  );
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant("*") },
    { weight: 1, arbitrary: step.map((each) => `*/${each}`) },
    {
      weight: 3,
      arbitrary: fc.array(item, { minLength: 1, maxLength: 3 }).map((all) => all.join()),
    },
  );
}

const anyCron = fc
  .tuple(
    fc.constantFrom("", "0 ", "*/7 ", "5,50 "),
    fieldOf(0, 59),
    fieldOf(0, 23),
    fc.oneof({ weight: 3, arbitrary: fieldOf(1, 28) }, fc.constantFrom("L", "LW", "15W", "L-2")),
    fieldOf(1, 12),
    fc.oneof({ weight: 3, arbitrary: fieldOf(0, 6) }, fc.constantFrom("5#3", "1L", "mon-fri")),
  )
  .map(([seconds, ...rest]) => `${seconds}${rest.join(" ")}`);

const anySchedule = fc.record({
  cron: anyCron,
  timezone: fc.constantFrom(...ZONES),
  dst: fc.record({
    gap: fc.constantFrom("after" as const, "skip" as const),
    overlap: fc.constantFrom("first" as const, "second" as const, "both" as const),
  }),
});

test("ticks grow, fit their fields or make up for a gap, leave none out, and cost little", () => {
  const from = fc.integer({ min: at("1990-01-01T00:00:00"), max: at("2040-01-01T00:00:00") });
  fc.assert(
    fc.property(anySchedule, from, fc.nat({ max: 400 * DAY }), (options, fromMs, later) => {
      const schedule = read(options);
      if (!schedule) return;
      const { zone, expression } = schedule;
      let afterMs = fromMs;
      for (let i = 0; i < 5; i++) {
        const work = { steps: 0 };
        const tick = nextTick(schedule, afterMs, work);
        expect(work.steps).toBeLessThan(500);
        if (tick === null) return;
        expect(tick).toBeGreaterThan(afterMs);
        // The same tick whenever it is asked for between its predecessor and itself.
        expect(nextTick(schedule, Math.min(tick - 1, afterMs + later))).toBe(tick);
        const local = new Date(tick + zone.offsetAt(tick));
        const fits =
          expression.nextSecond[local.getUTCSeconds()] === local.getUTCSeconds() &&
          expression.nextMinute[local.getUTCMinutes()] === local.getUTCMinutes() &&
          expression.nextHour[local.getUTCHours()] === local.getUTCHours() &&
          expression.days.next(Math.floor(local.getTime() / DAY), work) * DAY <= local.getTime();
        const isGapEnd = zone.offsetAt(tick) > zone.offsetAt(tick - 1_000);
        expect(fits || (isGapEnd && !expression.isWildcard && options.dst.gap === "after")).toBe(
          true,
        );
        afterMs = tick;
      }
    }),
    { numRuns: 400 },
  );
});

test("a table that grows on the way gives the ticks of one that was complete", () => {
  const offsetOf = (ms: number) => {
    const month = new Date(ms).getUTCMonth();
    return (month >= 3 && month <= 9 ? -4 : -5) * 3_600_000;
  };
  const complete = new Zone("test", offsetOf);
  complete.cover(0);
  complete.cover(at("2130-01-01T00:00:00"));
  const yearly = cronSchedule({ cron: "0 0 29 2 */7", timezone: "America/Toronto" });
  expect(nextTick(yearly, at("2026-01-01T00:00:00"))).toBe(at("2032-02-29T05:00:00"));
  // Here the clocks never change, so nothing but the search itself makes the table grow.
  const steady = cronSchedule({ cron: "0 0 29 2 */7", timezone: "Asia/Kolkata" });
  expect(nextTick(steady, at("2032-03-01T00:00:00"))).toBe(at("2060-02-28T18:30:00"));
  const from = fc.integer({ min: 0, max: at("2025-01-01T00:00:00") });
  fc.assert(
    fc.property(anySchedule, from, fc.boolean(), (options, anyMs, isAtEdge) => {
      const schedule = read(options);
      if (!schedule) return;
      // Tables grow by 1460 days; where one ends is where a mistake would be.
      const fromMs = isAtEdge ? Math.round(anyMs / (1_460 * DAY)) * 1_460 * DAY - DAY : anyMs;
      const grown = nextTick({ ...schedule, zone: new Zone("test", offsetOf) }, fromMs);
      expect(grown).toBe(nextTick({ ...schedule, zone: complete }, fromMs));
    }),
    { numRuns: 60 },
  );
});

test("a change just before the place where a table begins is seen", () => {
  const edge = 14 * 1_460 * DAY;
  const changeMs = edge - 1_800_000;
  // Midnight to 00:30 comes twice; its second pass is the table's very beginning.
  const zone = new Zone("test", (ms) => (ms < changeMs ? 3_600_000 : 0));
  const schedule = { ...cronSchedule({ cron: "15 0 * * *" }), zone };
  zone.offsetAt(edge + 5 * DAY);
  expect(nextTick(schedule, edge)).toBe(edge + DAY + 900_000);
  expect(nextTick(schedule, edge - DAY / 2)).toBe(edge - 2_700_000);
});

test("any text is an expression or refused in one short message", () => {
  const piece = fc.constantFrom(
    "*",
    "0",
    "7",
    "31",
    "-",
    "/",
    ",",
    "L",
    "W",
    "#",
    "mon",
    "?",
    " ",
    "@",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 30 }).map((all) => all.join("")),
      (cron) => {
        try {
          cronSchedule({ cron });
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigurationError);
          expect(String(error).length).toBeLessThan(500);
        }
      },
    ),
  );
});

/** Some drawn expressions never happen, and are refused. */
function read(options: CronOptions) {
  try {
    return cronSchedule(options);
  } catch (error) {
    expect(String(error)).toMatch(/never happens/);
    return null;
  }
}
