// The test kit, seen as its users see it.

import { AssertionError } from "node:assert";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Holdfast } from "../holdfast.js";
import { ConfigurationError, RetryLater } from "../shared/errors.js";
import { createTestHoldfast, type TestKit, type TestOptions } from "./index.js";

const kits: TestKit<unknown>[] = [];
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.close();
});

async function newKit<App>(options: TestOptions<App>): Promise<TestKit<App>> {
  const kit = await createTestHoldfast(options);
  kits.push(kit as TestKit<unknown>);
  return kit;
}

function hourly(holdfast: Holdfast) {
  const sync = holdfast.job("sync", { run: async (_input: unknown) => "done" });
  holdfast.schedule("hourly", sync, { cron: "0 * * * *" });
  return { sync };
}

describe("runs that make runs", () => {
  test("a batch, its children and its follow-up run execute as in production", async () => {
    const kit = await newKit({
      setup(holdfast) {
        const child = holdfast.job("child", { run: (n: number) => n * 2 });
        const after = holdfast.job("after", { run: (counts: object) => counts });
        const parent = holdfast.job("parent", {
          run: (_input: unknown, ctx) =>
            ctx.enqueueBatch(
              [1, 2, 3].map((input) => ({ job: child, input })),
              { then: after },
            ),
        });
        return { parent };
      },
    });
    await kit.start();
    const { id } = await kit.app.parent.enqueue(null);
    await kit.advance("10s");
    expect([...(await kit.enqueued("child"))].sort()).toEqual([1, 2, 3]);
    expect(await kit.enqueued("after")).toEqual([
      { scheduled: 3, errors: 0, completed: 3, failed: 0, cancelled: 0 },
    ]);
    expect((await kit.holdfast.runs.get(id))?.result).toEqual({ scheduled: 3, errors: [] });
  });
});

