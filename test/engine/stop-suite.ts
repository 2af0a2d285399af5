// A graceful stop: no new claims, runs that have not begun are handed back, active runs may end, and the heartbeat
// stops last.

import { expect } from "vitest";
import { ShutdownError, StoppedError } from "../../src/shared/errors.js";
import { aborted, Door, expectEnded, heard, obedient, type WorldTest } from "./world.js";

export function stopSuite(test: WorldTest): void {
  test("runs may end within the grace, and are counted as finished", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const signals: AbortSignal[] = [];
    const study = holdfast.job("study", {
      run: async (_, { signal }) => {
        signals.push(signal);
        await clock.sleep(10_000);
        return "in time";
      },
    });
    await holdfast.start();
    const enqueued = await study.enqueueMany([1, 2, 3]);
    await world.clock.advance(1_000);
    const stopAt = world.clock.wallMs();
    const report = await world.clock.until(holdfast.stop());
    expect(report).toEqual({ finished: 3, handedBack: 0, abandoned: 0 });
    expect(world.clock.wallMs() - stopAt).toBeLessThan(9_200);
    expect(signals.some(({ aborted }) => aborted)).toBe(false);
    for (const { id } of enqueued) expectEnded(await world.record(id), "completed", 1);
  });

  test("runs that take longer are aborted and handed back, without using an attempt", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const reasons: unknown[] = [];
    const study = holdfast.job("study", {
      retry: { attempts: 1 },
      run: async (_, { signal }) => {
        reasons.push(await aborted(signal));
        throw signal.reason;
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const stopAt = world.clock.wallMs();
    const report = await world.clock.until(holdfast.stop({ grace: "20s" }));
    expect(report).toEqual({ finished: 0, handedBack: 1, abandoned: 0 });
    expect(world.clock.wallMs() - stopAt).toBeLessThan(20_200);
    expect(reasons).toEqual([expect.any(ShutdownError)]);
    expectEnded(await world.record(id), "pending", 0);
    const heir = world.member().holdfast;
    heir.job("study", { retry: { attempts: 1 }, run: () => "done" });
    await heir.start();
    expectEnded(await world.ended(id), "completed", 1);
  });

  test("a run that does not stop is abandoned: its lease expires by itself", async ({ world }) => {
    const { holdfast, clock, faults } = world.member();
    const study = holdfast.job("study", {
      run: async () => {
        await clock.sleep(300_000);
        return "nobody listens any more";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const stopAt = world.clock.wallMs();
    const report = await world.clock.until(holdfast.stop({ grace: "40s" }));
    expect(report).toEqual({ finished: 0, handedBack: 0, abandoned: 1 });
    expect(world.clock.wallMs() - stopAt).toBeLessThan(45_200);
    const { status, leaseUntil } = await world.record(id);
    expect(status).toBe("running");
    expect(leaseUntil as number).toBeGreaterThan(world.clock.wallMs());
    const heir = world.member();
    heir.holdfast.job("study", { run: () => "by the heir" });
    await heir.holdfast.start();
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect(run.finishedAt as number).toBeGreaterThanOrEqual(leaseUntil as number);
    // The abandoned handler ends at last, and nothing comes of it.
    faults.clear();
    await world.clock.advance(300_000);
    expect(faults.calls).toEqual([]);
    expect((await world.record(id)).result).toBe('"by the heir"');
  });

  test("claimed runs that have not begun are handed back at once", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job<number>("study", { run: (ms) => clock.sleep(ms) });
    await holdfast.start({ worker: { concurrency: 2 } });
    // Short runs first: they make the buffer deep.
    for (const { id } of await study.enqueueMany(Array.from({ length: 60 }, () => 1)))
      await world.ended(id);
    const long = await study.enqueueMany(Array.from({ length: 12 }, () => 1_900));
    await world.clock.rest();
    const statuses = await Promise.all(long.map(({ id }) => world.status(id)));
    expect(statuses.filter((status) => status === "running")).toHaveLength(12);
    const stopping = holdfast.stop();
    await world.clock.rest();
    const records = await Promise.all(long.map(({ id }) => world.record(id)));
    expect(records.filter(({ status }) => status === "running")).toHaveLength(2);
    expect(
      records.filter(({ status, attempt }) => status === "pending" && attempt === 0),
    ).toHaveLength(10);
    const report = await world.clock.until(stopping);
    expect(report).toEqual({ finished: 2, handedBack: 10, abandoned: 0 });
  });

  test("runs of a claim that returns after the stop began are handed back, not started", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    let startCount = 0;
    const study = holdfast.job("study", {
      run: () => {
        startCount += 1;
      },
    });
    await holdfast.start();
    await world.clock.rest();
    faults.keepBack("claims.exchange");
    const { id } = await study.enqueue({});
    await world.clock.advance(100);
    const stopping = holdfast.stop();
    await world.clock.advance(100);
    faults.deliver("claims.exchange");
    const report = await world.clock.until(stopping);
    expect(report).toEqual({ finished: 0, handedBack: 1, abandoned: 0 });
    expect(startCount).toBe(0);
    expectEnded(await world.record(id), "pending", 0);
  });

  test("a run whose start is being stored when the stop begins is handed back", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    let startCount = 0;
    const once = holdfast.job("once", {
      retry: { attempts: 1 },
      run: () => {
        startCount += 1;
      },
    });
    await holdfast.start();
    await world.clock.rest();
    faults.keepBack("leases.markStarted");
    const { id } = await once.enqueue({});
    await world.clock.advance(100);
    const stopping = holdfast.stop();
    await world.clock.advance(100);
    faults.deliver("leases.markStarted");
    expect(await world.clock.until(stopping)).toEqual({ finished: 0, handedBack: 1, abandoned: 0 });
    expect(startCount).toBe(0);
    expectEnded(await world.record(id), "pending", 0);
  });

  test("heartbeats go on while runs are being drained, and stop last", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    one.holdfast.job("study", {
      lease: "3s",
      run: async () => {
        await one.clock.sleep(20_000);
        return "drained";
      },
    });
    other.holdfast.job("study", { lease: "3s", run: () => "taken" });
    await one.holdfast.start();
    const { id } = await one.holdfast.enqueue("study", {});
    await world.clock.advance(500);
    await other.holdfast.start();
    const report = await world.clock.until(one.holdfast.stop({ grace: "25s" }));
    expect(report).toEqual({ finished: 1, handedBack: 0, abandoned: 0 });
    const run = await world.record(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"drained"');
    const verbs = one.faults.calls.map(({ verb }) => verb);
    const lastPoll = verbs.lastIndexOf("work.poll");
    expect(verbs.lastIndexOf("leases.renew")).toBeGreaterThan(lastPoll + 10);
    expect(verbs.slice(verbs.lastIndexOf("leases.renew") + 1)).toEqual([
      "claims.exchange",
      "instances.retire",
    ]);
  });

  test("an instance that stops claims nothing more", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job<number>("study", { run: (ms) => clock.sleep(ms) });
    await holdfast.start({ worker: { concurrency: 2 } });
    await study.enqueue(5_000);
    await world.clock.advance(500);
    const stopping = holdfast.stop();
    const caller = world.member().holdfast;
    const { id } = await caller.job("study", {}).enqueue(1);
    await world.clock.until(stopping);
    expectEnded(await world.record(id), "pending", 0);
  });

  test("a result that the database is slow to take is still stored", async ({ world }) => {
    const { holdfast, faults } = world.member();
    const door = new Door<string>();
    const study = holdfast.job("study", { run: () => door.opened });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(500);
    faults.holdUp("claims.exchange");
    const stopping = holdfast.stop();
    door.open("done");
    await world.clock.advance(4_000);
    faults.deliver("claims.exchange");
    expect(await world.clock.until(stopping)).toEqual({ finished: 1, handedBack: 0, abandoned: 0 });
    expectEnded(await world.record(id), "completed", 1);
  });

  test("a stop does not wait for ever for a database that is gone", async ({ world }) => {
    const { holdfast, faults, clock } = world.member();
    const study = holdfast.job("study", { run: (_, { signal }) => obedient(signal) });
    await holdfast.start();
    await study.enqueue({});
    await world.clock.advance(500);
    faults.goDown();
    const stopAt = world.clock.wallMs();
    await world.clock.until(holdfast.stop({ grace: "5s" }));
    expect(world.clock.wallMs() - stopAt).toBeLessThanOrEqual(21_000);
    expect(clock.timerCount).toBe(0);
    faults.clear();
    await world.clock.advance(120_000);
    expect(faults.calls).toEqual([]);
  });

  test("a second stop does nothing, and one without a start needs no database", async ({
    world,
  }) => {
    const member = world.member();
    const { holdfast, faults } = member;
    await holdfast.start();
    const [first, second] = await world.clock.until(
      Promise.all([holdfast.stop(), holdfast.stop({ grace: "1s" })]),
    );
    expect(second).toBe(first);
    faults.clear();
    expect(await holdfast.stop()).toBe(first);
    expect(faults.calls).toEqual([]);
    expect(heard(member, "instance.stopped")).toHaveLength(1);
    const idle = world.member();
    expect(await idle.holdfast.stop()).toEqual({ finished: 0, handedBack: 0, abandoned: 0 });
    expect(idle.faults.calls).toEqual([]);
  });

  test("every verb after a stop says that it was called too late", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: () => "done" });
    const { id } = await study.enqueue({});
    await world.clock.until(holdfast.stop());
    await expect(holdfast.start()).rejects.toThrow(StoppedError);
    await expect(study.enqueue({})).rejects.toThrow(StoppedError);
    await expect(study.enqueueMany([{}])).rejects.toThrow(StoppedError);
    await expect(holdfast.runs.get(id)).rejects.toThrow(StoppedError);
  });

  test("a waiter for a run gets an error when its instance stops", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {});
    const { id } = await study.enqueue({});
    const waiting = holdfast.runs.wait(id, { timeout: "1h" });
    waiting.catch(() => undefined);
    await world.clock.advance(1_000);
    await world.clock.until(holdfast.stop());
    await expect(waiting).rejects.toThrow(StoppedError);
  });

  test("a waiter whose first read returns only after the stop gets the error as well", async ({
    world,
  }) => {
    const { holdfast, faults, clock } = world.member();
    const study = holdfast.job("study", {});
    const { id } = await study.enqueue({});
    faults.keepBack("runs.get");
    const waiting = holdfast.runs.wait(id);
    waiting.catch(() => undefined);
    await world.clock.rest();
    await world.clock.until(holdfast.stop());
    faults.deliver("runs.get");
    await expect(waiting).rejects.toThrow(StoppedError);
    expect(clock.timerCount).toBe(0);
  });

  test("a run that was just aborted by its time limit leaves no timer behind", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    const hasty = holdfast.job("hasty", {
      timeout: "2s",
      run: (_, { signal }) => obedient(signal),
    });
    await holdfast.start();
    const { id } = await hasty.enqueue({});
    await world.reached(id, ({ status, attempt }) => status === "pending" && attempt === 1);
    await world.clock.until(holdfast.stop(), { withinMs: 500 });
    expect(clock.timerCount).toBe(0);
  });

  test("nothing is left that could keep the process from ending", async ({ world }) => {
    const dead = world.member();
    dead.holdfast.job("study", { run: () => new Promise(() => undefined) });
    await dead.holdfast.start();
    const { id } = await dead.holdfast.enqueue("study", {});
    await world.clock.advance(500);
    dead.clock.pause();
    const { holdfast, faults, clock } = world.member();
    holdfast.job("study", { run: (_, { signal }) => obedient(signal) });
    const hasty = holdfast.job("hasty", {
      timeout: "2s",
      retry: { delay: "50s" },
      run: (_, { signal }) => obedient(signal),
    });
    await holdfast.start();
    // It holds a suspect in quarantine, and one that was over its time a moment ago and waits now;
    // somebody waits for a run, and the database is sick.
    await hasty.enqueue({}, { delay: "30s" });
    await world.reached(id, ({ attempt, status }) => attempt === 2 && status === "running");
    holdfast.runs.wait(id, { timeout: "1h" }).catch(() => undefined);
    faults.fail("claims.exchange", "before", { times: 2 });
    await world.clock.advance(2_000);
    await world.clock.until(holdfast.stop({ grace: 0 }), { withinMs: 1_000 });
    expect(clock.timerCount).toBe(0);
  });
}
