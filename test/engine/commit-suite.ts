// `ctx.commit`: the handler's work in the database and the end of its run, together or not at all.

import { expect } from "vitest";
import { LeaseLostError, OutcomeUnknownError, PermanentError } from "../../src/shared/errors.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { Effects } from "./effects.js";
import { aborted, Door, expectEnded, heard, type World, type WorldTest } from "./world.js";

const ONCE_MORE = { attempts: 2, delay: "1s", jitter: 0 } as const;

async function committer(
  world: World,
  handler: (ctx: RunContext, effects: Effects) => unknown,
  options: object = {},
) {
  const effects = await Effects.open(world);
  const member = world.member();
  const study = member.holdfast.job("study", {
    retry: ONCE_MORE,
    ...options,
    run: (_, ctx) => handler(ctx, effects),
  });
  return { ...member, study, effects };
}

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

export function commitSuite(test: WorldTest): void {
  test("the value of the function is the result, and its effect is there once", async ({
    world,
  }) => {
    const { holdfast, study, effects, faults } = await committer(world, async (ctx, effects) => {
      const value = await ctx.commit(effects.write(ctx.runId, { paid: true }));
      return { ignored: value };
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.clock.until(holdfast.runs.wait(id));
    expectEnded(run, "completed", 1);
    expect(run.result).toEqual({ paid: true });
    expect(await effects.all()).toEqual([id]);
    // The end of the run was told once, and nothing more is settled for it.
    await world.clock.advance(5_000);
    expect(faults.of("claims.exchange").flatMap(({ params }) => params.settlements)).toEqual([]);
    expect((await holdfast.runs.attempts(id)).map(({ end }) => end)).toEqual(["completed"]);
  });

  test("an error of the function is rethrown, nothing of it stays, and the run may go on", async ({
    world,
  }) => {
    const thrown = new PermanentError("The account is closed.");
    const { holdfast, study, effects } = await committer(world, async (ctx, effects) => {
      const error = await errorOf(ctx.commit(effects.writeAndThrow("first", thrown)));
      expect(error).toBe(thrown);
      return ctx.commit(effects.write("second", "in the end"));
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"in the end"');
    expect(await effects.all()).toEqual(["second"]);
  });

  test("an error that leaves the handler fails the attempt by its class", async ({ world }) => {
    const { holdfast, study, effects } = await committer(world, (ctx, effects) =>
      ctx.attempt === 1
        ? ctx.commit(effects.writeAndThrow("first", new Error("busy")))
        : ctx.commit(effects.write("second", "done")),
    );
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 2);
    expect(await effects.all()).toEqual(["second"]);
  });

  test("errors after the commit are only logged; a second commit and items are refused", async ({
    world,
  }) => {
    const refused: unknown[] = [];
    const member = await committer(world, async (ctx, effects) => {
      await ctx.commit(effects.write("once", "the result"));
      refused.push(await errorOf(ctx.commit(effects.write("twice", "another"))));
      refused.push(await errorOf(ctx.item("late", () => 1)));
      throw new Error("too late to matter");
    });
    const { holdfast, study, effects } = member;
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    await world.clock.advance(2_000);
    expectEnded(await world.record(id), "completed", 1);
    expect(run.result).toBe('"the result"');
    expect(refused).toEqual([
      expect.objectContaining({ code: "RUN_COMMITTED" }),
      expect.objectContaining({ code: "RUN_COMMITTED" }),
    ]);
    expect(await effects.all()).toEqual(["once"]);
    expect(heard(member, "run.after_commit")).toEqual([
      expect.objectContaining({
        run: id,
        error: expect.objectContaining({ message: "too late to matter" }),
      }),
    ]);
    expect(heard(member, "run.completed")).toHaveLength(1);
    expect(heard(member, "run.lost")).toEqual([]);
    expect(heard(member, "run.stale")).toEqual([]);
  });

  test("a handler that goes on for long after its commit is not taken for lost", async ({
    world,
  }) => {
    const member = await committer(
      world,
      async (ctx, effects) => {
        await ctx.commit(effects.write("once", "done"));
        await clock.sleep(60_000);
        ended.open(ctx.signal.aborted);
      },
      { lease: "10s" },
    );
    const { holdfast, study, clock } = member;
    const ended = new Door<boolean>();
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    expect(await world.clock.until(ended.opened)).toBe(false);
    await world.clock.advance(1_000);
    expect(heard(member, "run.lost")).toEqual([]);
    expect((await world.clock.until(holdfast.stop())).abandoned).toBe(0);
  });

  test("a commit that the handler does not await still decides how its run ends", async ({
    world,
  }) => {
    const { holdfast, study, effects } = await committer(world, (ctx, effects) => {
      if (ctx.attempt === 1) void ctx.commit(effects.writeAndThrow("first", new Error("no")));
      else void ctx.commit(effects.write("second", "of the commit"));
      return "of the handler";
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect(run.result).toBe('"of the commit"');
    expect(await effects.all()).toEqual(["second"]);
  });

  test("a holder that lost its run changes nothing by a commit and gets an error (S3)", async ({
    world,
  }) => {
    const door = new Door();
    const told: unknown[] = [];
    const one = await committer(
      world,
      async (ctx, effects) => {
        await door.opened;
        told.push(await errorOf(ctx.commit(effects.write("of the first", 1))));
      },
      { lease: "10s" },
    );
    const other = world.member();
    const study = other.holdfast.job("study", {
      lease: "10s",
      run: async (_, ctx) => ctx.commit(one.effects.write("of the second", 2)),
    });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status }) => status === "running");
    one.clock.pause();
    await other.holdfast.start();
    expectEnded(await world.ended(id), "completed", 2);
    door.open();
    await world.clock.rest();
    one.clock.resume();
    await world.clock.advance(1_000);
    expect(told).toEqual([expect.any(LeaseLostError)]);
    expect(await one.effects.all()).toEqual(["of the second"]);
    expect((await world.record(id)).result).toBe("2");
  });

  for (const fault of ["before", "after"] as const) {
    test(`a commit whose answer is lost ${fault} it took effect is made once`, async ({
      world,
    }) => {
      const member = await committer(world, (ctx, effects) =>
        ctx.commit(effects.write(`attempt ${ctx.attempt}`, ctx.attempt)),
      );
      const { holdfast, study, effects, faults } = member;
      await holdfast.start();
      // Lost for good, as far as the caller can tell: what happened is for the database to say.
      faults.fail("commits.run", fault, { error: new OutcomeUnknownError("commits.run") });
      faults.fail("leases.state", "before", { times: 3 });
      const { id } = await study.enqueue({});
      const attempt = fault === "after" ? 1 : 2;
      const run = await world.ended(id);
      expectEnded(run, "completed", attempt);
      expect(await effects.all()).toEqual([`attempt ${attempt}`]);
      await world.clock.advance(5_000);
      expect(heard(member, "run.lost")).toEqual([]);
      // The handler heard what the database knows: it had nothing more to say.
      expect(heard(member, "run.stale")).toEqual([]);
    });
  }

  test("a commit with an unknown outcome is reported as such, and nothing happens twice", async ({
    world,
  }) => {
    const told: unknown[] = [];
    const { holdfast, study, effects, faults } = await committer(world, async (ctx, effects) => {
      const error = await errorOf(ctx.commit(effects.write("once", ctx.attempt)));
      told.push(error);
      if (error) throw error;
    });
    await holdfast.start();
    faults.fail("commits.run", "after");
    faults.fail("leases.state", "before", { times: 20 });
    const { id } = await study.enqueue({});
    await world.ended(id);
    await world.clock.advance(60_000);
    expectEnded(await world.record(id), "completed", 1);
    expect(told).toEqual([expect.any(OutcomeUnknownError)]);
    expect(await effects.all()).toEqual(["once"]);
  });

  test("a heartbeat that is answered while a commit is under way loses nothing", async ({
    world,
  }) => {
    const member = await committer(
      world,
      (ctx, effects) => ctx.commit(effects.write("once", "done")),
      { lease: "10s" },
    );
    const { holdfast, study, effects, faults } = member;
    await holdfast.start();
    // Committed, and not heard of yet: the run is no longer in its lease.
    faults.keepBack("commits.run");
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status }) => status === "completed");
    await world.clock.advance(8_000);
    expect(faults.of("leases.renew").length).toBeGreaterThan(0);
    faults.deliver("commits.run");
    await world.clock.advance(1_000);
    expect(heard(member, "run.lost")).toEqual([]);
    expect(heard(member, "run.completed")).toHaveLength(1);
    expect(await effects.all()).toEqual(["once"]);
  });

  test("a commit that comes after the time was over but within the 5 s counts", async ({
    world,
  }) => {
    const { holdfast, study, effects } = await committer(
      world,
      async (ctx, effects) => {
        await aborted(ctx.signal);
        return ctx.commit(effects.write("just made it", 1));
      },
      { timeout: "10s" },
    );
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 1);
    expect(await effects.all()).toEqual(["just made it"]);
  });

  test("a schedule's next run waits for the end that a commit makes", async ({ world }) => {
    const { holdfast, effects } = await committer(world, async (ctx, effects) => {
      await ctx.commit(effects.write(ctx.nominalAt?.toISOString() ?? "?", 1));
    });
    await holdfast.schedules.upsert("s", { job: "study", every: "1m..2m" });
    await holdfast.start();
    await world.clock.advance(10 * 60_000);
    const { runs } = await holdfast.runs.list();
    expect(runs.length).toBeGreaterThan(4);
    expect(runs.every(({ status }) => status === "completed")).toBe(true);
    expect(await effects.all()).toHaveLength(runs.length);
  });

  test("options that cannot be are refused", async ({ world }) => {
    const told: unknown[] = [];
    const { holdfast, study } = await committer(world, async (ctx) => {
      const commit = ctx.commit.bind(ctx) as (fn: unknown, options?: object) => Promise<unknown>;
      for (const [fn, options] of [
        [null, {}],
        [() => 1, { On: 1 }],
        [() => 1, { on: {} }],
      ] as const)
        told.push(await errorOf(commit(fn, options)));
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    const wrong = expect.objectContaining({ code: "CONFIGURATION_INVALID" });
    expect(told).toEqual([wrong, wrong, wrong]);
  });
}
