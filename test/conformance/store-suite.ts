// The definition of a store: what every database must do, test by test. A new store is right when
// this passes on it. One file per noun; the promises' numbers (S1…) are those of the design.

import { test as base, describe } from "vitest";
import { accessSuite } from "./access-suite.js";
import { alertSuite } from "./alert-suite.js";
import { apartSuite } from "./apart-suite.js";
import { auditSuite } from "./audit-suite.js";
import { backfillSuite } from "./backfill-suite.js";
import { batchRaceSuite } from "./batch-race-suite.js";
import { batchSuite } from "./batch-suite.js";
import { calendarSuite } from "./calendar-suite.js";
import { cancelSuite } from "./cancel-suite.js";
import { claimSuite } from "./claim-suite.js";
import { commitSuite } from "./commit-suite.js";
import { concurrencySuite } from "./concurrency-suite.js";
import { duplicateSuite } from "./duplicate-suite.js";
import { enqueueSuite } from "./enqueue-suite.js";
import { figuresSuite } from "./figures-suite.js";
import { instanceSuite } from "./instance-suite.js";
import { itemSuite } from "./item-suite.js";
import { keySuite } from "./key-suite.js";
import { limitMeetsSuite } from "./limit-meets-suite.js";
import { limitRaceSuite } from "./limit-race-suite.js";
import { limitSuite } from "./limit-suite.js";
import { listSuite } from "./list-suite.js";
import { lockSuite } from "./lock-suite.js";
import { logSuite } from "./log-suite.js";
import { modelSuite } from "./model-suite.js";
import { monitorSuite } from "./monitor-suite.js";
import { openSuite } from "./open-suite.js";
import { operatorSuite } from "./operator-suite.js";
import { pauseSuite } from "./pause-suite.js";
import { pollSuite } from "./poll-suite.js";
import { progressSuite } from "./progress-suite.js";
import { pruneSuite } from "./prune-suite.js";
import { queueSuite } from "./queue-suite.js";
import { rateSuite } from "./rate-suite.js";
import { reclaimSuite } from "./reclaim-suite.js";
import { renewSuite } from "./renew-suite.js";
import { retentionSuite } from "./retention-suite.js";
import { retrySuite } from "./retry-suite.js";
import { type MakePlace, Scene, type SceneTest } from "./scene.js";
import { scheduleCodeSuite } from "./schedule-code-suite.js";
import { scheduleConcurrencySuite } from "./schedule-concurrency-suite.js";
import { scheduleDueSuite } from "./schedule-due-suite.js";
import { scheduleEditSuite } from "./schedule-edit-suite.js";
import { scheduleEndSuite } from "./schedule-end-suite.js";
import { scheduleListSuite } from "./schedule-list-suite.js";
import { schedulePruneSuite } from "./schedule-prune-suite.js";
import { scheduleRunSuite } from "./schedule-run-suite.js";
import { scheduleWriteSuite } from "./schedule-write-suite.js";
import { settleSuite } from "./settle-suite.js";
import { staleSuite } from "./stale-suite.js";
import { textSuite } from "./text-suite.js";
import { waitSuite } from "./wait-suite.js";

export type StoreSuiteOptions = {
  /** Whether several stores can be opened on one place. */
  readonly isShared: boolean;
  /** How many random histories are compared with the model. */
  readonly histories: number;
  /** Other histories than those of the usual seed. */
  readonly seed?: number;
  /** Part of the suite, for engines whose fresh databases take time. */
  readonly nouns?: readonly Noun[];
};

const NOUNS = {
  open: openSuite,
  instances: instanceSuite,
  enqueue: enqueueSuite,
  keys: keySuite,
  "keys that replace or postpone": duplicateSuite,
  claim: claimSuite,
  "claims apart": apartSuite,
  settle: settleSuite,
  "stale fences": staleSuite,
  renew: renewSuite,
  progress: progressSuite,
  logs: logSuite,
  reclaim: reclaimSuite,
  operators: operatorSuite,
  alerts: alertSuite,
  figures: figuresSuite,
  cancel: cancelSuite,
  "retry and remove": retrySuite,
  "poll and promote": pollSuite,
  lists: listSuite,
  prune: pruneSuite,
  retention: retentionSuite,
  "steps, waits and signals": waitSuite,
  items: itemSuite,
  "commits with users' work": commitSuite,
  texts: textSuite,
  locks: lockSuite,
  "random histories": modelSuite,
  "limits of concurrency": limitSuite,
  "limits of rate": rateSuite,
  "limits where runs come and end in other ways": limitMeetsSuite,
  queues: queueSuite,
  "the pause of everything": pauseSuite,
  "the audit trail": auditSuite,
  "sessions of the page": accessSuite,
  "several stores at once": concurrencySuite,
  batches: batchSuite,
  "batches in several stores at once": batchRaceSuite,
  "limits in several stores at once": limitRaceSuite,
  "schedules made and edited": scheduleEditSuite,
  "changes of schedules": scheduleWriteSuite,
  "reports of monitors": monitorSuite,
  "runs of schedules": scheduleRunSuite,
  "schedules that are due": scheduleDueSuite,
  "ends of schedules' runs": scheduleEndSuite,
  "backfills of schedules": backfillSuite,
  "lists of schedules": scheduleListSuite,
  "prune of schedules": schedulePruneSuite,
  "schedules from code": scheduleCodeSuite,
  "calendars of schedules": calendarSuite,
  "schedules in several stores at once": scheduleConcurrencySuite,
} satisfies Record<string, (test: SceneTest, options: StoreSuiteOptions) => void>;

export type Noun = keyof typeof NOUNS;
/** Suites that need a database that several stores can share. */
const SHARED: readonly Noun[] = [
  "several stores at once",
  "batches in several stores at once",
  "limits in several stores at once",
  "schedules in several stores at once",
];
/** Suites about a run while a worker holds it. */
export const HOLDING: readonly Noun[] = [
  "claim",
  "claims apart",
  "settle",
  "stale fences",
  "renew",
  "progress",
  "logs",
  "reclaim",
  "cancel",
  "steps, waits and signals",
  "limits of concurrency",
  "limits of rate",
  "limits where runs come and end in other ways",
  "several stores at once",
  "batches",
  "batches in several stores at once",
  "limits in several stores at once",
];
export const SCHEDULING: readonly Noun[] = [
  "schedules made and edited",
  "changes of schedules",
  "reports of monitors",
  "runs of schedules",
  "schedules that are due",
  "ends of schedules' runs",
  "backfills of schedules",
  "lists of schedules",
  "prune of schedules",
  "schedules from code",
  "calendars of schedules",
  "schedules in several stores at once",
];
/** Everything else. */
export const KEEPING = (Object.keys(NOUNS) as Noun[]).filter(
  (noun) => !HOLDING.includes(noun) && !SCHEDULING.includes(noun),
);

/** Defines every test of the suite; each gets a fresh place. */
export function describeStore(
  name: string,
  makePlace: MakePlace,
  options: StoreSuiteOptions,
): void {
  const test = sceneTest(makePlace);
  const chosen = options.nouns ?? (Object.keys(NOUNS) as Noun[]);
  describe.concurrent(name, () => {
    for (const noun of options.isShared ? chosen : chosen.filter((each) => !SHARED.includes(each)))
      describe(noun, () => NOUNS[noun](test, options));
  });
}

function sceneTest(makePlace: MakePlace): SceneTest {
  return base.extend<{ scene: Scene }>({
    scene: async ({ task: _ }, use) => {
      const scene = await Scene.start(await makePlace());
      await use(scene);
      await scene.end();
    },
  }) as SceneTest;
}
