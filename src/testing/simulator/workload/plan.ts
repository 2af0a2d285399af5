// Everything that a seed decides before anything happens: who takes part, what is asked for when, and
// what goes wrong. A shrunk seed is the same plan with faults and operations left out.

import { drawFault, drawMix, type Fault } from "../faults/catalogue.js";
import { Draw } from "../random.js";
import { drawCalendar } from "./calendar-plan.js";
import { type Behaviour, drawJobs, type JobPlan } from "./jobs.js";
import { drawLocks } from "./locks.js";
import { drawMonitor } from "./monitor-plan.js";
import type { Operation, OperationKind } from "./operation.js";
import { drawRemotePlan } from "./remote-plan.js";
import { CALENDARS, drawSchedule, drawSetting, type Setting } from "./schedule-plan.js";

export type Plan = {
  readonly seed: number;
  readonly setting: Setting;
  readonly placeCount: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly chaosMs: number;
  /** How often a call takes time, and how much at most. */
  readonly latency: { readonly chance: number; readonly maxMs: number };
  /** How long a place stays empty after its process is gone. */
  readonly restartMs: number;
  readonly jobs: readonly JobPlan[];
  /** The place whose process does not know the job "rare". */
  readonly oldPlace: number;
  /** Whether the instances name their application. */
  readonly isNamed: boolean;
  /** Whether the instances look for alerts: a sixth of all calls, and no promise rests on them. */
  readonly isAlert: boolean;
  /** Whether runs are dispatched to a service: a claim of its own goes with each of the others. */
  readonly hasTarget: boolean;
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
};

const HOUR_MS = 3_600_000;
const OPERATIONS: readonly (readonly [number, OperationKind])[] = [
  [42, "enqueue"],
  [4, "enqueueMany"],
  [11, "trigger"],
  [8, "cancel"],
  [8, "retry"],
  [2, "retryChildren"],
  [1, "remove"],
  [6, "upsert"],
  [4, "pause"],
  [5, "resume"],
  [2, "delete"],
  [2, "backfill"],
  [0.5, "cancelBackfill"],
  [2, "putCalendar"],
  [1.5, "pauseQueue"],
  [2.5, "resumeQueue"],
  [0.5, "pauseAll"],
  [1, "resumeAll"],
  [0.4, "garble"],
  [3, "look"],
  [2, "stop"],
  [1, "crash"],
];

/** Jobs that people ask for; poison is rare, since each one takes several processes with it. */
const ASKED: readonly (readonly [number, Behaviour])[] = [
  [8, "quick"],
  [4, "slow"],
  [5, "flaky"],
  [2, "wrong"],
  [1, "poison"],
  [2, "postponing"],
  [1, "deaf"],
  [3, "once"],
  [2, "rare"],
  [3, "fanning"],
  [8, "committing"],
  [6, "itemized"],
  [6, "limited"],
  [3, "paced"],
];

export function makePlan(seed: number): Plan {
  const draw = new Draw(seed, "plan");
  const setting = drawSetting(draw);
  const placeCount = draw.weighted([
    [16, 3],
    [3, 4],
    [1, 5],
  ]);
  const chaosMs = HOUR_MS + draw.whole(0, 120_000);
  const hasTarget = new Draw(seed, "target").isTrue(0.5);
  const jobs = drawJobs(draw).filter(({ name }) => hasTarget || name !== "dispatched");
  const scheduleCount = draw.whole(3, 5);
  const operations = drawOperations(seed, { setting, placeCount, chaosMs, scheduleCount });
  const faults = drawFaults(seed, { placeCount, chaosMs, jobs });
  const after = { operation: operations.at(-1) as Operation, fault: faults.at(-1) as Fault };
  const locks = drawLocks(seed, { placeCount, chaosMs, after });
  const last = locks.operations.at(-1) as Operation;
  const elsewhere = drawRemotePlan(seed, { placeCount, chaosMs, last, hasTarget });
  const monitor = drawMonitor(seed, {
    placeCount,
    chaosMs,
    last: elsewhere.at(-1) as Operation,
  });
  return {
    seed,
    setting,
    placeCount,
    // Idle polls are most of the work, so short intervals are drawn less often than long ones.
    pollMs: Math.round(1_000 + 59_000 * Math.max(...Array.from({ length: 5 }, () => draw.next()))),
    concurrency: draw.whole(2, 10),
    chaosMs,
    latency: { chance: draw.pick([0, 0.02, 0.1, 0.25]), maxMs: draw.logarithmic(2, 200) },
    restartMs: draw.logarithmic(3_000, 120_000),
    jobs,
    oldPlace: draw.whole(0, placeCount - 1),
    isNamed: draw.isTrue(0.2),
    isAlert: draw.isTrue(0.1),
    hasTarget,
    operations: [...operations, ...locks.operations, ...elsewhere, ...monitor],
    faults: [...faults, ...locks.faults],
  };
}

function drawOperations(
  seed: number,
  params: {
    readonly setting: Setting;
    readonly placeCount: number;
    readonly chaosMs: number;
    readonly scheduleCount: number;
  },
): Operation[] {
  const { setting, placeCount, chaosMs, scheduleCount } = params;
  const draw = new Draw(seed, "operations");
  // Some find nobody to ask until it is too late; a seed has to have at least two hundred that do.
  const count = draw.whole(154, 162);
  const times = Array.from({ length: count }, () => draw.whole(2_000, chaosMs)).sort(
    (a, b) => a - b,
  );
  return times.map((time, id) => {
    // Calendars and then schedules are made first, soon after the start; later upserts edit them.
    const firstName = CALENDARS[id];
    const number = id - CALENDARS.length;
    const isFirst = number >= 0 && number < scheduleCount;
    const afterMs = firstName || isFirst ? 500 + id * 300 : time;
    const later = isFirst ? "upsert" : draw.weighted(OPERATIONS);
    const calendar = drawCalendar(draw, setting, afterMs);
    return {
      id,
      afterMs,
      kind: firstName ? "putCalendar" : later,
      place: draw.whole(0, placeCount - 1),
      luck: draw.whole(0, 2 ** 31),
      job: draw.weighted(ASKED),
      schedule: `schedule-${isFirst ? number : draw.whole(0, scheduleCount - 1)}`,
      options: drawSchedule(draw, setting, afterMs),
      calendar: firstName ? { ...calendar, name: firstName } : calendar,
    };
  });
}

function drawFaults(
  seed: number,
  params: {
    readonly placeCount: number;
    readonly chaosMs: number;
    readonly jobs: readonly JobPlan[];
  },
): Fault[] {
  const { placeCount, chaosMs, jobs } = params;
  const draw = new Draw(seed, "faults");
  const mix = drawMix(draw);
  const leaseMs = Math.max(
    ...jobs.filter(({ name }) => name !== "quick").map((job) => job.leaseMs),
  );
  // Some find nothing to disturb; a seed has to have at least twenty that do.
  const count = draw.whole(28, 40);
  const times = Array.from({ length: count }, () => draw.whole(5_000, chaosMs - 60_000)).sort(
    (a, b) => a - b,
  );
  return times.map((afterMs, id) => drawFault(draw, { id, mix, afterMs, placeCount, leaseMs }));
}

/** Every job but those that this place does not know. */
export function jobsAt({ jobs, oldPlace }: Plan, place: number): readonly JobPlan[] {
  return place === oldPlace ? jobs.filter(({ name }) => name !== "rare") : jobs;
}
