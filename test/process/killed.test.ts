// Processes that die: by SIGKILL, by their own handler, and in good order by SIGTERM.

import { expect } from "vitest";
import { until } from "../support/until.js";
import { ended, expectOneStartPerFence, onBothDatabases, reached } from "./worker-processes.js";

onBothDatabases((test, engine) => {
  test("a killed process's run is taken over by the first poll after its lease expired", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const orders = { lease: "4s", poll: "300ms", reportsPolls: true };
    const first = await processes.start("first", orders);
    const { id } = await observer.enqueue("hold", "throw");
    await first.says("begun");
    const second = await processes.start("second", orders);
    first.signal("SIGKILL");
    await first.exit;
    const leaseUntil = Number((await observer.runs.get(id))?.leaseUntil);
    await second.says("begun");
    second.tell("finish");
    expect(await ended(observer, id)).toMatchObject({ result: "second", attempt: 2 });
    const reclaimedAt = second.lines.findIndex(({ event }) => event === "run.reclaimed");
    const polls = second.lines.slice(0, reclaimedAt).filter(({ event }) => event === "poll");
    expect(polls.filter(({ now }) => Number(now) >= leaseUntil)).toHaveLength(1);
    expect(polls.at(-1)).toMatchObject({ hasExpired: true });
    expect(second.heard("run.reclaimed")).toMatchObject([{ run: id, end: "lost", to: "pending" }]);
  });

  test("a run that kills its process dies after its attempts, and takes no innocent twice", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const orders = { lease: "4s", poll: "100ms", concurrency: 10, attempts: 3 };
    await (await processes.start("first", orders)).stops();
    const fifty = () => Promise.all(Array.from({ length: 50 }, () => observer.enqueue("tiny", 30)));
    const before = await fifty();
    const poison = await observer.enqueue("poison", {});
    const innocents = [...before, ...(await fifty())];
    let worker = processes.spawn("worker-0", orders);
    let crashCount = 0;
    const isOver = async () => {
      if (worker.hasExited) {
        crashCount += 1;
        worker = processes.spawn(`worker-${crashCount}`, orders);
      }
      const [{ runs: pending }, { runs: running }] = await Promise.all([
        observer.runs.list({ status: "pending", limit: 1 }),
        observer.runs.list({ status: "running", limit: 1 }),
      ]);
      if (pending.length + running.length > 0) return false;
      // A run may have moved from one list to the other between the two looks.
      const all = await Promise.all([poison, ...innocents].map(({ id }) => observer.runs.get(id)));
      return all.every((run) => run?.finishedAt);
    };
    await until("everything has ended", isOver, { everyMs: 50 });
    expect(crashCount).toBe(3);
    const dead = await observer.runs.get(poison.id);
    expect(dead).toMatchObject({ status: "failed", attempt: 3, error: { code: "LEASE_EXPIRED" } });
    const runs = await Promise.all(innocents.map(({ id }) => observer.runs.get(id)));
    expect(runs.filter((run) => run?.status !== "completed")).toEqual([]);
    const attempts = runs.map((run) => run?.attempt);
    expect(Math.max(...attempts.map(Number))).toBe(2);
    expect(attempts.filter((attempt) => attempt === 1).length).toBeGreaterThan(30);
    expectOneStartPerFence(processes);
  });

  test("a process that is asked to stop drains, aborts, hands back, and says so", async ({
    processes,
  }) => {
    const observer = processes.observer();
    const orders = { lease: "6s", poll: "200ms", grace: "5s", concurrency: 4 };
    const first = await processes.start("first", orders);
    const short = await observer.enqueue("tiny", 600);
    const obedient = await observer.enqueue("hold", "throw");
    const inTime = await observer.enqueue("hold", "return");
    const stubborn = engine === "sqlite" ? await observer.enqueue("hold", "ignore") : null;
    await reached(observer, short.id, ({ status }) => status === "running");
    await first.says("begun", { count: stubborn ? 3 : 2 });
    const exit = await first.stops();
    expect(exit).toBe(0);
    expect(first.errors).toBe("");
    expect(first.heard("stopped")).toMatchObject([
      { finished: 2, handedBack: 1, abandoned: stubborn ? 1 : 0 },
    ]);
    expect(await observer.runs.get(short.id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(await observer.runs.get(inTime.id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(await observer.runs.get(obedient.id)).toMatchObject({ status: "pending", attempt: 0 });
    const second = await processes.start("second", orders);
    second.tell("finish");
    expect(await ended(observer, obedient.id)).toMatchObject({ result: "second", attempt: 1 });
    if (stubborn)
      expect(await ended(observer, stubborn.id)).toMatchObject({ result: "second", attempt: 2 });
  });
});
