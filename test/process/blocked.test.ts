// A handler that keeps the event loop to itself for longer than its lease: what becomes of its run when
// the main thread sends the heartbeats, and when a thread of its own does.

import { expect } from "vitest";
import { SILENT_LEASES_MAX } from "../../src/instance/thread-heartbeat.js";
import { until } from "../support/until.js";
import {
  ended,
  expectOneStartPerFence,
  type Orders,
  onBothDatabases,
  type WorkerProcesses,
} from "./worker-processes.js";

/** Of runs that are to be lost. */
const LEASE_MS = 1_500;
/** Of runs that are to be kept: a busy machine may take seconds to let a thread go on. */
const KEPT_LEASE_MS = 4_000;
const ORDERS = { lease: `${LEASE_MS}ms`, poll: "200ms" };
const KEPT = { ...ORDERS, lease: `${KEPT_LEASE_MS}ms` };
const FOR_EVER_MS = 1e9;

/** A run that the first worker has begun and that blocks it, while a second one looks for work. */
async function blocked(
  processes: WorkerProcesses,
  heartbeat: "main" | "thread",
  ms: number,
  orders: Orders = ORDERS,
) {
  const observer = processes.observer();
  const first = await processes.start("first", { ...orders, heartbeat });
  const { id } = await observer.enqueue("block", ms);
  await first.says("begun");
  const second = await processes.start("second", orders);
  return { observer, first, second, id };
}

onBothDatabases((test) => {
  test("with a heartbeat from a thread a handler that blocks for longer than two leases keeps its run", async ({
    processes,
  }) => {
    const { observer, first, second, id } = await blocked(
      processes,
      "thread",
      2.5 * KEPT_LEASE_MS,
      KEPT,
    );
    const run = await ended(observer, id);
    expect(run).toMatchObject({ status: "completed", result: "first", attempt: 1 });
    expect(await first.says("loop.blocked")).toMatchObject({ blockedMs: expect.any(Number) });
    expect(second.heard("run.reclaimed")).toEqual([]);
    expect(processes.starts()).toHaveLength(1);
    for (const worker of [first, second]) {
      expect(await worker.stops()).toBe(0);
      expect(worker.errors).toBe("");
    }
  });

  test("an instance that is idle between two runs is not taken for a blocked one", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const only = await processes.start("only", { ...KEPT, heartbeat: "thread" });
    const { id } = await observer.enqueue("tiny", 1);
    await ended(observer, id);
    const later = await observer.enqueue("tiny", 2, { delay: 2 * KEPT_LEASE_MS });
    expect(await ended(observer, later.id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(await only.stops()).toBe(0);
    expect(only.heard("loop.blocked")).toEqual([]);
  });

  test("with a heartbeat from the main thread another instance takes the run over, and the first one's result is refused", async ({
    processes,
  }) => {
    const { observer, first, second, id } = await blocked(processes, "main", 5 * LEASE_MS);
    await second.says("begun");
    const before = await ended(observer, id);
    expect(await first.says("heartbeat.late")).toMatchObject({
      jobs: ["block"],
      leaseMs: LEASE_MS,
      lateMs: expect.any(Number),
    });
    expect(before).toMatchObject({ status: "completed", result: "second", attempt: 2 });
    await until("the first one hears of it", () => {
      return first.heard("run.stale").length + first.heard("run.lost").length > 0;
    });
    expect(await first.stops()).toBe(0);
    expect(await observer.runs.get(id)).toEqual(before);
    expectOneStartPerFence(processes);
  });

  test("a handler that never gives the event loop back does not keep its run for ever", async ({
    processes,
  }) => {
    const { observer, second, id } = await blocked(processes, "thread", FOR_EVER_MS);
    const run = await ended(observer, id);
    expect(run).toMatchObject({ status: "completed", result: "second", attempt: 2 });
    const [lost] = await observer.runs.attempts(id);
    expect(lost).toMatchObject({ attempt: 1, end: "lost" });
    // It was renewed for as long as promised, and then no more.
    const heldMs = Number(lost?.endedAt) - Number(lost?.startedAt);
    expect(heldMs).toBeGreaterThanOrEqual((SILENT_LEASES_MAX - 1) * LEASE_MS);
    expect(await second.stops()).toBe(0);
  });
});
