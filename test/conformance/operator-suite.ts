// What operators ask of a store: ending what is stale, and looking at the whole.

import { expect } from "vitest";
import { policyWith, type Scene, type SceneTest } from "./scene.js";

const MINUTE_MS = 60_000;
const NEVER_MS = 10 * 365 * 86_400_000;
const LONG = policyWith({ leaseMs: 60 * MINUTE_MS, timeoutMs: 600 * MINUTE_MS });

const reclaim = (scene: Scene) => scene.store.reclaim({ limit: 100, chance: 0 });

export function operatorSuite(test: SceneTest): void {
  test("a lease whose holder was silent for too long ends now, and is lost", async ({ scene }) => {
    await scene.enqueued(1, { policy: LONG });
    const silent = await scene.claimOne();
    scene.advance(10 * MINUTE_MS - 1);
    const stale = { silentMs: 10 * MINUTE_MS, ranMs: NEVER_MS };
    expect(await scene.store.expireStale(stale)).toBe(0);
    expect(await reclaim(scene)).toEqual([]);
    scene.advance(1);
    expect(await scene.store.expireStale(stale)).toBe(1);
    expect(await reclaim(scene)).toMatchObject([{ id: silent.id, end: "lost", to: "pending" }]);
  });

  test("who renews is not silent, but after its time it is over, and cannot renew out of that", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: LONG });
    const held = await scene.claimOne();
    scene.advance(30 * MINUTE_MS);
    await scene.store.renew({ holder: scene.holder, fences: [held.fence] });
    expect(await scene.store.expireStale({ silentMs: 10 * MINUTE_MS, ranMs: 31 * MINUTE_MS })).toBe(
      0,
    );
    const stale = { silentMs: 10 * MINUTE_MS, ranMs: 30 * MINUTE_MS };
    expect(await scene.store.expireStale(stale)).toBe(1);
    await scene.store.renew({ holder: scene.holder, fences: [held.fence] });
    scene.advance(5_000);
    expect(await reclaim(scene)).toMatchObject([{ id: held.id, end: "timeout", to: "pending" }]);
  });

  test("who was silent and over its time is lost: onLost fail ends it", async ({ scene }) => {
    await scene.enqueued(1, { policy: { ...LONG, onLost: "fail" } });
    const held = await scene.claimOne();
    await scene.store.markStarted([held]);
    scene.advance(20 * MINUTE_MS);
    expect(await scene.store.expireStale({ silentMs: MINUTE_MS, ranMs: MINUTE_MS })).toBe(1);
    expect(await reclaim(scene)).toMatchObject([{ id: held.id, end: "lost", to: "failed" }]);
  });

  test("what had expired by itself is judged as it was, and counts as nothing", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: MINUTE_MS, timeoutMs: MINUTE_MS }) });
    const held = await scene.claimOne();
    scene.advance(30_000);
    await scene.store.renew({ holder: scene.holder, fences: [held.fence] });
    scene.advance(60 * MINUTE_MS);
    expect(await scene.store.expireStale({ silentMs: 1, ranMs: 1 })).toBe(0);
    expect(await reclaim(scene)).toMatchObject([{ end: "timeout" }]);
  });
}
