// Runs that make runs: a batch is made once over all attempts, its children count as they end, and the follow-up run is
// made once, under all crashes.

import { expect } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { ConfigurationError, LeaseLostError, PermanentError } from "../../src/shared/errors.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import type { BatchCounts, BatchEntry, BatchOptions } from "../../src/worker/handler/fan-out.js";
import { Door, expectEnded, type Member, type World, type WorldTest } from "./world.js";

/** A job that fans out, its children, and what comes after; `fails` names inputs that fail for good. */
function fanning(
  member: Member,
  entries: (child: ReturnType<Holdfast["job"]>) => readonly BatchEntry[],
  changes: {
    readonly options?: BatchOptions;
    readonly fails?: ReadonlySet<unknown>;
    readonly around?: (ctx: RunContext, answer: unknown) => unknown;
  } = {},
) {
  const { holdfast } = member;
  const counts: BatchCounts[] = [];
  const answers: unknown[] = [];
  const inputs: unknown[] = [];
  const child = holdfast.job("child", {
    retry: { attempts: 1 },
    run: (input: unknown) => {
      inputs.push(input);
      if (changes.fails?.has(input)) throw new PermanentError("no such address");
    },
  });
  const after = holdfast.job("after", { run: (input: BatchCounts) => void counts.push(input) });
  const parent = holdfast.job("parent", {
    lease: "30s",
    retry: { attempts: 3, delay: "1s" },
    run: async (_: unknown, ctx) => {
      const answer = await ctx.enqueueBatch(entries(child as never), {
        then: after,
        ...changes.options,
      });
      answers.push(answer);
      await changes.around?.(ctx, answer);
      return answer;
    },
  });
  return { parent, child, counts, answers, inputs };
}

/** Moves time until nothing is left to run. */
async function settled(world: World, holdfast: Holdfast): Promise<void> {
  const isOver = async () => {
    const { runs } = await holdfast.runs.list({ limit: 1_000 });
    return runs.every(({ finishedAt }) => finishedAt !== null);
  };
  for (let times = 0; times < 200; times += 1) {
    await world.clock.advance(1_000);
    if (await isOver()) return;
  }
  throw new Error("Something never ended.");
}