describe("time", () => {
  test("advancing fires every tick that falls due, the last instant included", async () => {
    const kit = await newKit({ now: "2026-03-01T00:00:00Z", setup: hourly });
    await kit.start();
    await kit.advance("3h");
    await kit.assertRanAt("hourly", [
      "2026-03-01T01:00:00Z",
      "2026-03-01T02:00:00Z",
      "2026-03-01T03:00:00Z",
    ]);
    expect(kit.now()).toEqual(new Date("2026-03-01T03:00:00Z"));
    expect((await kit.ticks("hourly")).map(({ outcome, lateMs }) => ({ outcome, lateMs }))).toEqual(
      Array.from({ length: 3 }, () => ({ outcome: "fired", lateMs: 0 })),
    );
  });

  test("a schedule of every second is exact too", async () => {
    const kit = await newKit({
      now: "2026-03-01T00:00:00Z",
      setup(holdfast) {
        const job = holdfast.job("second", { run: async () => null });
        holdfast.schedule("seconds", job, { cron: "* * * * * *", overlap: "allow" });
      },
    });
    await kit.start();
    await kit.advance("1m");
    const expected = Array.from(
      { length: 60 },
      (_, at) => new Date(Date.UTC(2026, 2, 1, 0, 0, at + 1)),
    );
    expect(await kit.ranAt("seconds")).toEqual(expected);
  });

  test("the same seed is the same test, ids included", async () => {
    const story = async (seed: number) => {
      const kit = await newKit({ seed, setup: hourly });
      await kit.start();
      await kit.advance("1d");
      return (await kit.runs()).map(({ id, startedAt }) => ({ id, startedAt }));
    };
    const first = await story(1);
    expect(first).toHaveLength(24);
    expect(await story(1)).toEqual(first);
    expect((await story(2))[0]?.id).not.toBe(first[0]?.id);
  });

  test("a framework's fake clock can follow, and its fake timers do not stop the kit", async () => {
    vi.useFakeTimers();
    try {
      const kit = await newKit({
        now: "2026-03-01T00:00:00Z",
        onTime: (now) => vi.setSystemTime(now),
        setup(holdfast) {
          const job = holdfast.job("stamp", { run: async () => new Date().toISOString() });
          holdfast.schedule("daily", job, { cron: "0 5 * * *" });
        },
      });
      expect(new Date()).toEqual(kit.now());
      await kit.start();
      await kit.advance("1d");
      expect((await kit.runs()).map(({ result }) => result)).toEqual(["2026-03-01T05:00:00.000Z"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("retries, RetryLater and delays are waited for until nothing is left", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("flaky", {
          retry: { attempts: 3, delay: "1m", factor: 2, max: "1h", jitter: 0 },
          async run(_input: unknown, ctx) {
            if (kit.calls("flaky").length === 1) throw new RetryLater({ delay: "1h" });
            if (ctx.attempt < 3) throw new Error("not yet");
          },
        }),
    });
    await kit.start();
    await kit.app.enqueue(null, { delay: "10m" });
    const from = kit.now().getTime();
    await kit.untilIdle();
    const minutes = kit
      .calls("flaky")
      .map(({ startedAt }) => (startedAt.getTime() - from) / 60_000);
    expect(minutes).toEqual([10, 70, 71, 73]);
    await kit.assertNoFailures();
  });

  test("runs that are still live after the limit are listed", async () => {
    const kit = await newKit({ setup: hourly });
    await kit.start();
    await kit.app.sync.enqueue({ n: 1 }, { delay: "3d" });
    await expect(kit.untilIdle({ within: "1d" })).rejects.toThrow(/sync \{ n: 1 \}.*pending/);
  });

  test("a second call that moves time at once is refused", async () => {
    const kit = await newKit({ setup: hourly });
    const first = kit.advance("1h");
    await expect(kit.advance("1h")).rejects.toThrow(/already moving/);
    await first;
  });
});

describe("durable waits", () => {
  /** A person approves the order; without one it is refused after a day, unless it is to wait for ever. */
  function orders(holdfast: Holdfast) {
    const effects: string[] = [];
    const bill = holdfast.job("bill", { run: (order: string) => `bill of ${order}` });
    const order = holdfast.job("order", {
      async run({ id, timeout }: { id: string; timeout?: string }, ctx) {
        await ctx.step("reserve", () => void effects.push(`reserve ${id}`));
        await ctx.sleep("3d");
        const approved = await ctx.waitFor("approved", {
          key: id,
          ...(timeout === undefined ? {} : { timeout: timeout as "1d" }),
        });
        if (approved === null) return "refused";
        return ctx.call(bill, `${id} by ${(approved.value as { by: string }).by}`);
      },
    });
    return { order, effects };
  }

  test("sleeps pass in virtual time, and a step is done once although its handler begins again", async () => {
    const kit = await newKit({ setup: orders });
    await kit.start();
    const { id } = await kit.app.order.enqueue({ id: "7", timeout: "1d" });
    const from = kit.now().getTime();
    expect(await kit.untilIdle({ within: "7d" })).toEqual({ waiting: [] });
    expect((kit.now().getTime() - from) / 86_400_000).toBeCloseTo(4, 3);
    expect(await kit.holdfast.runs.get(id)).toMatchObject({ status: "completed", attempt: 1 });
    expect((await kit.holdfast.runs.get(id))?.result).toBe("refused");
    expect(kit.app.effects).toEqual(["reserve 7"]);
    expect(kit.calls("order").map(({ outcome }) => outcome)).toEqual([
      ...["suspended", "suspended", "returned"],
    ]);
  });

  test("untilIdle stops at waits that only a signal ends, and names those runs", async () => {
    const kit = await newKit({ setup: orders });
    await kit.start();
    const { id } = await kit.app.order.enqueue({ id: "8" });
    await kit.app.order.enqueue({ id: "9", timeout: "1h" });
    const { waiting } = await kit.untilIdle({ within: "7d" });
    expect(waiting).toMatchObject([
      { id, job: "order", waitingFor: { reason: "signal", signal: "approved", key: "8" } },
    ]);
    expect(await kit.signal("approved", { key: "8", value: { by: "Ada" } })).toEqual({
      repeated: false,
    });
    expect(await kit.untilIdle()).toEqual({ waiting: [] });
    expect((await kit.holdfast.runs.get(id))?.result).toBe("bill of 8 by Ada");
    expect(kit.app.effects).toEqual(["reserve 8", "reserve 9"]);
  });

  test("a run that waits for a called run which waits for a signal is named with it", async () => {
    const kit = await newKit({
      setup(holdfast) {
        const ask = holdfast.job("ask", { run: (_: null, ctx) => ctx.waitFor("answer") });
        return holdfast.job("caller", { run: (_: null, ctx) => ctx.call(ask, null) });
      },
    });
    await kit.start();
    await kit.app.enqueue(null);
    const { waiting } = await kit.untilIdle();
    expect(waiting.map(({ job, waitingFor }) => [job, waitingFor?.reason])).toEqual([
      ["caller", "run"],
      ["ask", "signal"],
    ]);
    await kit.signal("answer", { key: waiting[1]?.id as string, value: 42 });
    expect(await kit.untilIdle()).toEqual({ waiting: [] });
    await kit.assertNoFailures();
  });

  test("a signal reaches a run that waits, and one that comes to wait later", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("ask", {
          run: async (key: string, ctx) =>
            (await ctx.waitFor("answer", { key, since: "any" }))?.value,
        }),
    });
    await kit.start();
    const early = await kit.app.enqueue("a");
    await kit.advance("1s");
    await kit.signal("answer", { key: "a", value: 1 });
    await kit.advance("1s");
    const late = await kit.app.enqueue("a");
    await kit.advance("1s");
    for (const { id } of [early, late])
      expect(await kit.holdfast.runs.get(id)).toMatchObject({ status: "completed", result: 1 });
    expect(await kit.signal("answer", { key: "a", value: 1 })).toEqual({ repeated: true });
  });

  test("a sleeping run outlives a killed process, and wakes in time", async () => {
    const kit = await newKit({ setup: orders });
    await kit.start();
    const { id } = await kit.app.order.enqueue({ id: "7", timeout: "1d" });
    await kit.advance("1h");
    await kit.restart({ isKilled: true, downFor: "1d" });
    await kit.untilIdle({ within: "7d" });
    expect((await kit.holdfast.runs.get(id))?.result).toBe("refused");
    expect(kit.app.effects).toEqual([]);
    expect(kit.calls("order")).toHaveLength(3);
  });

  test("a wait that outlasts the limit is named with its reason", async () => {
    const kit = await newKit({ setup: orders });
    await kit.start();
    await kit.app.order.enqueue({ id: "7" });
    await expect(kit.untilIdle({ within: "1d" })).rejects.toThrow(
      /order .*waits in a sleep,.* until/,
    );
  });
});

