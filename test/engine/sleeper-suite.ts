// Sleeping runs seen from outside: how they are shown, the capacity that they release, their limits, and which calls
// may end their waits.

import { expect } from "vitest";
import type { RunContext } from "../../src/worker/handler/context.js";
import { samplesOf } from "../support/prometheus.js";
import { Door, expectEnded, heard, type Member, type World, type WorldTest } from "./world.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LATER = { withinMs: 100 * DAY_MS };

type Started = { readonly member: Member; readonly id: string };

async function begun(
  world: World,
  handler: (ctx: RunContext) => unknown,
  options: object = {},
): Promise<Started> {
  const member = world.member({ poll: "10m" });
  const study = member.holdfast.job("study", {
    retry: { attempts: 1 },
    ...options,
    run: (_, ctx) => handler(ctx),
  });
  await member.holdfast.start();
  const { id } = await study.enqueue({});
  return { member, id };
}

async function asleep(world: World, { member, id }: Started): Promise<void> {
  const isAsleep = () => heard(member, "run.suspended").length > 0;
  await world.reached(id, ({ status }) => status === "pending" && isAsleep(), LATER);
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

export function sleeperSuite(test: WorldTest): void {
  test("a run that sleeps without a deadline shows when it was first due, and no end of its wait", async ({
    world,
  }) => {
    const started = await begun(world, (ctx) => ctx.waitFor("approved", { key: "k" }));
    await asleep(world, started);
    const { holdfast } = started.member;
    const run = await world.clock.until(holdfast.runs.get(started.id));
    expect(run?.dueAt).toEqual(run?.createdAt);
    expect(run?.waitingFor).toMatchObject({ reason: "signal", until: null, key: "k" });
    const { runs } = await world.clock.until(holdfast.runs.list());
    expect(runs.map(({ dueAt }) => dueAt)).toEqual([run?.dueAt]);
    // The views of users say what this one says.
    const rows = await world.rows(`select due_at from ${world.table("run_state")}`);
    expect(rows.map((row) => Number(row.due_at))).toEqual([run?.dueAt.getTime()]);
  });

  test("a call that was refused at once does not keep its run from being suspended", async ({
    world,
  }) => {
    const { member, id } = await begun(world, async (ctx) => {
      const refused = await outcome((async () => ctx.progress({ done: "half" } as never))());
      await ctx.sleep("1h");
      return refused;
    });
    const run = await world.ended(id, LATER);
    expectEnded(run, "completed", 1);
    expect(JSON.parse(run.result as string)).toBe("CONFIGURATION_INVALID");
    expect(heard(member, "run.suspended")).toHaveLength(1);
  });

  test("a run that sleeps until a time is due then", async ({ world }) => {
    const started = await begun(world, (ctx) => ctx.sleep("3d"));
    await asleep(world, started);
    const run = await world.clock.until(started.member.holdfast.runs.get(started.id));
    expect(run?.waitingFor).toMatchObject({ reason: "sleep", until: run?.dueAt });
    expect(Number(run?.dueAt) - Number(run?.createdAt)).toBeGreaterThanOrEqual(3 * DAY_MS);
  });

  test("how late a run goes on is counted from the end of its wait, not from when it was first due", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => {
      await ctx.sleep("3h");
      await ctx.waitFor("approved", { key: "k" });
    });
    await asleep(world, started);
    await world.clock.advance(HOUR_MS);
    await world.clock.until(started.member.holdfast.signal("approved", { key: "k" }));
    await world.ended(started.id, LATER);
    const text = await world.clock.until(started.member.holdfast.metrics());
    const [count] = samplesOf(text, "holdfast_run_delay_seconds_count");
    const [sum] = samplesOf(text, "holdfast_run_delay_seconds_sum");
    expect(count?.value).toBe(3);
    expect(sum?.value).toBeLessThan(60);
  });

  test("a sleeping run gives back its place in a limit, and takes one anew when it goes on", async ({
    world,
  }) => {
    const door = new Door();
    const order: string[] = [];
    const member = world.member({ poll: "10m" });
    const study = member.holdfast.job<{ name: string }>("study", {
      concurrency: { limit: 1 },
      timeout: "20h",
      lease: "10h",
      run: async ({ name }, ctx) => {
        if (name === "sleeper") await ctx.sleep("1h");
        else await door.opened;
        order.push(name);
      },
    });
    await member.holdfast.start();
    const sleeper = await study.enqueue({ name: "sleeper" });
    await asleep(world, { member, id: sleeper.id });
    const other = await study.enqueue({ name: "other" });
    await world.reached(other.id, ({ status }) => status === "running");
    await world.clock.advance(2 * HOUR_MS);
    const run = await world.clock.until(member.holdfast.runs.get(sleeper.id));
    expect(run?.waitingFor).toMatchObject({ reason: "concurrency", limit: 1, held: 1 });
    door.open();
    expectEnded(await world.ended(sleeper.id, LATER), "completed", 1);
    expect(order).toEqual(["other", "sleeper"]);
    expect(await world.rows(`select run from ${world.table("flow_run")}`)).toEqual([]);
  });

  test("tick() suspends a run, and a later one goes on with it", async ({ world }) => {
    const { holdfast } = world.member();
    let steps = 0;
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        await ctx.step("once", () => {
          steps += 1;
        });
        await ctx.sleep("1h");
        return "slept";
      },
    });
    const { id } = await study.enqueue({});
    await world.clock.until(holdfast.tick());
    expect(await world.record(id)).toMatchObject({ status: "pending", holder: null, attempt: 0 });
    await world.clock.until(holdfast.tick());
    expect(await world.status(id)).toBe("pending");
    await world.clock.advance(HOUR_MS);
    await world.clock.until(holdfast.tick());
    expectEnded(await world.record(id), "completed", 1);
    expect(steps).toBe(1);
  });

  test("a signal that a run still waits for outlives its retention, and goes once it was received", async ({
    world,
  }) => {
    const started = await begun(
      world,
      async (ctx) => (await ctx.waitFor("go", { key: "k" }))?.value,
    );
    const { holdfast } = started.member;
    await asleep(world, started);
    await world.clock.until(holdfast.queues.pause("default"));
    await world.clock.until(holdfast.signal("go", { key: "k", value: "kept" }));
    await world.clock.advance(60_000);
    const store = await world.store();
    const prune = () => store.signals.prune({ keepMs: 30_000, limit: 100 });
    expect(await prune()).toBe(0);
    await world.clock.until(holdfast.queues.resume("default"));
    expect((await world.ended(started.id, LATER)).result).toBe('"kept"');
    expect(await prune()).toBe(1);
  });

  test("a run has at most 10,000 steps and waits, and stored ones still count", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => {
      await ctx.sleep("1h");
      return [
        await outcome(ctx.step("last", () => "stored")),
        await outcome(ctx.step("beyond", () => "never")),
        await outcome(ctx.sleep("1h", { name: "never" })),
        await outcome(ctx.step("s7", () => "never")),
      ];
    });
    await asleep(world, started);
    await world.execute(`insert into {step} (run, no, name, kind, generation, fence, tries, started_at, ended_at, value)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 9998)
      select w.run, n.i, 's' || n.i, 0, 0, w.fence, 1, w.since, w.since, '7' from {wait} w cross join n`);
    const run = await world.ended(started.id, LATER);
    expect(JSON.parse(run.result as string)).toEqual([
      "stored",
      "STEPS_TOO_MANY",
      "STEPS_TOO_MANY",
      7,
    ]);
  });

  test("a value that is too large or no JSON is refused with the name of its step, and nothing is stored", async ({
    world,
  }) => {
    const { member, id } = await begun(world, async (ctx) => {
      const refused = [
        ["large", () => "x".repeat(1_048_577)],
        ["number", () => 1n],
        ["function", () => ({ deep: [() => 1] })],
        ["nothing", () => Number.NaN],
      ] as const;
      const found: unknown[] = [];
      for (const [name, fn] of refused) {
        try {
          await ctx.step(name, fn as () => unknown);
          found.push("stored");
        } catch (error) {
          const { code, message } = error as { code: string; message: string };
          found.push([code, message.includes(name)]);
        }
      }
      return found;
    });
    expect(JSON.parse((await world.ended(id)).result as string)).toEqual([
      ["RESULT_TOO_LARGE", true],
      ["STEP_NOT_JSON", true],
      ["STEP_NOT_JSON", true],
      ["STEP_NOT_JSON", true],
    ]);
    expect(heard(member, "run.suspended")).toEqual([]);
    expect(await world.rows(`select name from ${world.table("step")}`)).toEqual([]);
  });

  test("a refused value fails the run for good if no handler catches the error", async ({
    world,
  }) => {
    const { id } = await begun(world, (ctx) => ctx.step("large", () => "x".repeat(1_048_577)), {
      retry: { attempts: 5, delay: "1s" },
    });
    const run = await world.ended(id);
    expectEnded(run, "failed", 1);
    expect(JSON.parse(run.error as string).code).toBe("RESULT_TOO_LARGE");
  });

  test("a signal in the caller's transaction counts once that is committed, and never if it is rolled back", async ({
    world,
  }) => {
    const started = await begun(
      world,
      async (ctx) => (await ctx.waitFor("paid", { key: "o-7" }))?.value,
    );
    const { holdfast } = started.member;
    await asleep(world, started);
    for (const end of ["rollback", "commit"] as const) {
      const { tx, finish } = await world.transaction();
      const options = { key: "o-7", value: end, tx };
      expect(await holdfast.signal("paid", options)).toEqual({ repeated: false });
      expect(await holdfast.signal("paid", options)).toEqual({ repeated: true });
      expect(await outcome(holdfast.signal("paid", { ...options, value: "other" }))).toBe(
        "SIGNAL_CONFLICT",
      );
      await finish(end);
      await world.clock.advance(60_000);
    }
    expect((await world.ended(started.id, LATER)).result).toBe('"commit"');
  });

  test("a called run that ends through the SQL functions complete and fail wakes its caller", async ({
    world,
    skip,
  }) => {
    skip((await world.store()).engine === "sqlite", "SQLite has no such functions.");
    const never = new Door().opened;
    const member = world.member({ poll: "10m" });
    const once = { retry: { attempts: 1 } };
    member.holdfast.job("child", { ...once, timeout: "20h", lease: "10h", run: () => never });
    const parent = member.holdfast.job("parent", {
      ...once,
      run: async (_, ctx) => [
        await outcome(ctx.call("child", { n: 1 }, { name: "good" })),
        await outcome(ctx.call("child", { n: 2 }, { name: "bad" })),
      ],
    });
    await member.holdfast.start();
    const { id } = await parent.enqueue({});
    const ends = [
      (held: string) => `select {complete}(${held}, '{"sum": 3}')`,
      (held: string) => `select {fail}(${held}, 'no')`,
    ];
    for (const [at, end] of ends.entries()) {
      await world.reached(id, () => heard(member, "run.suspended").length > at, LATER);
      const { runs } = await world.clock.until(member.holdfast.runs.children(id));
      expect(runs).toHaveLength(at + 1);
      const child = runs.find(({ status }) => status === "pending" || status === "running");
      const held = await world.reached(String(child?.id), ({ status }) => status === "running");
      await world.execute(end(`'${held.id}', ${held.fence}`));
    }
    const run = await world.ended(id, LATER);
    expect(JSON.parse(run.result as string)).toEqual([{ sum: 3 }, "CHILD_FAILED"]);
  });
}
