// Tests runs whose handler throws: retried after the policy's waits, postponed, or failed.

import { expect } from "vitest";
import { z } from "zod";
import { PermanentError, RetryLater } from "../../src/shared/errors.js";
import { expectEnded, heard, type WorldTest } from "./world.js";

const TEN_TWENTY_FORTY = { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 } as const;

export function retrySuite(test: WorldTest): void {
  test("a run that keeps failing waits 10, 20 and 40 s and then fails", async ({ world }) => {
    const { holdfast } = world.member();
    const startedAt: number[] = [];
    const study = holdfast.job("study", {
      retry: TEN_TWENTY_FORTY,
      run: () => {
        startedAt.push(world.clock.wallMs());
        throw new Error(`try ${startedAt.length}`);
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "failed", 4);
    const waits = startedAt.map((at, index) => at - (startedAt[index - 1] ?? at));
    expect(waits).toEqual([0, 10_000, 20_000, 40_000]);
    const attempts = await holdfast.runs.attempts(id);
    expect(attempts.map(({ attempt, end, error }) => [attempt, end, error?.message])).toEqual([
      [1, "failed", "try 1"],
      [2, "failed", "try 2"],
      [3, "failed", "try 3"],
      [4, "failed", "try 4"],
    ]);
  });

  test("a wait that is shorter than a poll is kept as well", async ({ world }) => {
    const { holdfast } = world.member();
    const startedAt: number[] = [];
    const study = holdfast.job("study", {
      retry: { attempts: 3, delay: 100, factor: 2, jitter: 0 },
      run: () => {
        startedAt.push(world.clock.wallMs());
        throw new Error("again");
      },
    });
    await holdfast.start();
    await world.clock.advance(10_000);
    const { id } = await study.enqueue({});
    await world.ended(id);
    const waits = startedAt.map((at, index) => at - (startedAt[index - 1] ?? at));
    expect(waits.slice(1)).toEqual([100, 200]);
  });

  test("a run that succeeds in the end is completed and shows no error", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      retry: TEN_TWENTY_FORTY,
      run: (_, { attempt }) => {
        if (attempt < 3) throw new Error("not yet");
        return attempt;
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 3);
    expect(await holdfast.runs.get(id)).toMatchObject({ result: 3, error: null });
  });

  test("500 runs that failed together under the default policy are spread over seconds", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      run: () => {
        throw new Error("the service is down");
      },
    });
    await holdfast.start();
    await study.enqueueMany(Array.from({ length: 500 }, () => ({})));
    await world.clock.advance(2_000);
    const { runs } = await holdfast.runs.list({ job: "study", limit: 500 });
    const dueAt = runs.map((run) => run.dueAt.getTime()).sort((a, b) => a - b);
    expect(runs.every(({ status }) => status === "pending")).toBe(true);
    expect((dueAt.at(-1) ?? 0) - (dueAt[0] ?? 0)).toBeGreaterThan(4_500);
    const bySecond = new Map<number, number>();
    for (const at of dueAt) {
      const second = Math.floor(at / 1_000);
      bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
    }
    expect(Math.max(...bySecond.values())).toBeLessThan(150);
  });

  test("jitter only ever shortens a wait", async ({ world }) => {
    const { holdfast } = world.member();
    const startedAt = new Map<string, number[]>();
    const study = holdfast.job("study", {
      retry: { attempts: 2, delay: "10s", jitter: 0.5 },
      run: (_, { runId }) => {
        startedAt.set(runId, [...(startedAt.get(runId) ?? []), world.clock.wallMs()]);
        throw new Error("again");
      },
    });
    await holdfast.start();
    const enqueued = await study.enqueueMany(Array.from({ length: 20 }, () => ({})));
    for (const { id } of enqueued) await world.ended(id);
    const waits = [...startedAt.values()].map(([first = 0, second = 0]) => second - first);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(10_000);
    expect(new Set(waits).size).toBeGreaterThan(10);
  });

  test("a permanent error ends the run at once", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      run: () => {
        throw new PermanentError("no such market", { code: "NO_MARKET" });
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.rest();
    expectEnded(await world.record(id), "failed", 1);
    expect((await holdfast.runs.get(id))?.error).toMatchObject({
      code: "NO_MARKET",
      message: "no such market",
    });
  });

  test("the response of a server decides whether and when a run is retried", async ({ world }) => {
    const { holdfast } = world.member();
    const startedAt: number[] = [];
    const call = holdfast.job<number>("call", {
      retry: { attempts: 2, delay: "1s", jitter: 0 },
      run: (status) => {
        startedAt.push(world.clock.wallMs());
        throw Object.assign(new Error(`HTTP ${status}`), {
          status,
          headers: { "retry-after": "120" },
        });
      },
    });
    await holdfast.start();
    const refused = await call.enqueue(404);
    expectEnded(await world.ended(refused.id), "failed", 1);
    startedAt.length = 0;
    const busy = await call.enqueue(503);
    expectEnded(await world.ended(busy.id), "failed", 2);
    expect((startedAt[1] as number) - (startedAt[0] as number)).toBe(120_000);
  });

  test("Retry-After is capped by the longest wait, unless the job honours it beyond", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const startedAt = new Map<string, number[]>();
    const call = (name: string, honourRetryAfter: "up-to-max" | "beyond-max") =>
      holdfast.job(name, {
        retry: { attempts: 2, delay: "10s", max: "60s", jitter: 0, honourRetryAfter },
        run: () => {
          startedAt.set(name, [...(startedAt.get(name) ?? []), world.clock.wallMs()]);
          const headers = { "retry-after": "300" };
          throw Object.assign(new Error("HTTP 429"), { status: 429, headers });
        },
      });
    const jobs = [call("capped", "up-to-max"), call("patient", "beyond-max")];
    await holdfast.start();
    for (const job of jobs) await world.ended((await job.enqueue({})).id);
    const waits = [...startedAt.values()].map(([first = 0, second = 0]) => second - first);
    expect(waits).toEqual([60_000, 300_000]);
    expect(() =>
      holdfast.job("wrong", { retry: { honourRetryAfter: true as never }, run: () => 1 }),
    ).toThrow('retry.honourRetryAfter: must be "up-to-max" or "beyond-max"');
  });

  test("a handler may put its run off by a delay or to an instant, without burning an attempt", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const started: [atMs: number, attempt: number][] = [];
    const startAt = world.clock.wallMs();
    const study = holdfast.job("study", {
      retry: { attempts: 1 },
      run: (_, { attempt }) => {
        started.push([world.clock.wallMs() - startAt, attempt]);
        if (started.length === 1) throw new RetryLater({ delay: "30s" });
        if (started.length === 2) throw new RetryLater(new Date(startAt + 100_000));
        if (started.length === 3) throw new RetryLater(new Date(startAt));
        return "done";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 1);
    expect(started).toEqual([
      [0, 1],
      [30_000, 1],
      [100_000, 1],
      [100_000, 1],
    ]);
    const attempts = await holdfast.runs.attempts(id);
    expect(attempts.map(({ end }) => end)).toEqual(["later", "later", "later", "completed"]);
  });

  test("an input that no longer fits the schema fails for good", async ({ world }) => {
    const caller = world.member().holdfast;
    const { id } = await caller.job("study", {}).enqueue({ market: 7 });
    const { holdfast } = world.member();
    let startCount = 0;
    holdfast.job("study", {
      input: z.object({ market: z.string() }),
      run: () => {
        startCount += 1;
      },
    });
    await holdfast.start();
    const run = await world.ended(id);
    expectEnded(run, "failed", 1);
    expect(startCount).toBe(0);
    expect(JSON.parse(run.error as string)).toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("market"),
    });
  });

  test("a handler gets the output of the schema for the stored input", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      input: z.object({
        day: z.string().transform((day) => new Date(day)),
        size: z.number().default(3),
      }),
      run: ({ day, size }) => `${day.getUTCFullYear()} ${size}`,
    });
    await holdfast.start();
    const { id } = await study.enqueue({ day: "2026-03-01" });
    await world.ended(id);
    expect(await holdfast.runs.get(id)).toMatchObject({
      input: { day: "2026-03-01" },
      result: "2026 3",
    });
  });

  test("an input of an earlier version is brought up to date before it is checked", async ({
    world,
  }) => {
    const caller = world.member().holdfast;
    const old = await caller.job("study", { version: 1 }).enqueue({ name: "eu" });
    const { holdfast } = world.member();
    const asked: unknown[] = [];
    const study = holdfast.job("study", {
      version: 3,
      input: z.object({ market: z.string() }),
      upcast: (input, version) => {
        asked.push(version);
        return { market: (input as { name: string }).name };
      },
      run: ({ market }) => market,
    });
    await holdfast.start();
    const fresh = await study.enqueue({ market: "us" });
    expect(await world.ended(old.id)).toMatchObject({ result: '"eu"' });
    expect(await world.ended(fresh.id)).toMatchObject({ result: '"us"' });
    expect(asked).toEqual([1]);
  });

  test("every end of an attempt is said once", async ({ world }) => {
    const member = world.member();
    const { holdfast } = member;
    const study = holdfast.job("study", {
      retry: { attempts: 2, delay: "1s", jitter: 0 },
      run: () => {
        throw new Error("no");
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    expect(heard(member, "run.started").map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(heard(member, "run.retrying")).toMatchObject([{ run: id, attempt: 1, delayMs: 1_000 }]);
    expect(heard(member, "run.failed")).toMatchObject([{ run: id, attempt: 2 }]);
  });
}