describe("handlers", () => {
  test("time stands still while a handler does real work", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("file", {
          async run(_input: unknown) {
            const { readFile } = await import("node:fs/promises");
            return (await readFile(import.meta.filename, "utf8")).length > 0;
          },
        }),
    });
    await kit.start();
    await kit.app.enqueue(null);
    await kit.advance("1h");
    const [call] = kit.calls("file");
    expect(call).toMatchObject({ outcome: "returned", result: true });
    expect(call?.endedAt).toEqual(call?.startedAt);
  });

  test("a handler that sleeps takes that long, and keeps its lease", async () => {
    const kit = await newKit({
      setup: (holdfast, { sleep }) =>
        holdfast.job("slow", { lease: "30s", run: async (_input: unknown) => sleep("10m") }),
    });
    await kit.start();
    const { id } = await kit.app.enqueue(null);
    const run = await kit.until(kit.holdfast.runs.wait(id));
    expect(run).toMatchObject({ status: "completed", attempt: 1, durationMs: 600_000 });
  });

  test("one that hangs runs into its time-out", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("stuck", {
          timeout: "5m",
          retry: { attempts: 1 },
          run: async (_: unknown) => null,
        }),
    });
    kit.replace("stuck", kit.hang);
    await kit.start();
    const { id } = await kit.app.enqueue(null);
    const run = await kit.until(kit.holdfast.runs.wait(id));
    expect(run).toMatchObject({
      status: "failed",
      error: { code: "TIMEOUT" },
      durationMs: 300_000,
    });
  });

  test("one that waits for nothing real fails the test with advice, and closing still works", async () => {
    const kit = await newKit({
      patience: "50ms",
      setup: (holdfast) =>
        holdfast.job("endless", { run: (_: unknown) => new Promise(() => undefined) }),
    });
    await kit.start();
    await kit.app.enqueue(null);
    await expect(kit.advance("1h")).rejects.toThrow(/handler of "endless".*kit\.sleep\(\)/);
  });

  test("a replaced handler is called instead, and can be put back", async () => {
    const kit = await newKit({ setup: hourly });
    await kit.start();
    kit.replace(kit.app.sync, async () => "fake");
    await kit.advance("1h");
    kit.restore("sync");
    await kit.advance("1h");
    expect(kit.calls("sync").map(({ result, mode }) => ({ result, mode }))).toEqual([
      { result: "fake", mode: "scheduled" },
      { result: "done", mode: "scheduled" },
    ]);
    expect(() => kit.replace("snyc", kit.hang)).toThrow(/Did you mean "sync"/);
  });

  test("lines of handlers are kept, and nothing is printed", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("talk", { run: async (_: unknown, ctx) => ctx.log.info({ n: 1 }, "hello") }),
    });
    await kit.start();
    await kit.app.enqueue(null);
    await kit.untilIdle();
    expect(kit.log).toMatchObject([
      { level: "info", message: "hello", fields: { n: 1, job: "talk" } },
    ]);
  });
});

