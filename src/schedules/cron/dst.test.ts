// Which changes of the clocks touch a schedule, and what is said about them.

import { expect, test } from "vitest";
import { type CronOptions, cronSchedule, nextTick } from "./cron.js";
import { describeTouch, dstTouches } from "./dst.js";

const DAY = 86_400_000;

function touchesOf(options: CronOptions, from = "2026-01-01", days = 365) {
  const fromMs = Date.parse(from);
  return dstTouches(cronSchedule(options), { fromMs, untilMs: fromMs + days * DAY, limit: 10 });
}

const NEW_YORK = "America/New_York";
const FORWARD = "on 2026-03-08, when the clocks go forward from 02:00 to 03:00";
const BACK = "on 2026-11-01, when the clocks go back from 02:00 to 01:00";

test.each<[CronOptions, string[]]>([
  [
    { cron: "30 2 * * *", timezone: NEW_YORK },
    [`02:30 does not exist ${FORWARD}: one tick at 03:00`],
  ],
  [
    { cron: "30 2 * * *", timezone: NEW_YORK, dst: { gap: "skip" } },
    [`02:30 does not exist ${FORWARD}: no tick`],
  ],
  [
    { cron: "0,30 1 * * *", timezone: NEW_YORK },
    [`01:00 and 01:30 come twice ${BACK}: one tick each, at the first pass`],
  ],
  [
    { cron: "30 1 * * *", timezone: NEW_YORK, dst: { overlap: "second" } },
    [`01:30 comes twice ${BACK}: one tick, at the second pass`],
  ],
  [
    { cron: "30 1 * * *", timezone: NEW_YORK, dst: { overlap: "both" } },
    [`01:30 comes twice ${BACK}: a tick at both passes`],
  ],
  [
    { cron: "*/15 2 * * *", timezone: NEW_YORK },
    [`02:00, 02:15, 02:30, … do not exist ${FORWARD}: no tick`],
  ],
  [
    { cron: "20 15 * * * *", timezone: "Australia/Lord_Howe" },
    [
      "02:15:20 does not exist on 2026-10-04, when the clocks go forward from 02:00 to 02:30: no tick",
    ],
  ],
  // All hours, but no wildcard: a fixed-time schedule.
  [
    { cron: "30 0-23 * * *", timezone: NEW_YORK, dst: { overlap: "second" } },
    [
      `02:30 does not exist ${FORWARD}: one tick at 03:00`,
      `01:30 comes twice ${BACK}: one tick, at the second pass`,
    ],
  ],
  // Those that keep their distance, or run at other times, are not touched.
  [{ cron: "*/15 * * * *", timezone: NEW_YORK }, []],
  [{ cron: "*/15 * * * *", timezone: "Australia/Lord_Howe" }, []],
  [{ cron: "30 * * * *", timezone: NEW_YORK }, []],
  [{ cron: "0 12 * * *", timezone: NEW_YORK }, []],
  [{ cron: "30 2 * * 1-6", timezone: NEW_YORK }, []],
  [{ cron: "30 2 * * *" }, []],
])("%o", (options, expected) => {
  expect(touchesOf(options).map(describeTouch)).toEqual(expected);
});

test("a skipped day is named with its dates", () => {
  const touches = touchesOf({ cron: "0 12 * * *", timezone: "Pacific/Apia" }, "2011-12-01", 60);
  expect(touches.map(describeTouch)).toEqual([
    "12:00 does not exist on 2011-12-30, when the clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00: no tick",
  ]);
  expect(touches[0]?.tickMs).toBeNull();
});

test.each([["30 2 * * *"], ["0,30 1 * * *"], ["30 1 29-31,1-9 3,11 *"]])(
  "the tick of a touch of %s is a tick",
  (cron) => {
    for (const overlap of ["first", "second", "both"] as const) {
      const options = { cron, timezone: NEW_YORK, dst: { overlap } };
      for (const { tickMs } of touchesOf(options)) {
        expect(tickMs).not.toBeNull();
        expect(nextTick(cronSchedule(options), (tickMs ?? 0) - 1)).toBe(tickMs);
      }
    }
  },
);

test("the number of touches is limited, and so is the horizon", () => {
  const schedule = cronSchedule({ cron: "30 2 * * *", timezone: NEW_YORK });
  const fromMs = Date.UTC(2026, 0, 1);
  const untilMs = Number.POSITIVE_INFINITY;
  expect(dstTouches(schedule, { fromMs, untilMs, limit: 3 })).toHaveLength(3);
  expect(dstTouches(schedule, { fromMs, untilMs, limit: 1_000 }).length).toBeLessThan(110);
});
