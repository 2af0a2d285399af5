// Draws the plan of a seed before anything happens: the processes, the operations and their times, and the faults. A
// shrunk seed is the same plan without some faults and operations. Each part of the plan has a stream of its own.

import { monitorJob } from "../../../schedules/rules/monitor.js";
import type { ScheduleOptions } from "../../../schedules/rules/schedule.js";
import { drawFault, drawMix, type Fault } from "../faults/catalogue.js";
import { Draw } from "../random.js";
import { type Behaviour, drawJobs, drawWaitingJobs, type JobPlan } from "./jobs.js";
import { drawLocks } from "./locks.js";
import type { Operation, OperationKind } from "./operation.js";
import {
  CALENDARS,
  drawCalendar,
  drawSchedule,
  drawSetting,
  type Setting,
} from "./schedule-plan.js";
import { drawWaitFaults, drawWaits } from "./waits.js";

export type Plan = {
  readonly seed: number;
  readonly setting: Setting;
  readonly placeCount: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly chaosMs: number;
  /** The probability that a call takes time, and the longest time. */
  readonly latency: { readonly chance: number; readonly maxMs: number };
  /** How long a place stays empty after its process is gone. */
  readonly restartMs: number;
  readonly jobs: readonly JobPlan[];
  /** The place whose process does not know the job "rare". */
  readonly oldPlace: number;
  /** Whether the instances name their application. */
  readonly isNamed: boolean;
  /** Whether the instances look for alerts: a sixth of all calls, and no promise depends on it. */
  readonly isAlert: boolean;
  /** Whether runs are dispatched to a service. A second claim then follows each claim. */
  readonly hasTarget: boolean;
  /** Whether runs wait durably. Seeds without them have the events that they had before. */
  readonly hasWaits: boolean;
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

/** The jobs of enqueue operations. Poison is rare, because each such run crashes several processes. */
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
  const remote = drawRemotePlan(seed, { placeCount, chaosMs, last, hasTarget });
  const hasWaits = new Draw(seed, "waits").isTrue(0.5);
  const monitor = drawMonitor(seed, {
    placeCount,
    chaosMs,
    last: remote.at(-1) as Operation,
  });
  const lastOfAll = monitor.at(-1) as Operation;
  const waits = hasWaits ? drawWaits(seed, { placeCount, chaosMs, last: lastOfAll }) : [];
  const waitFaults = hasWaits
    ? drawWaitFaults(seed, { placeCount, chaosMs, last: locks.faults.at(-1) ?? after.fault })
    : [];
  const waitingJobs = hasWaits ? drawWaitingJobs(new Draw(seed, "waiting jobs")) : [];
  return {
    seed,
    setting,
    placeCount,
    // Idle polls are most of the work: long intervals are more likely than short ones.
    pollMs: Math.round(1_000 + 59_000 * Math.max(...Array.from({ length: 5 }, () => draw.next()))),
    concurrency: draw.whole(2, 10),
    chaosMs,
    latency: { chance: draw.pick([0, 0.02, 0.1, 0.25]), maxMs: draw.logarithmic(2, 200) },
    restartMs: draw.logarithmic(3_000, 120_000),
    jobs: [...jobs, ...waitingJobs],
    oldPlace: draw.whole(0, placeCount - 1),
    isNamed: draw.isTrue(0.2),
    isAlert: draw.isTrue(0.1),
    hasTarget,
    hasWaits,
    operations: [...operations, ...locks.operations, ...remote, ...monitor, ...waits],
    faults: [...faults, ...locks.faults, ...waitFaults],
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
  // Some operations find no process in time; a seed must have at least two hundred that do.
  const count = draw.whole(154, 162);
  const times = Array.from({ length: count }, () => draw.whole(2_000, chaosMs)).sort(
    (a, b) => a - b,
  );
  return times.map((time, id) => {
    // Calendars and then schedules are created first, soon after the start; later upserts edit them.
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
  // Some faults find no victim; a seed must have at least twenty that do.
  const count = draw.whole(28, 40);
  const times = Array.from({ length: count }, () => draw.whole(5_000, chaosMs - 60_000)).sort(
    (a, b) => a - b,
  );
  return times.map((afterMs, id) => drawFault(draw, { id, mix, afterMs, placeCount, leaseMs }));
}

/** Returns every job that this place knows. */
export function jobsAt({ jobs, oldPlace }: Plan, place: number): readonly JobPlan[] {
  return place === oldPlace ? jobs.filter(({ name }) => name !== "rare") : jobs;
}

// ── remote workers ─────────────────────────────────────────────────────────────────────────────────

const CLAIMS = 10;
const PASSES = 3;
/** The runs for a claim are enqueued at most this long before it. */
const BEFORE_MS = 15_000;

/** Ids go on after `last`. */
export function drawRemotePlan(
  seed: number,
  params: {
    readonly placeCount: number;
    readonly chaosMs: number;
    readonly last: Operation;
    readonly hasTarget: boolean;
  },
): readonly Operation[] {
  const { placeCount, chaosMs, last, hasTarget } = params;
  const draw = new Draw(seed, "elsewhere");
  const operations: Operation[] = [];
  const add = (kind: OperationKind, afterMs: number, job: Operation["job"]) =>
    operations.push({
      ...last,
      id: last.id + 1 + operations.length,
      kind,
      afterMs,
      job,
      place: draw.whole(0, placeCount - 1),
      luck: draw.whole(0, 2 ** 31),
    });
  for (let claim = 0; claim < CLAIMS; claim += 1) {
    const afterMs = draw.whole(60_000, chaosMs - 30_000);
    add("enqueue", afterMs - draw.whole(0, BEFORE_MS), "remote");
    add("remote", afterMs, "remote");
  }
  for (let order = 0; order < CLAIMS; order += 1)
    add("enqueue", draw.whole(60_000, chaosMs - 30_000), hasTarget ? "dispatched" : "flaky");
  for (let pass = 0; pass < PASSES; pass += 1)
    add("pass", draw.whole(60_000, chaosMs - 30_000), "quick");
  return operations;
}

// ── a monitor ──────────────────────────────────────────────────────────────────────────────────────

export const MONITOR = "watched";
/** The name in place of a job in the runs of check-ins. */
export const MONITOR_JOB = monitorJob(MONITOR);

const PINGS = 12;
const FIRST_MS = 3_000;

/** Returns the options of the monitor, at first and after each edit. */
export function monitorOptions(luck: number): ScheduleOptions & { readonly monitor: true } {
  const every = (["4m", "6m", "9m"] as const)[luck % 3] ?? "4m";
  const grace = (["20s", "60s", "2m"] as const)[(luck >> 3) % 3] ?? "60s";
  return { monitor: true, every, grace };
}

/** Ids go on after `last`. */
export function drawMonitor(
  seed: number,
  params: { readonly placeCount: number; readonly chaosMs: number; readonly last: Operation },
): readonly Operation[] {
  const { placeCount, chaosMs, last } = params;
  const draw = new Draw(seed, "monitor");
  const operations: Operation[] = [];
  const add = (kind: OperationKind, afterMs: number) =>
    operations.push({
      ...last,
      id: last.id + 1 + operations.length,
      kind,
      afterMs,
      schedule: MONITOR,
      place: draw.whole(0, placeCount - 1),
      luck: draw.whole(0, 2 ** 31),
    });
  const later = () => draw.whole(60_000, chaosMs - 30_000);
  add("putMonitor", FIRST_MS);
  for (let ping = 0; ping < PINGS; ping += 1) add("ping", later());
  if (draw.isTrue(0.5)) add("putMonitor", later());
  if (draw.isTrue(0.3)) {
    const pausedMs = later();
    add("pause", pausedMs);
    add("resume", pausedMs + draw.whole(10_000, 400_000));
  }
  return operations;
}
