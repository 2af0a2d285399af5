// Runs that are dispatched to a service: the outcome of a run for each response, when its lease is renewed, and that
// nothing is sent while another worker may hold the run. The test plays the target.

import { expect } from "vitest";
import type { HoldfastOptions } from "../../src/instance/config.js";
import { serverInternals } from "../../src/instance/server-internals.js";
import type { DispatchOrder, DispatchResult } from "../../src/remote/dispatch/dispatcher.js";
import { callbackToken } from "../../src/remote/dispatch/signature.js";
import type { Sends } from "../../src/remote/dispatching.js";
import { ConfigurationError } from "../../src/shared/errors.js";
import { delay } from "../../src/shared/ports.js";
import {
  aborted,
  Door,
  expectEnded,
  heard,
  type Member,
  type World,
  type WorldTest,
} from "./world.js";

const OPTIONS: HoldfastOptions = {
  workers: {
    studies: { url: "https://studies.example.com/run", secret: "a-secret-of-enough-letters" },
  },
  publicUrl: "https://jobs.example.com",
};
const DONE: DispatchResult = { kind: "completed", result: '"done elsewhere"' };
const UNKNOWN: DispatchResult = { kind: "unknown", reason: "ECONNRESET" };
const UNDELIVERED: DispatchResult = {
  kind: "not_delivered",
  reason: "ECONNREFUSED",
  pauseMs: 20_000,
};

type Play = (order: DispatchOrder) => DispatchResult | Promise<DispatchResult>;

/** A target that answers as it is told, one play after the other; the last one stays. */
class PlayedTarget implements Sends {
  readonly orders: (DispatchOrder & { readonly at: number })[] = [];
  readonly #plays: Play[];
  readonly #now: () => number;
  roomNow = Number.POSITIVE_INFINITY;

  constructor(now: () => number, plays: readonly (Play | DispatchResult)[]) {
    this.#now = now;
    this.#plays = plays.map((play) => (typeof play === "function" ? play : () => play));
  }

  room(): number {
    return this.roomNow;
  }

  async dispatch(order: DispatchOrder): Promise<DispatchResult> {
    this.orders.push({ ...order, at: this.#now() });
    const play = this.#plays.length > 1 ? this.#plays.shift() : this.#plays[0];
    if (!play) throw new Error("Nobody said what to answer.");
    return play(order);
  }
}

/** As a request does that was open when it was told to stop. */
const openUntilStopped: Play = async ({ signal }) => {
  await aborted(signal);
  return { kind: "unknown", reason: "stopped" };
};

function scene(world: World, ...plays: (Play | DispatchResult)[]) {
  const target = new PlayedTarget(() => world.now(), plays);
  const member = world.member(OPTIONS, { sends: target });
  return { target, member, holdfast: member.holdfast };
}

/** The number by which the database knows the instance. */
async function holderOf(world: World, { holdfast }: Member): Promise<number> {
  return (await world.store()).instances.announce({
    instanceId: holdfast.instanceId,
    app: null,
    release: null,
    jobs: [],
    schedules: [],
    isScheduler: false,
    pollMs: 1_000,
  });
}

/** Does what the heartbeat of a remote worker does. */
async function beat(world: World, member: Member, fence: number): Promise<boolean> {
  const holder = await holderOf(world, member);
  const { held } = await (await world.store()).leases.renew({ holder, fences: [fence] });
  return held.length === 1;
}

/** Completes the run as the callback of a remote worker does; returns whether it came in time. */
async function complete(world: World, { run }: DispatchOrder): Promise<boolean> {
  const { stale } = await (await world.store()).claims.exchange({
    holder: 0,
    token: crypto.randomUUID(),
    settlements: [
      {
        id: run.id,
        fence: run.fence,
        mode: "enqueued",
        schedule: null,
        batch: null,
        isLimited: false,
        ranMs: 1,
        error: null,
        to: "completed",
        result: '"called back"',
      },
    ],
    limit: 0,
    wantsSuspect: false,
    jobs: [],
    queues: null,
    random: 0,
  });
  return stale.length === 0;
}

export function dispatchSuite(test: WorldTest): void {
  test("a run goes to its target with fence, attempt and input, and ends with the answer", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, DONE);
    const study = holdfast.job("study", { worker: "studies", lease: "20s" });
    await holdfast.start();
    const { id } = await study.enqueue({ study: 7 });
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"done elsewhere"');
    expect(target.orders).toMatchObject([
      {
        target: "studies",
        run: {
          id,
          attempt: 1,
          job: "study",
          input: { study: 7 },
          idempotencyKey: id,
          leaseMs: 20_000,
          fence: expect.any(Number),
        },
      },
    ]);
  });

