// Lost replies and outages of the database: acknowledged work is not lost, nothing is stored twice, and an instance
// recovers by itself.

import { expect } from "vitest";
import { OutcomeUnknownError, StoreUnavailableError } from "../../src/shared/errors.js";
import type { Fault } from "../support/faulty-store.js";
import { expectEnded, heard, type World, type WorldTest } from "./world.js";

/** As it is unless somebody sets it. */
const POLL_MS = 1_000;
const LEASE_MS = 30_000;
const LOST = ["before", "after"] as const satisfies readonly Fault[];

/** An instance that notes every start as run and fence. */
function recorder(world: World, options: { readonly attempts?: number } = {}) {
  const member = world.member();
  const starts: string[] = [];
  const study = member.holdfast.job<number>("study", {
    retry: { attempts: options.attempts ?? 3 },
    run: async (ms, { runId, fence }) => {
      starts.push(`${runId} ${fence}`);
      if (ms > 0) await member.clock.sleep(ms);
      return "done";
    },
  });
  return { ...member, study, starts };
}

export function faultSuite(test: WorldTest): void {
  for (const fault of LOST) {
    const when = fault === "before" ? "never arrives" : "takes effect, but whose answer is lost";

    test(`an enqueue that ${when} is rejected, and is stored once if repeated with its key`, async ({
      world,
    }) => {
      const { holdfast, faults, study } = recorder(world);
      await holdfast.start();
      faults.fail("enqueue.runs", fault);
      const error = fault === "before" ? StoreUnavailableError : OutcomeUnknownError;
      await expect(study.enqueue(0, { key: "k" })).rejects.toThrow(error);
      const { id, deduplicated } = await study.enqueue(0, { key: "k" });
      expect(deduplicated).toBe(fault === "after");
      expectEnded(await world.ended(id), "completed", 1);
      expect((await holdfast.runs.list()).runs).toHaveLength(1);
    });

    test(`callers of an enqueue that ${when} hear of it at once, all of them`, async ({
      world,
    }) => {
      const { holdfast, faults, study } = recorder(world);
      await holdfast.runs.list();
      faults.fail("enqueue.runs", fault, { times: 1_000 });
      const answers = await Promise.allSettled(Array.from({ length: 300 }, () => study.enqueue(0)));
      expect(answers.every(({ status }) => status === "rejected")).toBe(true);
      expect(faults.of("enqueue.runs").length).toBeLessThanOrEqual(3);
    });

    test(`a claim that ${when} loses no run, burns no attempt and starts none twice`, async ({
      world,
    }) => {
      const { holdfast, faults, study, starts } = recorder(world);
      await holdfast.start();
      await world.clock.rest();
      faults.fail("claims.exchange", fault, { fits: ({ limit }) => limit > 0 });
      const enqueued = await study.enqueueMany(Array.from({ length: 25 }, () => 100));
      for (const { id } of enqueued)
        expectEnded(await world.ended(id, { withinMs: 5_000 }), "completed", 1);
      expect(starts).toHaveLength(25);
      expect(new Set(starts).size).toBe(25);
    });

    test(`a claim that ${when} is read back as soon as the database answers`, async ({ world }) => {
      const { holdfast, faults, study, starts } = recorder(world);
      await holdfast.start();
      await world.clock.rest();
      faults.fail("claims.exchange", fault, { fits: ({ limit }) => limit > 0 });
      faults.fail("claims.byToken", "before", { times: 4 });
      const { id } = await study.enqueue(100);
      expectEnded(await world.ended(id, { withinMs: 20_000 }), "completed", 1);
      expect(starts).toHaveLength(1);
    });

    test(`a settlement that ${when} is repeated under the same fence`, async ({ world }) => {
      const member = recorder(world);
      const { holdfast, faults, study, starts } = member;
      await holdfast.start();
      await world.clock.rest();
      faults.fail("claims.exchange", fault, {
        times: 3,
        fits: ({ settlements }) => settlements.length > 0,
      });
      const { id } = await study.enqueue(0);
      const run = await world.ended(id);
      await world.clock.advance(60_000);
      expectEnded(run, "completed", 1);
      expect(run.result).toBe('"done"');
      expect(starts).toHaveLength(1);
      const sent = faults.of("claims.exchange").flatMap(({ params }) => params.settlements);
      expect(sent.length).toBe(4);
      expect(new Set(sent.map(({ fence }) => fence)).size).toBe(1);
      // Applied the first time and repeated: that is not a result that came too late.
      expect(heard(member, "run.stale")).toEqual([]);
    });

    test(`a retry that ${when} is counted once`, async ({ world }) => {
      const { holdfast, faults } = world.member();
      const attempts: number[] = [];
      const study = holdfast.job("study", {
        retry: { attempts: 3, delay: "10s", jitter: 0 },
        run: (_, { attempt }) => {
          attempts.push(attempt);
          throw new Error("no");
        },
      });
      await holdfast.start();
      await world.clock.rest();
      faults.fail("claims.exchange", fault, { fits: ({ settlements }) => settlements.length > 0 });
      const { id } = await study.enqueue({});
      expectEnded(await world.ended(id), "failed", 3);
      expect(attempts).toEqual([1, 2, 3]);
      expect(await holdfast.runs.attempts(id)).toHaveLength(3);
    });

    test(`a renewal that ${when} does not end the run`, async ({ world }) => {
      const { holdfast, faults, study, starts } = recorder(world);
      const heir = recorder(world);
      await holdfast.start();
      const { id } = await study.enqueue(120_000);
      await world.clock.rest();
      await heir.holdfast.start();
      faults.fail("leases.renew", fault, { times: 20 });
      expectEnded(await world.ended(id), "completed", 1);
      expect([...starts, ...heir.starts]).toHaveLength(1);
    });

    test(`a start whose mark ${when} is not risked, and not lost`, async ({ world }) => {
      const { holdfast, faults, study, starts } = recorder(world, { attempts: 1 });
      await holdfast.start();
      await world.clock.rest();
      faults.fail("leases.markStarted", fault, { times: 2 });
      const enqueued = await study.enqueueMany([0, 0, 0]);
      for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
      expect(starts).toHaveLength(3);
      const answered = faults.of("leases.markStarted").filter((call) => call.fault === undefined);
      const marked = answered.flatMap(({ answer }) => answer ?? []);
      expect(starts.sort()).toEqual(marked.map(({ id, fence }) => `${id} ${fence}`).sort());
    });
  }

  test("an instance outlives an outage of minutes and loses nothing", async ({ world }) => {
    const member = recorder(world);
    const { holdfast, faults, study, starts } = member;
    await holdfast.start();
    const before = await study.enqueueMany(Array.from({ length: 15 }, () => 1_000));
    await world.clock.advance(500);
    faults.goDown();
    await world.clock.advance(300_000);
    const whileDown = faults.calls.filter(({ fault }) => fault === "before").length;
    faults.comeUp();
    const after = await study.enqueueMany([0, 0, 0]);
    for (const { id } of [...before, ...after])
      expect(await world.ended(id, { withinMs: 60_000 })).toMatchObject({ status: "completed" });
    expect(new Set(starts).size).toBe(starts.length);
    expect(heard(member, "store.recovered").length).toBeGreaterThan(0);
    // It asks again and again, but not without pause.
    expect(whileDown).toBeLessThan(1_500);
    expect(whileDown).toBeGreaterThan(30);
  });

  test("after an outage the runs of a silent holder are taken over within a poll and a second", async ({
    world,
  }) => {
    const silent = recorder(world);
    const heir = recorder(world);
    await silent.holdfast.start();
    const { id } = await silent.study.enqueue(600_000);
    await world.clock.rest();
    await heir.holdfast.start();
    for (const { faults } of [silent, heir]) faults.goDown();
    await world.clock.advance(300_000);
    heir.faults.comeUp();
    await world.clock.advance(POLL_MS + 1_000);
    expect(heard(heir, "run.reclaimed").map(({ run }) => run)).toEqual([id]);
    expect(heir.starts).toHaveLength(1);
  });

  test("a pass over schedules that is not answered keeps no run from being taken over", async ({
    world,
  }) => {
    const silent = recorder(world);
    silent.holdfast.schedule("often", silent.study, { every: "1m", input: 0 });
    await silent.holdfast.start();
    const { id } = await silent.study.enqueue(600_000);
    await world.clock.rest();
    silent.faults.goDown();
    await world.clock.advance(90_000);
    const heir = recorder(world);
    heir.faults.holdUp("schedules.due");
    await heir.holdfast.start();
    await world.clock.advance(POLL_MS);
    expect(heir.faults.of("schedules.due")).toHaveLength(1);
    expect(heard(heir, "run.reclaimed").map(({ run }) => run)).toEqual([id]);
    heir.faults.deliver("schedules.due");
  });

  test("while a pass over schedules is not answered, polls go on and see who fell silent", async ({
    world,
  }) => {
    const silent = recorder(world);
    await silent.holdfast.start({ scheduler: false });
    const { id } = await silent.study.enqueue(600_000);
    await world.clock.rest();
    const heir = recorder(world);
    heir.holdfast.schedule("often", heir.study, { every: "1m", input: 0 });
    await heir.holdfast.start();
    heir.faults.holdUp("schedules.due");
    await world.clock.advance(65_000);
    expect(heir.faults.of("schedules.due")).toHaveLength(1);
    silent.faults.goDown();
    await world.clock.advance(LEASE_MS + POLL_MS + 1_000);
    expect(heard(heir, "run.reclaimed").map(({ run }) => run)).toEqual([id]);
    expect(heir.faults.of("schedules.due")).toHaveLength(1);
    heir.faults.deliver("schedules.due");
    await world.clock.advance(POLL_MS);
    expect(heard(heir, "tick.fired").length).toBeGreaterThan(0);
  });

  test("ends during an outage are stored after it if no other instance reclaimed the runs", async ({
    world,
  }) => {
    const { holdfast, faults, study, starts } = recorder(world);
    await holdfast.start();
    const enqueued = await study.enqueueMany(Array.from({ length: 10 }, () => 1_000));
    await world.clock.advance(500);
    faults.goDown();
    await world.clock.advance(300_000);
    faults.comeUp();
    for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
    expect(starts).toHaveLength(10);
  });

  test("a store that fails at its first statement is opened by the next one", async ({ world }) => {
    const { holdfast, faults, study } = recorder(world);
    faults.fail("instances.announce", "before");
    await expect(holdfast.start()).rejects.toThrow(StoreUnavailableError);
    await holdfast.start();
    const { id } = await study.enqueue(0);
    expectEnded(await world.ended(id), "completed", 1);
  });

  test("a settlement that the database refuses for good fails its run, and holds back none of the others", async ({
    world,
  }) => {
    const member = recorder(world);
    const { holdfast, faults, study } = member;
    const bad = await study.enqueue(0);
    const others = await study.enqueueMany([0, 0, 0]);
    faults.fail("claims.exchange", "before", {
      times: 1_000,
      fits: ({ settlements }) => settlements.some(({ id, to }) => id === bad.id && to !== "failed"),
      error: new Error("value out of range"),
    });
    await holdfast.start();
    for (const { id } of others) expectEnded(await world.ended(id), "completed", 1);
    await study.enqueue(0);
    const run = await world.ended(bad.id);
    expectEnded(run, "failed", 1);
    expect(run.error).toMatch(/"SETTLEMENT_REFUSED".*value out of range/);
    expect(heard(member, "run.unsettled")).toMatchObject([{ run: bad.id, becomes: "failed" }]);
  });

  test("if that is refused too, the lease is left to run out and the run is tried again", async ({
    world,
  }) => {
    const member = recorder(world);
    const { holdfast, faults, study, starts } = member;
    const bad = await study.enqueue(0);
    let refusals = 0;
    const startsOfBad = () => starts.filter((start) => start.startsWith(bad.id)).length;
    faults.fail("claims.exchange", "before", {
      times: 1_000,
      // Of the first attempt alone.
      fits: ({ settlements }) =>
        settlements.some(({ id }) => id === bad.id) && startsOfBad() < 2 && ++refusals > 0,
      error: new Error("value out of range"),
    });
    await holdfast.start();
    // Others go on being taken, which tells that it is this one.
    for (let more = 0; more < 20; more += 1) {
      await study.enqueue(0);
      await world.clock.advance(2_000);
    }
    expectEnded(await world.ended(bad.id), "completed", 2);
    expect(heard(member, "run.unsettled").map(({ becomes }) => becomes)).toEqual([
      "failed",
      "let_go",
    ]);
    expect(refusals).toBeLessThan(20);
  });

  test("while the database refuses everything, ends are kept, and stored once it accepts them", async ({
    world,
  }) => {
    const member = recorder(world);
    const { holdfast, faults, study, starts } = member;
    const runs = await study.enqueueMany([0, 0, 0]);
    faults.fail("claims.exchange", "before", {
      times: 20,
      fits: ({ settlements }) => settlements.length > 0,
      error: new Error("relation does not exist"),
    });
    await holdfast.start();
    for (const { id } of runs) expectEnded(await world.ended(id), "completed", 1);
    expect(starts).toHaveLength(3);
    expect(heard(member, "run.unsettled")).toEqual([]);
  });
}
