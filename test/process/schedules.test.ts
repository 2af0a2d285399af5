// Several processes and the same ticks: released at one tick again and again, left to themselves with
// clocks that are off, and killed in the middle. Every tick is in the ledger once and has one run.

import { expect } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { until } from "../support/until.js";
import {
  allRuns,
  allTicks,
  expectOneStartPerFence,
  onBothDatabases,
  type Worker,
  type WorkerProcesses,
} from "./worker-processes.js";

const PROCESSES = 8;
/** Far enough ahead for a schedule to be made before its tick, however busy the machine is. */
const AHEAD_MS = 8_000;

onBothDatabases((test) => {
  test("eight instances that have all decided the same tick and write at once, 200 times: one run each", async ({
    processes,
  }) => {
    const rounds = 200;
    await startAll(processes, () => ({ holdsWrites: true, batch: 1 }));
    const expected = await upsertDistinct(processes, rounds);
    for (let round = 1; round <= rounds; round += 1) {
      await allHold(processes, round);
      for (const worker of processes.workers) worker.tell("release");
    }
    for (const worker of processes.workers) worker.tell("free");
    await stopOnceStarted(processes, rounds);
    const won = processes.heard("written").flatMap((line) => line.won as number[]);
    expect(won).toHaveLength(rounds);
    expect(new Set(won).size).toBe(rounds);
    await expectOneRunEach(processes, expected);
    // They did contend: in most rounds all eight had decided the very same tick.
    const decided = Array.from({ length: rounds }, (_, round) =>
      processes.workers.map((worker) => String(worker.heard("written")[round]?.schedules)),
    );
    const contended = decided.filter((schedules) => new Set(schedules).size === 1);
    expect(contended.length).toBeGreaterThan(rounds / 2);
  });

  test("eight instances, clocks right or 90 s ahead or behind, fire every tick once and none early", async ({
    processes,
  }) => {
    const skewMs = (at: number) => ((at % 3) - 1) * 90_000;
    const startedAt = Date.now();
    await startAll(processes, (at) => ({ skewMs: skewMs(at) }));
    for (const [at, worker] of processes.workers.entries()) {
      const realAt = Number(worker.heard("ready")[0]?.clock) - skewMs(at);
      expect(realAt).toBeGreaterThan(startedAt - 1_000);
      expect(realAt).toBeLessThan(Date.now() + 1_000);
    }
    const grid = await upsertOnGrid(processes);
    const observer = processes.observer();
    const isOver = async () =>
      (await observer.schedules.list({ status: "active" })).schedules.length === 0;
    await until("no tick is left", isOver, { everyMs: 100 });
    const expected = await ticksOnGrid(observer, grid);
    await stopOnceStarted(processes, expected.length);
    await expectOneRunEach(processes, expected);
  });

  test("instances killed in the middle of 300 due schedules leave each tick fired once, each with its run", async ({
    processes,
  }) => {
    const count = 300;
    const orders = { holdsWrites: true, batch: 10, lease: "2s", attempts: 6 };
    const names = ["first", "second", "third", "last"];
    await Promise.all(names.map((name) => processes.start(name, orders)));
    const expected = await upsertDistinct(processes, count);
    const lastAt = Math.max(...expected.map(({ at }) => at));
    await until("all are due", () => Date.now() > lastAt);
    const [last, ...victims] = [...processes.workers].reverse();
    for (const victim of victims) await killWhileWriting(processes, victim);
    last?.tell("free");
    const observer = processes.observer();
    const areRecorded = async () => (await allTicks(observer)).length >= count;
    await until("every tick is recorded", areRecorded, { everyMs: 100 });
    const isEnded = async () => (await allRuns(observer)).every(({ finishedAt }) => finishedAt);
    await until("every run has ended", isEnded, { everyMs: 100 });
    await expectOneFiredEach(observer, expected);
    expectOneStartPerFence(processes);
    expect(await last?.stops()).toBe(0);
  });
});

/** After some more writes of all, one dies while a write of its own is under way, or has just been made. */
async function killWhileWriting(processes: WorkerProcesses, victim: Worker): Promise<void> {
  const writesBefore = victim.heard("writing").length;
  for (let write = writesBefore + 1; write <= writesBefore + 5; write += 1) {
    await allHold(processes, write);
    for (const worker of processes.workers) worker.tell("release");
    await victim.says("writing", { count: write, everyMs: 1 });
  }
  victim.signal("SIGKILL");
  expect(await victim.exit).toBe("SIGKILL");
}

/** Every process that is alive has decided what to write for that time, and waits. */
async function allHold(processes: WorkerProcesses, time: number): Promise<void> {
  await until(
    `all hold write ${time}`,
    () => processes.workers.every((each) => each.hasExited || each.heard("holding").length >= time),
    { everyMs: 2 },
  );
}

type Expected = { readonly schedule: string; readonly at: number };

async function startAll(
  processes: WorkerProcesses,
  ordersOf: (at: number) => object,
): Promise<void> {
  const numbers = Array.from({ length: PROCESSES }, (_, at) => at);
  await Promise.all(numbers.map((at) => processes.start(`worker-${at}`, ordersOf(at))));
}

