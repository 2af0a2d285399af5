// A process that is stopped for longer than its lease, as by SIGSTOP, a swapping host or a frozen virtual machine, and
// then continues.

import { expect } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { until } from "../support/until.js";
import {
  ended,
  type Orders,
  onBothDatabases,
  reached,
  type Worker,
  type WorkerProcesses,
} from "./worker-processes.js";

const ORDERS = { lease: "3s", poll: "200ms" };

/** A run that this worker has begun, and then the worker is stopped in the middle of it. */
async function frozen(
  processes: WorkerProcesses,
  onAbort: "ignore" | "return" | "throw",
  orders: Orders = ORDERS,
) {
  const observer = processes.observer();
  const first = await processes.start("first", orders);
  const { id } = await observer.enqueue("hold", onAbort);
  const { fence } = await first.says("begun");
  await freeze(first, observer);
  return { observer, first, id, fence };
}

/**
 * Stops the process between two of its statements. Inside a write transaction on SQLite it would keep
 * everybody else from writing, and nobody but itself could end that: a limit that is documented.
 */
async function freeze(worker: Worker, observer: Holdfast): Promise<void> {
  await until(`${worker.name} stands still without a lock`, async () => {
    worker.signal("SIGSTOP");
    let canWrite = false;
    const writing = observer.runs.cancel(crypto.randomUUID()).then(() => {
      canWrite = true;
    });
    await until("somebody else can write", () => canWrite, { withinMs: 300 }).catch(
      () => undefined,
    );
    if (canWrite) return true;
    worker.signal("SIGCONT");
    await writing;
    return false;
  });
}

async function takenOver(processes: WorkerProcesses): Promise<Worker> {
  const second = await processes.start("second", ORDERS);
  await second.says("begun");
  second.tell("finish");
  return second;
}

onBothDatabases((test) => {
  test("a process that was stopped past its lease gets an error, and its result is not stored", async ({
    processes,
  }) => {
    const { observer, first, id, fence } = await frozen(processes, "return");
    await takenOver(processes);
    const before = await ended(observer, id);
    first.signal("SIGCONT");
    expect(await first.says("aborted")).toMatchObject({ run: id, code: "LEASE_LOST" });
    expect(await first.says("run.lost")).toMatchObject({ run: id, fence });
    // Its handler has returned a result by now; the process stops in good order with nothing in hand.
    expect(await first.stops()).toBe(0);
    expect(first.heard("stopped")).toMatchObject([{ finished: 0, handedBack: 0, abandoned: 0 }]);
    const after = await observer.runs.get(id);
    expect(after).toEqual(before);
    expect(after).toMatchObject({ status: "completed", result: "second", attempt: 2 });
    const attempts = await observer.runs.attempts(id);
    expect(attempts.map(({ attempt, end }) => [attempt, end])).toEqual([
      [1, "lost"],
      [2, "completed"],
    ]);
  });

  test("a process that finishes its run the moment it goes on is refused", async ({
    processes,
  }) => {
    const { observer, first, id } = await frozen(processes, "return");
    await takenOver(processes);
    const before = await ended(observer, id);
    first.tell("finish");
    first.signal("SIGCONT");
    await until("the first one hears of it", () => {
      return first.heard("run.stale").length + first.heard("run.lost").length > 0;
    });
    expect(await first.stops()).toBe(0);
    expect(await observer.runs.get(id)).toEqual(before);
    expect(before).toMatchObject({ status: "completed", result: "second", attempt: 2 });
  });

  test("a process that was stopped past its time limit loses its run to another, long before its lease ends", async ({
    processes,
  }) => {
    const orders = { lease: "10m", timeout: "1s", poll: "200ms" };
    const { observer, first, id, fence } = await frozen(processes, "return", orders);
    // The time limit and the five seconds of grace pass while nobody else is there to see it.
    await takenOver(processes);
    const before = await ended(observer, id);
    first.signal("SIGCONT");
    await until("the first one hears of it", () => {
      return first.heard("run.stale").length + first.heard("run.lost").length > 0;
    });
    expect(await first.stops()).toBe(0);
    expect(await observer.runs.get(id)).toEqual(before);
    expect(before).toMatchObject({ status: "completed", result: "second", attempt: 2 });
    const attempts = await observer.runs.attempts(id);
    expect(attempts).toMatchObject([
      { attempt: 1, fence, end: "timeout", error: { code: "TIMEOUT" } },
      { attempt: 2, end: "completed" },
    ]);
  });

  test("a process that was stopped past its lease goes on if no instance reclaimed its run", async ({
    processes,
  }) => {
    const { observer, first, id } = await frozen(processes, "throw");
    await reached(observer, id, ({ leaseUntil }) => Number(leaseUntil) < Date.now() - 500);
    first.signal("SIGCONT");
    // Renewed, and held for more than a lease from then on.
    const { leaseUntil } = await reached(
      observer,
      id,
      (run) => Number(run.leaseUntil) > Date.now(),
    );
    await reached(observer, id, (run) => Number(run.leaseUntil) > Number(leaseUntil) + 1_000);
    first.tell("finish");
    const run = await ended(observer, id);
    expect(run).toMatchObject({ status: "completed", result: "first", attempt: 1 });
    expect(first.heard("aborted")).toEqual([]);
    expect(await first.stops()).toBe(0);
  });
});
