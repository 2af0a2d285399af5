// Schedules in words.

import { expect, test } from "vitest";
import { readCalendar } from "../calendars/calendar.js";
import { describeWhen } from "./describe-when.js";
import { readWhen, type WhenOptions } from "./when-options.js";

const FREEZE = readCalendar({ dates: ["12-25"] }, "freeze");

const CASES: [options: WhenOptions, words: string][] = [
  [{ cron: "0 2 * * *", timezone: "Europe/Paris" }, "at 02:00 every day, Europe/Paris"],
  [{ every: "10m" }, "every 10 minutes"],
  [{ every: "1h" }, "every hour"],
  [{ every: "90m" }, "every 1 hour 30 minutes"],
  [
    { every: "10m", from: "2026-01-01T00:00:00Z", timezone: "Asia/Tokyo" },
    "every 10 minutes, from 2026-01-01 09:00 Asia/Tokyo",
  ],
  [{ every: "10m..15m" }, "10 to 15 minutes after the last run ended"],
  [{ every: "1m..10m" }, "1 to 10 minutes after the last run ended"],
  [{ every: "30m..90m" }, "30 minutes to 1 hour 30 minutes after the last run ended"],
  [{ every: "5s..5s" }, "5 seconds after the last run ended"],
  [{ at: "2030-01-31T09:00:00Z" }, "once, at 2030-01-31 09:00 UTC"],
  [{ at: "2030-01-31T09:00:05.250Z" }, "once, at 2030-01-31 09:00:05.250 UTC"],
  [
    {
      cron: "0 9 * * 1-5",
      from: "2026-01-01T00:00:00Z",
      until: "2026-12-31T00:00:00Z",
      exclude: ["12-25", "12-26"],
      calendars: ["freeze"],
    },
    "at 09:00 on Monday to Friday, UTC, from 2026-01-01 00:00 UTC until 2026-12-31 00:00 UTC, " +
      'except on 2 dates and in the calendar "freeze"',
  ],
  [
    { every: "1d", exclude: ["2026-12-24..2026-12-26"], calendars: ["freeze", "other"] },
    'every day, except on 2026-12-24 to 2026-12-26 and in the calendars "freeze" and "other"',
  ],
];

test.each(CASES)("%o in words", (options, words) => {
  const definition = readWhen(options, {
    field: "",
    nowMs: null,
    calendar: () => FREEZE,
    calendarNames: [],
  });
  expect(describeWhen(definition)).toBe(words);
});