/** Schedules of one tick each, every one at an instant of its own. */
async function upsertDistinct(processes: WorkerProcesses, count: number): Promise<Expected[]> {
  const observer = processes.observer();
  const expected: Expected[] = [];
  for (let number = 0; number < count; number += 1) {
    const at = Math.max(Date.now() + AHEAD_MS, (expected.at(-1)?.at ?? 0) + 1);
    const schedule = `once-${number}`;
    await observer.schedules.upsert(schedule, { job: "tiny", input: 0, at: new Date(at) });
    expected.push({ schedule, at });
  }
  return expected;
}

/**
 * Over 15 seconds one schedule of every second, 50 with the same tick every third one, and at the end
 * one time from each worker, which by half of their clocks is in the past or far ahead.
 */
async function upsertOnGrid(processes: WorkerProcesses): Promise<Grid> {
  const from = Date.now() + 1_000;
  const endAt = from + 15_000;
  const every = (seconds: number) => ({
    every: `${seconds}s`,
    from: new Date(from),
    until: new Date(endAt),
    overlap: "allow",
  });
  const many = Array.from({ length: 50 }, (_, number) => `third-${number}`);
  processes.workers[0]?.tell("upsert", { names: ["secondly"], ...every(1) });
  for (const [number, worker] of processes.workers.entries()) {
    worker.tell("upsert", { names: [`once-${number}`], at: new Date(endAt) });
    const share = many.filter((_, each) => each % PROCESSES === number);
    worker.tell("upsert", { names: share, ...every(3) });
  }
  for (const [number, worker] of processes.workers.entries())
    await worker.says("upserted", { count: number === 0 ? 3 : 2 });
  return { from, endAt };
}

type Grid = { readonly from: number; readonly endAt: number };

/** From its creation on, every schedule has every tick of its grid. */
async function ticksOnGrid(observer: Holdfast, { from, endAt }: Grid): Promise<Expected[]> {
  const { schedules } = await observer.schedules.list({ limit: 1_000 });
  expect(schedules).toHaveLength(1 + 50 + PROCESSES);
  const recorded = await allTicks(observer);
  return schedules.flatMap(({ name: schedule, createdAt, every }) => {
    // One that fell between the decision to make the schedule and its row counts already.
    const firstAt = recorded.find((tick) => tick.schedule === schedule)?.at ?? createdAt;
    const sinceAt = Math.min(Number(firstAt), Number(createdAt) + 1);
    const stepMs = every === null ? endAt : Number.parseInt(every, 10) * 1_000;
    const count = Math.floor((endAt - from) / stepMs) + 1;
    const ticks = Array.from({ length: count }, (_, number) => endAt - number * stepMs);
    return ticks.filter((at) => at >= sinceAt).map((at) => ({ schedule, at }));
  });
}

async function stopOnceStarted(processes: WorkerProcesses, total: number): Promise<void> {
  await until("every run has begun", () => processes.starts().length >= total, {
    everyMs: 50,
  });
  const exits = await Promise.all(processes.workers.map((worker) => worker.stops()));
  expect(exits).toEqual(processes.workers.map(() => 0));
  expect(processes.workers.map(({ errors }) => errors).join("")).toBe("");
}

/** Every tick has one row and one run, as expected; that run was executed once, and nothing early. */
async function expectOneRunEach(
  processes: WorkerProcesses,
  expected: readonly Expected[],
): Promise<void> {
  const runs = await expectOneFiredEach(processes.observer(), expected);
  expect(runs.filter(({ attempt }) => attempt !== 1)).toEqual([]);
  expect(processes.starts().map(({ run }) => run)).toHaveLength(runs.length);
  expect(new Set(processes.starts().map(({ run }) => run)).size).toBe(runs.length);
  for (const event of ["refused", "store.failed", "run.lost", "run.stale", "run.reclaimed"])
    expect(processes.heard(event)).toEqual([]);
  for (const event of ["tick.missed", "tick.skipped", "schedule.stuck", "schedule.broken"])
    expect(processes.heard(event)).toEqual([]);
}

async function expectOneFiredEach(observer: Holdfast, expected: readonly Expected[]) {
  const wanted = expected.map(({ schedule, at }) => nameOf(schedule, at)).sort();
  const ticks = await allTicks(observer);
  const unfit = ({ outcome, count, runId, at, recordedAt }: (typeof ticks)[number]) =>
    outcome !== "fired" || count !== 1 || runId === null || recordedAt < at;
  expect(ticks.filter(unfit)).toEqual([]);
  expect(ticks.map(({ schedule, at }) => nameOf(schedule, Number(at))).sort()).toEqual(wanted);

  const runs = await allRuns(observer);
  const made = runs.map(({ schedule, nominalAt }) => nameOf(schedule, Number(nominalAt)));
  expect(made.sort()).toEqual(wanted);
  expect(runs.map(({ id }) => id).sort()).toEqual(ticks.map(({ runId }) => runId).sort());
  const early = runs.filter(
    ({ nominalAt, createdAt, startedAt }) =>
      Number(createdAt) < Number(nominalAt) || Number(startedAt) < Number(nominalAt),
  );
  expect(early).toEqual([]);
  const isDone = ({ mode, status }: (typeof runs)[number]) =>
    mode === "scheduled" && status === "completed";
  expect(runs.filter((run) => !isDone(run))).toEqual([]);
  return runs;
}

function nameOf(schedule: string | null, at: number): string {
  return `${schedule} ${new Date(at).toISOString()}`;
}