describe("restarts", () => {
  test("an outage is seen as one: the newest tick runs late, the others are missed", async () => {
    const kit = await newKit({ now: "2026-03-01T00:30:00Z", setup: hourly });
    await kit.start();
    await kit.restart({ downFor: "5h" });
    await kit.advance("1m");
    expect(await kit.ranAt("hourly")).toEqual([new Date("2026-03-01T05:30:00Z")]);
    const ticks = await kit.ticks("hourly");
    expect(ticks.map(({ outcome, reason, count }) => ({ outcome, reason, count }))).toEqual([
      { outcome: "missed", reason: "nobody", count: 4 },
      { outcome: "fired", reason: "late", count: 1 },
    ]);
  });

  test("a killed process loses its run to the next one when the lease has run out", async () => {
    const kit = await newKit({ setup: hourly });
    kit.replace("sync", kit.hang);
    await kit.start();
    const { id } = await kit.app.sync.enqueue(null);
    await kit.advance("5s");
    kit.restore("sync");
    await kit.restart({ isKilled: true });
    const run = await kit.until(kit.holdfast.runs.wait(id), { within: "10m" });
    expect(run).toMatchObject({ status: "completed", attempt: 2 });
    const [, second] = kit.calls("sync");
    const lateMs = Number(second?.startedAt) - Number(run.createdAt);
    // Lease 30 s, renewed once in between at most, plus a poll.
    expect(lateMs).toBeGreaterThanOrEqual(30_000);
    expect(lateMs).toBeLessThanOrEqual(37_000);
  });

  test("stored data can be read after a stop", async () => {
    const kit = await newKit({ setup: hourly });
    await kit.start();
    await kit.advance("2h");
    expect(await kit.stop()).toEqual({ finished: 0, handedBack: 0, abandoned: 0 });
    expect(await kit.runs({ schedule: "hourly", status: "completed" })).toHaveLength(2);
  });
});

describe("an application that makes its own instance", () => {
  test("lives in the test when it gets the kit's class, whatever database it names", async () => {
    const kit = await newKit({});
    const holdfast = new kit.Holdfast({ database: "postgres://nobody@127.0.0.1:1/none" });
    expect(holdfast).toBeInstanceOf(Holdfast);
    hourly(holdfast);
    await holdfast.start();
    await kit.advance("1h");
    expect(kit.calls("sync")).toHaveLength(1);
    expect(kit.holdfast).toBe(holdfast);
  });
});

