// Renew and markStarted: the calls of a living holder.

import { expect } from "vitest";
import { completed, type Held, LEASE_MS, policyWith, type Scene, type SceneTest } from "./scene.js";

const renew = (scene: Scene, fences: readonly number[], holder = scene.holder) =>
  scene.store.leases.renew({ holder, fences });

export function renewSuite(test: SceneTest): void {
  test("a renewed lease lasts its whole length from the renewal on", async ({ scene }) => {
    await scene.enqueued(2);
    const [held] = (await scene.claim()) as [Held, Held];
    scene.advance(20_000);
    const answer = await renew(scene, [held.fence]);
    expect(answer).toMatchObject({ held: [{ fence: held.fence, leaseMs: LEASE_MS }], unknown: [] });
    expect(answer.held[0]?.ids).toHaveLength(2);
    expect(await scene.record(held.id)).toMatchObject({
      heartbeatAt: scene.now,
      updatedAt: scene.now,
      leaseUntil: scene.now + LEASE_MS,
    });
    scene.advance(LEASE_MS - 1);
    expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toEqual([]);
    scene.advance(1);
    expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toHaveLength(2);
  });

  test("an expired lease that no instance reclaimed may be renewed", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(LEASE_MS * 5);
    expect((await renew(scene, [held.fence])).held).toHaveLength(1);
    expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toEqual([]);
  });

  test("a lease that was taken is lost: neither held nor unknown", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.loseAll();
    expect(await renew(scene, [held.fence])).toEqual({ held: [], unknown: [] });
  });

  test("a holder cannot renew the lease of another", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const before = await scene.portrait(held.id);
    scene.advance(1_000);
    const other = await scene.announce("second");
    expect(await renew(scene, [held.fence], other)).toEqual({ held: [], unknown: [] });
    expect(await scene.portrait(held.id)).toEqual(before);
  });

  test("one call renews many leases and returns those that are still held, each with its length", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 5_000 }) });
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 60_000 }) });
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 1_000 }) });
    const held = await scene.claim();
    const fenceOf = (leaseMs: number) =>
      held.find(({ claim }) => claim.leaseMs === leaseMs)?.fence as number;
    scene.advance(1_000);
    await scene.store.leases.reclaim({ limit: 10, random: 0 });
    const answer = await renew(
      scene,
      held.map(({ fence }) => fence),
    );
    const lengths = new Map(answer.held.map(({ fence, leaseMs }) => [fence, leaseMs]));
    expect(lengths).toEqual(
      new Map([
        [fenceOf(5_000), 5_000],
        [fenceOf(60_000), 60_000],
      ]),
    );
  });

  test("a renewal names only the runs that are still held", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await scene.settle(completed(one));
    expect((await renew(scene, [one.fence])).held[0]?.ids).toEqual([two.id]);
    await scene.settle(completed(two));
    expect((await renew(scene, [one.fence])).held).toEqual([]);
  });

  test("no renewal reaches beyond the time limit and its grace", async ({ scene }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 10_000, timeoutMs: 12_000 }) });
    const held = await scene.claimOne();
    scene.advance(9_000);
    expect((await renew(scene, [held.fence])).held[0]?.leaseMs).toBe(8_000);
    scene.advance(7_000);
    expect((await renew(scene, [held.fence])).held[0]?.leaseMs).toBe(1_000);
    scene.advance(2_000);
    expect((await renew(scene, [held.fence])).held[0]?.leaseMs).toBe(0);
    expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toMatchObject([
      { end: "timeout" },
    ]);
  });

  test("a renewal of no leases returns an empty list", async ({ scene }) => {
    expect(await renew(scene, [])).toEqual({ held: [], unknown: [] });
  });

  test("a start is stored for runs that are held, and only for those", async ({ scene }) => {
    await scene.enqueued(3);
    const [one, two, three] = (await scene.claim()) as [Held, Held, Held];
    await scene.settle(completed(three));
    const other = { id: one.id, fence: one.fence + 1_000 };
    const marked = await scene.store.leases.markStarted(
      [one, two, three, other].map(({ id, fence }) => ({ id, fence })),
    );
    expect(marked).toHaveLength(2);
    expect(new Set(marked.map(({ id }) => id))).toEqual(new Set([one.id, two.id]));
    expect(await scene.store.leases.markStarted([{ id: one.id, fence: one.fence }])).toEqual([
      { id: one.id, fence: one.fence },
    ]);
  });
}
