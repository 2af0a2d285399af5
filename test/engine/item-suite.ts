// Items of a run: done once over all attempts, counted, and one result for each.

import { expect } from "vitest";
import type { Run } from "../../src/runs/view.js";
import { LeaseLostError, RetryLater } from "../../src/shared/errors.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import type { ItemOptions } from "../../src/worker/handler/items.js";
import { Effects } from "./effects.js";
import { aborted, Door, expectEnded, type World, type WorldTest } from "./world.js";

const ONCE_MORE = { attempts: 2, delay: "1s", jitter: 0 } as const;

/** A job whose handler is given; answers the run once it has ended. */
async function ran(
  world: World,
  handler: (ctx: RunContext) => unknown,
  options: { readonly retry?: object } = {},
): Promise<Run> {
  const { holdfast } = world.member();
  const study = holdfast.job("study", {
    retry: ONCE_MORE,
    ...options,
    run: (_, ctx) => handler(ctx),
  });
  await holdfast.start();
  const { id } = await study.enqueue({});
  await world.ended(id);
  return (await holdfast.runs.get(id)) as Run;
}

/** The end of a promise as a value. */
const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

export function itemSuite(test: WorldTest): void {
  test("an item is done once over all attempts, and gives the same value each time", async ({
    world,
  }) => {
    const calls: string[] = [];
    const values: unknown[] = [];
    const run = await ran(world, async (ctx) => {
      for (const key of ["a", "b"]) {
        const value = await ctx.item(key, () => {
          calls.push(`${ctx.attempt} ${key}`);
          if (key === "b" && ctx.attempt === 1) throw new Error("The service is away.");
          return { key, at: new Date(0), gone: undefined };
        });
        values.push(value);
      }
      return "all";
    });
    expectEnded(run, "completed", 2);
    expect(calls).toEqual(["1 a", "1 b", "2 b"]);
    const [first, replayed] = values;
    expect(first).toEqual({ key: "a", at: "1970-01-01T00:00:00.000Z" });
    expect(replayed).toEqual(first);
    expect(run).toMatchObject({ partial: false, items: { total: 2, byOutcome: { ok: 2 } } });
  });

  test("a recorded failure lets the run go on and makes it partial", async ({ world }) => {
    const run = await ran(world, async (ctx) => {
      const seen: unknown[] = [];
      for (const key of ["a", "b", "c"])
        seen.push(
          await ctx.item(
            key,
            () => {
              if (key === "b") throw Object.assign(new Error("closed"), { code: "CLOSED" });
              return key;
            },
            { onError: "record", outcome: (value) => `GOT_${value}` },
          ),
        );
      return seen.map((each) => each ?? "nothing");
    });
    expectEnded(run, "completed", 1);
    expect(run).toMatchObject({
      result: ["a", "nothing", "c"],
      partial: true,
      items: { total: 3, byOutcome: { GOT_a: 1, GOT_c: 1, failed: 1 } },
    });
  });

  test("a failure that is thrown ends the attempt, is stored, and is tried again", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job("study", {
      retry: ONCE_MORE,
      run: async (_, ctx) =>
        ctx.item("a", async () => {
          await clock.sleep(40);
          if (ctx.attempt === 1) throw new Error("once");
          return "done";
        }),
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status, attempt }) => status === "pending" && attempt === 1);
    expect((await holdfast.runs.items(id)).items).toEqual([
      {
        key: "a",
        outcome: "failed",
        attempt: 1,
        startedAt: expect.any(Date),
        durationMs: 40,
        value: null,
        error: expect.objectContaining({ message: "once" }),
      },
    ]);
    expect(await holdfast.runs.get(id)).toMatchObject({ partial: false });
    expectEnded(await world.ended(id), "completed", 2);
    expect(await holdfast.runs.get(id)).toMatchObject({
      partial: false,
      items: { total: 1, byOutcome: { ok: 1 } },
    });
  });

  test("items at the same time travel together, in fewer statements than there are items", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const keys = Array.from({ length: 200 }, (_, n) => `${n}`);
    const study = holdfast.job("study", {
      run: async (_, ctx) => Promise.all(keys.map((key) => ctx.item(key, () => Number(key)))),
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expect(JSON.parse(run.result as string)).toEqual(keys.map(Number));
    expect(run.items).toEqual({ ok: 200 });
    expect(faults.of("items.store").length).toBeLessThan(5);
    // The first holder of a run knows that there is nothing to read.
    expect(faults.of("items.done")).toEqual([]);
  });

  test("a later attempt reads done items once, however many there are", async ({ world }) => {
    const { holdfast, faults } = world.member();
    const keys = Array.from({ length: 300 }, (_, n) => `${n}`);
    const study = holdfast.job("study", {
      retry: ONCE_MORE,
      run: async (_, ctx) => {
        for (const key of keys) await ctx.item(key, () => (ctx.attempt === 1 ? 1 : 2));
        if (ctx.attempt === 1) throw new Error("after all items");
        const values = await Promise.all(keys.map((key) => ctx.item(key, () => 3)));
        return new Set(values).size;
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expect((await world.ended(id)).result).toBe("1");
    expect(faults.of("items.done")).toHaveLength(1);
    expect(faults.of("items.store")).toHaveLength(300);
  });

  test("of more items than are read at once none is done again, and those together are one read", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const keys = Array.from({ length: 1_500 }, (_, n) => `${n}`);
    const study = holdfast.job("study", {
      retry: ONCE_MORE,
      run: async (_, ctx) => {
        const values = await Promise.all(keys.map((key) => ctx.item(key, () => ctx.attempt)));
        if (ctx.attempt === 1) throw new Error("after all items");
        return values.every((value) => value === 1);
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expect((await world.ended(id)).result).toBe("true");
    expect(faults.of("items.done").length).toBeLessThan(4);
  });

  test("an attempt that was put off or handed back keeps its items too", async ({ world }) => {
    const calls: number[] = [];
    const run = await ran(world, async (ctx) => {
      await ctx.item("a", () => calls.push(ctx.fence));
      if (new Set(calls).size === 1 && ctx.fence === calls[0])
        throw new RetryLater({ delay: "1s" });
      return "done";
    });
    expectEnded(run, "completed", 1);
    expect(calls).toHaveLength(1);
  });

  test("an operator's retry keeps done items and does the failed ones again", async ({ world }) => {
    const { holdfast } = world.member();
    const calls: string[] = [];
    const study = holdfast.job("study", {
      retry: { attempts: 1 },
      run: async (_, ctx) => {
        for (const key of ["a", "b"])
          await ctx.item(key, () => {
            calls.push(`${ctx.attempt} ${key}`);
            if (key === "b" && ctx.attempt === 1) throw new Error("no");
          });
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "failed", 1);
    expect(await holdfast.runs.retry(id)).toBe("pending");
    expectEnded(await world.ended(id), "completed", 2);
    expect(calls).toEqual(["1 a", "1 b", "2 b"]);
    expect((await holdfast.runs.get(id))?.items.byOutcome).toEqual({ ok: 2 });
  });

  test("the same key at the same time is done once, and both callers get the value", async ({
    world,
  }) => {
    let calls = 0;
    const run = await ran(world, async (ctx) => {
      const door = new Door();
      const good = [1, 2].map((n) =>
        ctx.item("good", async () => {
          calls += 1;
          await door.opened;
          return n;
        }),
      );
      const bad = [
        ctx.item("bad", () => Promise.reject(new Error("no")), { onError: "record" }),
        outcome(ctx.item("bad", () => "never called")),
      ];
      door.open();
      return [
        ...(await Promise.all(good)),
        ...(await Promise.all(bad)).map((each) => each ?? null),
      ];
    });
    expect(run.result).toEqual([1, 1, null, "no"]);
    expect(calls).toBe(1);
  });

  test("a key, an option or a value that cannot be is refused with a clear error", async ({
    world,
  }) => {
    const run = await ran(world, async (ctx) => {
      const circle: { self?: unknown } = {};
      circle.self = circle;
      const item = ctx.item.bind(ctx) as (
        key: unknown,
        fn: unknown,
        options?: unknown,
      ) => Promise<unknown>;
      return Promise.all(
        [
          item("", () => 1),
          item("x".repeat(501), () => 1),
          item(7, () => 1),
          item("no function", 1),
          item("option", () => 1, { onerror: "record" }),
          item("option", () => 1, { onError: "ignore" }),
          item("option", () => 1, { tx: "yes" }),
          item("circle", () => circle),
          item("bigint", () => 1n),
          item("map", () => new Map()),
          item("large", () => "x".repeat(1_100_000)),
          item("outcome", () => 1, { outcome: () => 7 }),
          item("reserved", () => 1, { outcome: () => "failed" }),
          item("nothing", () => undefined),
        ].map(outcome),
      );
    });
    const wrong = "CONFIGURATION_INVALID";
    expect(run.result).toEqual([
      ...Array.from({ length: 7 }, () => wrong),
      ...["ITEM_NOT_JSON", "ITEM_NOT_JSON", "ITEM_NOT_JSON", "ITEM_TOO_LARGE", wrong, wrong, null],
    ]);
    expect(run.items).toEqual({ total: 7, byOutcome: { failed: 6, ok: 1 } });
  });

  test("a holder that lost its run stores no item and gets an error (S3)", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    const door = new Door();
    const told: unknown[] = [];
    one.holdfast.job("study", {
      lease: "10s",
      run: async (_, ctx) => {
        await door.opened;
        told.push(
          await ctx
            .item("a", () => "of the first", { onError: "record" })
            .catch((error: unknown) => error),
        );
      },
    });
    const study = other.holdfast.job("study", {
      lease: "10s",
      run: async (_, ctx) => ctx.item("a", () => "of the second"),
    });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status }) => status === "running");
    one.faults.goDown();
    await other.holdfast.start();
    expectEnded(await world.ended(id), "completed", 2);
    one.faults.comeUp();
    door.open();
    await world.clock.advance(1_000);
    expect(told).toEqual([expect.any(LeaseLostError)]);
    const { items } = await other.holdfast.runs.items(id);
    expect(items.map(({ value }) => value)).toEqual(["of the second"]);
  });

  for (const fault of ["before", "after"] as const) {
    test(`an item whose write fails ${fault} it took effect is stored once`, async ({ world }) => {
      const { holdfast, faults } = world.member();
      let calls = 0;
      const study = holdfast.job("study", {
        run: async (_, ctx) => ctx.item("a", () => (calls += 1)),
      });
      await holdfast.start();
      faults.fail("items.store", fault, { times: 2 });
      const { id } = await study.enqueue({});
      const run = await world.ended(id);
      expectEnded(run, "completed", 1);
      expect(run).toMatchObject({ result: "1", items: { ok: 1 } });
      expect(calls).toBe(1);
    });
  }

  test("an aborted attempt begins no item and records no failure for it", async ({ world }) => {
    const { holdfast } = world.member();
    const begun: string[] = [];
    const record = { onError: "record" } as const;
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        await ctx.item("a", () => begun.push("a"), record);
        await ctx.item("b", async () => Promise.reject(await aborted(ctx.signal)), record);
        await ctx.item("c", () => begun.push("c"), record);
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ items }) => items.ok === 1);
    await holdfast.runs.cancel(id);
    expectEnded(await world.ended(id), "cancelled", 1);
    expect(begun).toEqual(["a"]);
    expect((await holdfast.runs.get(id))?.items.byOutcome).toEqual({ ok: 1 });
  });

  test("an item with tx is stored with its writes, or neither is", async ({ world }) => {
    const effects = await Effects.open(world);
    const run = await ran(world, async (ctx) => {
      const item = (key: string, fn: (tx: unknown) => unknown, options: ItemOptions = {}) =>
        ctx.item(key, fn, { tx: true, ...options });
      await item("a", effects.write("a", { n: ctx.attempt }));
      await item("b", effects.writeAndThrow("b", new Error("no")), { onError: "record" });
      await item("c", effects.write("c", new Map()), { onError: "record" });
      if (ctx.attempt === 1) throw new Error("once more");
      return item("a", effects.write("a again", null));
    });
    expectEnded(run, "completed", 2);
    expect(run).toMatchObject({
      result: { n: 1 },
      partial: true,
      items: { total: 3, byOutcome: { failed: 2, ok: 1 } },
    });
    expect(await effects.all()).toEqual(["a"]);
  });

  test("items with tx at the same time, more than there are connections, all get their turn", async ({
    world,
  }) => {
    const effects = await Effects.open(world);
    const keys = Array.from({ length: 12 }, (_, n) => `key-${n + 10}`);
    const run = await ran(world, async (ctx) =>
      Promise.all(keys.map((key) => ctx.item(key, effects.write(key, key), { tx: true }))),
    );
    expect(run.result).toEqual(keys);
    expect(await effects.all()).toEqual(keys);
  });

  for (const fault of ["before", "after"] as const) {
    test(`an item with tx whose answer is lost ${fault} it took effect is done once`, async ({
      world,
    }) => {
      const effects = await Effects.open(world);
      const { holdfast, faults } = world.member();
      const study = holdfast.job("study", {
        retry: ONCE_MORE,
        run: async (_, ctx) => ctx.item("a", effects.write("a", ctx.attempt), { tx: true }),
      });
      await holdfast.start();
      faults.fail("commits.item", fault);
      const { id } = await study.enqueue({});
      const attempt = fault === "after" ? 1 : 2;
      const run = await world.ended(id);
      expectEnded(run, "completed", attempt);
      expect(run.result).toBe(`${attempt}`);
      expect(await effects.all()).toEqual(["a"]);
    });
  }

  test("items are listed in pages, by key or the slowest first", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        for (const ms of [30, 10, 20])
          await ctx.item(`took ${ms}`, () => clock.sleep(ms), { outcome: () => "slept" });
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    const keysOf = async (options: object) => {
      const { items, nextCursor } = await holdfast.runs.items(id, options);
      return [items.map(({ key }) => key), nextCursor] as const;
    };
    expect(await keysOf({})).toEqual([["took 10", "took 20", "took 30"], null]);
    const [slowest, cursor] = await keysOf({ sort: "slowest", limit: 2 });
    expect(slowest).toEqual(["took 30", "took 20"]);
    expect(await keysOf({ sort: "slowest", cursor })).toEqual([["took 10"], null]);
    expect(await keysOf({ outcome: "other" })).toEqual([[], null]);
    expect((await holdfast.runs.items("no-such-run")).items).toEqual([]);
    for (const wrong of [{ sort: "fastest" }, { limit: 0 }, { cursor: "x" }, { order: 1 }])
      await expect(holdfast.runs.items(id, wrong as object)).rejects.toMatchObject({
        code: "CONFIGURATION_INVALID",
      });
  });
}
