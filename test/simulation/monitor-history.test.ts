// Proves that a monitor's tick is held against the grace that it was judged by, also where the very transaction that
// records it changes the grace; and that a response may name a run that was removed on the way, and no other. Seeds
// reach these cases once in thousands.

import { expect, test } from "vitest";
import type { Pinged } from "../../src/schedules/check-in.js";
import { readSchedule } from "../../src/schedules/rules/schedule.js";
import { OUTCOMES, REASONS } from "../../src/schedules/rules/tick.js";
import { MonitorHistory } from "../../src/testing/simulator/checkers/monitors.js";
import type { Note } from "../../src/testing/simulator/checkers/row-changes.js";
import type { Transaction } from "../../src/testing/simulator/checkers/run-places.js";
import { ScheduleHistory } from "../../src/testing/simulator/checkers/schedules.js";
import { EventLog } from "../../src/testing/simulator/event-log.js";
import { MONITOR } from "../../src/testing/simulator/workload/plan.js";

const SECOND = 1_000;
const NOON = Date.UTC(2026, 0, 15, 12);
const ID = 1;
const TICK = NOON + 240 * SECOND;

type Grace = "20s" | "2m";

function history() {
  const log = new EventLog({ nowMs: () => 0, startsAt: 0, hasStory: false });
  const schedules = new ScheduleHistory(log);
  const monitors = new MonitorHistory(log, schedules);
  const commit = (now: number, notes: readonly Note[]) => {
    const transaction = {
      process: { label: "A1" },
      verb: "schedules.write",
      params: {},
      now,
      worldMs: now,
      notes,
    } as unknown as Transaction;
    schedules.commit(transaction, new Map());
    monitors.commit(transaction);
  };
  const violations = () => log.violations.map(({ promise, text }) => `${promise}: ${text}`);
  return { monitors, commit, violations };
}

/** Made at noon with a tick every four minutes; the first is recorded as missed by what sets the grace anew. */
function missed(grace: { readonly was: Grace; readonly is: Grace }, afterTickMs: number): string[] {
  const { commit, violations } = history();
  const now = TICK + afterTickMs;
  commit(NOON, [["schedule+", ...row(1, grace.was, NOON)]]);
  const [outcome, reason] = [OUTCOMES.indexOf("missed"), REASONS.indexOf("no_ping")];
  commit(now, [
    ["tick+", ID, TICK, TICK, 1, outcome, reason, null, 1, "{}"],
    ["schedule~", ...row(2, grace.is, now)],
  ]);
  return violations();
}

/** A delivery is told twice and its run removed; the answer to the second comes last. */
function toldAgain(when: { readonly askedMs: number; readonly removedMs: number }): string[] {
  const { monitors, commit, violations } = history();
  const [deliveryId, answer] = ["ping-1", { state: "ok", tick: null, runId: "run-1" } as Pinged];
  commit(NOON, [["schedule+", ...row(1, "20s", NOON)]]);
  monitors.tells(1, "ok", deliveryId);
  commit(NOON, [["run+", "run-1", 1, 1, 0, ID, null, null, null, null, null]]);
  monitors.answered(answer, { deliveryId, askedMs: NOON });
  commit(when.removedMs, [["run-", "run-1"]]);
  monitors.answered({ ...answer, repeated: true }, { deliveryId, askedMs: when.askedMs });
  return violations();
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

test("a tick that was over by the old grace was missed, however long the new one is", () => {
  expect(missed({ was: "20s", is: "2m" }, 20 * SECOND)).toEqual([]);
  expect(missed({ was: "20s", is: "2m" }, 20 * SECOND - 1)).toEqual([TOO_EARLY]);
});

test("a tick that was not over by the old grace was not missed, however short the new one is", () => {
  expect(missed({ was: "2m", is: "20s" }, 120 * SECOND)).toEqual([]);
  expect(missed({ was: "2m", is: "20s" }, 120 * SECOND - 1)).toEqual([TOO_EARLY]);
});

test("an answer names a run that was removed while it was on its way, and none that was removed before", () => {
  const askedMs = NOON + SECOND;
  expect(toldAgain({ askedMs, removedMs: askedMs + 1 })).toEqual([]);
  expect(toldAgain({ askedMs, removedMs: askedMs - 1 })).toEqual([
    "S11: A check-in was answered with run run-1, which nobody made.",
  ]);
});
