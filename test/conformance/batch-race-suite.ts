// Batches while several stores, each with connections of its own, end children at the same moment.

import { expect } from "vitest";
import type { Settlement } from "../../src/store/claims.js";
import type { Store } from "../../src/store/store.js";
import { continuations, heldChildren, heldParent, newBatch, onlyBatch } from "./batch-fixtures.js";
import {
  completed,
  failed,
  type Held,
  idsOf,
  LEASE_MS,
  type Scene,
  type SceneTest,
} from "./scene.js";

export function batchRaceSuite(test: SceneTest): void {
  test("of two concurrent ends of the last two children, one makes the follow-up run", async ({
    scene,
  }) => {
    const stores = await Promise.all([scene.open(), scene.open()]);
    for (let round = 1; round <= 15; round += 1) {
      const { parent, children } = await heldChildren(scene, 2);
      await Promise.all(
        children.map((held, at) => settleOn(stores[at] as Store, scene, [completed(held)])),
      );
      expect(await onlyBatch(scene, parent.id)).toMatchObject({ completed: 2 });
      expect(await continuations(scene)).toHaveLength(round);
    }
  });

  test("settlements of children of many batches in opposite orders all succeed", async ({
    scene,
  }) => {
    const stores = await Promise.all([scene.open(), scene.open(), scene.open()]);
    const parents: Held[] = [];
    const held: Held[] = [];
    for (let at = 0; at < 10; at += 1) {
      const made = await heldChildren(scene, 6);
      parents.push(made.parent);
      held.push(...made.children);
    }
    const share = (of: number) => held.filter((_, at) => at % 3 === of);
    await Promise.all(
      stores.map((store, of) => {
        const mine = of === 1 ? share(of).reverse() : share(of);
        return settleOn(
          store,
          scene,
          mine.map((each) => completed(each)),
        );
      }),
    );
    for (const { id } of parents)
      expect(await onlyBatch(scene, id)).toMatchObject({ completed: 6, failed: 0 });
    expect(await continuations(scene)).toHaveLength(10);
  });

  test("a settlement, a reaper and a cancel at once count each child once", async ({ scene }) => {
    const [settler, reaper, operator] = (await Promise.all([
      scene.open(),
      scene.open(),
      scene.open(),
    ])) as [Store, Store, Store];
    for (let round = 1; round <= 10; round += 1) {
      const parent = await heldParent(scene);
      const runs = Array.from({ length: 4 }, () => scene.run());
      await scene.store.batches.enqueue(newBatch(scene, parent, runs));
      const held = await scene.claim({ limit: 3 });
      scene.advance(LEASE_MS);
      await scene.store.leases.renew({ holder: scene.holder, fences: [parent.fence] });
      const pending = runs.find(({ id }) => !idsOf(held).includes(id))?.id as string;
      await Promise.all([
        settleOn(settler, scene, [completed(held[0] as Held), failed(held[1] as Held)]),
        reaper.leases.reclaim({ limit: 10, random: 0 }),
        operator.runs.cancel({ id: pending, random: 0 }),
      ]);
      // The reaper leaves a lease alone that is being settled at that moment.
      await reaper.leases.reclaim({ limit: 10, random: 0 });
      for (const { id } of runs) await operator.runs.cancel({ id, random: 0 });
      const found = await onlyBatch(scene, parent.id);
      expect(found.completed + found.failed + found.cancelled).toBe(4);
      for (const status of ["completed", "failed", "cancelled"] as const) {
        const children = await scene.store.batches.children({
          parent: parent.id,
          status,
          limit: 10,
        });
        expect(children).toHaveLength(found[status]);
      }
      expect(await continuations(scene)).toHaveLength(round);
    }
  });

  test("the same batch asked for at once is made once", async ({ scene }) => {
    const stores = await Promise.all([scene.open(), scene.open(), scene.open()]);
    const parent = await heldParent(scene);
    const answers = await Promise.all(
      stores.map((store, at) => {
        const runs = Array.from({ length: 3 + at }, () => scene.run());
        return store.batches.enqueue(newBatch(scene, parent, runs));
      }),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    const [first] = answers;
    const made = await scene.store.batches.children({ parent: parent.id, limit: 100 });
    expect(first).toMatchObject({ scheduled: made.length });
  });

  test("batches whose keys overlap in opposite orders all succeed", async ({ scene }) => {
    const stores = await Promise.all([scene.open(), scene.open(), scene.open()]);
    const keys = Array.from({ length: 60 }, (_, at) => `k${at}`);
    const parents = await Promise.all(stores.map(() => heldParent(scene)));
    const answers = await Promise.all(
      stores.map((store, at) => {
        const order = at % 2 === 0 ? keys : keys.toReversed();
        const runs = order.map((key) => scene.run({ key: { key, inputHash: "h" } }));
        return store.batches.enqueue(newBatch(scene, parents[at] as Held, runs));
      }),
    );
    const scheduled = answers.map((answer) => (answer === "stale" ? 0 : answer.scheduled));
    expect(scheduled.reduce((sum, count) => sum + count, 0)).toBe(60);
  });
}

async function settleOn(store: Store, scene: Scene, settlements: Settlement[]): Promise<void> {
  await store.claims.exchange({
    holder: scene.holder,
    token: crypto.randomUUID(),
    settlements,
    limit: 0,
    wantsSuspect: false,
    jobs: [],
    queues: null,
    random: 0,
  });
}
