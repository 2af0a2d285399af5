// Eight processes on one database: they start together on an empty one, share the work, and no run is given to two of
// them.

import { expect } from "vitest";
import { until } from "../support/until.js";
import { allRuns, ended, expectOneStartPerFence, onBothDatabases } from "./worker-processes.js";

const PROCESSES = 8;
const RUNS_EACH = 600;
const RUN_MS = 3;

onBothDatabases((test) => {
  test("eight processes that start at once on an empty database all work", async ({
    processes,
  }) => {
    const names = Array.from({ length: PROCESSES }, (_, at) => `worker-${at}`);
    await Promise.all(names.map((name) => processes.start(name)));
    for (const worker of processes.workers) worker.tell("enqueue", { count: 2, ms: 0 });
    await Promise.all(processes.workers.map((worker) => worker.says("enqueued")));
    const observer = processes.observer();
    const runs = await allRuns(observer);
    expect(runs).toHaveLength(2 * PROCESSES);
    for (const { id } of runs)
      expect(await ended(observer, id)).toMatchObject({ status: "completed" });
    const exits = await Promise.all(processes.workers.map((worker) => worker.stops()));
    expect(exits).toEqual(names.map(() => 0));
    expect(processes.workers.map(({ errors }) => errors).join("")).toBe("");
  });

  test("eight processes execute every run once, none in more than its share, and none starves", async ({
    processes,
  }) => {
    const names = Array.from({ length: PROCESSES }, (_, at) => `worker-${at}`);
    await Promise.all(names.map((name) => processes.start(name, { concurrency: 4 })));
    for (const worker of processes.workers)
      worker.tell("enqueue", { count: RUNS_EACH, ms: RUN_MS });
    const total = PROCESSES * RUNS_EACH;
    await until("every run has begun", () => processes.starts().length >= total, {
      everyMs: 100,
    });
    await Promise.all(processes.workers.map((worker) => worker.says("enqueued")));
    const exits = await Promise.all(processes.workers.map((worker) => worker.stops()));
    expect(exits).toEqual(names.map(() => 0));

    const runs = await allRuns(processes.observer());
    expect(runs).toHaveLength(total);
    expect(runs.filter(({ status, attempt }) => status !== "completed" || attempt !== 1)).toEqual(
      [],
    );
    expect(processes.starts()).toHaveLength(total);
    expectOneStartPerFence(processes);
    for (const event of ["overclaim", "refused", "store.failed", "run.lost", "run.stale"])
      expect(processes.heard(event)).toEqual([]);

    const served = names.map((name) => processes.starts().filter(({ by }) => by === name).length);
    expect(Math.min(...served)).toBeGreaterThanOrEqual(0.05 * Math.max(...served));
  });
});
