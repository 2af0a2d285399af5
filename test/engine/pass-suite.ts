// One bounded pass, as an outside cron asks for it: nothing was started, nothing stays behind.

import { expect } from "vitest";
import { ConfigurationError } from "../../src/shared/errors.js";
import { DAY, MINUTE, NOON, runLines, SECOND, student } from "./schedule-fixtures.js";
import { aborted, expectEnded, type World, type WorldTest } from "./world.js";

/** Two instances that nobody started, and a minutely schedule whose first tick is due. */
async function dueOnce(world: World, run?: Parameters<typeof student>[1]) {
  const one = student(world, run);
  const other = student(world, run);
  await one.holdfast.schedules.upsert("s", { job: one.study, cron: "* * * * *" });
  await world.clock.advance(MINUTE);
  return { one, other };
}

export function passSuite(test: WorldTest): void {
  test("a call fires and executes due work, and reports it", async ({ world }) => {
    const { one } = await dueOnce(world);
    const answer = await world.clock.until(one.holdfast.tick());
    const [run] = (await one.holdfast.runs.list()).runs;
    expect(answer).toEqual({
      ok: true,
      fired: [{ schedule: "s", tick: new Date(NOON + MINUTE), runId: run?.id }],
      skipped: [],
      executed: 1,
      dispatched: 0,
      reclaimed: 0,
      nextWakeAt: new Date(NOON + 2 * MINUTE),
    });
    expect(one.ran).toEqual(["scheduled 12:01"]);
    const again = await world.clock.until(one.holdfast.tick());
    expect(again).toMatchObject({ fired: [], executed: 0 });
  });

  test("a call that finds nothing to do looks once and claims nothing", async ({ world }) => {
    const { one } = await dueOnce(world);
    await world.clock.until(one.holdfast.tick());
    one.faults.clear();
    const answer = await world.clock.until(one.holdfast.tick());
    expect(answer).toMatchObject({ executed: 0, nextWakeAt: new Date(NOON + 2 * MINUTE) });
    expect(one.faults.calls.map(({ verb }) => verb)).toEqual(["work.poll", "alerts.takeTurn"]);
  });

  test("of many concurrent calls one fires the tick, and it is executed once", async ({
    world,
  }) => {
    const { one, other } = await dueOnce(world);
    const calls = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? one : other).holdfast.tick(),
    );
    const answers = await world.clock.until(Promise.all(calls));
    expect(answers.flatMap(({ fired }) => fired)).toHaveLength(1);
    expect(answers.reduce((sum, { executed }) => sum + executed, 0)).toBe(1);
    expect([...one.ran, ...other.ran]).toEqual(["scheduled 12:01"]);
  });

  test("no more than `limit` runs are executed; 0 only fires", async ({ world }) => {
    const { one } = await dueOnce(world);
    await one.study.enqueueMany([1, 2, 3, 4, 5, 6, 7]);
    const fired = await world.clock.until(one.holdfast.tick({ limit: 0 }));
    expect(fired).toMatchObject({ fired: [{ schedule: "s" }], executed: 0 });
    expect(one.ran).toEqual([]);
    const some = await world.clock.until(one.holdfast.tick({ limit: 3 }));
    expect(some.executed).toBe(3);
    const rest = await world.clock.until(one.holdfast.tick({ limit: 100 }));
    expect(rest.executed).toBe(5);
    expect(await runLines(world)).toEqual(["scheduled 12:01 completed"]);
  });

  test.for([10, 4])(
    "calls at the same time and the worker share the slots of the instance: %i",
    async (concurrency, { world }) => {
      let running = 0;
      let most = 0;
      const work = async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => world.clock.timer(10 * SECOND, resolve));
        running -= 1;
      };
      const { holdfast } = world.member(concurrency === 10 ? {} : { concurrency });
      const job = holdfast.job<number>("work", { run: work });
      await job.enqueueMany(Array.from({ length: 60 }, (_, index) => index));
      const pass = () => holdfast.tick({ limit: 60, budget: "30m" });
      const passes = [pass(), pass(), pass()];
      await world.clock.advance(SECOND);
      expect([running, most]).toEqual([concurrency, concurrency]);
      await holdfast.start();
      await world.clock.advance(SECOND);
      expect([running, most]).toEqual([concurrency, concurrency]);
      await world.clock.until(Promise.all([...passes, pass()]));
      await world.clock.advance(3 * MINUTE);
      expect([running, most]).toEqual([0, concurrency]);
      expect((await holdfast.runs.list({ status: "completed", limit: 100 })).runs).toHaveLength(60);
    },
  );

  test("handlers that still run when the budget ends are aborted and handed back, without using an attempt", async ({
    world,
  }) => {
    const { one } = await dueOnce(world, {
      run: async ({ signal }) => {
        throw await aborted(signal);
      },
    });
    const beganAt = world.clock.wallMs();
    const answer = await world.clock.until(one.holdfast.tick({ budget: "30s" }));
    expect(world.clock.wallMs() - beganAt).toBeLessThanOrEqual(30 * SECOND);
    expect(answer).toMatchObject({ fired: [{ schedule: "s" }], executed: 0 });
    expect(await runLines(world)).toEqual(["scheduled 12:01 pending"]);
    const [run] = (await one.holdfast.runs.list()).runs;
    expect(run?.attempt).toBe(0);
  });

  test("a run that outlasts its lease keeps it until the budget ends", async ({ world }) => {
    const { one, other } = await dueOnce(world, { run: ({ signal }) => sleepIn(world, signal) });
    const long = one.holdfast.tick({ budget: "5m" });
    await world.clock.advance(90 * SECOND);
    const meanwhile = await world.clock.until(other.holdfast.tick({ limit: 5, budget: "10s" }));
    expect(meanwhile.reclaimed).toBe(0);
    expect(await world.clock.until(long)).toMatchObject({ executed: 1 });
  });

  test("the runs of a dead process are reclaimed and counted", async ({ world }) => {
    const { one, other } = await dueOnce(world, {
      attempts: 3,
      run: async ({ attempt }) => {
        if (attempt === 1) await new Promise(() => undefined);
      },
    });
    void one.holdfast.tick({ budget: "5m" });
    await world.clock.advance(SECOND);
    one.clock.pause();
    await world.clock.advance(31 * SECOND);
    const answer = await world.clock.until(other.holdfast.tick());
    expect(answer).toMatchObject({ reclaimed: 1, executed: 1 });
    const [run] = (await other.holdfast.runs.list()).runs;
    if (!run) throw new Error("There is no run.");
    expectEnded(run, "completed", 2);
  });

  test("the first call of a process reconciles the schedules that its code declares", async ({
    world,
  }) => {
    const { holdfast, study } = student(world);
    holdfast.schedule("nightly", study, { cron: "0 2 * * *" });
    await world.clock.until(holdfast.tick());
    expect((await holdfast.schedules.get("nightly"))?.job).toBe("study");
    // Also of one that was started and looks at nothing by itself.
    const other = student(world);
    other.holdfast.schedule("weekly", other.study, { cron: "0 2 * * 0" });
    await other.holdfast.start({ scheduler: false, worker: false });
    expect(await other.holdfast.schedules.get("weekly")).toBeNull();
    await world.clock.until(other.holdfast.tick());
    expect((await other.holdfast.schedules.get("weekly"))?.job).toBe("study");
  });

  test("if only calls do the work, the first one of an hour applies retention", async ({
    world,
  }) => {
    const { holdfast, study, faults } = student(world, { options: { retention: "1d" } });
    await study.enqueue({});
    await world.clock.until(holdfast.tick());
    await world.clock.advance(3 * DAY + 30 * MINUTE);
    await study.enqueue({});
    expect((await holdfast.runs.list()).runs).toHaveLength(2);
    expect(await world.clock.until(holdfast.tick())).toMatchObject({ executed: 1 });
    expect((await holdfast.runs.list()).runs).toHaveLength(1);
    const pruned = () => faults.calls.filter(({ verb }) => verb === "retention.prune").length;
    faults.clear();
    await world.clock.until(holdfast.tick());
    await world.clock.advance(29 * MINUTE);
    await world.clock.until(holdfast.tick());
    expect(pruned()).toBe(0);
    await world.clock.advance(MINUTE);
    await Promise.all([world.clock.until(holdfast.tick()), world.clock.until(holdfast.tick())]);
    expect(pruned()).toBe(1);
  });

  test("a failed removal is reported, and the call returns its result", async ({ world }) => {
    const { holdfast, faults } = student(world);
    const failed: string[] = [];
    holdfast.on("store.failed", ({ what }) => void failed.push(what));
    faults.fail("retention.prune", "before");
    expect(await world.clock.until(holdfast.tick())).toMatchObject({ ok: true });
    expect(failed).toEqual(["retention"]);
  });

  test("a run that ignored its cancel for long is ended by a call that executes nothing", async ({
    world,
  }) => {
    const { holdfast, study } = student(world);
    const { id } = await study.enqueue({});
    const [run] = await holdfast.remote.claim({ instance: "far", jobs: ["study"], limit: 1 });
    await holdfast.runs.cancel(id);
    for (let beat = 0; beat < 4; beat += 1) {
      await holdfast.remote.beat({ id, fence: run?.fence ?? 0 });
      await world.clock.advance(10 * SECOND);
    }
    await world.clock.until(holdfast.tick({ limit: 0 }));
    expect((await holdfast.runs.get(id))?.status).toBe("cancelled");
  });

  test("a limit or a budget that makes no sense is refused by its name", async ({ world }) => {
    const { holdfast } = student(world);
    for (const options of [{ limit: -1 }, { limit: 1.5 }, { budget: "1ms" }, { budgt: "5s" }]) {
      const field = Object.keys(options)[0] as string;
      await expect(holdfast.tick(options as never)).rejects.toThrow(ConfigurationError);
      await expect(holdfast.tick(options as never)).rejects.toThrow(`tick().${field}`);
    }
  });
}

function sleepIn(world: World, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    world.clock.timer(100 * SECOND, resolve);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}
