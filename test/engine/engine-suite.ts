// The engine's promises, tested on a database whose time the test moves.

import { test as base, describe } from "vitest";
import { alertDeliverySuite } from "./alert-delivery-suite.js";
import { alertSuite } from "./alert-suite.js";
import { callSuite } from "./call-suite.js";
import { commitSuite } from "./commit-suite.js";
import { controlSuite } from "./control-suite.js";
import { dispatchSuite } from "./dispatch-suite.js";
import { endSuite } from "./end-suite.js";
import { explainSuite } from "./explain-suite.js";
import { fanOutSuite } from "./fan-out-suite.js";
import { faultSuite } from "./fault-suite.js";
import { hooksSuite } from "./hooks-suite.js";
import { hostileSuite } from "./hostile-suite.js";
import { itemSuite } from "./item-suite.js";
import { leaseSuite } from "./lease-suite.js";
import { limitSuite } from "./limit-suite.js";
import { lockSuite } from "./lock-suite.js";
import { logLinesSuite } from "./log-lines-suite.js";
import { longRunSuite } from "./long-run-suite.js";
import { metricsSuite } from "./metrics-suite.js";
import { monitorSuite } from "./monitor-suite.js";
import { passSuite } from "./pass-suite.js";
import { pauseSuite } from "./pause-suite.js";
import { remoteEndSuite } from "./remote-end-suite.js";
import { remoteSuite } from "./remote-suite.js";
import { retrySuite } from "./retry-suite.js";
import { rhythmSuite } from "./rhythm-suite.js";
import { runIfDueSuite } from "./run-if-due-suite.js";
import { runSuite } from "./run-suite.js";
import { scheduleBackfillSuite } from "./schedule-backfill-suite.js";
import { scheduleChangeSuite } from "./schedule-change-suite.js";
import { scheduleDeclaredSuite } from "./schedule-declared-suite.js";
import { scheduleEdgeSuite } from "./schedule-edge-suite.js";
import { scheduleFailureSuite } from "./schedule-failure-suite.js";
import { scheduleFaultSuite } from "./schedule-fault-suite.js";
import { scheduleAbsenceSuite, scheduleMissedSuite } from "./schedule-missed-suite.js";
import { scheduleOverlapSuite } from "./schedule-overlap-suite.js";
import { scheduleRangeSuite } from "./schedule-range-suite.js";
import { scheduleRolesSuite } from "./schedule-roles-suite.js";
import { scheduleTickSuite } from "./schedule-tick-suite.js";
import { scheduleTriggerSuite } from "./schedule-trigger-suite.js";
import { sleeperSuite } from "./sleeper-suite.js";
import { stepSuite } from "./step-suite.js";
import { stopSuite } from "./stop-suite.js";
import { tracingSuite } from "./tracing-suite.js";
import { type EnginePlace, World, type WorldTest } from "./world.js";

type MakePlace = () => Promise<EnginePlace>;

/** The life of a run: from its enqueue to whatever ends it. */
export function describeLife(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`the life of a run on ${name}`, () => {
    describe("a run", () => runSuite(test));
    describe("a failure", () => retrySuite(test));
    describe("an end", () => endSuite(test));
    describe("a run that makes runs", () => fanOutSuite(test));
    describe("a hostile value", () => hostileSuite(test));
    describe("a limit", () => limitSuite(test));
    describe("an end elsewhere", () => remoteEndSuite(test));
    describe("a long run", () => longRunSuite(test));
    describe("what surrounds a run", () => hooksSuite(test));
    describe("what is counted", () => metricsSuite(test));
    describe("a trace", () => tracingSuite(test));
    describe("what is said", () => logLinesSuite(test));
  });
}

/** Suites about the writes of a handler while it runs, and together with its end. */
export function describeWork(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`work on ${name}`, () => {
    describe("an item", () => itemSuite(test));
    describe("a commit", () => commitSuite(test));
  });
}

/** Suites about steps and waits of a handler. */
export function describeWaits(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`waits on ${name}`, () => {
    describe("a step", () => stepSuite(test));
    describe("a call", () => callSuite(test));
    describe("a sleeper", () => sleeperSuite(test));
  });
}

/** Suites about faults around a run: silent holders, lost answers, an instance that stops. */
export function describeTrouble(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`trouble on ${name}`, () => {
    describe("a lease", () => leaseSuite(test));
    describe("a stop", () => stopSuite(test));
    describe("a fault", () => faultSuite(test));
  });
}

/** Runs that are sent to a service elsewhere. */
export function describeDispatch(name: string, makePlace: MakePlace): void {
  describe(`dispatch on ${name}`, () => dispatchSuite(testIn(makePlace)));
  describe(`remote workers on ${name}`, () => remoteSuite(testIn(makePlace)));
}

/** When runs are made: on time, late, never twice. */
export function describeTicks(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`ticks on ${name}`, () => {
    describe("a tick", () => scheduleTickSuite(test));
    describe("a drawn interval", () => scheduleRangeSuite(test));
    describe("an absence", () => scheduleAbsenceSuite(test));
    describe("an overlap", () => scheduleOverlapSuite(test));
    describe("a failing schedule", () => scheduleFailureSuite(test));
    describe("a fault around a tick", () => scheduleFaultSuite(test));
  });
}

/** Suites about the changes that people and code make to schedules. */
export function describeSchedules(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`schedules on ${name}`, () => {
    describe("a change", () => scheduleChangeSuite(test));
    describe("a trigger", () => scheduleTriggerSuite(test));
    describe("a monitor", () => monitorSuite(test));
    describe("one bounded pass", () => passSuite(test));
    describe("a schedule run if it is due", () => runIfDueSuite(test));
    describe("control", () => controlSuite(test));
    describe("the pause of everything", () => pauseSuite(test));
    describe("a backfill", () => scheduleBackfillSuite(test));
    describe("a split of roles", () => scheduleRolesSuite(test));
    describe("a declaration", () => scheduleDeclaredSuite(test));
    describe("a corner", () => scheduleEdgeSuite(test));
  });
}

/** Policies that are decided before the database is asked. */
export function describePolicies(name: string, makePlace: MakePlace): void {
  describe(`policies on ${name}`, () => scheduleMissedSuite(testIn(makePlace)));
}

/** Suites that take hours of virtual time and that the engine alone decides. */
export function describeRhythm(name: string, makePlace: MakePlace): void {
  describe(`the rhythm on ${name}`, () => rhythmSuite(testIn(makePlace)));
}

/** Why a schedule did what it did, in words. */
export function describeExplain(name: string, makePlace: MakePlace): void {
  describe(`explain on ${name}`, () => explainSuite(testIn(makePlace)));
}

/** Named locks, which need no start. */
export function describeLocks(name: string, makePlace: MakePlace): void {
  describe(`locks on ${name}`, () => lockSuite(testIn(makePlace)));
}

/** Suites about alerts and their delivery. */
export function describeAlerts(name: string, makePlace: MakePlace): void {
  const test = testIn(makePlace);
  describe(`alerts on ${name}`, () => {
    describe("an alert", () => alertSuite(test));
    describe("a delivery", () => alertDeliverySuite(test));
  });
}

function testIn(makePlace: MakePlace): WorldTest {
  return base.extend<{ world: World }>({
    world: async ({ task: _ }, use) => {
      const world = new World(await makePlace());
      await use(world);
      await world.end();
    },
  }) as WorldTest;
}
