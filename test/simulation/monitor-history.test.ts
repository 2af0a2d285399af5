// That a monitor's tick is held against the grace that it was judged by, also where the very transaction
// that records it changes the grace. Seeds meet that once in thousands.

import { expect, test } from "vitest";
import { readSchedule } from "../../src/core/schedule.js";
import { OUTCOMES, REASONS } from "../../src/core/tick.js";
import { Chronicle } from "../../src/testing/simulator/chronicle.js";
import { MonitorHistory } from "../../src/testing/simulator/monitor-history.js";
import { MONITOR } from "../../src/testing/simulator/monitor-plan.js";
import type { Note } from "../../src/testing/simulator/notes.js";
import type { Transaction } from "../../src/testing/simulator/run-history.js";
import { ScheduleHistory } from "../../src/testing/simulator/schedule-history.js";

const SECOND = 1_000;
const NOON = Date.UTC(2026, 0, 15, 12);
const ID = 1;
const TICK = NOON + 240 * SECOND;

type Grace = "20s" | "2m";

/** Made at noon with a tick every four minutes; the first is recorded as missed by what sets the grace anew. */
function missed(grace: { readonly was: Grace; readonly is: Grace }, afterTickMs: number): string[] {
  const chronicle = new Chronicle({ nowMs: () => 0, startsAt: 0, isTold: false });
  const schedules = new ScheduleHistory(chronicle);
  const monitors = new MonitorHistory(chronicle, schedules);
  const commit = (now: number, notes: readonly Note[]) => {
    const transaction = {
      process: { label: "A1" },
      verb: "writeSchedules",
      params: {},
      now,
      worldMs: now,
      notes,
    } as unknown as Transaction;
    schedules.commit(transaction, new Map());
    monitors.commit(transaction);
  };
  const now = TICK + afterTickMs;
  commit(NOON, [["schedule+", ...row(1, grace.was, NOON)]]);
  const [outcome, reason] = [OUTCOMES.indexOf("missed"), REASONS.indexOf("no_ping")];
  commit(now, [
    ["tick+", ID, TICK, TICK, 1, outcome, reason, null, 1, "{}"],
    ["schedule~", ...row(2, grace.is, now)],
  ]);
  return chronicle.violations.map(({ promise, text }) => `${promise}: ${text}`);
}

function row(version: number, grace: Grace, cursorAt: number): (string | number | null)[] {
  const definition = readSchedule(
    { monitor: true, every: "4m", grace },
    { field: "", nowMs: NOON, calendar: () => undefined, calendarNames: [] },
  );
  const standing = [null, null, null, 0];
  return [
    ...[ID, MONITOR, version, JSON.stringify(definition), NOON, cursorAt, cursorAt],
    ...[...standing, version, "[]"],
  ];
}

const TOO_EARLY = "T: 2026-01-15T12:04:00.000Z was missed before its grace.";

test("what was over by the old grace was missed, however long the new one is", () => {
  expect(missed({ was: "20s", is: "2m" }, 20 * SECOND)).toEqual([]);
  expect(missed({ was: "20s", is: "2m" }, 20 * SECOND - 1)).toEqual([TOO_EARLY]);
});

test("what was not over by the old grace was not missed, however short the new one is", () => {
  expect(missed({ was: "2m", is: "20s" }, 120 * SECOND)).toEqual([]);
  expect(missed({ was: "2m", is: "20s" }, 120 * SECOND - 1)).toEqual([TOO_EARLY]);
});
