// Poll: each flag is true exactly when there is work; promote moves due runs.

import { expect } from "vitest";
import { completed, idsOf, LEASE_MS, retried, type SceneTest } from "./scene.js";

const NOTHING = {
  pause: null,
  hasReady: false,
  hasSuspect: false,
  hasLimited: false,
  hasDue: false,
  hasExpired: false,
  hasWakes: false,
  hasDueSchedule: false,
  hasFreeGate: false,
  hasGated: false,
  lastPolledAt: null,
  hasOverdueCancel: false,
  cancelRequested: [],
  nextWakeAt: null,
};

export function pollSuite(test: SceneTest): void {
  test("without work a poll returns nothing but the database's time", async ({ scene }) => {
    expect(await scene.poll()).toEqual({ ...NOTHING, now: scene.now });
  });

  test("hasReady: a run that this worker may claim now", async ({ scene }) => {
    await scene.enqueued(1, { queue: "slow" });
    expect(await scene.poll()).toEqual({ ...NOTHING, now: scene.now, hasReady: true });
    expect((await scene.poll({ jobs: ["mail"] })).hasReady).toBe(false);
    expect((await scene.poll({ jobs: [] })).hasReady).toBe(false);
    expect((await scene.poll({ queues: ["default"] })).hasReady).toBe(false);
    expect((await scene.poll({ jobs: ["mail", "study"], queues: ["slow"] })).hasReady).toBe(true);
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    expect((await scene.poll()).hasReady).toBe(false);
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    await scene.claimOne();
    expect((await scene.poll()).hasReady).toBe(false);
  });

  test("hasSuspect: a suspect that this worker may claim now, which is not ready for others", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    await scene.claimOne();
    await scene.loseAll();
    expect(await scene.poll()).toEqual({ ...NOTHING, now: scene.now, hasSuspect: true });
    expect((await scene.poll({ jobs: ["mail"] })).hasSuspect).toBe(false);
    await scene.claimOne({ wantsSuspect: true });
    expect((await scene.poll()).hasSuspect).toBe(false);
  });

  test("hasDue and nextWakeAt: waiting runs of every job", async ({ scene }) => {
    await scene.enqueued(1, { job: "mail", delayMs: 5_000 });
    await scene.enqueued(1, { delayMs: 3_000 });
    const firstAt = scene.now + 3_000;
    expect(await scene.poll()).toEqual({ ...NOTHING, now: scene.now, nextWakeAt: firstAt });
    scene.advance(3_000);
    expect(await scene.poll()).toEqual({
      ...NOTHING,
      now: scene.now,
      hasDue: true,
      nextWakeAt: firstAt + 2_000,
    });
    await scene.store.work.promote({ limit: 10 });
    expect(await scene.poll()).toMatchObject({ hasDue: false, hasReady: true });
    scene.advance(2_000);
    expect(await scene.poll()).toMatchObject({ hasDue: true, nextWakeAt: null });
  });

  test("hasDue: a run that waits for its next attempt, too", async ({ scene }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 700));
    expect((await scene.poll()).nextWakeAt).toBe(scene.now + 700);
  });

  test("hasWakes: a new signal, until a pass has looked for its waiters", async ({ scene }) => {
    const signal = { name: "ready", key: "k", value: "1", keepMs: 60_000 };
    expect(await scene.store.signals.send(signal)).toBe("stored");
    expect((await scene.poll()).hasWakes).toBe(true);
    expect(await scene.store.signals.wake({ limit: 10 })).toEqual({ woken: 0, ended: [] });
    expect((await scene.poll()).hasWakes).toBe(false);
    expect(await scene.store.signals.send({ ...signal, value: " 1 " })).toBe("repeated");
    expect(await scene.store.signals.send({ ...signal, value: "2" })).toBe("conflict");
    scene.advance(60_000);
    expect(await scene.store.signals.send({ ...signal, value: "2" })).toBe("stored");
  });

  test("hasExpired: a lease that can be reclaimed, of any holder", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne({ holder: await scene.announce("second") });
    scene.advance(LEASE_MS - 1);
    expect((await scene.poll()).hasExpired).toBe(false);
    scene.advance(1);
    expect((await scene.poll()).hasExpired).toBe(true);
    await scene.settle(completed(held));
    expect((await scene.poll()).hasExpired).toBe(false);
  });

  test("promote moves at most its limit, the earliest first", async ({ scene }) => {
    const ids: string[] = [];
    for (const delayMs of [300, 100, 200]) ids.push(...(await scene.enqueued(1, { delayMs })));
    scene.advance(1_000);
    expect(await scene.store.work.promote({ limit: 2 })).toBe(2);
    expect(idsOf(await scene.claim())).toEqual([ids[1], ids[2]]);
    expect(await scene.store.work.promote({ limit: 2 })).toBe(1);
    expect(idsOf(await scene.claim())).toEqual([ids[0]]);
    expect(await scene.store.work.promote({ limit: 2 })).toBe(0);
  });

  test("a promoted run keeps its attempt and its refunds", async ({ scene }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 10));
    scene.advance(10);
    await scene.store.work.promote({ limit: 1 });
    expect((await scene.claimOne()).attempt).toBe(2);
  });
}
