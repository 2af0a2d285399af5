// Runs that are ended from outside: by their timeout, by a cancel, by an operator.

import { expect } from "vitest";
import { CancelledError, TimeoutError, WaitTimeoutError } from "../../src/shared/errors.js";
import { aborted, Door, expectEnded, heard, obedient, type WorldTest } from "./world.js";

const ONE_MORE = { attempts: 2, delay: "10s", jitter: 0 } as const;

export function endSuite(test: WorldTest): void {
  test("a run over its time limit is aborted, and is retried by its policy", async ({ world }) => {
    const { holdfast } = world.member();
    const reasons: [unknown, number][] = [];
    const startAt = world.clock.wallMs();
    const study = holdfast.job("study", {
      timeout: "1m",
      retry: ONE_MORE,
      run: async (_, { signal }) => {
        const reason = await aborted(signal);
        reasons.push([reason, world.clock.wallMs() - startAt]);
        throw reason;
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "failed", 2);
    expect(reasons).toEqual([
      [expect.any(TimeoutError), 60_000],
      [expect.any(TimeoutError), 130_000],
    ]);
    expect(JSON.parse(run.error as string)).toMatchObject({ code: "TIMEOUT" });
    expect((await holdfast.runs.attempts(id)).map(({ end }) => end)).toEqual(["timeout", "failed"]);
  });

  test("a run that does not stop when its time is over is ended after 5 s more", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    const startedAt: number[] = [];
    const study = holdfast.job("study", {
      timeout: "1m",
      retry: ONE_MORE,
      run: async (_, { attempt }) => {
        startedAt.push(world.clock.wallMs());
        if (attempt === 1) await clock.sleep(600_000);
        return `try ${attempt}`;
      },
    });
    await holdfast.start({ worker: { concurrency: 1 } });
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect((startedAt[1] as number) - (startedAt[0] as number)).toBe(75_000);
    await world.clock.advance(600_000);
    expect(await world.record(id)).toMatchObject({ result: '"try 2"', attempt: 2 });
  });

  test("a result that comes after the signal but within the 5 s counts", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job("study", {
      timeout: "1m",
      run: async (_, { signal }) => {
        await aborted(signal);
        await clock.sleep(4_000);
        return "just made it";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"just made it"');
  });

  test("a timeout counts from the claim, so that every instance sees the same deadline", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const other = world.member().holdfast;
    const abortedAfterMs: number[] = [];
    const study = holdfast.job("study", {
      timeout: "1m",
      retry: { attempts: 1 },
      run: async (_, { signal }) => {
        await aborted(signal);
        abortedAfterMs.push(world.clock.wallMs() - startAt);
        await clock.sleep(4_999);
      },
    });
    other.job("other", { run: () => undefined });
    await holdfast.start();
    await other.start();
    const startAt = world.clock.wallMs();
    faults.keepBack("leases.markStarted");
    const { id } = await study.enqueue({});
    await world.clock.advance(3_000);
    faults.deliver("leases.markStarted");
    const run = await world.ended(id);
    expect(abortedAfterMs).toEqual([60_000]);
    expectEnded(run, "completed", 1);
  });

  test("a pending run is cancelled at once and never starts", async ({ world }) => {
    const { holdfast } = world.member();
    let startCount = 0;
    const study = holdfast.job("study", {
      run: () => {
        startCount += 1;
      },
    });
    const now = await study.enqueue({});
    const later = await study.enqueue({}, { delay: "1m" });
    expect(await holdfast.runs.cancel(now.id)).toBe("cancelled");
    expect(await holdfast.runs.cancel(later.id)).toBe("cancelled");
    expect(await holdfast.runs.cancel(now.id)).toBe("already_terminal");
    expect(await holdfast.runs.cancel("no-such-run")).toBe("not_found");
    await holdfast.start();
    await world.clock.advance(120_000);
    expect(startCount).toBe(0);
    expectEnded(await world.record(now.id), "cancelled", 0);
  });

  test("a running run gets its cancel within a poll and is cancelled when it throws", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const door = new Door<[unknown, number]>();
    const study = holdfast.job("study", {
      run: async (_, { signal }) => {
        const reason = await aborted(signal);
        door.open([reason, world.clock.wallMs()]);
        throw reason;
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(5_000);
    const askedAt = world.clock.wallMs();
    expect(await world.member().holdfast.runs.cancel(id)).toBe("requested");
    const run = await world.ended(id);
    const [reason, heardAt] = await door.opened;
    expect(reason).toBeInstanceOf(CancelledError);
    expect(heardAt - askedAt).toBeLessThanOrEqual(1_200);
    expectEnded(run, "cancelled", 1);
    expect((await holdfast.runs.attempts(id)).map(({ end }) => end)).toEqual(["cancelled"]);
  });

  test("a cancelled run is never tried again, whatever its handler throws", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      run: async (_, { signal }) => {
        await aborted(signal);
        throw new Error("something else altogether");
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    await holdfast.runs.cancel(id);
    expectEnded(await world.ended(id), "cancelled", 1);
    await world.clock.advance(120_000);
    expectEnded(await world.record(id), "cancelled", 1);
  });

  test("a result that arrives before the cancel is heard wins", async ({ world }) => {
    const { holdfast } = world.member();
    const door = new Door<string>();
    const study = holdfast.job("study", { run: () => door.opened });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    expect(await holdfast.runs.cancel(id)).toBe("requested");
    door.open("done");
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"done"');
  });

  test("a handler that finishes although it heard of the cancel has completed", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      run: async (_, { signal }) => {
        await aborted(signal);
        return "nearly done anyway";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    await holdfast.runs.cancel(id);
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"nearly done anyway"');
  });

  test("a cancel that the handler ignores is enforced after 30 s", async ({ world }) => {
    const member = world.member();
    const { holdfast, clock } = member;
    const study = holdfast.job("study", { run: () => clock.sleep(3_600_000) });
    await holdfast.start({ worker: { concurrency: 1 } });
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const askedAt = world.clock.wallMs();
    await holdfast.runs.cancel(id);
    const run = await world.ended(id);
    expectEnded(run, "cancelled", 1);
    expect(world.clock.wallMs() - askedAt).toBeGreaterThanOrEqual(30_000);
    expect(world.clock.wallMs() - askedAt).toBeLessThanOrEqual(34_000);
    const next = await study.enqueue({});
    await world.reached(next.id, ({ status }) => status === "running", { withinMs: 30_000 });
    expect(heard(member, "run.lost")).toMatchObject([{ run: id }]);
  });

  test("a run that waits in the buffer is cancelled without being started", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const started: unknown[] = [];
    const study = holdfast.job<number>("study", {
      run: async (n) => {
        started.push(n);
        await clock.sleep(n === 0 ? 1 : 1_500);
      },
    });
    await holdfast.start({ worker: { concurrency: 1 } });
    // Short runs first: they make the buffer deep.
    const short = await study.enqueueMany(Array.from({ length: 50 }, () => 0));
    for (const { id } of short) await world.ended(id);
    const enqueued = await study.enqueueMany([1, 2, 3]);
    const { id } = enqueued[2] as { id: string };
    await world.clock.rest();
    expect(await holdfast.runs.cancel(id)).toBe("requested");
    expectEnded(await world.ended(id), "cancelled", 1);
    expect(started).not.toContain(3);
  });

  test("an operator's retry gives a failed run one attempt more, and keeps its history", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      retry: ONE_MORE,
      run: (_, { attempt }) => {
        if (attempt < 4) throw new Error(`try ${attempt}`);
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "failed", 2);
    expect(await holdfast.runs.retry(id)).toBe("pending");
    expect(await holdfast.runs.retry(id)).toBe("not_terminal");
    expectEnded(await world.ended(id), "failed", 3);
    expect(await holdfast.runs.retry(id)).toBe("pending");
    expectEnded(await world.ended(id), "completed", 4);
    expect(await holdfast.runs.retry(id)).toBe("completed");
    const attempts = await holdfast.runs.attempts(id);
    expect(attempts.map(({ attempt, end }) => [attempt, end])).toEqual([
      [1, "failed"],
      [2, "failed"],
      [3, "failed"],
      [4, "completed"],
    ]);
    const fences = attempts.map(({ fence }) => fence);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });

  test("a cancelled run can be retried as well", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: () => "done" });
    const { id } = await study.enqueue({});
    await holdfast.runs.cancel(id);
    expect(await holdfast.runs.retry(id)).toBe("pending");
    await holdfast.start();
    expectEnded(await world.ended(id), "completed", 1);
  });

  test("waiting resolves for a run that failed and for one that was cancelled", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", {
      retry: { attempts: 1 },
      run: () => {
        throw new Error("no");
      },
    });
    const failing = await study.enqueue({});
    const unwanted = await study.enqueue({}, { delay: "1h" });
    const waiting = [holdfast.runs.wait(failing.id), holdfast.runs.wait(unwanted.id)];
    await holdfast.start();
    await holdfast.runs.cancel(unwanted.id);
    const [failed, cancelled] = await world.clock.until(Promise.all(waiting));
    expect(failed).toMatchObject({ status: "failed", error: { message: "no" } });
    expect(cancelled).toMatchObject({ status: "cancelled" });
  });

  test("waiting ends with its own time limit or signal, and the run goes on", async ({ world }) => {
    const { holdfast } = world.member();
    const door = new Door();
    const study = holdfast.job("study", { run: () => door.opened });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const startAt = world.clock.wallMs();
    const limited = holdfast.runs.wait(id, { timeout: "30s" });
    await expect(world.clock.until(limited)).rejects.toThrow(WaitTimeoutError);
    expect(world.clock.wallMs() - startAt).toBe(30_000);
    const controller = new AbortController();
    const watched = holdfast.runs.wait(id, { signal: controller.signal });
    watched.catch(() => undefined);
    await world.clock.advance(1_000);
    controller.abort(new Error("never mind"));
    await expect(watched).rejects.toThrow("never mind");
    await expect(
      holdfast.runs.wait(id, { signal: AbortSignal.abort(new Error("too late")) }),
    ).rejects.toThrow("too late");
    door.open();
    expectEnded(await world.ended(id), "completed", 1);
  });

  test("a well-behaved handler frees its place when it is cancelled", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: (_, { signal }) => obedient(signal) });
    const quick = holdfast.job("quick", { run: () => "done" });
    await holdfast.start({ worker: { concurrency: 1 } });
    const { id } = await study.enqueue({});
    await world.clock.advance(500);
    const waiting = await quick.enqueue({});
    await world.clock.advance(5_000);
    expect(await world.status(waiting.id)).toBe("pending");
    await holdfast.runs.cancel(id);
    expectEnded(await world.ended(waiting.id, { withinMs: 3_000 }), "completed", 1);
  });
}