describe("assertions", () => {
  test("an enqueue is found by part of its input, or the message shows what there was", async () => {
    const kit = await newKit({ setup: hourly });
    await kit.app.sync.enqueue({ to: "ada", deep: { a: 1, b: 2 } });
    await kit.assertEnqueued("sync");
    await kit.assertEnqueued(kit.app.sync, { deep: { b: 2 } });
    await kit.assertEnqueued("sync", { to: "bob" }, { times: 0 });
    const failure = kit.assertEnqueued("sync", { to: "bob" });
    await expect(failure).rejects.toBeInstanceOf(AssertionError);
    await expect(failure).rejects.toThrow(/with \{ to: 'bob' \}.*there were 0[\s\S]*to: 'ada'/);
  });

  test("a schedule that ran at other times says when, and why not", async () => {
    const kit = await newKit({ now: "2026-03-01T00:00:00Z", setup: hourly });
    await kit.start();
    await kit.advance("1h");
    const failure = kit.assertRanAt("hourly", ["2026-03-01T01:30:00Z"]);
    await expect(failure).rejects.toBeInstanceOf(AssertionError);
    await expect(failure).rejects.toThrow(
      /also ran at:\s+2026-03-01T01:00.*did not run at:\s+2026-03-01T01:30/s,
    );
    expect(await kit.explain("hourly", "2026-03-01T01:00:00Z")).toMatchObject({
      schedule: "hourly",
    });
  });

  test("failures are listed with their errors", async () => {
    const kit = await newKit({
      setup: (holdfast) =>
        holdfast.job("bad", {
          retry: { attempts: 1 },
          run: async (_: unknown) => Promise.reject(new Error("out of paper")),
        }),
    });
    await kit.start();
    await kit.app.enqueue({ page: 3 });
    await kit.untilIdle();
    await expect(kit.assertNoFailures()).rejects.toThrow(/bad \{ page: 3 \}.*out of paper/);
  });
});

test("a run that is enqueued in a transaction on the test's database runs if that commits", async () => {
  const kit = await newKit({
    setup: (holdfast) => holdfast.job("mail", { run: (input: { to: string }) => input.to }),
  });
  const { database } = kit;
  database.exec("create table orders (id text)");
  await kit.start();
  const order = (id: string, end: "commit" | "rollback") => {
    database.exec("begin immediate");
    database.exec(`insert into orders values ('${id}')`);
    kit.app.enqueueSync({ to: id }, { tx: database });
    database.exec(end);
  };
  order("kept", "commit");
  order("undone", "rollback");
  await kit.untilIdle();
  expect(kit.calls("mail").map(({ input }) => input)).toEqual([{ to: "kept" }]);
  expect(database.prepare("select id from orders").all({})).toEqual([{ id: "kept" }]);
});

test("options that are not there are refused by name", async () => {
  await expect(createTestHoldfast({ nwo: "2026" } as never)).rejects.toThrow(ConfigurationError);
  await expect(createTestHoldfast({ now: "tomorrow" })).rejects.toThrow(/now/);
});

describe("stored data of handlers", () => {
  test("items and commits outlive a killed process, and are done once", async () => {
    const looks: string[] = [];
    const kit = await newKit({
      setup(holdfast, { sleep }) {
        return holdfast.job("study", {
          lease: "30s",
          async run(markets: string[], ctx) {
            for (const market of markets) {
              await ctx.item(market, async () => {
                looks.push(market);
                if (ctx.attempt === 1 && market === "west") await sleep("1h");
                return { market };
              });
            }
            await ctx.commit((tx) => {
              tx.exec("create table if not exists report (run text)");
              tx.prepare("insert into report values (:run)").run({ run: ctx.runId });
              return tx.prepare("select count(*) as count from report").get({});
            });
          },
        });
      },
    });
    await kit.start();
    const { id } = await kit.app.enqueue(["east", "west", "north"]);
    await kit.advance("10s");
    await kit.restart({ isKilled: true });
    await kit.advance("5m");
    const run = await kit.holdfast.runs.get(id);
    expect(run).toMatchObject({
      status: "completed",
      attempt: 2,
      result: { count: 1 },
      items: { total: 3, byOutcome: { ok: 3 } },
    });
    expect(looks).toEqual(["east", "west", "west", "north"]);
    expect((await kit.holdfast.runs.items(id)).items.map(({ key }) => key)).toEqual([
      "east",
      "north",
      "west",
    ]);
  });
});