  test("the lease is renewed for as long as the request is open", async ({ world }) => {
    const door = new Door<DispatchResult>();
    const { target, holdfast } = scene(world, () => door.opened);
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(200_000);
    expectEnded(await world.record(id), "running", 1);
    door.open(DONE);
    expectEnded(await world.ended(id), "completed", 1);
    expect(target.orders).toHaveLength(1);
  });

  test("an accepted run is let go: the worker's heartbeats keep it, under the same fence", async ({
    world,
  }) => {
    const { target, member, holdfast } = scene(world, { kind: "accepted" });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const [order] = target.orders;
    if (!order) throw new Error("Nothing was sent.");
    expect(heard(member, "run.accepted")).toMatchObject([{ run: id, fence: order.run.fence }]);
    const { leaseUntil } = await world.record(id);
    await world.clock.advance(20_000);
    // Nobody here renews it.
    expect((await world.record(id)).leaseUntil).toBe(leaseUntil);
    for (let each = 0; each < 5; each++) {
      expect(await beat(world, member, order.run.fence)).toBe(true);
      await world.clock.advance(20_000);
    }
    expectEnded(await world.record(id), "running", 1);
    expect(await complete(world, order)).toBe(true);
    const run = await world.record(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"called back"');
    expect(target.orders).toHaveLength(1);
  });

  test("an accepted run whose worker falls silent is sent again, and the late answer is refused", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, { kind: "accepted" }, DONE);
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    const [first, second] = target.orders;
    if (!first || !second) throw new Error("It was to be sent twice.");
    expect(second.run.fence).toBeGreaterThan(first.run.fence);
    expect(second.run.attempt).toBe(2);
    expect(second.run.idempotencyKey).toBe(first.run.idempotencyKey);
    expect(second.at - first.at).toBeGreaterThanOrEqual(30_000);
    expect(await complete(world, first)).toBe(false);
    expect((await world.record(id)).result).toBe('"done elsewhere"');
  });

  test("after an unknown outcome nothing is sent before the lease has run out", async ({
    world,
  }) => {
    const { target, member, holdfast } = scene(world, UNKNOWN, DONE);
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(29_000);
    expectEnded(await world.record(id), "running", 1);
    expect(target.orders).toHaveLength(1);
    expect(heard(member, "run.unknown")).toMatchObject([{ run: id, reason: "ECONNRESET" }]);
    expectEnded(await world.ended(id), "completed", 2);
    const attempts = await (await world.store()).runs.attempts(id);
    expect(attempts.map(({ end }) => end)).toEqual(["lost", "completed"]);
  });

  test("an unknown outcome of the last attempt ends the run: it counts as started", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, UNKNOWN);
    const study = holdfast.job("study", { worker: "studies", retry: { attempts: 1 } });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "failed", 1);
    expect(target.orders).toHaveLength(1);
  });

  test("an undelivered run waits for the pause and has used no attempt", async ({ world }) => {
    const { target, member, holdfast } = scene(world, UNDELIVERED, UNDELIVERED, DONE);
    const study = holdfast.job("study", { worker: "studies", retry: { attempts: 1 } });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(19_000);
    expectEnded(await world.record(id), "pending", 0);
    expect(target.orders).toHaveLength(1);
    expect(heard(member, "run.undelivered")).toMatchObject([
      { run: id, target: "studies", reason: "ECONNREFUSED", pauseMs: 20_000 },
    ]);
    expectEnded(await world.ended(id), "completed", 1);
    expect(target.orders.map(({ run }) => run.attempt)).toEqual([1, 1, 1]);
    const [, ...pauses] = target.orders.map(({ at }, index, all) => at - (all[index - 1]?.at ?? 0));
    for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(20_000);
  });

  test("a failure is tried again or not by its class, no sooner than the target asked for", async ({
    world,
  }) => {
    const error = { code: "HTTP_429", name: "DispatchError", message: "later" };
    const { target, holdfast } = scene(
      world,
      { kind: "failed", error, isPermanent: false, retryAfterMs: 90_000 },
      { kind: "failed", error: { ...error, code: "HTTP_422" }, isPermanent: true },
    );
    const study = holdfast.job("study", { worker: "studies", retry: { attempts: 5 } });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "failed", 2);
    expect(JSON.parse(run.error ?? "{}")).toMatchObject({ code: "HTTP_422" });
    const [first, second] = target.orders;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(90_000);
  });

  test("a cancel closes the request, and nothing is sent again", async ({ world }) => {
    const { target, holdfast } = scene(world, openUntilStopped);
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    await holdfast.runs.cancel(id);
    expectEnded(await world.ended(id, { withinMs: 5_000 }), "cancelled", 1);
    await world.clock.advance(120_000);
    expect(target.orders).toHaveLength(1);
  });

  test("a cancelled run whose worker goes on all the same is ended after the grace", async ({
    world,
  }) => {
    const { target, member, holdfast } = scene(world, { kind: "accepted" });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    await holdfast.runs.cancel(id);
    const [order] = target.orders;
    if (!order) throw new Error("Nothing was sent.");
    for (let each = 0; each < 5; each++) {
      await beat(world, member, order.run.fence);
      await world.clock.advance(8_000);
    }
    expectEnded(await world.record(id), "cancelled", 1);
    expect(await complete(world, order)).toBe(false);
  });

  test("over its time the request is closed, and the run goes on by its policy", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, openUntilStopped, DONE);
    const study = holdfast.job("study", { worker: "studies", timeout: "50s" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 2);
    expect((target.orders[1]?.at ?? 0) - (target.orders[0]?.at ?? 0)).toBeGreaterThanOrEqual(
      50_000,
    );
  });

  test("a stop closes the request at the end of its grace, and others wait for the lease", async ({
    world,
  }) => {
    const { holdfast } = scene(world, openUntilStopped);
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const report = await world.clock.until(holdfast.stop({ grace: "10s" }));
    expect(report).toEqual({ finished: 0, handedBack: 0, abandoned: 1 });
    const { leaseUntil, status } = await world.record(id);
    expect(status).toBe("running");
    const heir = scene(world, DONE);
    heir.holdfast.job("study", { worker: "studies" });
    await heir.holdfast.start();
    expectEnded(await world.ended(id), "completed", 2);
    expect(heir.target.orders[0]?.at ?? 0).toBeGreaterThanOrEqual(leaseUntil as number);
  });

  test("a stop hands back at once the runs that certainly were not delivered", async ({
    world,
  }) => {
    const { holdfast } = scene(world, async ({ signal }) => {
      await aborted(signal);
      return UNDELIVERED;
    });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const report = await world.clock.until(holdfast.stop({ grace: 0 }));
    expect(report).toEqual({ finished: 0, handedBack: 1, abandoned: 0 });
    const { status, attempt, dueAt } = await world.record(id);
    expect({ status, attempt }).toEqual({ status: "pending", attempt: 0 });
    expect(dueAt).toBeLessThanOrEqual(world.now());
  });

  test("runs that were claimed together live and expire each by itself", async ({ world }) => {
    const { target, member, holdfast } = scene(world, { kind: "accepted" });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    await study.enqueueMany([1, 2, 3]);
    await world.clock.advance(1_000);
    const [kept, ...silent] = target.orders.slice(0, 3);
    if (!kept) throw new Error("Nothing was sent.");
    expect(new Set(target.orders.map(({ run }) => run.fence)).size).toBe(3);
    for (let each = 0; each < 4; each++) {
      await beat(world, member, kept.run.fence);
      await world.clock.advance(10_000);
    }
    expectEnded(await world.record(kept.run.id), "running", 1);
    for (const { run } of silent) expectEnded(await world.record(run.id), "running", 2);
  });

  test("a target that hangs takes no slot from local runs", async ({ world }) => {
    const { target, holdfast } = scene(world, openUntilStopped);
    const study = holdfast.job("study", { worker: "studies" });
    const mail = holdfast.job("mail", { run: () => "sent" });
    await holdfast.start({ worker: { concurrency: 1 } });
    await study.enqueueMany(Array.from({ length: 30 }, (_, at) => at));
    await world.clock.advance(1_000);
    const { id } = await mail.enqueue({});
    expectEnded(await world.ended(id, { withinMs: 2_000 }), "completed", 1);
    // As many as the target takes by default; the others stay pending, for whoever has room.
    expect(target.orders).toHaveLength(10);
    expect((await holdfast.runs.list({ status: "pending" })).runs).toHaveLength(20);
  });

  test("while a target has no room nothing is claimed for it, and then one goes ahead", async ({
    world,
  }) => {
    const { target, member, holdfast } = scene(world, DONE);
    target.roomNow = 0;
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const enqueued = await study.enqueueMany([1, 2, 3]);
    await world.clock.advance(60_000);
    expect(target.orders).toEqual([]);
    expect(member.faults.calls.filter(({ verb }) => verb === "claims.exchange")).toEqual([]);
    for (const { id } of enqueued) expectEnded(await world.record(id), "pending", 0);
    target.roomNow = 1;
    for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
  });

  test("hooks are called for a dispatched attempt as for any other, with the response", async ({
    world,
  }) => {
    const busy: DispatchResult = {
      kind: "failed",
      error: { code: "HTTP_503", name: "DispatchError", message: "busy" },
      isPermanent: false,
    };
    const { holdfast } = scene(world, busy, DONE);
    const told: unknown[] = [];
    const study = holdfast.job("study", {
      worker: "studies",
      onStart: ({ attempt }) => told.push(["start", attempt]),
      onSuccess: (_, result) => told.push(["success", result]),
      onFailure: (_, error, { willRetry }) => told.push(["failure", error, willRetry]),
    });
    await holdfast.start();
    expectEnded(await world.ended((await study.enqueue({})).id), "completed", 2);
    expect(told).toEqual([
      ["start", 1],
      [
        "failure",
        expect.objectContaining({ message: "busy", name: "DispatchError", code: "HTTP_503" }),
        true,
      ],
      ["start", 2],
      ["success", "done elsewhere"],
    ]);
  });

  test("of a run that was let go no hook says how it ended", async ({ world }) => {
    const { target, holdfast } = scene(world, { kind: "accepted" });
    const told: string[] = [];
    const study = holdfast.job("study", {
      worker: "studies",
      onStart: () => told.push("start"),
      onSuccess: () => told.push("success"),
      onFailure: () => told.push("failure"),
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(1_000);
    const [order] = target.orders;
    if (!order) throw new Error("Nothing was sent.");
    expect(await complete(world, order)).toBe(true);
    expectEnded(await world.record(id), "completed", 1);
    expect(told).toEqual(["start"]);
  });

  test("middleware surrounds the request and may prevent it, but not change the response", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, DONE, { kind: "accepted" });
    const seen: unknown[] = [];
    const study = holdfast.job<string>("study", {
      worker: "studies",
      retry: { attempts: 1 },
      middleware: async (run, next) => {
        if (run.tags.includes("refused")) throw new Error("not today");
        seen.push(await next());
        throw new Error("too late");
      },
    });
    await holdfast.start();
    const done = await world.ended((await study.enqueue("first")).id);
    expectEnded(done, "completed", 1);
    expect(done.result).toBe('"done elsewhere"');
    const accepted = await study.enqueue("second");
    await world.clock.advance(1_000);
    expectEnded(await world.record(accepted.id), "running", 1);
    const refused = await world.ended((await study.enqueue("third", { tags: ["refused"] })).id);
    expectEnded(refused, "failed", 1);
    expect(target.orders.map(({ run }) => run.input)).toEqual(["first", "second"]);
    expect(seen).toEqual(["done elsewhere", undefined]);
  });

  test("the follow-up run of a batch is sent within the bounded pass that ended its last child", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, DONE);
    const after = holdfast.job("after", { worker: "studies" });
    const child = holdfast.job("child", { run: () => undefined });
    const parent = holdfast.job("parent", {
      run: (_: unknown, ctx) => ctx.enqueueBatch([{ job: child, input: 1 }], { then: after }),
    });
    await parent.enqueue({});
    const tick = (limit: number) => world.clock.until(holdfast.tick({ limit }));
    expect(await tick(1)).toMatchObject({ executed: 1, dispatched: 0 });
    expect(await tick(10)).toMatchObject({ executed: 1, dispatched: 1 });
    expect(target.orders).toMatchObject([{ run: { job: "after", input: { completed: 1 } } }]);
  });

  test("one bounded pass executes and dispatches no more than its limit, together", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, DONE, { kind: "accepted" });
    const study = holdfast.job("study", { worker: "studies" });
    const mail = holdfast.job("mail", { run: () => "sent" });
    await study.enqueueMany([1, 2, 3]);
    await mail.enqueueMany([1, 2, 3]);
    const first = await world.clock.until(holdfast.tick({ limit: 4 }));
    expect(first.executed + first.dispatched).toBe(4);
    expect(first.dispatched).toBe(target.orders.length);
    const second = await world.clock.until(holdfast.tick({ limit: 4 }));
    expect(second.executed + second.dispatched).toBe(2);
    expect(target.orders).toHaveLength(3);
  });

  test("a stored input is brought up to date and checked before it is sent", async ({ world }) => {
    const { target, holdfast } = scene(world, DONE);
    const other = world.member().holdfast;
    const old = other.job("study", { retry: { attempts: 1 } });
    holdfast.job("study", {
      worker: "studies",
      version: 2,
      upcast: (input) => {
        if (input === null) throw new TypeError("too old");
        return { study: input };
      },
    });
    await holdfast.start();
    const right = await old.enqueue(7);
    const wrong = await old.enqueue(null);
    expectEnded(await world.ended(right.id), "completed", 1);
    expectEnded(await world.ended(wrong.id), "failed", 1);
    expect(target.orders.map(({ run }) => run.input)).toEqual([{ study: 7 }]);
  });

  test("a callback is taken from the worker that got the run, and from no other target's", async ({
    world,
  }) => {
    const secret = "a-secret-of-enough-letters";
    const others = "the-secret-of-the-others";
    const { holdfast } = world.member({
      ...OPTIONS,
      workers: {
        studies: { url: "https://studies.example.com", secret: ["a-newer-secret-of-ours", secret] },
        mails: { url: "https://mails.example.com", secret: others },
      },
    });
    holdfast.job("study", { worker: "studies" });
    holdfast.job("mail", { worker: "mails" });
    holdfast.job("here", { run: () => 1 });
    const grant = { runId: "0199c1aa-0000-7000-8000-000000000001", fence: 41 };
    const token = callbackToken(grant, secret);
    expect(holdfast[serverInternals].isCallbackToken({ ...grant, job: "study", token })).toBe(true);
    expect(
      holdfast[serverInternals].isCallbackToken({ ...grant, fence: 42, job: "study", token }),
    ).toBe(false);
    for (const job of ["mail", "here", "unheard-of", "__proto__"])
      expect(holdfast[serverInternals].isCallbackToken({ ...grant, job, token })).toBe(false);
    const forged = callbackToken(grant, others);
    expect(
      holdfast[serverInternals].isCallbackToken({ ...grant, job: "study", token: forged }),
    ).toBe(false);
  });

  test("a job has a handler or a target that exists, and a start needs to be called back", async ({
    world,
  }) => {
    const { holdfast } = scene(world, DONE);
    const both = { worker: "studies", run: () => 1 };
    expect(() => holdfast.job("both", both)).toThrow(/exclude each other/);
    expect(() => holdfast.job("typo", { worker: "study" })).toThrow(ConfigurationError);
    const { holdfast: unreachable } = world.member({ workers: OPTIONS.workers ?? {} });
    unreachable.job("study", { worker: "studies" });
    await expect(unreachable.start()).rejects.toThrow(/publicUrl: is needed/);
    await expect(unreachable.tick()).rejects.toThrow(/publicUrl: is needed/);
  });

  test("each request and its response are kept, without secrets", async ({ world }) => {
    const busy: DispatchResult = {
      kind: "failed",
      error: { code: "HTTP_503", name: "DispatchError", message: "status 503: {...}" },
      isPermanent: false,
      reply: { status: 503, text: '{"why":"busy","token":"CANARY"}' },
    };
    const refused: DispatchResult = {
      kind: "failed",
      error: { code: "TARGET_REFUSED", name: "DispatchError", message: "leads astray" },
      isPermanent: false,
    };
    const slow: Play = async () => {
      await delay(world.clock, 1_500);
      return { kind: "completed", result: '{"found":3,"password":"CANARY"}' };
    };
    const target = new PlayedTarget(() => world.now(), [UNDELIVERED, busy, refused, slow]);
    const url = "https://studies.example.com/run?key=CANARY";
    const workers = { studies: { url, secret: "a-secret-of-enough-letters" } };
    const { holdfast } = world.member({ ...OPTIONS, workers }, { sends: target });
    const study = holdfast.job("study", {
      worker: "studies",
      logs: { keep: "none" },
      retry: { attempts: 9, delay: "1s" },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 3);
    const exchanges = await holdfast.runs.exchanges(id);
    const common = {
      method: "POST",
      target: "studies",
      url: "https://studies.example.com/run?…",
      fence: expect.any(Number),
      durationMs: 0,
      status: null,
      answer: null,
      error: null,
      callback: null,
    };
    expect(exchanges).toEqual(
      [
        { attempt: 1, outcome: "not_delivered", error: "ECONNREFUSED" },
        {
          attempt: 1,
          outcome: "failed",
          status: 503,
          answer: '{"why":"busy","token":"***"}',
        },
        { attempt: 2, outcome: "failed", error: "leads astray" },
        {
          attempt: 3,
          outcome: "completed",
          status: 200,
          answer: '{"found":3,"password":"***"}',
          durationMs: 1_500,
        },
      ].map((each, at) => ({ ...common, ...each, at: new Date(target.orders[at]?.at ?? 0) })),
    );
    expect((await holdfast.runs.logs(id)).lines).toEqual([]);
  });

  test("the log shows the callback that ended an accepted run, and none if the run was taken away", async ({
    world,
  }) => {
    const { target, holdfast } = scene(world, { kind: "accepted" });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(40_000);
    const second = target.orders[1];
    if (!second) throw new Error("It was to be sent twice.");
    expect(await complete(world, second)).toBe(true);
    const endedAt = new Date(world.now());
    await world.clock.advance(1_000);
    expect(await holdfast.runs.exchanges(id)).toMatchObject([
      { attempt: 1, outcome: "accepted", status: 202, callback: null },
      { attempt: 2, outcome: "accepted", callback: { verb: "complete", at: endedAt } },
    ]);
  });

  test("a run ends as it was answered also where the note of it cannot be stored", async ({
    world,
  }) => {
    const { member, holdfast } = scene(world, DONE);
    member.faults.fail("logs.keepReply", "before", { times: 99 });
    const study = holdfast.job("study", { worker: "studies" });
    await holdfast.start();
    const { id } = await study.enqueue({});
    expectEnded(await world.ended(id), "completed", 1);
    expect(await holdfast.runs.exchanges(id)).toEqual([]);
  });

  test("an enqueue wakes only workers that execute its job", async ({ world }) => {
    const { member, holdfast } = scene(world, DONE);
    const jobs = {
      study: holdfast.job("study", { worker: "studies" }),
      report: holdfast.job("report", { run: () => "done here" }),
    };
    await holdfast.start();
    await world.clock.advance(5_000);
    for (const [name, job] of Object.entries(jobs)) {
      member.faults.clear();
      await world.ended((await job.enqueue({})).id);
      const claims = member.faults.of("claims.exchange").filter(({ params }) => params.limit > 0);
      expect(new Set(claims.flatMap(({ params }) => params.jobs))).toEqual(new Set([name]));
    }
  });

  test("a change that makes nothing ready costs one poll, and no claim", async ({ world }) => {
    const { member, holdfast } = scene(world, DONE);
    holdfast.job("study", { worker: "studies" });
    holdfast.job("report", { run: () => "done here" });
    await holdfast.start();
    await holdfast.queues.pause("default");
    await world.clock.advance(5_000);
    member.faults.clear();
    await holdfast.queues.resume("default");
    await world.clock.advance(100);
    expect(member.faults.of("work.poll").length).toBe(1);
    expect(member.faults.of("claims.exchange")).toEqual([]);
  });
}
