// A run that fans out over several processes that are killed again and again: every child once, one
// run that comes after, and counts that are right.

import { expect } from "vitest";
import { until } from "../support/until.js";
import {
  allRuns,
  ended,
  expectOneStartPerFence,
  onBothDatabases,
  type WorkerProcesses,
} from "./worker-processes.js";

const CHILDREN = 500;
const ORDERS = { lease: "1s", poll: "100ms", concurrency: 8, attempts: 50 };

/** Ends processes in turn, each replaced at once; answers how to stop it, and how many there were. */
function reaping(processes: WorkerProcesses) {
  let kills = 0;
  const killOne = () => {
    const living = processes.workers.filter(({ hasExited }) => !hasExited);
    living[0]?.signal("SIGKILL");
    kills += 1;
    processes.spawn(`worker-${kills + 2}`, ORDERS);
  };
  return { killOne, count: () => kills };
}

onBothDatabases((test) => {
  test("500 children over processes that are killed: each once, and one run after them", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const first = await processes.start("worker-0", ORDERS);
    const { killOne, count } = reaping(processes);
    const { id } = await observer.enqueue("fan", { count: CHILDREN, ms: 5 });
    // Right after the commit of its batch, before its run has ended.
    await first.says("fanned");
    first.signal("SIGKILL");
    processes.spawn("worker-1", ORDERS);
    processes.spawn("worker-2", ORDERS);
    const endedCount = async () => {
      const [batch] = await observer.runs.batches(id);
      return batch ? batch.completed + batch.failed + batch.cancelled : 0;
    };
    for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
      const isReached = async () => (await endedCount()) >= CHILDREN * share;
      await until(`${share} of the children have ended`, isReached);
      killOne();
    }
    expect(count()).toBe(5);
    const then = await until(
      "what comes after is made",
      async () => (await observer.runs.batches(id))[0]?.then ?? null,
    );
    const after = await ended(observer, then);
    expect(after).toMatchObject({
      status: "completed",
      parent: id,
      input: { scheduled: CHILDREN, errors: 0, completed: CHILDREN, failed: 0, cancelled: 0 },
    });
    const parent = await ended(observer, id);
    expect(parent).toMatchObject({
      status: "completed",
      result: { scheduled: CHILDREN, errors: [] },
    });
    expect(parent.attempt).toBeGreaterThan(1);
    const runs = await allRuns(observer);
    const children = runs.filter(({ job }) => job === "tiny");
    expect(new Set(children.map(({ key }) => key)).size).toBe(CHILDREN);
    expect(children).toHaveLength(CHILDREN);
    expect(children.every((run) => run.status === "completed" && run.parent === id)).toBe(true);
    expect(runs.filter(({ job }) => job === "after")).toHaveLength(1);
    expectOneStartPerFence(processes);
  });
});
