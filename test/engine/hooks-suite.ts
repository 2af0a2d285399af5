// Tests the surroundings of a run: listeners, hooks, middleware, and the reports of errors.

import { AsyncLocalStorage } from "node:async_hooks";
import { expect } from "vitest";
import { ConfigurationError, PermanentError, RetryLater } from "../../src/shared/errors.js";
import type { EventName } from "../../src/telemetry/log.js";
import { Door, expectEnded, heard, obedient, type WorldTest } from "./world.js";

export function hooksSuite(test: WorldTest): void {
  test("a listener gets its events, with fields, tags and time, until it is removed", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const events: unknown[] = [];
    const stop = holdfast.on("run.completed", (event) => events.push(event));
    holdfast.on("run.failed", ({ error }) => events.push(error.message));
    const study = holdfast.job<boolean>("study", {
      retry: { attempts: 1 },
      run: (isWrong) => {
        if (isWrong) throw new Error("wrong");
      },
    });
    await holdfast.start();
    const first = await study.enqueue(false, { tags: ["eu", "nightly"] });
    await world.ended(first.id);
    await world.ended((await study.enqueue(true)).id);
    stop();
    stop();
    await world.ended((await study.enqueue(false)).id);
    expect(events).toEqual([
      {
        event: "run.completed",
        at: expect.any(Date),
        run: first.id,
        job: "study",
        attempt: 1,
        tags: ["eu", "nightly"],
        ranMs: expect.any(Number),
      },
      "wrong",
    ]);
  });

  test("ticks, instances and schedules are heard of by the same names as in the log", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const names: string[] = [];
    for (const name of ["instance.started", "tick.fired", "instance.stopped"] as const)
      holdfast.on(name, ({ event }) => names.push(event));
    const study = holdfast.job("study", { run: () => undefined });
    holdfast.schedule("minutely", study, { every: "1m" });
    await holdfast.start();
    await world.clock.advance(61_000);
    await world.clock.until(holdfast.stop());
    expect(names).toEqual(["instance.started", "tick.fired", "instance.stopped"]);
  });

  test("listeners that throw or reject disturb nothing and are reported once each", async ({
    world,
  }) => {
    const member = world.member();
    const { holdfast } = member;
    let calls = 0;
    holdfast.on("run.completed", () => {
      calls += 1;
      throw new Error("first");
    });
    holdfast.on("run.completed", async () => {
      calls += 1;
      throw new Error("second");
    });
    holdfast.on("run.completed", () => {
      calls += 1;
    });
    const study = holdfast.job("study", { run: () => undefined });
    await holdfast.start();
    for (const { id } of await study.enqueueMany([1, 2, 3])) await world.ended(id);
    expect(calls).toBe(9);
    expect(heard(member, "listener.failed")).toMatchObject([
      { listener: "run.completed", error: { message: "first" } },
      { listener: "run.completed", error: { message: "second" } },
    ]);
  });

  test("an event that does not exist is refused, with the one that was meant", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const on = (name: string) => holdfast.on(name as EventName, () => undefined);
    expect(() => on("run.complete")).toThrow(/Did you mean "run.completed"/);
    expect(() => on("*")).toThrow(ConfigurationError);
    expect(() => holdfast.on("run.lost", "no function" as never)).toThrow(ConfigurationError);
  });

  test("hooks and middleware run in the order that is promised", async ({ world }) => {
    const order: string[] = [];
    const note = (name: string) => () => void order.push(name);
    const around = (name: string) => ({
      onStart: note(`${name} onStart`),
      onSuccess: note(`${name} onSuccess`),
      onFailure: note(`${name} onFailure`),
      middleware: [1, 2].map((n) => async (_: unknown, next: () => Promise<unknown>) => {
        order.push(`${name} ${n} in`);
        try {
          return await next();
        } finally {
          order.push(`${name} ${n} out`);
        }
      }),
    });
    const { holdfast } = world.member(around("instance"));
    const study = holdfast.job("study", { ...around("job"), run: note("handler") });
    await holdfast.start();
    await world.ended((await study.enqueue({})).id);
    expect(order).toEqual([
      "instance onStart",
      "job onStart",
      "instance 1 in",
      "instance 2 in",
      "job 1 in",
      "job 2 in",
      "handler",
      "job 2 out",
      "job 1 out",
      "instance 2 out",
      "instance 1 out",
      "job onSuccess",
      "instance onSuccess",
    ]);
  });

  test("middleware carries a context, sees the input's refusal, and may change the result", async ({
    world,
  }) => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const { holdfast } = world.member({
      middleware: async (run, next) => {
        try {
          const result = await storage.run(run.runId, next);
          return { result, by: run.job };
        } catch (error) {
          seen.push((error as Error).message);
          throw error;
        }
      },
    });
    const study = holdfast.job<number>("study", {
      upcast: () => {
        throw new PermanentError("no way up");
      },
      version: 2,
      run: () => storage.getStore() ?? "nothing",
    });
    await holdfast.start();
    const { id } = await study.enqueue(1);
    const run = await world.ended(id);
    expect(JSON.parse(String(run.result))).toEqual({ result: id, by: "study" });
    const store = await world.store();
    const [old] = await store.enqueue.runs({
      isAtomic: true,
      wakesOthers: false,
      runs: [
        {
          ...{ id: crypto.randomUUID(), job: "study", queue: "default", input: "1", version: 1 },
          ...{ mode: "enqueued", priority: 0, dueAt: null, delayMs: 0, tags: [], key: null },
          policy: (await store.jobs.list())[0]?.policy as never,
        } as never,
      ],
    });
    const refused = await world.ended((old as { id: string }).id);
    expectEnded(refused, "failed", 1);
    expect(seen).toEqual(["no way up"]);
  });

  test("an error of middleware is the attempt's error, an error of a hook is only reported", async ({
    world,
  }) => {
    const causes: unknown[] = [];
    const member = world.member({
      onError: (error, { event }) => causes.push([(error as Error).message, event]),
      onStart: () => {
        throw new Error("hook broke");
      },
    });
    const { holdfast } = member;
    const good = holdfast.job("good", {
      run: () => "fine",
      onSuccess: () => Promise.reject(new Error("late")),
    });
    const bad = holdfast.job("bad", {
      retry: { attempts: 1 },
      middleware: async (_, next) => {
        await next();
        throw new Error("middleware broke");
      },
      run: () => "fine",
    });
    await holdfast.start();
    expectEnded(await world.ended((await good.enqueue({})).id), "completed", 1);
    const run = await world.ended((await bad.enqueue({})).id);
    expectEnded(run, "failed", 1);
    expect(run.error).toContain("middleware broke");
    expect(heard(member, "hook.failed")).toMatchObject([
      { job: "good", hook: "onStart", error: { message: "hook broke" } },
      { job: "good", hook: "onSuccess", error: { message: "late" } },
      { job: "bad", hook: "onStart" },
    ]);
    expect(causes).toEqual([
      ["hook broke", "hook.failed"],
      ["late", "hook.failed"],
      ["hook broke", "hook.failed"],
    ]);
  });

  test("a middleware that calls next twice fails its attempt; one that never does answers for the handler", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    let calls = 0;
    const run = () => {
      calls += 1;
    };
    const twice = holdfast.job("twice", {
      run,
      retry: { attempts: 1 },
      middleware: async (_, next) => {
        await next();
        return next();
      },
    });
    const never = holdfast.job("never", { run, middleware: () => "cached" });
    await holdfast.start();
    const refused = await world.ended((await twice.enqueue({})).id);
    expect(refused).toMatchObject({ status: "failed" });
    expect(refused.error).toContain("next() twice");
    const answered = await world.ended((await never.enqueue({})).id);
    expect(answered).toMatchObject({ status: "completed", result: '"cached"' });
    expect(calls).toBe(1);
  });

  test("onFailure is called for every failed attempt, with whether another one follows, and for nothing else", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const failures: unknown[] = [];
    const onFailure = (run: { attempt: number }, error: unknown, { willRetry = false }) =>
      void failures.push([run.attempt, (error as Error).message, willRetry]);
    const study = holdfast.job<string>("study", {
      retry: { attempts: 2 },
      timeout: "10s",
      onFailure,
      run: async (what, ctx) => {
        if (what === "later" && ctx.attempt === 1 && failures.length === 0) {
          failures.push("postponed");
          throw new RetryLater({ delay: "1s" });
        }
        if (what === "wrong") throw new Error("no");
        if (what === "slow") await obedient(ctx.signal);
      },
    });
    await holdfast.start();
    await world.ended((await study.enqueue("later")).id);
    expect(failures.splice(0)).toEqual(["postponed"]);
    await world.ended((await study.enqueue("wrong")).id);
    expect(failures.splice(0)).toEqual([
      [1, "no", true],
      [2, "no", false],
    ]);
    await world.ended((await study.enqueue("slow")).id);
    expect(failures.splice(0).map((each) => (each as unknown[])[2])).toEqual([true, false]);
    const { id } = await study.enqueue("slow");
    await world.reached(id, ({ status }) => status === "running");
    await holdfast.runs.cancel(id);
    await world.ended(id);
    expect(failures).toEqual([]);
  });

  test("a run is held while its hooks run, and is renewed", async ({ world }) => {
    const { holdfast, clock } = world.member();
    const study = holdfast.job("study", {
      lease: "3s",
      onStart: () => clock.sleep(20_000),
      onSuccess: () => clock.sleep(20_000),
      run: () => "done",
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(35_000);
    expect(await world.status(id)).toBe("running");
    expectEnded(await world.ended(id), "completed", 1);
  });

  test("onError is called for an unreachable database, with the error itself", async ({
    world,
  }) => {
    const errors: [unknown, string][] = [];
    const { holdfast, faults } = world.member({
      onError: (error, { event }) => {
        errors.push([error, event]);
        throw new Error("and onError breaks as well");
      },
    });
    const gone = new Error("gone fishing");
    const ended = new Door();
    const study = holdfast.job("study", { run: () => ended.open() });
    await holdfast.start();
    faults.fail("claims.exchange", "before", { error: gone });
    const { id } = await study.enqueue({});
    await world.ended(id);
    expect(errors).toEqual([[gone, "store.failed"]]);
  });

  test("problems of hooks, logs and middleware are refused by name", async ({ world }) => {
    const { holdfast } = world.member();
    const wrong = {
      onStart: 1,
      middleware: ["x"],
      logs: { keep: "some", max: 0 },
      run: () => undefined,
    };
    expect(() => holdfast.job("study", wrong as never)).toThrow(
      /onStart.*middleware|logs.*onStart/s,
    );
    expect(() => world.member({ onError: "x" as never })).toThrow(/onError/);
    expect(() => world.member({ logs: { keep: "some" as never } })).toThrow(/logs\.keep/);
  });

  test("a run knows its tags and its job", async ({ world }) => {
    const { holdfast } = world.member();
    const study = holdfast.job("study", { run: (_, { tags, job }) => [job, ...tags] });
    await holdfast.start();
    const tagged = await study.enqueue({}, { tags: ['a "b"', "c,d"] });
    const plain = await study.enqueue({});
    expect(JSON.parse(String((await world.ended(tagged.id)).result))).toEqual([
      "study",
      'a "b"',
      "c,d",
    ]);
    expect((await world.ended(plain.id)).result).toBe('["study"]');
    const { runs } = await holdfast.runs.list({ tag: "c,d" });
    expect(runs.map(({ id }) => id)).toEqual([tagged.id]);
  });
}
