// Calls: a run that waits for the results of other runs, however these end.

import { expect } from "vitest";
import { nextTurn } from "../../src/shared/adapters/event-loop.js";
import type { Store } from "../../src/store/store.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { aborted, expectEnded, type Member, type World, type WorldTest } from "./world.js";

type Child = (input: { n: number }, ctx: RunContext) => unknown;

const ONCE = { attempts: 1 } as const;

/** An instance whose job "parent" is started, and whose job "child" it may call. */
async function begun(
  world: World,
  handler: (ctx: RunContext) => unknown,
  child: Child,
  options: object = {},
): Promise<{ readonly member: Member; readonly id: string }> {
  const member = world.member({ poll: "1m" });
  member.holdfast.job("child", {
    retry: ONCE,
    ...options,
    run: (input: unknown, ctx) => child(input as { n: number }, ctx),
  });
  const parent = member.holdfast.job("parent", { retry: ONCE, run: (_, ctx) => handler(ctx) });
  await member.holdfast.start();
  const { id } = await parent.enqueue({});
  return { member, id };
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

/** Repeats a read of the waits of this execution until it records an end, and keeps the answer to itself. */
async function recordedBehindItsBack(store: Store, ctx: RunContext): Promise<void> {
  const isRecorded = async () => {
    const read = await store.steps.collect({ id: ctx.runId, fence: ctx.fence });
    return read === "stale" || read.ended.length > 0;
  };
  while (!(await isRecorded())) await new Promise<void>(nextTurn);
}

export function callSuite(test: WorldTest): void {
  test("a run waits for the results of the runs that it calls, each made once", async ({
    world,
  }) => {
    const made: number[] = [];
    const { member, id } = await begun(
      world,
      async (ctx) => {
        const results = await Promise.all([
          ctx.call("child", { n: 1 }, { name: "a" }),
          ctx.call("child", { n: 2 }, { name: "b" }),
        ]);
        await ctx.sleep("1h");
        return [...results, await ctx.call("child", { n: 3 })];
      },
      ({ n }) => {
        made.push(n);
        return { doubled: n * 2 };
      },
    );
    const run = await world.ended(id, { withinMs: 7_200_000 });
    expectEnded(run, "completed", 1);
    expect(JSON.parse(run.result as string)).toEqual([
      { doubled: 2 },
      { doubled: 4 },
      { doubled: 6 },
    ]);
    expect(made.sort()).toEqual([1, 2, 3]);
    const { runs } = await member.holdfast.runs.children(id);
    expect(runs.map(({ parent, status }) => [parent, status])).toEqual([
      [id, "completed"],
      [id, "completed"],
      [id, "completed"],
    ]);
    expect(await member.holdfast.runs.batches(id)).toEqual([]);
  });

  test("answers come in their stored order, also if a read of the waits reached the database twice", async ({
    world,
  }) => {
    const store = await world.store();
    const orders: string[][] = [];
    const { id } = await begun(
      world,
      async (ctx) => {
        const order: string[] = [];
        orders.push(order);
        const noted = (name: string, answer: Promise<unknown>) =>
          answer.then(() => order.push(name));
        await ctx.sleep("1s");
        await Promise.all([
          noted("call", ctx.call("child", { n: 1 })),
          noted(
            "beside",
            ctx.step("beside", () => recordedBehindItsBack(store, ctx)),
          ),
        ]);
        await ctx.sleep("1h");
      },
      () => "done",
    );
    expectEnded(await world.ended(id, { withinMs: 7_200_000 }), "completed", 1);
    expect(orders.length).toBeGreaterThan(2);
    for (const order of orders) expect(order).toEqual(["call", "beside"].slice(0, order.length));
  });

  test("a retry receives the result of a failed call that an operator had retried on its own", async ({
    world,
  }) => {
    let isBroken = true;
    const { member, id } = await begun(
      world,
      (ctx) => ctx.call("child", { n: 1 }),
      () => {
        if (isBroken) throw new Error("The printer is away.");
        return "printed";
      },
    );
    expectEnded(await world.ended(id), "failed", 1);
    isBroken = false;
    const { runs } = await member.holdfast.runs.children(id);
    const child = runs[0]?.id as string;
    expect(await member.holdfast.runs.retry(child)).toBe("pending");
    expectEnded(await world.ended(child), "completed", 2);
    expect(await member.holdfast.runs.retry(id)).toBe("pending");
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect(JSON.parse(run.result as string)).toBe("printed");
  });

  test("a retry that was interrupted before it retried a failed call does so when it is repeated", async ({
    world,
  }) => {
    let isBroken = true;
    const { member, id } = await begun(
      world,
      (ctx) => ctx.call("child", { n: 1 }),
      () => {
        if (isBroken) throw new Error("The printer is away.");
        return "printed";
      },
    );
    expectEnded(await world.ended(id), "failed", 1);
    isBroken = false;
    await (await world.store()).steps.reopen({ id, fromStep: null });
    expect(await member.holdfast.runs.retry(id)).toBe("pending");
    expectEnded(await world.ended(id), "completed", 2);
  });

  test("a called run that fails is an error with its id and its reason, and may be caught", async ({
    world,
  }) => {
    const { id } = await begun(
      world,
      async (ctx) => {
        try {
          return await ctx.call("child", { n: 1 });
        } catch (error) {
          const { code, childId, error: why } = error as Record<string, unknown>;
          const [child] = await world.rows(
            `select id from ${world.table("run")} where parent is not null`,
          );
          return [code, childId === child?.id, (why as { message: string }).message];
        }
      },
      () => {
        throw new Error("The printer is away.");
      },
    );
    const run = await world.ended(id);
    expect(JSON.parse(run.result as string)).toEqual([
      "CHILD_FAILED",
      true,
      "The printer is away.",
    ]);
  });

  test("an uncaught error of a called run fails the caller for good", async ({ world }) => {
    const { id } = await begun(
      world,
      (ctx) => ctx.call("child", { n: 1 }),
      () => {
        throw new Error("away");
      },
    );
    const run = await world.ended(id);
    expectEnded(run, "failed", 1);
    expect(JSON.parse(run.error as string).code).toBe("CHILD_FAILED");
  });

  test("a called run that is cancelled while it is pending wakes its caller", async ({ world }) => {
    const { member, id } = await begun(
      world,
      (ctx) => outcome(ctx.call("child", { n: 1 }, { delay: "5h" })),
      () => 1,
    );
    await world.reached(id, (run) => run.status === "pending" && run.attempt === 0);
    const { runs } = await member.holdfast.runs.children(id);
    await world.clock.until(member.holdfast.runs.cancel(runs[0]?.id as string));
    expect((await world.ended(id)).result).toBe('"CHILD_FAILED"');
  });

  test("a called run whose holder disobeys a cancel wakes its caller when the cancel is enforced", async ({
    world,
  }) => {
    const { member, id } = await begun(
      world,
      (ctx) => outcome(ctx.call("child", { n: 1 })),
      () => new Promise(() => undefined),
    );
    await world.reached(id, (run) => run.status === "pending");
    const { runs } = await member.holdfast.runs.children(id);
    await world.reached(runs[0]?.id as string, (run) => run.status === "running");
    await world.clock.until(member.holdfast.runs.cancel(runs[0]?.id as string));
    expect((await world.ended(id)).result).toBe('"CHILD_FAILED"');
  });

  test("a called run whose holder dies for good wakes its caller", async ({ world }) => {
    const first = world.member();
    const job = { lease: "5s", retry: ONCE, onLost: "fail" } as const;
    first.holdfast.job("child", { ...job, run: () => new Promise(() => undefined) });
    await first.holdfast.start();
    const second = world.member();
    const parent = second.holdfast.job("parent", {
      run: (_, ctx) => outcome(ctx.call("child", { n: 1 })),
    });
    await second.holdfast.start();
    const { id } = await parent.enqueue({});
    await world.reached(id, (run) => run.status === "pending");
    const { runs } = await second.holdfast.runs.children(id);
    await world.reached(runs[0]?.id as string, (run) => run.status === "running");
    first.clock.pause();
    expect((await world.ended(id)).result).toBe('"CHILD_FAILED"');
  });

  test("the calls of a run that is cancelled are cancelled, and one that is to be left goes on", async ({
    world,
  }) => {
    const stopped: unknown[] = [];
    const { member, id } = await begun(
      world,
      (ctx) =>
        Promise.all([
          ctx.call("child", { n: 1 }, { name: "held" }),
          ctx.call("child", { n: 2 }, { name: "late", delay: "1h" }),
          ctx.call("child", { n: 3 }, { name: "left", delay: "10m", onCancel: "leave" }),
        ]),
      async ({ n }, ctx) => {
        if (n === 3) return "went on";
        const reason = await aborted(ctx.signal);
        stopped.push((reason as { code: string }).code);
        throw reason;
      },
    );
    await world.reached(id, (run) => run.status === "pending" && run.attempt === 0);
    await world.clock.advance(2_000);
    expect(await world.clock.until(member.holdfast.runs.cancel(id))).toBe("cancelled");
    const { runs } = await member.holdfast.runs.children(id);
    for (const child of runs) await world.ended(child.id, { withinMs: 3_600_000 });
    const after = await member.holdfast.runs.children(id);
    const byInput = after.runs.map(({ input, status }) => [(input as { n: number }).n, status]);
    expect(byInput.sort()).toEqual([
      [1, "cancelled"],
      [2, "cancelled"],
      [3, "completed"],
    ]);
    expect(stopped).toEqual(["CANCELLED"]);
    expect(await world.rows(`select run from ${world.table("wait")}`)).toEqual([]);
    expect(await world.rows(`select run from ${world.table("wake")}`)).toEqual([]);
  });

  test("an attempt that fails and will be retried keeps its calls", async ({ world }) => {
    const made: number[] = [];
    const member = world.member({ poll: "1m" });
    const child = member.holdfast.job("child", {
      run: async () => {
        made.push(1);
        return "done";
      },
    });
    const parent = member.holdfast.job("parent", {
      retry: { attempts: 2, delay: "1s", jitter: 0 },
      run: async (_, ctx) => {
        const called = ctx.call(child, {}, { delay: "1m" });
        await ctx.step("first", () => 1);
        if (ctx.attempt === 1) throw new Error("away");
        return called;
      },
    });
    await member.holdfast.start();
    const { id } = await parent.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect([run.result, made.length]).toEqual(['"done"', 1]);
  });

  test("a result that was too large to be kept is refused", async ({ world }) => {
    const { id } = await begun(
      world,
      (ctx) => outcome(ctx.call("child", { n: 1 })),
      () => "x".repeat(1_100_000),
    );
    expect((await world.ended(id)).result).toBe('"RESULT_TOO_LARGE"');
  });

  test("a call of another job under the same name ends the run", async ({ world }) => {
    let job = "child";
    const { member, id } = await begun(
      world,
      (ctx) => ctx.call(job, { n: 1 }, { name: "print", delay: "1m" }),
      () => 1,
    );
    member.holdfast.job("other", { run: () => 2 });
    await world.reached(id, (run) => run.status === "pending");
    job = "other";
    const run = await world.ended(id);
    expect(JSON.parse(run.error as string).code).toBe("STEP_CHANGED");
  });

  test("a retry keeps finished steps and gives the failed call one more attempt", async ({
    world,
  }) => {
    const did: string[] = [];
    let isAway = true;
    const { member, id } = await begun(
      world,
      async (ctx) => {
        await ctx.step("request", () => void did.push("request"));
        return ctx.call("child", { n: 1 });
      },
      () => {
        did.push("child");
        if (isAway) throw new Error("away");
        return "printed";
      },
    );
    expect((await world.ended(id)).status).toBe("failed");
    isAway = false;
    expect(await world.clock.until(member.holdfast.runs.retry(id))).toBe("pending");
    const run = await world.ended(id);
    expect([run.status, run.result]).toEqual(["completed", '"printed"']);
    expect(did).toEqual(["request", "child", "child"]);
    const { runs } = await member.holdfast.runs.children(id);
    expect(runs).toHaveLength(1);
  });

  test("a retry from a step does that step and all after it again, with new calls", async ({
    world,
  }) => {
    const did: string[] = [];
    const { member, id } = await begun(
      world,
      async (ctx) => {
        await ctx.step("a", () => void did.push("a"));
        await ctx.step("b", () => void did.push("b"));
        await ctx.call("child", { n: 1 });
        if (did.length < 5) throw new Error("wrong");
        return "right";
      },
      () => void did.push("child"),
    );
    expect((await world.ended(id)).status).toBe("failed");
    const wrong = member.holdfast.runs.retry(id, { fromStep: "z" });
    await expect(world.clock.until(wrong)).rejects.toThrow("runs.retry().fromStep");
    expect(await world.clock.until(member.holdfast.runs.retry(id, { fromStep: "b" }))).toBe(
      "pending",
    );
    const run = await world.ended(id);
    expect([run.status, did]).toEqual(["completed", ["a", "b", "child", "b", "child"]]);
    const { runs } = await member.holdfast.runs.children(id);
    expect(runs).toHaveLength(2);
  });

  test("a run shows why it waits: the wait that ends first", async ({ world }) => {
    const { member, id } = await begun(
      world,
      (ctx) => Promise.all([ctx.sleep("2h"), ctx.waitFor("go", { key: "k", timeout: "1h" })]),
      () => 1,
    );
    const beganAt = world.now();
    await world.reached(id, (run) => run.status === "pending" && run.attempt === 0);
    await world.clock.advance(1_000);
    const waitingFor = (await member.holdfast.runs.get(id))?.waitingFor;
    expect(waitingFor).toMatchObject({ reason: "signal", signal: "go", key: "k", run: null });
    const { since, until } = waitingFor as { since: Date; until: Date };
    expect(until.getTime() - since.getTime()).toBe(3_600_000);
    expect(since.getTime() - beganAt).toBeLessThan(5_000);
  });
}
