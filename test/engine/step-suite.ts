// Steps and waits of a run: done once over all executions, suspended without a worker, and woken when something ends.

import { expect } from "vitest";
import type { RetryOptions } from "../../src/runs/rules/retry.js";
import type { Run } from "../../src/runs/view.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { Effects } from "./effects.js";
import {
  aborted,
  Door,
  expectEnded,
  heard,
  type Member,
  type World,
  type WorldTest,
} from "./world.js";

const HOUR_MS = 3_600_000;
const ONCE_MORE = { attempts: 2, delay: "1s", jitter: 0 } as const;

type Started = { readonly member: Member; readonly id: string };

/** A started run of a job whose handler is given. */
async function begun(
  world: World,
  handler: (ctx: RunContext) => unknown,
  options: object = {},
): Promise<Started> {
  // A poll takes real time: hours of waiting would have thousands of them.
  const member = world.member({ poll: "10m" });
  const study = member.holdfast.job("study", {
    retry: ONCE_MORE,
    ...options,
    run: (_, ctx) => handler(ctx),
  });
  await member.holdfast.start();
  const { id } = await study.enqueue({});
  return { member, id };
}

async function ran(
  world: World,
  handler: (ctx: RunContext) => unknown,
  options: object = {},
): Promise<Run> {
  const { member, id } = await begun(world, handler, options);
  await world.ended(id, { withinMs: 100 * HOUR_MS });
  return (await member.holdfast.runs.get(id)) as Run;
}

const isAsleep = (run: { status: string; fence: number | null }) => run.status === "pending";