export function fanOutSuite(test: WorldTest): void {
  test("a run fans out without waiting, and the follow-up run gets the counts", async ({
    world,
  }) => {
    const member = world.member();
    const fails = new Set([2]);
    const { parent, counts, answers } = fanning(
      member,
      (job) => [1, 2, 3].map((input) => ({ job, input })),
      { fails },
    );
    await member.holdfast.start();
    const { id } = await parent.enqueue(null);
    expectEnded(await world.ended(id), "completed", 1);
    await settled(world, member.holdfast);
    expect(answers).toEqual([{ scheduled: 3, errors: [] }]);
    expect(counts).toEqual([{ scheduled: 3, errors: 0, completed: 2, failed: 1, cancelled: 0 }]);
    const [batch] = await member.holdfast.runs.batches(id);
    const after = await member.holdfast.runs.get(batch?.then as string);
    expect(after).toMatchObject({ job: "after", status: "completed", parent: id });
    const { runs } = await member.holdfast.runs.children(id, { status: "failed" });
    expect(runs).toMatchObject([{ job: "child", input: 2, parent: id }]);
  });

  test("an instance with a single slot executes a run, its children and the follow-up run", async ({
    world,
  }) => {
    const member = world.member();
    const { parent, counts } = fanning(member, (job) =>
      Array.from({ length: 20 }, (_, input) => ({ job, input })),
    );
    await member.holdfast.start({ worker: { concurrency: 1 } });
    await parent.enqueue(null);
    await settled(world, member.holdfast);
    expect(counts).toMatchObject([{ scheduled: 20, completed: 20 }]);
  });

  test("refused entries are listed by their index, and the others are stored", async ({
    world,
  }) => {
    const member = world.member();
    const even = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          Number(value) % 2 === 0 ? { value } : { issues: [{ message: "must be even" }] },
      },
    } as const;
    const strict = member.holdfast.job("strict", { input: even as never, run: () => undefined });
    const { parent, answers, counts } = fanning(member, (job) => [
      { job, input: "good" },
      { job: "nobody", input: 1 },
      { job: strict as never, input: 3 },
      { job, input: "x".repeat(300_000) },
      { job, input: 1n },
      { job, input: 1, key: "" },
      { job, input: 1, wrong: true } as never,
      "nothing" as never,
      { job, input: 1, key: "k" },
      { job, input: 2, key: "k" },
      { job, input: 1, key: "k" },
    ]);
    await member.holdfast.start();
    await parent.enqueue(null);
    await settled(world, member.holdfast);
    const [answer] = answers as [{ scheduled: number; errors: { index: number; code: string }[] }];
    expect(answer.scheduled).toBe(2);
    expect(answer.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, "JOB_UNKNOWN"],
      [2, "INPUT_INVALID"],
      [3, "INPUT_TOO_LARGE"],
      [4, "INPUT_NOT_JSON"],
      [5, "CONFIGURATION_INVALID"],
      [6, "CONFIGURATION_INVALID"],
      [7, "CONFIGURATION_INVALID"],
      [9, "KEY_CONFLICT"],
    ]);
    expect(counts).toEqual([{ scheduled: 2, errors: 8, completed: 2, failed: 0, cancelled: 0 }]);
  });

  test("a retried attempt gets the first answer and makes nothing twice", async ({ world }) => {
    const member = world.member();
    let calls = 0;
    const { parent, answers, inputs, counts } = fanning(
      member,
      (job) => {
        calls += 1;
        // Another list at the second attempt: the first one stands.
        return Array.from({ length: 2 + calls }, (_, input) => ({ job, input }));
      },
      {
        around: (ctx) => {
          if (ctx.attempt === 1) throw new Error("after the batch");
        },
      },
    );
    await member.holdfast.start();
    const { id } = await parent.enqueue(null);
    expectEnded(await world.ended(id), "completed", 2);
    await settled(world, member.holdfast);
    expect(answers).toEqual([
      { scheduled: 3, errors: [] },
      { scheduled: 3, errors: [] },
    ]);
    expect(inputs).toHaveLength(3);
    expect(counts).toHaveLength(1);
  });

  test("an instance that dies right after the commit of a batch leaves it to the next one", async ({
    world,
  }) => {
    const [first, second] = [world.member(), world.member()];
    const made = [first, second].map((member) =>
      fanning(member, (job) => [1, 2, 3, 4].map((input) => ({ job, input }))),
    );
    first.faults.keepBack("batches.enqueue");
    await first.holdfast.start({ worker: { jobs: ["parent"] } });
    const { id } = await (made[0] as (typeof made)[0]).parent.enqueue(null);
    await world.clock.advance(2_000);
    expect(first.faults.of("batches.enqueue")).toHaveLength(1);
    first.clock.pause();
    await second.holdfast.start();
    expectEnded(await world.ended(id), "completed", 2);
    await settled(world, second.holdfast);
    const other = made[1] as (typeof made)[0];
    expect(other.answers).toEqual([{ scheduled: 4, errors: [] }]);
    expect([...other.inputs].sort()).toEqual([1, 2, 3, 4]);
    expect(other.counts).toMatchObject([{ scheduled: 4, completed: 4 }]);
    first.faults.deliver("batches.enqueue");
  });

  for (const fault of ["before", "after"] as const) {
    test(`a batch whose statement is lost ${fault} it took effect is made once by the next attempt`, async ({
      world,
    }) => {
      const member = world.member();
      const { parent, inputs, counts, answers } = fanning(member, (job) =>
        [1, 2].map((input) => ({ job, input })),
      );
      await member.holdfast.start();
      member.faults.fail("batches.enqueue", fault);
      const { id } = await parent.enqueue(null);
      expectEnded(await world.ended(id), "completed", 2);
      await settled(world, member.holdfast);
      expect(answers).toEqual([{ scheduled: 2, errors: [] }]);
      expect([...inputs].sort()).toEqual([1, 2]);
      expect(counts).toHaveLength(1);
    });
  }

  test("a handler that lost its lease makes no children, and gets an error", async ({ world }) => {
    const member = world.member();
    const door = new Door();
    const thrown: unknown[] = [];
    member.holdfast.job("child", { run: () => undefined });
    const parent = member.holdfast.job("parent", {
      lease: "10s",
      retry: { attempts: 1 },
      onLost: "fail",
      run: async (_: unknown, ctx) => {
        await door.opened;
        await ctx.enqueue("child", 1).catch((error: unknown) => thrown.push(error));
        const batch = [{ job: "child", input: 1 }];
        await ctx.enqueueBatch(batch).catch((error: unknown) => thrown.push(error));
      },
    });
    await member.holdfast.start();
    const { id } = await parent.enqueue(null);
    await world.reached(id, ({ status }) => status === "running");
    await world.clock.rest();
    const store = await world.store();
    member.faults.goDown();
    await world.clock.advance(11_000);
    await store.leases.reclaim({ limit: 10, random: 0 });
    member.faults.comeUp();
    door.open();
    await world.clock.advance(5_000);
    expect(thrown.map((error) => error instanceof LeaseLostError)).toEqual([true, true]);
    expect((await member.holdfast.runs.children(id)).runs).toEqual([]);
  });

  test("ctx.enqueue stores a run with its parent, once per attempt unless it has a key", async ({
    world,
  }) => {
    const member = world.member();
    const { holdfast } = member;
    const child = holdfast.job<number>("child", { run: () => undefined });
    const parent = holdfast.job("parent", {
      retry: { attempts: 2, delay: 0 },
      run: async (_: unknown, ctx) => {
        await Promise.all([ctx.enqueue(child, 1), ctx.enqueue("child", 2, { key: "k" })]);
        if (ctx.attempt === 1) throw new Error("once more");
      },
    });
    await holdfast.start();
    const { id } = await parent.enqueue(null);
    expectEnded(await world.ended(id), "completed", 2);
    const { runs } = await holdfast.runs.children(id);
    expect(runs.map(({ input }) => input).sort()).toEqual([1, 1, 2]);
    expect(runs.every(({ parent: of, mode }) => of === id && mode === "enqueued")).toBe(true);
    // Calls that came together were sent together.
    expect(member.faults.of("batches.enqueueChildren")).toHaveLength(2);
  });

  test("failed children are retried together; the counts follow, and nothing comes after twice", async ({
    world,
  }) => {
    const member = world.member();
    const fails = new Set<unknown>([1, 3, 5]);
    const { parent, counts } = fanning(
      member,
      (job) => [1, 2, 3, 4, 5].map((input) => ({ job, input })),
      { fails },
    );
    await member.holdfast.start();
    const { id } = await parent.enqueue(null);
    await world.ended(id);
    await settled(world, member.holdfast);
    const { runs } = member.holdfast;
    expect(await runs.batches(id)).toMatchObject([{ completed: 2, failed: 3 }]);
    fails.clear();
    fails.add(5);
    expect(await runs.retryFailed(id, { batch: "elsewhere" })).toEqual({ retried: 0 });
    expect(await runs.retryFailed(id)).toEqual({ retried: 3 });
    await settled(world, member.holdfast);
    expect(await runs.batches(id)).toMatchObject([{ completed: 4, failed: 1 }]);
    expect(counts).toEqual([{ scheduled: 5, errors: 0, completed: 2, failed: 3, cancelled: 0 }]);
  });

  test("a batch of one name twice in an attempt, a wrong list and an unknown job after are refused", async ({
    world,
  }) => {
    const member = world.member();
    const refused: unknown[] = [];
    const parent = member.holdfast.job("parent", {
      run: async (_: unknown, ctx) => {
        const keep = (error: unknown) => void refused.push(error);
        await ctx.enqueueBatch([]);
        await ctx.enqueueBatch([]).catch(keep);
        await ctx.enqueueBatch("none" as never, { name: "b" }).catch(keep);
        await ctx.enqueueBatch(new Array(100_001).fill({}), { name: "c" }).catch(keep);
        await ctx.enqueueBatch([], { name: "" }).catch(keep);
        await ctx.enqueueBatch([], { nmae: "d" } as never).catch(keep);
        await ctx.enqueueBatch([], { name: "e", then: "nobody" }).catch(keep);
      },
    });
    await member.holdfast.start();
    const { id } = await parent.enqueue(null);
    expectEnded(await world.ended(id), "completed", 1);
    expect(refused.slice(0, 5).every((error) => error instanceof ConfigurationError)).toBe(true);
    expect(refused[5]).toMatchObject({ code: "JOB_UNKNOWN" });
    expect(await member.holdfast.runs.batches(id)).toHaveLength(1);
  });
}
