// One schedule, executed by the call that finds it due: nothing was started, nothing stays behind.

import { expect } from "vitest";
import { PermanentError } from "../../src/shared/errors.js";
import { MINUTE, NOON, runLines, SECOND, student } from "./schedule-fixtures.js";
import { aborted, type World, type WorldTest } from "./world.js";

type Handler = Parameters<typeof student>[1];

/** Two instances that nobody started, and a schedule that is due from now on. */
async function due(world: World, run?: Handler) {
  const one = student(world, run);
  const other = student(world, run);
  const rule = { every: "10m..15m", afterFailure: "20m..40m" };
  await one.holdfast.schedules.upsert("s", { job: one.study, ...rule });
  return { one, other };
}

/** Ends as a fetch does whose source does not answer: with its signal. */
const hanging: Handler = {
  attempts: 5,
  run: async ({ signal }) => {
    throw await aborted(signal);
  },
};

export function runIfDueSuite(test: WorldTest): void {
  test("a call for a due schedule executes it and returns how that run ended", async ({
    world,
  }) => {
    const { one } = await due(world, { run: () => ({ stored: 2 }) });
    const answer = await world.clock.until(one.holdfast.runIfDue("s"));
    expect(answer).toMatchObject({
      ran: true,
      run: { status: "completed", mode: "scheduled", result: { stored: 2 } },
    });
    const { nextAt } = (await one.holdfast.schedules.get("s")) ?? {};
    expect(answer.nextAt).toEqual(nextAt);
    expect(await world.clock.until(one.holdfast.runIfDue("s"))).toEqual({
      skipped: true,
      reason: "not_due",
      holder: null,
      until: null,
      nextAt,
    });
  });

  test("of many concurrent calls one executes it, and the others get its holder", async ({
    world,
  }) => {
    const { one, other } = await due(world, { run: () => sleep(world, 5 * SECOND) });
    const calls = Array.from({ length: 10 }, (_, index) =>
      (index % 2 === 0 ? one : other).holdfast.runIfDue("s"),
    );
    const answers = await world.clock.until(Promise.all(calls));
    expect(answers.filter(({ ran }) => ran).length).toBeGreaterThanOrEqual(1);
    expect([...one.ran, ...other.ran]).toHaveLength(1);
    for (const answer of answers)
      if (answer.ran) expect(answer.run.status).toBe("completed");
      else expect(answer.reason).toBe("locked");
  });

  test("a failed run is returned as failed, whatever ran by hand before", async ({ world }) => {
    let fails = false;
    const { one } = await due(world, {
      run: () => {
        if (fails) throw new PermanentError("no source");
      },
    });
    await one.holdfast.schedules.trigger("s");
    await world.clock.until(one.holdfast.tick({ limit: 5 }));
    await world.clock.advance(20 * MINUTE);
    fails = true;
    const answer = await world.clock.until(one.holdfast.runIfDue("s"));
    expect(answer).toMatchObject({ ran: true, run: { status: "failed" } });
    const pauseMs = Number(answer.nextAt) - world.clock.wallMs();
    expect(pauseMs).toBeGreaterThan(19 * MINUTE);
    expect(pauseMs).toBeLessThanOrEqual(40 * MINUTE);
  });

  test("an attempt that is retried within the deadline is retried in the same call", async ({
    world,
  }) => {
    const { one } = await due(world, {
      attempts: 3,
      run: ({ attempt }) => {
        if (attempt < 3) throw new Error("busy");
      },
    });
    const answer = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "2m" }));
    expect(answer).toMatchObject({ ran: true, run: { status: "completed", attempt: 3 } });
  });

  test("no other job is executed, however much of it waits", async ({ world }) => {
    const { one } = await due(world);
    const others: unknown[] = [];
    const noise = one.holdfast.job("noise", { run: (input) => void others.push(input) });
    await noise.enqueueMany([1, 2, 3]);
    expect(await world.clock.until(one.holdfast.runIfDue("s"))).toMatchObject({ ran: true });
    expect(others).toEqual([]);
  });

  test("a run that an earlier caller left behind is executed by the next call", async ({
    world,
  }) => {
    const { one, other } = await due(world, { attempts: 3 });
    // Fires, and executes nothing.
    await world.clock.until(one.holdfast.tick({ limit: 0 }));
    expect(await world.clock.until(other.holdfast.runIfDue("s"))).toMatchObject({
      ran: true,
      run: { status: "completed", attempt: 1 },
    });
  });

  test("an instance with a worker leaves a run that cannot start yet to it, and replies at once", async ({
    world,
  }) => {
    const { one } = await due(world);
    await world.clock.until(one.holdfast.queues.pause("default"));
    await world.clock.until(one.holdfast.tick({ limit: 0 }));
    await one.holdfast.start({ scheduler: false });
    const beganAt = world.clock.wallMs();
    const answer = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "5m" }));
    expect(answer).toMatchObject({ skipped: true, reason: "locked" });
    expect(world.clock.wallMs() - beganAt).toBeLessThan(5 * SECOND);
  });

  test("a caller that died in the middle is taken over once its lease has ended", async ({
    world,
  }) => {
    const { one, other } = await due(world, {
      attempts: 3,
      run: async ({ attempt }) => {
        if (attempt === 1) await new Promise(() => undefined);
      },
    });
    void one.holdfast.runIfDue("s", { deadline: "5m" }).catch(() => undefined);
    await world.clock.advance(SECOND);
    one.clock.pause();
    const early = await world.clock.until(other.holdfast.runIfDue("s"));
    expect(early).toMatchObject({ reason: "locked", holder: one.holdfast.instanceId });
    await world.clock.advance(31 * SECOND);
    expect(await world.clock.until(other.holdfast.runIfDue("s"))).toMatchObject({
      ran: true,
      run: { status: "completed", attempt: 2 },
    });
  });

  test("a database that does not respond is a reason within seconds, and nothing runs", async ({
    world,
  }) => {
    const { one } = await due(world);
    one.faults.swallow("work.poll");
    const beganAt = world.clock.wallMs();
    const answer = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "4m" }));
    expect(answer).toMatchObject({ skipped: true, reason: "schedule_read_error" });
    expect(world.clock.wallMs() - beganAt).toBeLessThanOrEqual(5 * SECOND);
    one.faults.swallow("work.poll");
    const soon = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "1s" }));
    expect(soon).toMatchObject({ reason: "schedule_read_error" });
    expect(one.ran).toEqual([]);
  });

  test("a handler that outlives the deadline is handed back once, then its run fails, and the schedule waits", async ({
    world,
  }) => {
    const { one } = await due(world, hanging);
    const first = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "20s" }));
    expect(first).toMatchObject({ ran: true, run: { status: "pending", attempt: 0 } });
    const second = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "20s" }));
    expect(second).toMatchObject({
      ran: true,
      run: { status: "failed", error: { code: "TIMEOUT", message: /budget/ } },
    });
    const pauseMs = Number(second.nextAt) - world.clock.wallMs();
    expect(pauseMs).toBeGreaterThan(19 * MINUTE);
    expect(pauseMs).toBeLessThanOrEqual(40 * MINUTE);
  });

  test("a caller that leaves ends the wait, and the handler goes on to its end", async ({
    world,
  }) => {
    const { one } = await due(world, {
      attempts: 5,
      run: async () => {
        await sleep(world, 10 * SECOND);
        throw new Error("the source answered 503");
      },
    });
    const caller = new AbortController();
    const call = one.holdfast.runIfDue("s", { deadline: "1h", signal: caller.signal });
    await world.clock.advance(3 * SECOND);
    caller.abort();
    const beganAt = world.clock.wallMs();
    expect(await world.clock.until(call)).toMatchObject({ ran: true, run: { status: "pending" } });
    expect(world.clock.wallMs() - beganAt).toBeLessThan(8 * SECOND);
    expect(await runLines(world)).toEqual([expect.stringContaining("pending")]);
  });

  test("a handler that outlives the budget of a bounded pass more than once fails", async ({
    world,
  }) => {
    const { one } = await due(world, hanging);
    for (const status of ["pending", "failed"]) {
      await world.clock.until(one.holdfast.tick({ budget: "20s" }));
      expect(await runLines(world)).toEqual([expect.stringContaining(status)]);
    }
  });

  test("a short budget never fails a handler that outlives it", async ({ world }) => {
    const { one } = await due(world, hanging);
    for (let pass = 1; pass <= 3; pass += 1) {
      await world.clock.until(one.holdfast.tick({ budget: "2s" }));
      expect(await runLines(world)).toEqual([expect.stringContaining("pending")]);
    }
  });

  test("a handler that does an item in each pass goes on for as many passes as it needs", async ({
    world,
  }) => {
    const { one } = await due(world, {
      run: async (ctx) => {
        for (const key of ["a", "b", "c", "d", "e", "f", "g", "h"])
          await ctx.item(key, () => sleep(world, 7 * SECOND));
      },
    });
    const statuses: string[] = [];
    while (statuses.at(-1) !== "completed" && statuses.length < 10) {
      const answer = await world.clock.until(one.holdfast.runIfDue("s", { deadline: "20s" }));
      statuses.push(answer.ran ? answer.run.status : answer.reason);
    }
    expect(statuses.at(-1)).toBe("completed");
    expect(statuses.length).toBeGreaterThan(2);
  });

  test("a permanent error at the timeout ends the run; any other is retried", async ({ world }) => {
    const member = world.member();
    const job = (name: string, fail: (reason: unknown) => unknown) =>
      member.holdfast.job<unknown>(name, {
        timeout: "10s",
        retry: { attempts: 5 },
        run: async (_, { signal }) => {
          throw fail(await aborted(signal));
        },
      });
    const sure = job("sure", () => new PermanentError("the source hangs"));
    const plain = job("plain", (reason) => reason);
    const { id } = await sure.enqueue({});
    const { id: again } = await plain.enqueue({});
    await world.clock.until(member.holdfast.tick({ budget: "50s" }));
    expect(await member.holdfast.runs.get(id)).toMatchObject({
      status: "failed",
      error: { message: "the source hangs" },
    });
    expect(await member.holdfast.runs.get(again)).toMatchObject({ status: "pending" });
  });

  test("an unknown schedule and an option that makes no sense are refused by their names", async ({
    world,
  }) => {
    const { one } = await due(world);
    await expect(one.holdfast.runIfDue("nightli")).rejects.toThrow(/nightli/);
    await expect(one.holdfast.runIfDue("s", { deadline: "1ms" })).rejects.toThrow(
      "runIfDue().deadline",
    );
    await expect(one.holdfast.runIfDue("s", { dedline: "5s" } as never)).rejects.toThrow("dedline");
    expect(world.clock.wallMs()).toBe(NOON);
  });
}

function sleep(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => world.clock.timer(ms, resolve));
}