/** Moves time until the run has been suspended this often. */
async function suspended(world: World, { member, id }: Started, times = 1): Promise<void> {
  await world.reached(
    id,
    (run) => isAsleep(run) && heard(member, "run.suspended").length >= times,
    { withinMs: 100 * HOUR_MS },
  );
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

export function stepSuite(test: WorldTest): void {
  test("a step runs once, and every later execution gets its stored value", async ({ world }) => {
    const calls: string[] = [];
    const values: unknown[] = [];
    const run = await ran(world, async (ctx) => {
      const first = await ctx.step("request", () => {
        calls.push("request");
        return { id: 7, at: new Date(0), gone: undefined };
      });
      values.push(first);
      await ctx.sleep("10m");
      await ctx.step("publish", () => {
        calls.push("publish");
      });
      return "done";
    });
    expectEnded(run, "completed", 1);
    expect(calls).toEqual(["request", "publish"]);
    expect(values).toEqual([
      { id: 7, at: "1970-01-01T00:00:00.000Z" },
      { id: 7, at: "1970-01-01T00:00:00.000Z" },
    ]);
    expect(run.result).toBe("done");
  });

  test("a sleeping run holds no worker and no lease, and goes on when its time has come", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => {
      await ctx.sleep("3h");
      return world.now();
    });
    await suspended(world, started);
    const record = await world.record(started.id);
    expect(record).toMatchObject({ status: "pending", attempt: 0, holder: null, leaseUntil: null });
    const before = world.now();
    const run = await world.ended(started.id, { withinMs: 100 * HOUR_MS });
    expectEnded(run, "completed", 1);
    expect(Number(run.result) - before).toBeGreaterThan(2.9 * HOUR_MS);
    expect(Number(run.result) - before).toBeLessThan(3.1 * HOUR_MS);
    expect(heard(started.member, "run.suspended")).toHaveLength(1);
  });

  test("an attempt that fails keeps the finished steps, and the next one begins after them", async ({
    world,
  }) => {
    const calls: string[] = [];
    const run = await ran(world, async (ctx) => {
      await ctx.step("a", () => void calls.push(`a ${ctx.attempt}`));
      if (ctx.attempt === 1) throw new Error("The service is away.");
      await ctx.step("b", () => void calls.push(`b ${ctx.attempt}`));
    });
    expectEnded(run, "completed", 2);
    expect(calls).toEqual(["a 1", "b 2"]);
  });

  test("a hundred and one waits cost no attempt, no hand-back and no postponement", async ({
    world,
  }) => {
    const run = await ran(world, async (ctx) => {
      for (let n = 0; n < 101; n += 1) await ctx.sleep(1, { name: `s${n}` });
      return "all";
    });
    expectEnded(run, "completed", 1);
  });

  test("a deadline does not move when the handler begins again", async ({ world }) => {
    const waits: number[] = [];
    const started = await begun(world, async (ctx) => {
      const beganAt = world.now();
      const late = ctx.sleep("2h", { name: "late" });
      await ctx.sleep("1h", { name: "soon" });
      await late;
      waits.push(world.now() - beganAt);
    });
    const enqueuedAt = world.now();
    await world.ended(started.id, { withinMs: 100 * HOUR_MS });
    expect(world.now() - enqueuedAt).toBeLessThan(2.1 * HOUR_MS);
    expect(waits).toHaveLength(1);
  });

  test("names that are used again get numbers, and one that is open is refused", async ({
    world,
  }) => {
    const run = await ran(world, async (ctx) => {
      const values = [];
      for (let n = 0; n < 3; n += 1) values.push(await ctx.step("same", () => n));
      const door = ctx.step("open", () => Promise.resolve(1));
      const refused = await outcome(ctx.step("open", () => 2));
      await door;
      return [...values, refused];
    });
    expect(run.result).toEqual([0, 1, 2, "STEP_NAME_OPEN"]);
  });

  test("a signal gives its value and time to a run that waits, however long it has waited", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => {
      const got = await ctx.waitFor<{ url: string }>("export-ready", { key: "e-7" });
      return [got?.value.url, got?.at.toISOString()];
    });
    await suspended(world, started);
    await world.clock.advance(5 * HOUR_MS);
    const sentAt = new Date(world.now()).toISOString();
    await world.clock.until(
      started.member.holdfast.signal("export-ready", { key: "e-7", value: { url: "/7.pdf" } }),
    );
    const run = await world.ended(started.id);
    expectEnded(run, "completed", 1);
    expect(JSON.parse(run.result as string)).toEqual(["/7.pdf", sentAt]);
  });

  test("a signal that was sent before the wait is received, and the key is the run's id by default", async ({
    world,
  }) => {
    const door = new Door();
    const started = await begun(world, async (ctx) => {
      await ctx.step("slow", () => door.opened);
      return (await ctx.waitFor("approved"))?.value;
    });
    await world.reached(started.id, (run) => run.status === "running");
    await world.clock.until(
      started.member.holdfast.signal("approved", { key: started.id, value: "yes" }),
    );
    door.open();
    const run = await world.ended(started.id);
    expect(run.result).toBe('"yes"');
  });

  test("a signal with the run's id is received, also after the database's clock stepped back", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => (await ctx.waitFor("approved"))?.value);
    await suspended(world, started);
    world.databaseAheadMs = -600_000;
    const { id, member } = started;
    await world.clock.until(member.holdfast.signal("approved", { key: id, value: "yes" }));
    expect((await world.ended(id)).result).toBe('"yes"');
  });

  test("a signal without a key is refused in words that show one", async ({ world }) => {
    const { holdfast } = world.member();
    // @ts-expect-error: callers without types forget it
    await expect(holdfast.signal("approved")).rejects.toThrow(/signal\(\)\.key.*order-1042/s);
  });

  test("a wait for a signal gives null after its timeout, and the run may wait again", async ({
    world,
  }) => {
    const started = await begun(world, async (ctx) => {
      const first = await ctx.waitFor("approved", { key: "k", timeout: "1h" });
      const second = await ctx.waitFor("approved", { key: "k", name: "again", timeout: "5h" });
      return [first, second?.value];
    });
    await suspended(world, started, 2);
    await world.clock.until(started.member.holdfast.signal("approved", { key: "k", value: 1 }));
    const run = await world.ended(started.id);
    expect(JSON.parse(run.result as string)).toEqual([null, 1]);
  });

  test("a second wait for a signal that the run has received is refused", async ({ world }) => {
    const { member, id } = await begun(world, async (ctx) => {
      await ctx.waitFor("approved", { key: "k" });
      return outcome(ctx.waitFor("approved", { key: "k", name: "again" }));
    });
    await world.clock.until(member.holdfast.signal("approved", { key: "k" }));
    expect((await world.ended(id)).result).toBe('"SIGNAL_TAKEN"');
  });

  test("signals from before the run do not count, unless it asks for them", async ({ world }) => {
    const first = world.member();
    await first.holdfast.start();
    await world.clock.until(first.holdfast.signal("seen", { key: "k", value: "old" }));
    await world.clock.advance(1_000);
    const { id } = await begun(world, async (ctx) => {
      const fresh = await ctx.waitFor("seen", { key: "k", timeout: "1s" });
      const any = await ctx.waitFor("seen", { key: "k", name: "any", since: "any" });
      return [fresh, any?.value];
    });
    const run = await world.ended(id);
    expect(JSON.parse(run.result as string)).toEqual([null, "old"]);
  });

  test("the same winner comes first in every execution, as in the first one", async ({ world }) => {
    const winners: unknown[] = [];
    const door = new Door();
    const run = await ran(world, async (ctx) => {
      const slow = ctx.step("slow", async () => {
        await door.opened;
        return "slow";
      });
      const deep = (async () => {
        const value = await ctx.step("fast", () => "fast");
        await Promise.resolve();
        await Promise.resolve();
        return value;
      })();
      winners.push(await Promise.race([slow, deep]));
      door.open();
      await slow;
      await ctx.sleep("1m");
    });
    expectEnded(run, "completed", 1);
    expect(winners).toEqual(["fast", "fast"]);
  });

  test("open steps finish before the run is suspended, and a sleep that ends meanwhile ends in place", async ({
    world,
  }) => {
    const door = new Door();
    const order: string[] = [];
    const started = await begun(world, async (ctx) => {
      const work = ctx.step("work", async () => {
        await door.opened;
        order.push("work");
      });
      await ctx.sleep("10s");
      order.push("slept");
      door.open();
      await work;
    });
    const run = await world.ended(started.id);
    expectEnded(run, "completed", 1);
    expect(order).toEqual(["slept", "work"]);
    expect(heard(started.member, "run.suspended")).toEqual([]);
  });

  test("at a suspension the signal aborts, and neither catch nor finally runs", async ({
    world,
  }) => {
    const seen: string[] = [];
    const run = await ran(world, async (ctx) => {
      if (ctx.fence > 0 && seen.length === 0)
        void aborted(ctx.signal).then((reason) => seen.push((reason as { code: string }).code));
      try {
        await ctx.sleep("1h");
        return "slept";
      } catch {
        seen.push("catch");
      } finally {
        seen.push("finally");
      }
      return "never";
    });
    expect(run.result).toBe("slept");
    expect(seen).toEqual(["SUSPENDED", "finally"]);
  });

  test("a handler that returns ends its execution, whatever still waits", async ({ world }) => {
    const { member, id } = await begun(world, async (ctx) => {
      void ctx.sleep("5d");
      await ctx.step("short", () => 1);
      return "over";
    });
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    await world.clock.advance(5_000);
    expect(heard(member, "run.suspended")).toEqual([]);
    expect(await world.rows(`select run from ${world.table("wait")}`)).toEqual([]);
  });

  test("a step's own policy suspends the run between tries, and no attempt is used", async ({
    world,
  }) => {
    const retry: RetryOptions = { attempts: 3, delay: "1h", factor: 1, jitter: 0, max: "1h" };
    let tries = 0;
    const started = await begun(world, async (ctx) =>
      ctx.step(
        "flaky",
        () => {
          tries += 1;
          if (tries < 3) throw new Error("away");
          return ctx.attempt;
        },
        { retry },
      ),
    );
    const run = await world.ended(started.id, { withinMs: 100 * HOUR_MS });
    expectEnded(run, "completed", 1);
    expect([tries, run.result]).toEqual([3, "1"]);
    expect(heard(started.member, "run.suspended")).toHaveLength(2);
  });

  test("a server's Retry-After delays a step no longer than the policy's longest wait", async ({
    world,
  }) => {
    const retry: RetryOptions = { attempts: 2, delay: "1m", max: "10m", jitter: 0 };
    const startedMs: number[] = [];
    const started = await begun(world, (ctx) =>
      ctx.step(
        "limited",
        () => {
          startedMs.push(world.clock.wallMs());
          if (startedMs.length < 2)
            throw Object.assign(new Error("slow down"), {
              status: 429,
              headers: { "retry-after": String(5 * 3600) },
            });
        },
        { retry },
      ),
    );
    await world.ended(started.id, { withinMs: 10 * HOUR_MS });
    const [first = 0, second = 0] = startedMs;
    expect(second - first).toBeGreaterThanOrEqual(10 * 60_000);
    expect(second - first).toBeLessThan(11 * 60_000);
  });

  test("a step whose tries are used up fails the attempt", async ({ world }) => {
    let tries = 0;
    const run = await ran(
      world,
      (ctx) =>
        ctx.step(
          "flaky",
          () => {
            tries += 1;
            throw new Error("away");
          },
          { retry: { attempts: 2, delay: "1m", jitter: 0 } },
        ),
      { retry: { attempts: 1 } },
    );
    expectEnded(run, "failed", 1);
    expect(tries).toBe(2);
  });

  test("a step with tx is stored with what it did, or neither is", async ({ world }) => {
    const effects = await Effects.open(world);
    const run = await ran(world, async (ctx) => {
      const tx = { tx: true } as const;
      const first = await ctx.step("a", effects.write("a", { n: ctx.fence }), tx);
      const failed = await outcome(ctx.step("b", effects.writeAndThrow("b", new Error("no")), tx));
      const refused = await outcome(ctx.step("c", effects.write("c", new Map()), tx));
      await ctx.sleep("1h");
      const retry = { attempts: 2, delay: "1s" } as const;
      const tries: number[] = [];
      const fn = (handle: unknown) => {
        tries.push(tries.length);
        return effects.write("d", ctx.attempt)(handle);
      };
      return [first, failed, refused, await ctx.step("d", fn, { tx: true, retry }), tries.length];
    });
    expectEnded(run, "completed", 1);
    expect(run.result).toEqual([{ n: expect.any(Number) }, "no", "STEP_NOT_JSON", 1, 1]);
    expect(await effects.all()).toEqual(["a", "d"]);
  });

  for (const fault of ["before", "after"] as const) {
    test(`a step with tx whose answer is lost ${fault} it took effect is done once`, async ({
      world,
    }) => {
      const effects = await Effects.open(world);
      const member = world.member();
      const study = member.holdfast.job("study", {
        retry: ONCE_MORE,
        run: (_, ctx) => ctx.step("a", effects.write("a", ctx.attempt), { tx: true }),
      });
      await member.holdfast.start();
      member.faults.fail("commits.step", fault);
      const { id } = await study.enqueue({});
      const attempt = fault === "after" ? 1 : 2;
      const run = await world.ended(id);
      expectEnded(run, "completed", attempt);
      expect(run.result).toBe(`${attempt}`);
      expect(await effects.all()).toEqual(["a"]);
    });
  }

  test("steps and waits inside of a step, an item or a commit are refused", async ({ world }) => {
    const run = await ran(world, async (ctx) => {
      const inStep = await ctx.step("outer", async () => [
        await outcome(ctx.step("inner", () => 1)),
        await outcome(ctx.sleep("1h")),
        await outcome(ctx.waitFor("x")),
      ]);
      const inItem = await ctx.item("item", async () => [
        await outcome(ctx.step("inner", () => 1)),
        await outcome(ctx.sleep("1h")),
      ]);
      return [inStep, inItem];
    });
    expect(run.result).toEqual([
      ["STEP_NESTED", "WAIT_IN_STEP", "WAIT_IN_STEP"],
      ["STEP_NESTED", "WAIT_IN_STEP"],
    ]);
  });

  test("another signal under the same name ends the run, and both are named", async ({ world }) => {
    let signal = "first";
    const started = await begun(world, (ctx) => ctx.waitFor(signal, { key: "k", name: "wait" }));
    await suspended(world, started);
    signal = "second";
    await world.clock.until(started.member.holdfast.signal("first", { key: "k" }));
    const run = await world.ended(started.id);
    expectEnded(run, "failed", 1);
    const error = JSON.parse(run.error as string) as { code: string; message: string };
    expect(error.code).toBe("STEP_CHANGED");
    expect(error.message).toContain('"first"');
    expect(error.message).toContain('"second"');
  });

  test("a cancel ends a sleeping run at once, and its waits go", async ({ world }) => {
    const started = await begun(world, (ctx) => ctx.sleep("5d"));
    await suspended(world, started);
    expect(await world.clock.until(started.member.holdfast.runs.cancel(started.id))).toBe(
      "cancelled",
    );
    await world.clock.advance(5_000);
    const rows = await world.rows(`select run from ${world.table("wait")}`);
    expect(rows).toEqual([]);
  });

  test("a run in its retry delay is not woken by a signal", async ({ world }) => {
    const started = await begun(
      world,
      async (ctx) => {
        const wait = ctx.waitFor("go", { key: "k" });
        await ctx.step("first", () => 1);
        if (ctx.attempt === 1) throw new Error("away");
        return (await wait)?.value;
      },
      { retry: { attempts: 2, delay: "1h", max: "1h", jitter: 0 } },
    );
    await world.reached(started.id, (run) => run.status === "pending" && run.attempt === 1);
    const failedAt = world.now();
    await world.clock.until(started.member.holdfast.signal("go", { key: "k", value: "on" }));
    const run = await world.ended(started.id, { withinMs: 3 * HOUR_MS });
    expect(run.result).toBe('"on"');
    expect(world.now() - failedAt).toBeGreaterThanOrEqual(0.99 * HOUR_MS);
  });

  test("the answer to a suspension that was lost is found again, and the run sleeps once", async ({
    world,
  }) => {
    const member = world.member({ poll: "10m" });
    const study = member.holdfast.job("study", {
      run: async (_, ctx) => {
        await ctx.sleep("1h");
        return "slept";
      },
    });
    await member.holdfast.start();
    member.faults.fail("steps.suspend", "after", { times: 2 });
    const { id } = await study.enqueue({});
    const run = await world.ended(id, { withinMs: 3 * HOUR_MS });
    expectEnded(run, "completed", 1);
    expect(heard(member, "run.lost")).toEqual([]);
    const attempts = await member.holdfast.runs.attempts(id);
    expect(attempts.map(({ end }) => end)).toEqual(["suspended", "completed"]);
  });

  test("a holder that dies after a step leaves it to the next one", async ({ world }) => {
    const calls: string[] = [];
    const first = world.member();
    const door = new Door();
    const job = {
      lease: "5s",
      run: async (_: unknown, ctx: RunContext) => {
        await ctx.step("once", () => void calls.push("once"));
        if (calls.length === 1) {
          calls.push("held");
          await door.opened;
        }
        return "over";
      },
    };
    const study = first.holdfast.job("study", job);
    await first.holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, () => calls.includes("held"));
    first.clock.pause();
    const second = world.member();
    second.holdfast.job("study", job);
    await world.clock.until(second.holdfast.start());
    const run = await world.ended(id);
    expect(run.status).toBe("completed");
    expect(calls).toEqual(["once", "held"]);
    door.open();
  });
}
