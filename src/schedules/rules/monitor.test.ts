// Monitors: which tick a check-in counts for, when ticks are judged, and what is missed.

import { expect, test } from "vitest";
import { beganFor, evaluateAt, judgedAt, judgeMonitor, tickFor } from "./monitor.js";
import { readSchedule } from "./schedule.js";
import { makeWhen } from "./when.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOON = Date.UTC(2026, 0, 15, 12);

const definition = readSchedule(
  { monitor: true, cron: "0 * * * *", grace: "10m" },
  { field: "", nowMs: NOON, calendar: () => undefined, calendarNames: [] },
);
const when = makeWhen(definition.when, NOON);
const judged = (afterNoonMs: number, more: object = {}) =>
  judgeMonitor({
    now: NOON + afterNoonMs,
    definition,
    when,
    cursorAt: NOON,
    pauses: [],
    lastPolledAt: null,
    live: [],
    beganAt: null,
    ...more,
  });
const at = (afterNoonMs: number) => NOON + afterNoonMs;

test("a check-in counts for the oldest tick that waits, else for the nearest one", () => {
  const chosen = (afterNoonMs: number, cursorAt = NOON) =>
    tickFor({ when, cursorAt, now: at(afterNoonMs) });
  expect(chosen(29 * MINUTE)).toBeNull();
  expect(chosen(30 * MINUTE)).toBeNull();
  expect(chosen(31 * MINUTE)).toBe(at(HOUR));
  expect(chosen(HOUR + 9 * MINUTE)).toBe(at(HOUR));
  // The tick of 13:00 is recorded, perhaps before its time.
  expect(chosen(59 * MINUTE, at(HOUR))).toBeNull();
  expect(chosen(HOUR + 31 * MINUTE, at(HOUR))).toBe(at(2 * HOUR));
});

test("a start counts for the nearest tick, and its grace begins at the start", () => {
  const tick = at(HOUR);
  expect(beganFor(at(10 * MINUTE), { cursorAt: NOON, tick })).toBeNull();
  expect(beganFor(at(50 * MINUTE), { cursorAt: NOON, tick })).toBe(at(50 * MINUTE));
  const due = (beganAt: number | null) => judgedAt({ definition, when, cursorAt: NOON, beganAt });
  expect(due(null)).toBe(at(HOUR + 10 * MINUTE));
  expect(due(at(10 * MINUTE))).toBe(at(HOUR + 10 * MINUTE));
  expect(due(at(50 * MINUTE))).toBe(at(HOUR + 10 * MINUTE));
  expect(due(at(HOUR + 5 * MINUTE))).toBe(at(HOUR + 15 * MINUTE));
});

test("a monitor is looked at when the grace of its tick is over, any other schedule at its tick", () => {
  expect(evaluateAt(definition, at(HOUR))).toBe(at(HOUR + 10 * MINUTE));
  expect(evaluateAt({ graceMs: 30_000 }, at(HOUR))).toBe(at(HOUR));
  expect(evaluateAt(definition, null)).toBeNull();
});

test("nothing is missed while the grace lasts, and one tick is when it is over", () => {
  expect(judged(HOUR + 10 * MINUTE - 1)).toMatchObject({ ticks: [], cursorAt: NOON });
  const beganAt = at(HOUR + MINUTE);
  expect(judged(HOUR + 10 * MINUTE, { beganAt })).toMatchObject({
    ticks: [],
    nextAt: at(HOUR + 11 * MINUTE),
  });
  const [first, ...others] = judged(HOUR + 11 * MINUTE, { beganAt }).ticks;
  expect(others).toEqual([]);
  expect(first).toEqual({
    firstAt: at(HOUR),
    lastAt: at(HOUR),
    count: 1,
    reason: "no_ping",
    run: null,
    evidence: { since: at(30 * MINUTE), until: at(HOUR + 11 * MINUTE), beganAt },
  });
});

test("a long stretch is one row for each side of a pause of everything, whatever its length", () => {
  const pause = { at: at(2 * HOUR), until: at(4 * HOUR), by: "ada", note: null };
  const { ticks, cursorAt, nextAt } = judged(1_000 * 24 * HOUR, {
    pauses: [pause],
    lastPolledAt: at(MINUTE),
  });
  expect(ticks.map(({ reason, count }) => `${reason} ×${count}`)).toEqual([
    "no_ping ×1",
    "paused ×2",
    `no_ping ×${1_000 * 24 - 4}`,
  ]);
  expect(ticks[0]?.evidence).toMatchObject({ lastPolledAt: at(MINUTE) });
  expect(nextAt).toBe(cursorAt + HOUR + 10 * MINUTE);
});
