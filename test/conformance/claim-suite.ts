// Claim: fences (S1, S2), the limit (S7), the order, and which worker may claim which runs.

import { expect } from "vitest";
import {
  completed,
  type Held,
  handedBack,
  idsOf,
  LEASE_MS,
  policyWith,
  postponed,
  retried,
  type SceneTest,
} from "./scene.js";

/** The promised minute, written out: a constant of the code would change together with what it checks. */
const STEP_MS = 60_000;

export function claimSuite(test: SceneTest): void {
  test("grants of one run carry strictly growing fences, however the earlier ones ended", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ attempts: 10 }) });
    const fences: number[] = [];
    const grant = async (wantsSuspect = false) => {
      const held = await scene.claimOne({ wantsSuspect });
      fences.push(held.fence);
      return held;
    };
    await scene.settle(handedBack(await grant()));
    await scene.settle(retried(await grant(), 0));
    await scene.settle(postponed(await grant(), 500));
    scene.advance(500);
    await scene.store.work.promote({ limit: 1 });
    await grant();
    await scene.loseAll();
    const last = await grant(true);
    await scene.store.runs.cancel({ id: last.id, random: 0 });
    await scene.settle(retried(last));
    await scene.store.runs.retry({ id: last.id });
    await grant();
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    expect(fences).toHaveLength(6);
  });

  test("a fence names one claim of one holder, and no other claim ever has it", async ({
    scene,
  }) => {
    await scene.enqueued(12);
    const second = await scene.announce("second");
    const holders = new Map<number, number>();
    for (const holder of [scene.holder, second, scene.holder, second]) {
      for (const claim of await scene.claims({ limit: 3, holder })) {
        expect(holders.has(claim.fence)).toBe(false);
        holders.set(claim.fence, holder);
      }
    }
    expect(holders.size).toBe(4);
  });

  test("a claim returns at most its limit, over lanes, policies and attempts together", async ({
    scene,
  }) => {
    await scene.enqueued(4);
    await scene.enqueued(4, { policy: policyWith({ leaseMs: 5_000 }) });
    await scene.enqueued(4, { job: "mail" });
    await scene.enqueued(4, { queue: "slow" });
    const seen = new Set<string>();
    for (const limit of [1, 2, 3, 5, 4]) {
      const held = await scene.claim({ limit, jobs: ["study", "mail"] });
      expect(held).toHaveLength(limit);
      for (const { id } of held) seen.add(id);
    }
    expect(seen.size).toBe(15);
    expect(await scene.claim({ jobs: ["study", "mail"] })).toHaveLength(1);
    expect(await scene.claim({ jobs: ["study", "mail"] })).toEqual([]);
  });

  test("a claim of 0 takes nothing", async ({ scene }) => {
    await scene.enqueued(1);
    expect(await scene.claim({ limit: 0 })).toEqual([]);
    expect(await scene.claim({ limit: 1 })).toHaveLength(1);
  });

  test("a claimed run is running, with its holder, its fence and its lease", async ({ scene }) => {
    const [id] = await scene.enqueued(1);
    scene.advance(100);
    const { fence, claim } = await scene.claimOne();
    expect(claim).toMatchObject({ attempt: 1, leaseMs: LEASE_MS, isSuspect: false });
    expect(await scene.record(id as string)).toMatchObject({
      status: "running",
      attempt: 1,
      fence,
      holder: "first",
      startedAt: scene.now,
      heartbeatAt: scene.now,
      updatedAt: scene.now,
      leaseUntil: scene.now + LEASE_MS,
      finishedAt: null,
    });
  });

  test("each run of a claim carries its own values, whether or not they equal those of its job", async ({
    scene,
  }) => {
    const policy = policyWith({ attempts: 2 });
    const job = { name: "study", queue: "default", priority: 3, version: 2, policy };
    await scene.announce("second", scene.store, { jobs: [job] });
    const usual = { priority: 3, version: 2, policy };
    const runs = [
      scene.run({ ...usual, input: "1" }),
      scene.run({ ...usual, input: "2", version: 1 }),
      scene.run({ ...usual, input: "3", priority: 0 }),
      scene.run({ ...usual, input: "4", mode: "test" }),
      scene.run({ ...usual, input: "5", tags: ["a", "b"] }),
      scene.run({ ...usual, input: "6", dueAt: scene.now - 60_000 }),
      scene.run({ ...usual, input: "7", policy: policyWith({ attempts: 9 }) }),
      scene.run({ ...usual, input: "8", job: "unheard-of" }),
      scene.run({ ...usual, input: "9" }),
    ];
    await scene.enqueue(...runs);
    const claims = await scene.claims({ jobs: ["study", "unheard-of"] });
    const claimed = claims.flatMap(({ job, policy: { retry }, runs: [...held] }) =>
      held.map((run) => ({ ...run, job, attempts: retry.attempts })),
    );
    const byInput = claimed.sort((a, b) => a.input.localeCompare(b.input));
    expect(byInput).toEqual(
      runs.map(({ id, input, mode, version, priority, dueAt, tags, job, policy: { retry } }) => ({
        ...{ id, input, mode, version, priority, tags, job, attempts: retry.attempts },
        ...{ createdAt: scene.now, dueAt: dueAt ?? scene.now },
        ...{
          nominalAt: null,
          schedule: null,
          batch: null,
          refunds: 0,
          laters: 0,
          extraAttempts: 0,
        },
      })),
    );
  });

  test("one step of priority is worth one minute of waiting: sort = due − priority × 60 s", async ({
    scene,
  }) => {
    const runs = [0, 100, -100, 1, 1, 2, 0, -1, 50, 0].map((priority, at) =>
      scene.run({ priority, dueAt: scene.now - ((at * 37_000) % 240_000) }),
    );
    // A millisecond apart in the order: a step that is a little longer or shorter puts them in another one.
    for (const [at, priority] of [2, -2, 1, 3, -1, 0].entries())
      runs.push(scene.run({ priority, dueAt: scene.now - 200_000 + priority * STEP_MS + at }));
    await scene.enqueue(...runs);
    const sorted = runs.toSorted((a, b) => {
      const sortAt = (run: typeof a) => Number(run.dueAt) - run.priority * STEP_MS;
      return sortAt(a) - sortAt(b) || (a.id < b.id ? -1 : 1);
    });
    const claimed: string[] = [];
    for (let at = 0; at < runs.length; at += 1) claimed.push((await scene.claimOne()).id);
    expect(claimed).toEqual(idsOf(sorted));
  });

  test("an urgent new run overtakes, but no run is overtaken forever", async ({ scene }) => {
    const [patient] = await scene.enqueued(1);
    scene.advance(STEP_MS - 1);
    const [urgent] = await scene.enqueued(1, { priority: 1 });
    scene.advance(1);
    const [late] = await scene.enqueued(1, { priority: 1 });
    scene.advance(1);
    const [tooLate] = await scene.enqueued(1, { priority: 1 });
    expect(idsOf(await scene.claim({ limit: 1 }))).toEqual([urgent]);
    // Even on the millisecond, the one that was made first goes first.
    expect(idsOf(await scene.claim({ limit: 1 }))).toEqual([patient]);
    expect(idsOf(await scene.claim({ limit: 2 }))).toEqual([late, tooLate]);
  });

  test("runs that wait keep the order of the time they became due", async ({ scene }) => {
    const [second] = await scene.enqueued(1, { delayMs: 2_000 });
    const [first] = await scene.enqueued(1, { delayMs: 1_000 });
    scene.advance(3_000);
    const [third] = await scene.enqueued(1);
    await scene.store.work.promote({ limit: 10 });
    expect(idsOf(await scene.claim())).toEqual([first, second, third]);
  });

  test("of several lanes the one with the oldest run comes first", async ({ scene }) => {
    const [mail] = await scene.enqueued(1, { job: "mail" });
    scene.advance(1);
    const [study] = await scene.enqueued(1);
    scene.advance(1);
    const [slow] = await scene.enqueued(1, { queue: "slow" });
    const order: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      order.push((await scene.claimOne({ jobs: ["study", "mail"] })).id);
    }
    expect(order).toEqual([mail, study, slow]);
  });

  test("a worker gets only the jobs and the queues that it asks for", async ({ scene }) => {
    const [here] = await scene.enqueued(1);
    const [slow] = await scene.enqueued(1, { queue: "slow" });
    const [mail] = await scene.enqueued(1, { job: "mail", queue: "slow" });
    expect(await scene.claim({ jobs: [] })).toEqual([]);
    expect(await scene.claim({ jobs: ["nobody"] })).toEqual([]);
    expect(await scene.claim({ queues: [] })).toEqual([]);
    expect(await scene.claim({ queues: ["nowhere"] })).toEqual([]);
    expect(idsOf(await scene.claim({ jobs: ["mail"], queues: ["default"] }))).toEqual([]);
    expect(idsOf(await scene.claim({ queues: ["slow"] }))).toEqual([slow]);
    expect(idsOf(await scene.claim({ jobs: ["study", "mail"], queues: ["default"] }))).toEqual([
      here,
    ]);
    expect(idsOf(await scene.claim({ jobs: ["mail"], queues: null }))).toEqual([mail]);
  });

  test("a paused queue is not claimed from until it goes on; other queues are", async ({
    scene,
  }) => {
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    const [slow] = await scene.enqueued(1, { queue: "slow" });
    const [here] = await scene.enqueued(1);
    expect(idsOf(await scene.claim())).toEqual([here]);
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    expect(await scene.claim()).toEqual([]);
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    expect(idsOf(await scene.claim())).toEqual([slow]);
  });

  test("a queue that is paused while its runs are held lets them end", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.queues.pause({ queue: "default", isPaused: true });
    expect(
      (await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] })).held,
    ).toEqual([{ fence: held.fence, leaseMs: LEASE_MS, ids: [held.id] }]);
    expect(await scene.settle(completed(held))).toEqual([]);
  });

  test("runs with leases of different lengths come as different claims, each with its own", async ({
    scene,
  }) => {
    const short = policyWith({ leaseMs: 1_000 });
    const long = policyWith({ leaseMs: 600_000, attempts: 1 });
    await scene.enqueue(
      scene.run({ policy: short }),
      scene.run({ policy: long }),
      scene.run({ policy: short }),
    );
    const claims = await scene.claims();
    const byLease = new Map(claims.map((claim) => [claim.leaseMs, claim]));
    expect([...byLease.keys()].sort((a, b) => a - b)).toEqual([1_000, 600_000]);
    expect(byLease.get(1_000)?.runs).toHaveLength(2);
    expect(byLease.get(1_000)?.policy).toEqual(short);
    expect(byLease.get(600_000)?.policy).toEqual(long);
    scene.advance(1_000);
    const lost = await scene.store.leases.reclaim({ limit: 10, random: 0 });
    expect(idsOf(lost).sort()).toEqual(idsOf(byLease.get(1_000)?.runs ?? []).sort());
  });

  test("runs at different attempts come as different claims, each with its own", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 0));
    await scene.enqueued(2);
    const claims = await scene.claims();
    expect(claims.map(({ attempt, runs }) => [attempt, runs.length]).sort()).toEqual([
      [1, 2],
      [2, 1],
    ]);
  });

  test("a lease is not longer than the rest of the time limit and its grace", async ({ scene }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 30_000, timeoutMs: 10_000 }) });
    const { claim } = await scene.claimOne();
    expect(claim.leaseMs).toBe(15_000);
  });

  test("claims are read back by their token, by their holder alone", async ({ scene }) => {
    await scene.enqueued(2);
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 5_000 }) });
    const token = crypto.randomUUID();
    const claims = await scene.claims({ token });
    const other = await scene.announce("second");
    const read = (holder: number, by = token) => scene.store.claims.byToken({ holder, token: by });
    expect(byFence(await read(scene.holder))).toEqual(byFence(claims));
    expect(await read(other)).toEqual([]);
    expect(await read(scene.holder, crypto.randomUUID())).toEqual([]);
  });

  test("claims that are read back hold their remaining runs", async ({ scene }) => {
    await scene.enqueued(3);
    const token = crypto.randomUUID();
    const [first, second, third] = (await scene.claim({ token })) as [Held, Held, Held];
    scene.advance(10_000);
    await scene.settle(completed(second));
    const read = () => scene.store.claims.byToken({ holder: scene.holder, token });
    const [claim] = await read();
    expect(claim?.leaseMs).toBe(LEASE_MS - 10_000);
    expect(idsOf(claim?.runs ?? []).sort()).toEqual([first.id, third.id].sort());
    scene.advance(LEASE_MS);
    expect((await read())[0]?.leaseMs).toBe(0);
    await scene.store.leases.reclaim({ limit: 10, random: 0 });
    expect(await read()).toEqual([]);
  });
}

function byFence(claims: readonly { readonly fence: number }[]): unknown[] {
  return claims.toSorted((a, b) => a.fence - b.fence);
}
