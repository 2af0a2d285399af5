// Tests who holds a run: heartbeats, takeovers, and the acts of an instance that can no longer be sure.

import { expect } from "vitest";
import { LeaseLostError } from "../../src/shared/errors.js";
import type { RunRecord } from "../../src/store/runs/runs.js";
import {
  aborted,
  Door,
  expectEnded,
  heard,
  type Member,
  type World,
  type WorldTest,
} from "./world.js";

const LEASE_MS = 30_000;

/** The polls of an instance that found the time to be that or later. */
function pollsSince(member: Member, atMs: number) {
  return member.faults.of("work.poll").filter(({ answer }) => answer && answer.now >= atMs);
}

async function untilRunning(world: World, id: string): Promise<RunRecord> {
  return world.reached(id, ({ status }) => status === "running", { withinMs: 10_000 });
}

export function leaseSuite(test: WorldTest): void {
  test("heartbeats keep a long run alive for many leases", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    for (const { holdfast, clock } of [one, other])
      holdfast.job("study", { lease: "3s", run: () => clock.sleep(60_000) });
    await one.holdfast.start();
    await other.holdfast.start();
    const { id } = await one.holdfast.enqueue("study", {});
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    const beats = one.faults.of("leases.renew").length + other.faults.of("leases.renew").length;
    expect(beats).toBeGreaterThanOrEqual(58);
    expect(beats).toBeLessThanOrEqual(62);
  });

  test("a run that a remote worker lost on its last attempt has failed, and is not begun again", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    holdfast.job("study", { lease: "3s", retry: { attempts: 2, delay: "1s", jitter: 0 } });
    await holdfast.start();
    const { id } = await holdfast.enqueue("study", {});
    const claim = () => holdfast.remote.claim({ instance: "elsewhere", jobs: ["study"], limit: 1 });
    for (const attempt of [1, 2]) {
      await world.reached(id, ({ status }) => status === "pending");
      await world.clock.advance(2_000);
      const [run] = await claim();
      expect(run).toMatchObject({ id, attempt });
      await world.clock.advance(10_000);
    }
    expect(await claim()).toEqual([]);
    expectEnded(await world.record(id), "failed", 2);
  });

  test("a run that has ended is renewed until its result is stored, so that no instance starts it again", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const run = () => one.clock.sleep(2_000).then(() => "first");
    one.holdfast.job("study", { lease: "3s", run });
    const study = other.holdfast.job("study", { lease: "3s", run: () => "second" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    one.faults.holdUp("claims.exchange");
    await other.holdfast.start();
    await world.clock.advance(20_000);
    one.faults.deliver("claims.exchange");
    const ended = await world.ended(id);
    expectEnded(ended, "completed", 1);
    expect(ended.result).toBe('"first"');
    expect(heard(other, "run.reclaimed")).toEqual([]);
  });

  test("one statement renews everything that an instance holds", async ({ world }) => {
    const { holdfast, faults, clock } = world.member();
    const study = holdfast.job("study", { run: () => clock.sleep(60_000) });
    const brief = holdfast.job("brief", { lease: "6s", run: () => clock.sleep(30_000) });
    await holdfast.start();
    for (const job of [study, study, study, brief]) {
      await job.enqueue({});
      await world.clock.advance(100);
    }
    faults.clear();
    await world.clock.advance(20_000);
    // A third of the shortest lease held.
    expect(faults.of("leases.renew").length).toBeGreaterThanOrEqual(9);
    expect(faults.of("leases.renew").length).toBeLessThanOrEqual(11);
    for (const { params } of faults.of("leases.renew")) expect(params.fences).toHaveLength(4);
  });

  test("a silent holder's run is taken over by the first poll after its lease expired", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    one.holdfast.job("study", { run: () => new Promise(() => undefined) });
    const study = other.holdfast.job("study", { run: () => "taken over" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    await other.holdfast.start();
    await world.clock.advance(7_000);
    one.clock.pause();
    const { leaseUntil } = await world.record(id);
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect(run.result).toBe('"taken over"');
    expect(pollsSince(other, leaseUntil as number)).toHaveLength(1);
    expect(run.finishedAt as number).toBeLessThanOrEqual((leaseUntil as number) + 1_200);
    expect(heard(other, "run.reclaimed")).toMatchObject([
      { run: id, attempt: 1, end: "lost", to: "pending", holder: one.holdfast.instanceId },
    ]);
    expect((await other.holdfast.runs.attempts(id)).map(({ end }) => end)).toEqual([
      "lost",
      "completed",
    ]);
  });

  test("all that a dead holder held is taken over by one poll, however many leases it had", async ({
    world,
  }) => {
    const store = await world.store();
    const { holdfast, faults } = world.member();
    const study = holdfast.job("study", { retry: { attempts: 2 }, run: () => "taken over" });
    const count = 350;
    const runs = await study.enqueueMany(Array.from({ length: count }, () => ({})));
    const holder = await store.instances.announce({
      instanceId: "dead",
      app: null,
      release: null,
      jobs: [],
      schedules: [],
      isScheduler: false,
      pollMs: 1_000,
    });
    for (const { id } of runs) {
      await store.claims.exchange({
        holder,
        token: id,
        settlements: [],
        limit: 1,
        wantsSuspect: false,
        jobs: ["study"],
        queues: null,
        random: 0,
      });
    }
    await world.clock.advance(30_000);
    await holdfast.start();
    await world.clock.rest();
    const reclaimed = faults.of("leases.reclaim").flatMap(({ answer }) => answer ?? []);
    expect(reclaimed).toHaveLength(count);
    expect(faults.of("work.poll")).toHaveLength(1);
  });

  test("a heartbeat that is late because the event loop was blocked says for how long, and which jobs ran", async ({
    world,
  }) => {
    const member = world.member();
    const { holdfast, clock } = member;
    const finish = new Door();
    holdfast.job("long", { lease: LEASE_MS, run: () => finish.opened });
    holdfast.job("short", { lease: LEASE_MS, run: () => finish.opened });
    holdfast.job("over", { lease: LEASE_MS, run: () => "done" });
    await holdfast.start();
    await world.ended((await holdfast.enqueue("over", {})).id);
    const { id } = await holdfast.enqueue("long", {});
    await holdfast.enqueue("short", {});
    await untilRunning(world, id);
    await world.clock.advance(LEASE_MS);
    expect(heard(member, "heartbeat.late")).toEqual([]);
    clock.pause();
    await world.clock.advance(LEASE_MS);
    clock.resume();
    await world.clock.advance(1);
    const [late, ...more] = heard(member, "heartbeat.late");
    expect(late).toMatchObject({ jobs: ["long", "short"], leaseMs: LEASE_MS });
    // Its heartbeat was due within the first third.
    expect(late?.lateMs).toBeGreaterThanOrEqual((LEASE_MS * 2) / 3);
    expect(late?.lateMs).toBeLessThanOrEqual(LEASE_MS);
    expect(more).toEqual([]);
    finish.open();
    await world.ended(id);
  });

  test("a holder that wakes up after a takeover gets an error, and its later calls are not stored", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const door = new Door<unknown>();
    const finish = new Door();
    one.holdfast.job("study", {
      run: async (_, ctx) => {
        door.open(await aborted(ctx.signal));
        await finish.opened;
        return "too late";
      },
    });
    const study = other.holdfast.job("study", { run: () => "in time" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    await other.holdfast.start();
    one.clock.pause();
    expectEnded(await world.ended(id), "completed", 2);
    one.clock.resume();
    expect(await world.clock.until(door.opened, { withinMs: 12_000 })).toBeInstanceOf(
      LeaseLostError,
    );
    finish.open();
    await world.clock.advance(60_000);
    const run = await world.record(id);
    expectEnded(run, "completed", 2);
    expect(run.result).toBe('"in time"');
    expect(run.holder).toBe(other.holdfast.instanceId);
    expect(heard(one, "run.completed")).toEqual([]);
    expect(heard(one, "run.lost")).toMatchObject([{ run: id, attempt: 1 }]);
  });

  test("a result that was finished while its holder slept is refused if the run was taken", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const finish = new Door();
    one.holdfast.job("study", {
      run: async () => {
        await finish.opened;
        return "too late";
      },
    });
    const study = other.holdfast.job("study", { run: () => "in time" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    const { fence } = await untilRunning(world, id);
    await other.holdfast.start();
    one.clock.pause();
    // The handler ends now, but its instance cannot say so.
    finish.open();
    expectEnded(await world.ended(id), "completed", 2);
    one.clock.resume();
    await world.clock.advance(60_000);
    expect(await world.record(id)).toMatchObject({ result: '"in time"', attempt: 2 });
    expect(heard(one, "run.stale")).toMatchObject([{ run: id, fence }]);
  });

  test("a holder goes on after its lease expired if no instance reclaimed the run", async ({
    world,
  }) => {
    const { holdfast, clock } = world.member();
    const signals: AbortSignal[] = [];
    const study = holdfast.job("study", {
      run: async (_, { signal }) => {
        signals.push(signal);
        await clock.sleep(10_000);
        return "alone";
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await world.clock.advance(2_000);
    clock.pause();
    await world.clock.advance(10 * LEASE_MS);
    clock.resume();
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });

  test("an instance that gets its own lost run again stops the earlier execution first", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const reclaimer = world.member();
    const log: string[] = [];
    const study = holdfast.job("study", {
      run: async (_, { attempt, signal }) => {
        log.push(`${attempt} starts`);
        signal.addEventListener("abort", () => log.push(`${attempt} is told to stop`));
        await clock.sleep(attempt === 1 ? 120_000 : 1_000);
        return attempt;
      },
    });
    reclaimer.holdfast.job("other", { run: () => undefined });
    await holdfast.start();
    await reclaimer.holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    clock.pause();
    await world.reached(id, ({ status }) => status === "pending");
    // It hears of the work before it hears of its loss.
    faults.fail("leases.renew", "before", { times: 8 });
    clock.resume();
    const run = await world.ended(id);
    expectEnded(run, "completed", 2);
    expect(run.result).toBe("2");
    await world.clock.advance(100_000);
    expect(log).toEqual(["1 starts", "1 is told to stop", "2 starts"]);
  });

  test("a handler can ask whether its run is still its own", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    const wake = new Door();
    const door = new Door<unknown>();
    one.holdfast.job("study", {
      run: async (_, ctx) => {
        await ctx.heartbeat();
        await wake.opened;
        door.open(await ctx.heartbeat().catch((error: unknown) => error));
      },
    });
    const study = other.holdfast.job("study", { run: () => "in time" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    await other.holdfast.start();
    one.clock.pause();
    await world.ended(id);
    wake.open();
    expect(await door.opened).toBeInstanceOf(LeaseLostError);
  });

  test("buffered runs are not started once the instance cannot be sure that it holds them", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const started: { n: number; atMs: number }[] = [];
    const startAt = world.clock.wallMs();
    const study = holdfast.job<number>("study", {
      lease: "4s",
      run: async (n) => {
        started.push({ n, atMs: world.clock.wallMs() - startAt });
        await clock.sleep(n === 0 ? 1 : 1_000);
      },
    });
    await holdfast.start({ worker: { concurrency: 1 } });
    const short = await study.enqueueMany(Array.from({ length: 50 }, () => 0));
    for (const { id } of short) await world.ended(id);
    started.length = 0;
    faults.keepBack("leases.renew");
    faults.keepBack("work.poll");
    const claimedAt = world.clock.wallMs() - startAt;
    const enqueued = await study.enqueueMany([1, 2, 3, 4, 5, 6, 7, 8]);
    await world.clock.advance(60_000);
    // Trust is three quarters of a lease from the sending of the claim, and no renewal was answered.
    expect(started.map(({ n }) => n)).toEqual([1, 2, 3]);
    expect(started.every(({ atMs }) => atMs < claimedAt + 3_000)).toBe(true);
    faults.deliver("work.poll");
    faults.deliver("leases.renew");
    for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
    expect(started.map(({ n }) => n).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("a renewal that is never answered does not keep the next ones from being sent", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    for (const { holdfast, clock } of [one, other])
      holdfast.job("study", { run: () => clock.sleep(5 * LEASE_MS) });
    await one.holdfast.start();
    const { id } = await one.holdfast.enqueue("study", {});
    await untilRunning(world, id);
    await other.holdfast.start();
    // The first renewal is lost on its way, without an error; the connection is then replaced.
    one.faults.swallow("leases.renew");
    expectEnded(await world.ended(id, { withinMs: 8 * LEASE_MS }), "completed", 1);
  });

  test("trust in a lease counts from the sending of the claim, not from its answer", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const startedAt: number[] = [];
    const study = holdfast.job("study", {
      lease: "4s",
      run: () => void startedAt.push(world.clock.wallMs()),
    });
    await holdfast.start();
    await world.clock.rest();
    faults.keepBack("claims.exchange");
    faults.keepBack("leases.renew");
    faults.keepBack("work.poll");
    const { id } = await study.enqueue({});
    await world.clock.advance(3_500);
    faults.deliver("claims.exchange");
    await world.clock.advance(100);
    expect(startedAt).toEqual([]);
    faults.deliver("work.poll");
    faults.deliver("leases.renew");
    await world.ended(id);
    expect(startedAt).toHaveLength(1);
  });

  test("trust in a renewal counts from its sending, not from its answer", async ({ world }) => {
    const { holdfast, clock, faults } = world.member();
    const started: number[] = [];
    const study = holdfast.job<number>("study", {
      lease: "4s",
      run: async (ms) => {
        started.push(ms);
        await clock.sleep(ms);
      },
    });
    await holdfast.start({ worker: { concurrency: 1 } });
    for (const { id } of await study.enqueueMany(Array.from({ length: 50 }, () => 1)))
      await world.ended(id);
    started.length = 0;
    faults.keepBack("work.poll");
    faults.keepBack("leases.renew");
    const enqueued = await study.enqueueMany([4_800, 2]);
    // The first renewal is sent after a third of the lease and answered 0.9 s later; then silence.
    await world.clock.advance(2_230);
    faults.deliver("leases.renew");
    await world.clock.rest();
    faults.keepBack("leases.renew");
    await world.clock.advance(5_000);
    expect(started).toEqual([4_800]);
    faults.deliver("work.poll");
    faults.deliver("leases.renew");
    for (const { id } of enqueued) await world.ended(id);
  });

  test("an instance that cannot renew its own leases takes nothing over, not even from itself", async ({
    world,
  }) => {
    const { holdfast, clock, faults } = world.member();
    const study = holdfast.job("study", { lease: "3s", run: () => clock.sleep(20_000) });
    await holdfast.start();
    const { id } = await study.enqueue({});
    await untilRunning(world, id);
    faults.fail("leases.renew", "before", { times: 40 });
    expectEnded(await world.ended(id), "completed", 1);
    expect(faults.of("leases.reclaim").every(({ answer }) => answer?.length === 0)).toBe(true);
  });

  test("a run whose loss is not to be repeated fails when its holder falls silent", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const options = { onLost: "fail" } as const;
    one.holdfast.job("pay", { ...options, run: () => new Promise(() => undefined) });
    const pay = other.holdfast.job("pay", { ...options, run: () => "paid twice" });
    await one.holdfast.start();
    const { id } = await pay.enqueue({});
    await untilRunning(world, id);
    await other.holdfast.start();
    one.clock.pause();
    const run = await world.ended(id);
    expectEnded(run, "failed", 1);
    expect(JSON.parse(run.error as string)).toMatchObject({ code: "LEASE_EXPIRED" });
  });

  test("if a loss would be final, the start is stored before the handler begins", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const marked: boolean[] = [];
    const run = (_: unknown, { runId }: { runId: string }) => {
      const marks = faults.of("leases.markStarted").flatMap(({ answer }) => answer ?? []);
      marked.push(marks.some(({ id }) => id === runId));
    };
    const once = holdfast.job("once", { retry: { attempts: 1 }, run });
    const often = holdfast.job("often", { retry: { attempts: 2 }, run });
    const lost = holdfast.job("lost", { onLost: "fail", run });
    await holdfast.start();
    for (const { id } of await once.enqueueMany([1, 2, 3])) await world.ended(id);
    expect(marked.splice(0)).toEqual([true, true, true]);
    expect(faults.of("leases.markStarted")).toHaveLength(1);
    await world.ended((await lost.enqueue({})).id);
    expect(marked.splice(0)).toEqual([true]);
    await world.ended((await often.enqueue({})).id);
    expect(marked.splice(0)).toEqual([false]);
  });

  test("a run whose start could not be stored is not begun by an instance that lost it", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const started: string[] = [];
    one.holdfast.job("once", { retry: { attempts: 1 }, run: () => void started.push("one") });
    const once = other.holdfast.job("once", {
      retry: { attempts: 1 },
      run: () => void started.push("other"),
    });
    await one.holdfast.start();
    await world.clock.rest();
    one.faults.keepBack("leases.markStarted");
    const { id } = await once.enqueue({});
    await untilRunning(world, id);
    await other.holdfast.start();
    // Its mark is stored, but it hears of that only when the run has long been judged lost.
    one.clock.pause();
    expectEnded(await world.ended(id), "failed", 1);
    one.clock.resume();
    await world.clock.advance(LEASE_MS);
    one.faults.deliver("leases.markStarted");
    await world.clock.advance(LEASE_MS);
    expect(started).toEqual([]);
    // And it is none the worse for it.
    await world.clock.until(other.holdfast.stop());
    const { id: next } = await one.holdfast.enqueue("once", {});
    expectEnded(await world.ended(next, { withinMs: 5_000 }), "completed", 1);
    expect(started).toEqual(["one"]);
  });

  test("a run that was claimed for its last attempt and never begun is not burnt", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    one.holdfast.job("once", { retry: { attempts: 1 }, run: () => "one" });
    const once = other.holdfast.job("once", { retry: { attempts: 1 }, run: () => "other" });
    await one.holdfast.start();
    await world.clock.rest();
    one.faults.fail("leases.markStarted", "before", { times: 1_000 });
    one.faults.keepBack("claims.exchange");
    const { id } = await once.enqueue({});
    await world.clock.advance(2_000);
    one.clock.pause();
    const { leaseUntil } = await world.record(id);
    await other.holdfast.start();
    const run = await world.ended(id);
    expectEnded(run, "completed", 1);
    expect(run.result).toBe('"other"');
    expect(pollsSince(other, leaseUntil as number)).toHaveLength(1);
  });

  test("a suspect runs alone: nothing starts beside it until it has settled", async ({ world }) => {
    const dead = world.member();
    const heir = world.member();
    const runningNow = new Set<string>();
    const beside: string[][] = [];
    dead.holdfast.job<string>("study", { run: () => new Promise(() => undefined) });
    const study = heir.holdfast.job<string>("study", {
      run: async (name) => {
        for (const other of runningNow) if (name.startsWith("suspect")) beside.push([name, other]);
        for (const other of runningNow) if (other.startsWith("suspect")) beside.push([name, other]);
        runningNow.add(name);
        await heir.clock.sleep(1_000);
        runningNow.delete(name);
      },
    });
    await dead.holdfast.start({ worker: { concurrency: 3 } });
    const suspects = await study.enqueueMany(["suspect 1", "suspect 2", "suspect 3"]);
    for (const { id } of suspects) await untilRunning(world, id);
    dead.clock.pause();
    await world.clock.advance(LEASE_MS);
    await heir.holdfast.start({ worker: { concurrency: 10 } });
    await world.clock.advance(3_000);
    const fresh = await study.enqueueMany(Array.from({ length: 20 }, (_, n) => `fresh ${n}`));
    for (const { id } of suspects) expectEnded(await world.ended(id), "completed", 2);
    for (const { id } of fresh) expectEnded(await world.ended(id), "completed", 1);
    expect(beside).toEqual([]);
  });

  test("suspects on their last attempt run one by one as well", async ({ world }) => {
    const dead = world.member();
    const heir = world.member();
    let runningCount = 0;
    let most = 0;
    const retry = { attempts: 2 };
    dead.holdfast.job("study", { retry, run: () => new Promise(() => undefined) });
    const study = heir.holdfast.job("study", {
      retry,
      run: async () => {
        runningCount += 1;
        most = Math.max(most, runningCount);
        await heir.clock.sleep(1_000);
        runningCount -= 1;
      },
    });
    await dead.holdfast.start({ worker: { concurrency: 4 } });
    const suspects = await study.enqueueMany([1, 2, 3, 4]);
    for (const { id } of suspects) await untilRunning(world, id);
    dead.clock.pause();
    await heir.holdfast.start();
    heir.faults.keepBack("leases.markStarted");
    await world.clock.advance(LEASE_MS + 2_000);
    heir.faults.deliver("leases.markStarted");
    for (const { id } of suspects) expectEnded(await world.ended(id), "completed", 2);
    expect(most).toBe(1);
  });

  test("a long innocent suspect blocks its instance for 5 s only", async ({ world }) => {
    const dead = world.member();
    const heir = world.member();
    const startedAt: number[] = [];
    dead.holdfast.job("long", { run: () => new Promise(() => undefined) });
    const long = heir.holdfast.job("long", {
      run: async () => {
        startedAt.push(world.clock.wallMs());
        await heir.clock.sleep(60_000);
      },
    });
    const quick = heir.holdfast.job("quick", { run: () => world.clock.wallMs() });
    await dead.holdfast.start();
    const { id } = await long.enqueue({});
    await untilRunning(world, id);
    dead.clock.pause();
    await heir.holdfast.start();
    await world.reached(id, ({ attempt, status }) => attempt === 2 && status === "running");
    const { id: next } = await quick.enqueue({});
    const run = await world.ended(next);
    expect(Number(run.result) - (startedAt[0] as number)).toBe(5_000);
  });
}
