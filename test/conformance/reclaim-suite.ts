// Reclaim: runs whose holder fell silent or went over time are ended or retried by their stored policy (S10: a poison
// run dies); suspects are handed out alone.

import { expect } from "vitest";
import { ABORT_GRACE_MS, REFUNDS_MAX, settle } from "../../src/runs/rules/run.js";
import {
  completed,
  type Held,
  handedBack,
  idsOf,
  LEASE_MS,
  policyWith,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";

const reclaim = (scene: Scene, limit = 100, random = 0) =>
  scene.store.leases.reclaim({ limit, random });

export function reclaimSuite(test: SceneTest): void {
  test("a lease is reclaimed when it has expired by the database's clock, not before", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const [held] = (await scene.claim()) as [Held, Held];
    scene.advance(LEASE_MS - 1);
    expect(await reclaim(scene)).toEqual([]);
    scene.advance(1);
    const lost = await reclaim(scene);
    expect(lost).toHaveLength(2);
    expect(lost).toContainEqual({
      id: held.id,
      fence: held.fence,
      job: "study",
      attempt: 1,
      holder: "first",
      end: "lost",
      to: "pending",
    });
    expect(await reclaim(scene)).toEqual([]);
  });

  test("the first loss is due again at once, the later ones after the retry delay", async ({
    scene,
  }) => {
    const [id] = await scene.enqueued(1, { policy: policyWith({ attempts: 4 }) });
    await scene.claimOne();
    await scene.loseAll();
    expect((await scene.poll()).hasSuspect).toBe(true);
    for (const delayMs of [2_000, 4_000]) {
      await scene.claimOne({ wantsSuspect: true });
      await scene.loseAll();
      expect(await scene.record(id as string)).toMatchObject({
        status: "pending",
        dueAt: scene.now + delayMs,
      });
      expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
      scene.advance(delayMs);
      expect(await scene.store.work.promote({ limit: 1 })).toBe(1);
    }
    expect((await scene.claimOne({ wantsSuspect: true })).attempt).toBe(4);
  });

  test("jitter only shortens the delay, and the runs of one claim do not come back together", async ({
    scene,
  }) => {
    const retry = { attempts: 9, delayMs: 60_000, factor: 1, maxMs: 60_000, jitter: 0.5 };
    const policy = { ...policyWith({}), retry };
    await scene.enqueued(8, { policy });
    await scene.claim();
    await scene.loseAll();
    for (let times = 0; times < 8; times += 1) await scene.claimOne({ wantsSuspect: true });
    scene.advance(LEASE_MS);
    await reclaim(scene, 100, 0.25);
    const delays = (await scene.store.runs.list({ limit: 10 })).map(
      ({ dueAt }) => dueAt - scene.now,
    );
    for (const delayMs of delays) {
      expect(delayMs).toBeGreaterThanOrEqual(30_000);
      expect(delayMs).toBeLessThanOrEqual(60_000);
    }
    expect(new Set(delays).size).toBeGreaterThan(4);
  });

  test("attempts never exceed their limit, crashes included: a poison run dies", async ({
    scene,
  }) => {
    const [id] = await scene.enqueued(1);
    let starts = 0;
    for (let times = 0; times < 20; times += 1) {
      const [plain] = await scene.claim({ limit: 1 });
      const [suspect] = await scene.claim({ limit: 1, wantsSuspect: true });
      const held = plain ?? suspect;
      if (held) {
        starts += 1;
        expect(await scene.store.leases.markStarted([held])).toHaveLength(1);
      }
      await scene.loseAll();
      scene.advance(60_000);
      await scene.store.work.promote({ limit: 1 });
    }
    expect(starts).toBe(3);
    const record = await scene.record(id as string);
    expect(record).toMatchObject({ status: "failed", attempt: 3 });
    expect(record.error).toContain("LEASE_EXPIRED");
    expect((await scene.store.runs.attempts(id as string)).map(({ end }) => end)).toEqual([
      "lost",
      "lost",
      "failed",
    ]);
  });

  test("losses and failures together never exceed the limit either", async ({ scene }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 0));
    await scene.claimOne();
    await scene.loseAll();
    const last = await scene.claimOne({ wantsSuspect: true });
    expect(last.attempt).toBe(3);
    await scene.store.leases.markStarted([last]);
    scene.advance(LEASE_MS);
    expect(await reclaim(scene)).toMatchObject([{ attempt: 3, to: "failed" }]);
  });

  test("a loss that would be final is given back if the run never began, at most a hundred times", async ({
    scene,
  }) => {
    const [id] = await scene.enqueued(1, { policy: policyWith({ attempts: 1 }) });
    for (let times = 0; times < REFUNDS_MAX; times += 1) {
      const held = await scene.claimOne();
      expect(held.attempt).toBe(1);
      expect(held.claim.runs[0]?.refunds).toBe(times);
      scene.advance(LEASE_MS);
      expect(await reclaim(scene)).toMatchObject([{ to: "pending", end: "lost" }]);
    }
    await scene.claimOne();
    scene.advance(LEASE_MS);
    expect(await reclaim(scene)).toMatchObject([{ to: "failed", end: "lost" }]);
    expect(await scene.status(id as string)).toBe("failed");
  });

  test("hand-backs are refunded a hundred times, and then they burn attempts until the run dies", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ attempts: 2 }) });
    for (let times = 0; times < REFUNDS_MAX + 2; times += 1) {
      const held = await scene.claimOne();
      const { refunds = 0, laters = 0 } = held.claim.runs[0] ?? {};
      const facts = {
        attempt: held.attempt,
        attemptsMax: held.claim.policy.retry.attempts,
        refunds,
        laters,
        retry: held.claim.policy.retry,
        isCancelRequested: false,
      };
      const transition = settle(facts, { kind: "handed_back" }, () => 0);
      const isLast = times === REFUNDS_MAX + 1;
      expect(transition.to).toBe(isLast ? "failed" : "pending");
      const { id, fence, mode, schedule, batch } = held;
      const common = { id, fence, mode, schedule, batch, isLimited: false, ranMs: 0, error: null };
      await scene.settle(
        transition.to === "pending"
          ? { ...common, ...transition }
          : { ...common, to: transition.to, result: null },
      );
    }
    expect(await scene.claim()).toEqual([]);
  });

  test("onLost: fail ends the run that has begun, at its first loss", async ({ scene }) => {
    await scene.enqueued(2, { policy: policyWith({ onLost: "fail" }) });
    const [begun, fresh] = (await scene.claim()) as [Held, Held];
    await scene.store.leases.markStarted([{ id: begun.id, fence: begun.fence }]);
    scene.advance(LEASE_MS);
    const lost = await reclaim(scene);
    expect(new Map(lost.map(({ id, to }) => [id, to]))).toEqual(
      new Map([
        [begun.id, "failed"],
        [fresh.id, "pending"],
      ]),
    );
    expect(await scene.record(begun.id)).toMatchObject({ attempt: 1, finishedAt: scene.now });
    // A run that never began is no suspect, and gets its attempt back.
    expect(await scene.claimOne()).toMatchObject({ id: fresh.id, attempt: 1, isSuspect: false });
  });

  test("a late reclaim decides the same: a loss stays a loss after the time limit too", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ onLost: "fail", timeoutMs: 60_000 }) });
    const held = await scene.claimOne();
    await scene.store.leases.markStarted([{ id: held.id, fence: held.fence }]);
    scene.advance(86_400_000);
    expect(await reclaim(scene)).toMatchObject([{ end: "lost", to: "failed" }]);
  });

  test("an attempt over its time limit ends as a time-out and is tried again by its policy", async ({
    scene,
  }) => {
    const policy = policyWith({ leaseMs: 10_000, timeoutMs: 15_000, onLost: "fail", attempts: 2 });
    const [id] = await scene.enqueued(1, { policy });
    const live = async (ms: number) => {
      const held = await scene.claimOne();
      await scene.store.leases.markStarted([{ id: held.id, fence: held.fence }]);
      for (let lived = 0; lived < ms; lived += 5_000) {
        await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
        expect(await reclaim(scene)).toEqual([]);
        scene.advance(5_000);
      }
    };
    await live(15_000 + ABORT_GRACE_MS);
    expect(await reclaim(scene)).toMatchObject([{ end: "timeout", to: "pending", attempt: 1 }]);
    expect(await scene.record(id as string)).toMatchObject({ dueAt: scene.now + 1_000 });
    scene.advance(1_000);
    await scene.store.work.promote({ limit: 1 });
    expect((await scene.poll()).hasSuspect).toBe(false);
    await live(15_000 + ABORT_GRACE_MS);
    expect(await reclaim(scene)).toMatchObject([{ end: "timeout", to: "failed", attempt: 2 }]);
    expect((await scene.record(id as string)).error).toContain("TIMEOUT");
    const attempts = await scene.store.runs.attempts(id as string);
    expect(attempts.map(({ end }) => end)).toEqual(["timeout", "failed"]);
  });

  test("a reclaim takes at most its limit of leases, the longest expired first", async ({
    scene,
  }) => {
    const claimed: Held[] = [];
    for (let times = 0; times < 4; times += 1) {
      await scene.enqueued(1);
      claimed.push(await scene.claimOne());
      scene.advance(1_000);
    }
    scene.advance(LEASE_MS);
    expect(idsOf(await reclaim(scene, 3))).toEqual(idsOf(claimed.slice(0, 3)));
    expect(idsOf(await reclaim(scene, 3))).toEqual(idsOf(claimed.slice(3)));
  });

  test("a settled run is not reclaimed with the rest of its claim", async ({ scene }) => {
    await scene.enqueued(3);
    const [one, two, three] = (await scene.claim()) as [Held, Held, Held];
    await scene.settle(completed(two));
    scene.advance(LEASE_MS);
    expect(idsOf(await reclaim(scene)).sort()).toEqual([one.id, three.id].sort());
    expect(await scene.status(two.id)).toBe("completed");
  });

  test("a suspect is claimed alone, and only by a claim that requests suspects", async ({
    scene,
  }) => {
    const suspects = await scene.enqueued(3);
    await scene.claim();
    await scene.loseAll();
    const innocents = await scene.enqueued(2);
    expect(idsOf(await scene.claim()).sort()).toEqual([...innocents].sort());
    expect(await scene.claim()).toEqual([]);
    const seen: string[] = [];
    for (let times = 0; times < 3; times += 1) {
      const claims = await scene.claims({ wantsSuspect: true, limit: 10 });
      expect(claims).toHaveLength(1);
      expect(claims[0]?.runs).toHaveLength(1);
      expect(claims[0]).toMatchObject({ isSuspect: true, attempt: 2 });
      seen.push(...idsOf(claims[0]?.runs ?? []));
    }
    expect(seen.sort()).toEqual([...suspects].sort());
    expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
  });

  test("a claim of a suspect returns no other run", async ({ scene }) => {
    await scene.enqueued(2);
    expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
    expect(await scene.claim()).toHaveLength(2);
  });

  test("a suspect that was only handed back is still one; one that ended its attempt is not", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    await scene.claimOne();
    await scene.loseAll();
    await scene.settle(handedBack(await scene.claimOne({ wantsSuspect: true })));
    expect(await scene.claim()).toEqual([]);
    await scene.settle(retried(await scene.claimOne({ wantsSuspect: true }), 0));
    expect(await scene.claimOne()).toMatchObject({ isSuspect: false, attempt: 3 });
  });

  test("suspects are subject to jobs, queues and pauses like all others", async ({ scene }) => {
    await scene.enqueued(1, { queue: "slow" });
    await scene.claimOne();
    await scene.loseAll();
    expect(await scene.claim({ wantsSuspect: true, jobs: ["mail"] })).toEqual([]);
    expect(await scene.claim({ wantsSuspect: true, queues: ["default"] })).toEqual([]);
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    expect(await scene.claim({ wantsSuspect: true })).toHaveLength(1);
  });
}
