// Calendars as users write them: canonical rules, words, and what is refused.

import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { type CalendarOptions, describeCalendar, readCalendar } from "./calendar.js";

const read = (options: unknown) => readCalendar(options as CalendarOptions, "calendar");

function refused(options: unknown): string {
  try {
    read(options);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error("It was accepted.");
}

test("equal calendars are equal JSON", () => {
  const one = read({
    days: ["fri", "MON", "mon"],
    dates: ["2026-12-25", "12-25", "2026-12-25..2026-12-25"],
    windows: [
      { from: "2026-12-20T18:00:00Z", to: "2026-12-21T18:00:00.000Z" },
      { from: "22:00", to: "06:00", days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] },
      { from: "22:00", to: "06:00" },
    ],
    timezone: "europe/paris",
  });
  const other = read({
    timezone: "Europe/Paris",
    windows: [
      { from: "22:00", to: "06:00" },
      { to: "2026-12-21T19:00:00+01:00", from: "2026-12-20T18:00:00Z" },
    ],
    dates: ["12-25", "2026-12-25"],
    days: ["mon", "fri"],
  });
  expect(JSON.stringify(one)).toBe(JSON.stringify(other));
  expect(JSON.parse(JSON.stringify(one))).toEqual(one);
  expect(one).toEqual({
    timezone: "Europe/Paris",
    days: ["mon", "fri"],
    dates: ["12-25", "2026-12-25"],
    windows: [
      { kind: "daily", from: "22:00", to: "06:00", days: null },
      {
        kind: "instant",
        from: "2026-12-20T18:00:00.000Z",
        to: "2026-12-21T18:00:00.000Z",
        days: null,
      },
    ],
    events: [],
  });
});

const WORDS: [options: CalendarOptions, words: string][] = [
  [{ days: ["mon", "tue", "wed", "thu", "fri"] }, "mon to fri only"],
  [{ days: ["sat", "sun"], timezone: "UTC" }, "sat and sun only; UTC"],
  [{ dates: ["2026-12-24..2026-12-26"] }, "not on 2026-12-24 to 2026-12-26"],
  [{ dates: ["12-25", "12-26"] }, "not on 2 dates"],
  [{ windows: [{ from: "22:00", to: "06:00" }] }, "not 22:00 to 06:00 every day"],
  [
    { windows: [{ from: "2026-12-20T18:00", to: "2027-01-02T06:00:30" }] },
    "not 2026-12-20 18:00 to 2027-01-02 06:00:30",
  ],
  [{ days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] }, "excludes nothing"],
];

test.each(WORDS)("%o in words", (options, words) => {
  expect(describeCalendar(read(options))).toBe(words);
});

const REFUSED: [options: unknown, problem: string][] = [
  [{}, "calendar: must have one of days, dates, windows or ics"],
  [null, "calendar: must be a calendar such as"],
  [{ day: ["mon"] }, 'calendar.day: is not known. Did you mean "days"?'],
  [{ days: [] }, "calendar.days: must name at least one weekday"],
  [
    { days: ["monday"] },
    'calendar.days[0]: must be one of mon, tue, wed, thu, fri, sat, sun, but is monday. Did you mean "mon"?',
  ],
  [{ days: "mon" }, "calendar.days: must be an array"],
  [{ dates: ["2026-12-26..2026-12-24"] }, "ends before it begins"],
  [{ dates: ["2026-12-24..12-26"] }, "calendar.dates[0]: must be a date such as"],
  [{ dates: ["13-01"] }, "13-01 is no date"],
  [{ dates: ["1969-12-31"] }, "1969-12-31 is no date of the years 1970 to 9999"],
  [{ dates: ["x".repeat(100_000)] }, "but has 100000 characters"],
  [{ windows: [{ from: "22:00" }] }, "calendar.windows[0].to: must be a time such as"],
  [{ windows: [{ from: "22:00", to: "22:00" }] }, "must not be empty"],
  [{ windows: [{ from: "24:00", to: "06:00" }] }, 'must be before "24:00"'],
  [{ windows: [{ from: "25:00", to: "06:00" }] }, "calendar.windows[0].from: must be a time"],
  [{ windows: [{ from: "22:00", to: "2026-12-20T18:00" }] }, "two times of one kind"],
  [{ windows: [{ from: "2026-12-20", to: "2026-12-21" }] }, "must be a time such as"],
  [{ windows: [{ from: "2026-02-30T00:00", to: "2026-03-01T00:00" }] }, "must be a time such as"],
  [{ windows: [{ from: "2026-12-20T18:00", to: "2026-12-20T17:00" }] }, "must end after it begins"],
  [
    { windows: [{ from: "2026-12-20T18:00", to: "2026-12-20T19:00", days: ["mon"] }] },
    'calendar.windows[0].days: goes only with times such as "22:00".',
  ],
  [{ windows: [{ from: "22:00", to: "06:00", day: [] }] }, 'Did you mean "days"?'],
  [{ dates: ["12-25"], timezone: "" }, "calendar.timezone: must be an IANA time zone"],
  [{ ics: 5 }, "calendar.ics: must be the text of an .ics file, but is number."],
];

test.each(REFUSED)("%o is refused", (options, problem) => {
  expect(refused(options)).toContain(problem);
});
