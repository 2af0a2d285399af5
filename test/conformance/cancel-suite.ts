// Cancel: at once while a run waits, on request while it runs, by force when it does not obey; and
// never retried.

import { expect } from "vitest";
import {
  cancelled,
  completed,
  failed,
  type Held,
  handedBack,
  LEASE_MS,
  postponed,
  retried,
  type SceneTest,
} from "./scene.js";

export function cancelSuite(test: SceneTest): void {
  test("a pending run is cancelled at once and does not start", async ({ scene }) => {
    const [ready, waiting] = [scene.run(), scene.run({ delayMs: 1_000 })];
    await scene.enqueue(ready, waiting);
    scene.advance(500);
    for (const { id } of [ready, waiting]) {
      expect(await scene.store.runs.cancel({ id, random: 0 })).toBe("cancelled");
      expect(await scene.record(id)).toMatchObject({
        status: "cancelled",
        attempt: 0,
        fence: null,
        startedAt: null,
        finishedAt: scene.now,
      });
      expect(await scene.store.runs.attempts(id)).toEqual([]);
    }
    scene.advance(10_000);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
    expect(await scene.claim()).toEqual([]);
  });

  test("a run that waits for its next attempt keeps its history when it is cancelled", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(retried(held));
    expect(await scene.store.runs.cancel({ id: held.id, random: 0 })).toBe("cancelled");
    expect(await scene.record(held.id)).toMatchObject({ status: "cancelled", attempt: 1 });
    expect(await scene.store.runs.attempts(held.id)).toHaveLength(1);
  });

  test("a cancel of a running run is reported to its holder only", async ({ scene }) => {
    await scene.enqueued(2);
    const [held] = (await scene.claim()) as [Held, Held];
    const other = await scene.announce("second");
    expect((await scene.poll()).cancelRequested).toEqual([]);
    expect(await scene.store.runs.cancel({ id: held.id, random: 0 })).toBe("requested");
    expect(await scene.record(held.id)).toMatchObject({
      status: "running",
      cancelRequestedAt: scene.now,
    });
    expect((await scene.poll()).cancelRequested).toEqual([held.id]);
    const elsewhere = await scene.poll({ holder: other });
    expect(elsewhere.cancelRequested).toEqual([]);
  });

  test("asking twice keeps the time of the first request", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.runs.cancel({ id: held.id, random: 0 });
    const askedAt = scene.now;
    scene.advance(1_000);
    expect(await scene.store.runs.cancel({ id: held.id, random: 0 })).toBe("requested");
    expect((await scene.record(held.id)).cancelRequestedAt).toBe(askedAt);
  });

  for (const [name, end] of [
    ["wants another attempt", retried],
    ["is handed back", handedBack],
    ["asks for a later time", postponed],
    ["fails for good", failed],
    ["obeys", cancelled],
  ] as const) {
    test(`a run that was asked to stop is cancelled when it ${name}`, async ({ scene }) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.store.runs.cancel({ id: held.id, random: 0 });
      expect(await scene.settle(end(held))).toEqual([]);
      expect(await scene.record(held.id)).toMatchObject({
        status: "cancelled",
        fence: held.fence,
        attempt: 1,
      });
      expect(await scene.settle(end(held))).toEqual([]);
      expect((await scene.poll()).cancelRequested).toEqual([]);
      scene.advance(86_400_000);
      expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
      expect(await scene.claim()).toEqual([]);
    });
  }

  test("a result that arrives first wins", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.runs.cancel({ id: held.id, random: 0 });
    expect(await scene.settle(completed(held))).toEqual([]);
    expect(await scene.status(held.id)).toBe("completed");
    expect(await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 })).toEqual([]);
  });

  test("a run with a cancel request and a dead holder is cancelled, not retried", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.runs.cancel({ id: held.id, random: 0 });
    scene.advance(LEASE_MS);
    expect(await scene.store.leases.reclaim({ limit: 1, random: 0 })).toMatchObject([
      { id: held.id, to: "cancelled" },
    ]);
    expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
  });

  test("a run that does not obey is ended after the grace, and its fence with it", async ({
    scene,
  }) => {
    await scene.enqueued(3);
    const [one, two, three] = (await scene.claim()) as [Held, Held, Held];
    await scene.store.runs.cancel({ id: one.id, random: 0 });
    scene.advance(10_000);
    await scene.store.runs.cancel({ id: two.id, random: 0 });
    scene.advance(9_999);
    expect(await scene.store.leases.enforceCancels({ graceMs: 20_000, random: 0 })).toEqual([]);
    scene.advance(1);
    expect(await scene.store.leases.enforceCancels({ graceMs: 20_000, random: 0 })).toEqual([
      { id: one.id, fence: one.fence },
    ]);
    expect(await scene.record(one.id)).toMatchObject({
      status: "cancelled",
      finishedAt: scene.now,
    });
    expect(await scene.settle(completed(one))).toEqual([{ id: one.id, fence: one.fence }]);
    // Its neighbours in the claim go on under the same fence.
    expect((await scene.poll()).cancelRequested).toEqual([two.id]);
    expect(await scene.settle(completed(three))).toEqual([]);
    scene.advance(10_000);
    expect(await scene.store.leases.enforceCancels({ graceMs: 20_000, random: 0 })).toEqual([
      { id: two.id, fence: two.fence },
    ]);
    expect(await scene.store.runs.list({ status: "running", limit: 10 })).toEqual([]);
  });

  test("every instance sees a cancel that was not obeyed for 30 s, for as long as the run is held", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    const other = await scene.announce("second");
    const hears = async () => (await scene.poll({ holder: other, jobs: [] })).hasOverdueCancel;
    await scene.store.runs.cancel({ id: one.id, random: 0 });
    scene.advance(29_999);
    expect(await hears()).toBe(false);
    scene.advance(1);
    expect(await hears()).toBe(true);
    await scene.store.leases.enforceCancels({ graceMs: 30_000, random: 0 });
    expect(await hears()).toBe(false);
    await scene.store.runs.cancel({ id: two.id, random: 0 });
    await scene.settle(completed(two));
    scene.advance(60_000);
    expect(await hears()).toBe(false);
  });

  test("a cancelled neighbour leaves the rest of its claim untouched", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await scene.store.runs.cancel({ id: one.id, random: 0 });
    expect(await scene.settle(retried(one), retried(two, 0))).toEqual([]);
    expect(await scene.status(one.id)).toBe("cancelled");
    expect(await scene.status(two.id)).toBe("pending");
  });

  test("an ended run is not cancelled, and an unknown run is not found", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(completed(held));
    const before = await scene.portrait(held.id);
    expect(await scene.store.runs.cancel({ id: held.id, random: 0 })).toBe("already_terminal");
    expect(await scene.portrait(held.id)).toEqual(before);
    const [pending] = await scene.enqueued(1);
    await scene.store.runs.cancel({ id: pending as string, random: 0 });
    expect(await scene.store.runs.cancel({ id: pending as string, random: 0 })).toBe(
      "already_terminal",
    );
    expect(await scene.store.runs.cancel({ id: scene.id(), random: 0 })).toBe("not_found");
  });
}
