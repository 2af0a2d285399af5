// Long runs: their progress, their log lines, and which calls may end them.

import { expect } from "vitest";
import { LeaseLostError } from "../../src/shared/errors.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { aborted, Door, expectEnded, heard, type WorldTest } from "./world.js";

export function longRunSuite(test: WorldTest): void {
  test("progress is visible while the run goes on, with its stages and their times", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    const startedAt = world.now();
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        for (const stage of ["load", "sort", "look", "store"]) {
          await ctx.progress({ stage, total: 3 });
          for (let done = 1; done <= 3; done += 1) {
            void ctx.progress({ done });
            await clock.sleep(10_000);
          }
        }
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(45_000);
    const half = (await holdfast.runs.get(id))?.progress;
    expect(half).toMatchObject({ stage: "sort", done: 2, total: 3, attempt: 1 });
    await world.ended(id);
    const { progress } = (await holdfast.runs.list({ job: "study" })).runs[0] ?? {};
    expect(progress).toMatchObject({ stage: "store", done: 3, total: 3 });
    const times = progress?.stages.map(({ stage, at }) => [stage, Number(at) - startedAt]) ?? [];
    expect(times.map(([stage]) => stage)).toEqual(["load", "sort", "look", "store"]);
    times.forEach(([, sinceMs], place) => {
      expect(Number(sinceMs)).toBeGreaterThanOrEqual(place * 30_000);
      expect(Number(sinceMs)).toBeLessThan(place * 30_000 + 5_000);
    });
  });

  test("a thousand progress reports a second are one write a second, and the last one is stored", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        for (let done = 1; done <= 5_001; done += 1) {
          void ctx.progress({ done });
          if (done % 10 === 0) await clock.sleep(10);
        }
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    expect(faults.of("progress.write").length).toBeGreaterThanOrEqual(5);
    expect(faults.of("progress.write").length).toBeLessThanOrEqual(8);
    expect((await holdfast.runs.get(id))?.progress).toMatchObject({ done: 5_001 });
  });

  test("progress is a heartbeat: the lease of a run that gets on is renewed by it", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const study = holdfast.job("study", {
      lease: "30s",
      run: async (_, ctx) => {
        await clock.sleep(5_000);
        await ctx.progress({ done: 1 });
        await clock.sleep(5_000);
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const before = await world.reached(id, ({ status }) => status === "running");
    const after = await world.reached(id, ({ leaseUntil }) => leaseUntil !== before.leaseUntil);
    expect(faults.of("leases.renew")).toEqual([]);
    expect(Number(after.leaseUntil)).toBeGreaterThanOrEqual(Number(before.leaseUntil) + 5_000);
  });

  test("a holder that lost its run gets an error from its progress, and changes nothing", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const refused = new Door<unknown>();
    one.holdfast.job("study", {
      lease: "3s",
      run: async (_, ctx) => {
        await ctx.progress({ stage: "first", done: 1 });
        await new Promise<void>((resolve) => one.clock.timer(20_000, resolve));
        ctx.log.info("still here");
        await ctx.progress({ stage: "late", done: 9 }).catch(refused.open);
        throw new Error("too late");
      },
    });
    const study = other.holdfast.job("study", {
      lease: "3s",
      run: (_, ctx) => ctx.progress({ stage: "second", done: 2 }).then(() => "second"),
    });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status }) => status === "running");
    await world.clock.advance(500);
    await other.holdfast.start();
    one.clock.pause();
    const ended = await world.ended(id);
    expectEnded(ended, "completed", 2);
    one.clock.resume();
    await world.clock.advance(30_000);
    expect(await refused.opened).toBeInstanceOf(LeaseLostError);
    const run = await other.holdfast.runs.get(id);
    expect(run).toMatchObject({ result: "second", progress: { stage: "second", done: 2 } });
    expect((await other.holdfast.runs.logs(id)).lines).toEqual([]);
  });

  test("an unreachable database delays progress and fails no run", async ({ world }) => {
    const { holdfast, clock, faults } = world.member();
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        faults.fail("progress.write", "before", { times: 3 });
        faults.fail("logs.append", "after", { times: 2 });
        ctx.log.info("one");
        await ctx.progress({ stage: "load" });
        await clock.sleep(10_000);
        ctx.log.info("two");
        await ctx.progress({ done: 7 });
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 1);
    expect((await holdfast.runs.get(id))?.progress).toMatchObject({ stage: "load", done: 7 });
    const { lines } = await holdfast.runs.logs(id);
    expect(lines.map(({ message }) => message)).toEqual(["one", "two"]);
  });

  test("an attempt whose last words cannot be stored is settled all the same", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const study = holdfast.job("study", {
      run: async (_, ctx) => {
        faults.swallow("progress.write");
        faults.fail("logs.append", "before", { times: 99 });
        ctx.log.info("nobody will read this");
        void ctx.progress({ done: 1 });
        return "done";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id, { withinMs: 10_000 });
    expectEnded(run, "completed", 1);
  });

  test("wrong progress is refused by name", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job<object>("study", {
      run: (input, ctx) => ctx.progress(input),
    });
    await holdfast.start();
    for (const [input, field] of [
      [{ done: -1 }, "done"],
      [{ stage: "" }, "stage"],
      [{ percent: 5 }, "percent"],
    ] as const) {
      const { id } = await study.enqueue(input);
      const run = await world.ended(id);
      expectEnded(run, "failed", 1);
      expect(run.error).toContain(`progress().${field}`);
    }
  });

  test("log lines are kept with the run, with level, fields and attempt, over all attempts", async ({
    world,
  }) => {
    const member = world.member();
    const study = member.holdfast.job("study", {
      retry: { attempts: 2 },
      run: (_, ctx) => {
        ctx.log.debug("plain");
        ctx.log.info({ market: "eu", big: 1n }, "looked\u0000 at \ud800");
        ctx.log.warn({ at: { deep: [1] } });
        ctx.log.error(new TypeError("broken"), "it failed");
        if (ctx.attempt === 1) throw new Error("again");
      },
    });
    await member.holdfast.start();
    const { id } = await study.enqueue({}, { tags: ["nightly"] });
    await world.ended(id);
    const page = await member.holdfast.runs.logs(id, { limit: 3 });
    expect(page.lines).toMatchObject([
      { level: "debug", attempt: 1, message: "plain", fields: {} },
      { level: "info", attempt: 1, message: "looked at \ufffd", fields: { market: "eu" } },
      { level: "warn", attempt: 1, message: "", fields: { at: { deep: [1] } } },
    ]);
    const rest = await member.holdfast.runs.logs(id, { after: page.cursor });
    expect(rest.lines.map(({ attempt, level }) => [attempt, level])).toEqual([
      [1, "error"],
      [2, "debug"],
      [2, "info"],
      [2, "warn"],
      [2, "error"],
    ]);
    const broken = {
      message: "it failed",
      fields: { err: { name: "TypeError", message: "broken" } },
    };
    expect(rest.lines[0]).toMatchObject(broken);
    const end = await member.holdfast.runs.logs(id, { after: rest.cursor });
    expect(end).toEqual({ lines: [], cursor: rest.cursor, nextCursor: null });
    // The logger gets the same lines, with what names the run.
    expect(member.said).toContainEqual({ run: id, job: "study", attempt: 1, tags: ["nightly"] });
  });

  test("lines of many runs are one statement a second, and runs that log nothing ask for none", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const silent = holdfast.job("silent", { run: () => clock.sleep(5_000) });
    const chatty = holdfast.job("chatty", {
      run: async (_, ctx) => {
        for (let line = 1; line <= 100; line += 1) {
          ctx.log.info({ line }, "on my way");
          await clock.sleep(100);
        }
      },
    });
    await holdfast.start();
    await world.ended((await silent.enqueue({})).id);
    expect(faults.of("logs.append")).toEqual([]);
    expect(faults.of("progress.write")).toEqual([]);
    const runs = await chatty.enqueueMany([{}, {}, {}, {}]);
    for (const { id } of runs) {
      await world.ended(id);
      expect((await holdfast.runs.logs(id)).lines).toHaveLength(100);
    }
    expect(faults.of("logs.append").length).toBeLessThanOrEqual(16);
  });

  test("too many lines are counted, not kept, and a last line says how many", async ({ world }) => {
    const { holdfast, clock } = world.member({ logs: { max: 10 } });
    const run = async (_: unknown, ctx: RunContext) => {
      for (let line = 1; line <= 25; line += 1) {
        ctx.log.info(`line ${line}`);
        await clock.sleep(200);
      }
    };
    const few = holdfast.job("few", { run });
    const more = holdfast.job("more", { run, logs: { max: 20 } });
    const none = holdfast.job("none", { run, logs: { keep: "none" } });
    await holdfast.start();
    for (const [job, kept] of [
      [few, 10],
      [more, 20],
    ] as const) {
      const { id } = await job.enqueue({});
      await world.ended(id);
      const { lines } = await holdfast.runs.logs(id);
      expect(lines).toHaveLength(kept + 1);
      expect(lines.at(-1)).toMatchObject({ level: "warn", fields: { dropped: 25 - kept } });
      expect(lines.at(-1)?.message).toContain(`${25 - kept} more lines were not kept`);
    }
    const { id } = await none.enqueue({});
    await world.ended(id);
    expect((await holdfast.runs.logs(id)).lines).toEqual([]);
  });

  test("of huge lines as much is kept as fits, and only warnings where that is wanted", async ({
    world,
  }) => {
    const { holdfast } = world.member({ logs: { keep: "warn" } });
    const study = holdfast.job("study", {
      run: (_, ctx) => {
        ctx.log.info("not this one");
        for (let line = 0; line < 200; line += 1)
          ctx.log.warn({ text: "x".repeat(50_000) }, "y".repeat(50_000));
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    const { lines } = await holdfast.runs.logs(id);
    expect(lines.length).toBeLessThan(60);
    expect(lines.every(({ level }) => level === "warn")).toBe(true);
    expect(lines[0]?.message.length).toBeLessThanOrEqual(8_192);
    const dropped = Number(lines.at(-1)?.fields.dropped);
    expect(dropped + lines.length - 1).toBe(200);
  });

  test("a logger that throws takes no run down", async ({ world }) => {
    const fail = () => {
      throw new Error("the disk is full");
    };
    const logger = { debug: fail, info: fail, warn: fail, error: fail };
    const { holdfast } = world.member({ logger });
    const study = holdfast.job("study", { run: (_, ctx) => ctx.log.info("kept") });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 1);
    expect((await holdfast.runs.logs(id)).lines).toMatchObject([{ message: "kept" }]);
  });

  test("a cancel whose holder stands still is enforced by another instance after 30 s", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    one.holdfast.job("study", { lease: "3m", run: (_, { signal }) => aborted(signal) });
    await one.holdfast.start();
    await other.holdfast.start();
    const { id } = await one.holdfast.enqueue("study", {});
    await world.reached(id, ({ status }) => status === "running");
    one.clock.pause();
    const askedAt = world.now();
    expect(await other.holdfast.runs.cancel(id)).toBe("requested");
    const run = await world.ended(id, { withinMs: 60_000 });
    expect(run.status).toBe("cancelled");
    expect(Number(run.finishedAt)).toBeGreaterThanOrEqual(askedAt + 30_000);
    expect(Number(run.finishedAt)).toBeLessThanOrEqual(askedAt + 32_000);
    one.clock.resume();
    await world.clock.advance(61_000);
    expect(await world.status(id)).toBe("cancelled");
    expect(heard(one, "run.lost")).toMatchObject([{ run: id }]);
  });
}
