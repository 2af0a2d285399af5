// The ordinary life of a run: stored, executed in the right order by the right instance, waited for.

import { expect } from "vitest";
import { z } from "zod";
import {
  BatchRefusedError,
  DuplicateJobError,
  InputInvalidError,
  KeyConflictError,
  UnknownJobError,
} from "../../src/shared/errors.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { Door, expectEnded, type WorldTest } from "./world.js";

export function runSuite(test: WorldTest): void {
  test("a run is enqueued, executed and waited for", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job<{ market: string }>("study", {
      run: async ({ market }) => ({ seen: market }),
    });
    await holdfast.start();
    const { id, deduplicated } = await study.enqueue({ market: "eu" });
    expect(deduplicated).toBe(false);
    const run = await world.clock.until(holdfast.runs.wait(id));
    expectEnded(run, "completed", 1);
    expect(run).toMatchObject({ job: "study", mode: "enqueued", queue: "default", error: null });
    expect(run.input).toEqual({ market: "eu" });
    expect(run.result).toEqual({ seen: "eu" });
    expect(run.holder).toBe(holdfast.instanceId);
    expect(run.finishedAt).toBeInstanceOf(Date);
  });

  test("a run that this process enqueues needs no poll to begin", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: () => "done" });
    await holdfast.start();
    await world.clock.rest();
    const { id } = await study.enqueue({});
    await world.clock.rest();
    expect(await world.status(id)).toBe("completed");
  });

  test("a handler gets its run, attempt, fence and mode", async ({ world }) => {
    const { holdfast } = world.member();
    const seen: Pick<RunContext, "runId" | "attempt" | "fence" | "mode" | "idempotencyKey">[] = [];
    const study = holdfast.job("study", {
      retry: { delay: "1s", jitter: 0 },
      run: async (_, ctx) => {
        const { runId, attempt, fence, mode, idempotencyKey } = ctx;
        seen.push({ runId, attempt, fence, mode, idempotencyKey });
        if (attempt === 1) throw new Error("once more");
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.ended(id);
    expect(seen.map(({ runId, attempt, mode }) => [runId, attempt, mode])).toEqual([
      [id, 1, "enqueued"],
      [id, 2, "enqueued"],
    ]);
    expect(seen[1]?.fence).toBeGreaterThan(seen[0]?.fence as number);
    expect(seen[1]?.idempotencyKey).toBe(seen[0]?.idempotencyKey);
  });

  test("a delayed run begins when it is due, not before and not a poll later", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const startedAt: number[] = [];
    const study = holdfast.job("study", {
      run: () => void startedAt.push(world.clock.wallMs()),
    });
    await holdfast.start();
    const now = world.clock.wallMs();
    const late = await study.enqueue({}, { delay: "90s" });
    const given = await study.enqueue({}, { at: new Date(now + 45_500) });
    const past = await study.enqueue({}, { at: new Date(now - 60_000) });
    await world.clock.advance(45_499);
    expect(await world.status(past.id)).toBe("completed");
    expect(await world.status(given.id)).toBe("pending");
    await world.ended(late.id);
    expect(startedAt.map((at) => at - now)).toEqual([0, 45_500, 90_000]);
  });

  test("a delayed run that another process enqueued is found when it is due", async ({ world }) => {
    const { holdfast } = world.member();
    const startedAt: number[] = [];
    const run = () => void startedAt.push(world.clock.wallMs());
    holdfast.job("study", { run });
    await holdfast.start();
    const caller = world.member().holdfast;
    const { id } = await caller.job("study", {}).enqueue({}, { delay: "20s" });
    const dueAt = world.clock.wallMs() + 20_000;
    await world.ended(id);
    expect((startedAt[0] as number) - dueAt).toBeLessThanOrEqual(1_200);
  });

  test("the more urgent run goes first, and a minute of waiting outweighs one step", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const order: string[] = [];
    const study = holdfast.job<string>("study", { run: (name) => void order.push(name) });
    await study.enqueue("old and plain");
    await world.clock.advance(150_000);
    await study.enqueue("plain");
    await study.enqueue("urgent", { priority: 10 });
    await study.enqueue("two steps more urgent, but young", { priority: 2 });
    const { id } = await study.enqueue("patient", { priority: -10 });
    await holdfast.start({ worker: { concurrency: 1 } });
    await world.ended(id);
    expect(order).toEqual([
      "urgent",
      "old and plain",
      "two steps more urgent, but young",
      "plain",
      "patient",
    ]);
  });

  test("an instance takes runs of its queues and of its jobs alone", async ({ world }) => {
    const one = world.member().holdfast;
    const other = world.member().holdfast;
    const ran: string[] = [];
    const jobOf = (holdfast: typeof one, name: string, who: string) =>
      holdfast.job<string>(name, { run: (what) => void ran.push(`${who} ran ${what}`) });
    const study = jobOf(one, "study", "mailer");
    const mail = jobOf(one, "mail", "mailer");
    jobOf(other, "study", "student");
    jobOf(other, "mail", "student");
    await one.start({ worker: { queues: ["mails"] } });
    await other.start({ worker: { jobs: ["study"], queues: ["default"] } });
    const ids = [
      await mail.enqueue("a mail", { queue: "mails" }),
      await study.enqueue("a study"),
      await study.enqueue("a study among mails", { queue: "mails" }),
    ];
    const stranded = await mail.enqueue("a mail in the default queue");
    for (const { id } of ids) await world.ended(id);
    await world.clock.advance(10_000);
    expect(ran.sort()).toEqual([
      "mailer ran a mail",
      "mailer ran a study among mails",
      "student ran a study",
    ]);
    expect(await world.status(stranded.id)).toBe("pending");
  });

  test("an instance never runs more than its concurrency at once, and no less", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    let runningCount = 0;
    let most = 0;
    const study = holdfast.job("study", {
      run: async () => {
        runningCount += 1;
        most = Math.max(most, runningCount);
        await clock.sleep(100);
        runningCount -= 1;
      },
    });
    await holdfast.start({ worker: { concurrency: 4 } });
    const startedAt = world.clock.wallMs();
    const enqueued = await study.enqueueMany(Array.from({ length: 40 }, () => ({})));
    for (const { id } of enqueued) await world.ended(id);
    expect(most).toBe(4);
    expect(world.clock.wallMs() - startedAt).toBeLessThanOrEqual(1_100);
  });

  test("a job that is declared after the start is claimed from the next poll on", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    await holdfast.start();
    await world.clock.advance(3_000);
    const caller = world.member().holdfast;
    const { id } = await caller.job("late", {}).enqueue({});
    await world.clock.advance(3_000);
    expect(await world.status(id)).toBe("pending");
    holdfast.job("late", { run: () => "done" });
    await world.clock.advance(1_200);
    expect(await world.status(id)).toBe("completed");
  });

  test("a second job of the same name is refused", async ({ world }) => {
    const { holdfast } = world.member();
    holdfast.job("study", {});
    expect(() => holdfast.job("study", {})).toThrow(DuplicateJobError);
  });

  test("a job is enqueued by name as another instance announced it", async ({ world }) => {
    const { holdfast } = world.member();
    holdfast.job("study", { queue: "slow", priority: 7, run: () => "done" });
    await holdfast.start();
    const caller = world.member().holdfast;
    const { id } = await caller.enqueue("study", {});
    expect(await world.ended(id)).toMatchObject({ queue: "slow", priority: 7 });
    await expect(caller.enqueue("studdy", {})).rejects.toThrow(UnknownJobError);
  });

  test("an instance without a worker executes nothing", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: () => "done" });
    await holdfast.start({ worker: false });
    const { id } = await study.enqueue({});
    await world.clock.advance(10_000);
    expect(await world.status(id)).toBe("pending");
  });

  test("the same key and input is the same run, another input is refused", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job<object>("study", {});
    const first = await study.enqueue({ a: 1, b: 2 }, { key: "k" });
    expect(await study.enqueue({ b: 2, a: 1 }, { key: "k" })).toEqual({
      id: first.id,
      deduplicated: true,
    });
    await expect(study.enqueue({ a: 2 }, { key: "k" })).rejects.toThrow(KeyConflictError);
  });

  test("a batch is stored whole or not at all, and the error names the member", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { input: z.object({ n: z.number() }) });
    const wrong = [{ n: 1 }, { n: 2 }, { n: "three" as never }, { n: 4 }];
    const refusal = await study.enqueueMany(wrong).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(BatchRefusedError);
    expect(refusal).toMatchObject({ index: 2, cause: expect.any(InputInvalidError) });
    await study.enqueue({ n: 1 }, { key: "taken" });
    const taken = await study
      .enqueueMany([{ n: 5 }, { n: 6 }], ({ n }) => (n === 6 ? { key: "taken" } : {}))
      .catch((error: unknown) => error);
    expect(taken).toMatchObject({ index: 1, cause: expect.any(KeyConflictError) });
    expect((await holdfast.runs.list()).runs).toHaveLength(1);
    const stored = await study.enqueueMany([{ n: 7 }, { n: 8 }]);
    const runs = await Promise.all(stored.map(({ id }) => holdfast.runs.get(id)));
    expect(runs.map((run) => run?.input)).toEqual([{ n: 7 }, { n: 8 }]);
  });

  test("calls made at once are stored by few statements, each answered with its own run", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const study = holdfast.job<{ n: number }>("study", {});
    await holdfast.runs.list();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        study.enqueue({ n }, n % 10 === 0 ? { key: `k${n}` } : {}),
      ),
    );
    expect(faults.of("enqueue.runs").length).toBeLessThanOrEqual(3);
    const runs = await Promise.all(answers.map(({ id }) => holdfast.runs.get(id)));
    expect(runs.map((run) => run?.input)).toEqual(Array.from({ length: 100 }, (_, n) => ({ n })));
  });

  test("one bad run does not fail those that travel with it", async ({ world }) => {
    const { holdfast, faults } = world.member();
    const study = holdfast.job<{ n: number }>("study", {});
    await holdfast.runs.list();
    faults.fail("enqueue.runs", "before", {
      times: 1_000,
      error: new RangeError("value out of range"),
      fits: ({ runs }) => runs.some(({ input }) => input === '{"n":13}'),
    });
    const answers = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => study.enqueue({ n })),
    );
    const refused = answers.flatMap(({ status }, n) => (status === "rejected" ? [n] : []));
    expect(refused).toEqual([13]);
    expect(answers[13]).toMatchObject({ reason: expect.any(RangeError) });
    expect((await holdfast.runs.list({ limit: 100 })).runs).toHaveLength(49);
  });

  test("a waiter gets the end of a run at once, also while others keep coming", async ({
    world,
  }) => {
    const worker = world.member().holdfast;
    const door = new Door();
    worker.job("study", { run: () => door.opened });
    await worker.start();
    const caller = world.member().holdfast;
    const study = caller.job("study", {});
    const { id } = await study.enqueue({});
    const { id: never } = await caller.job("unheard-of", {}).enqueue({});
    let heardAt: number | null = null;
    const first = caller.runs.wait(id).then(() => {
      heardAt = world.clock.wallMs();
    });
    const others: Promise<unknown>[] = [];
    for (let times = 0; times < 100 && heardAt === null; times += 1) {
      others.push(caller.runs.wait(never, { timeout: "5s" }).catch(() => undefined));
      if (times === 50) door.open();
      await world.clock.advance(10);
    }
    const openedAt = world.clock.wallMs();
    await world.clock.until(first);
    expect(world.clock.wallMs() - openedAt).toBe(0);
    await world.clock.until(Promise.all(others));
  });
}
