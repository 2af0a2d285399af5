// Opening and closing a store, and the checks of the schema.

import { expect } from "vitest";
import { completed, idsOf, Scene, type SceneTest } from "./scene.js";

export function openSuite(test: SceneTest, { isShared }: { isShared: boolean }): void {
  test("a closed store refuses every verb with an error and does not hang", async ({ scene }) => {
    const place = scene.place;
    const store = place.newStore({ now: () => scene.now });
    await store.open();
    await store.close();
    await expect(store.runs.get(scene.id())).rejects.toThrow();
    await expect(store.work.promote({ limit: 1 })).rejects.toThrow();
    const enqueuing = store.enqueue.runs({
      runs: [scene.run()],
      isAtomic: false,
      wakesOthers: false,
    });
    await expect(enqueuing).rejects.toThrow();
  });

  test("closing twice is the same as closing once", async ({ scene }) => {
    await scene.store.close();
    await scene.store.close();
  });

  test("a database without our tables is refused unless it may be changed", async ({ scene }) => {
    const elsewhere = new Scene(await scene.place.another());
    await expect(elsewhere.open("check")).rejects.toMatchObject({ code: "MIGRATION_REFUSED" });
    await expect(elsewhere.open("off")).rejects.toMatchObject({ code: "MIGRATION_REFUSED" });
    await elsewhere.end();
  });

  if (!isShared) return;

  test("eight stores that open an empty database at once all succeed and share it", async ({
    scene,
  }) => {
    const elsewhere = new Scene(await scene.place.another());
    const stores = await Promise.all(Array.from({ length: 8 }, () => elsewhere.open()));
    const run = scene.run();
    await stores[0]?.enqueue.runs({ runs: [run], isAtomic: false, wakesOthers: false });
    const seen = await Promise.all(stores.map((store) => store.runs.get(run.id)));
    expect(seen.map((record) => record?.id)).toEqual(stores.map(() => run.id));
    await elsewhere.end();
  });

  test("a store that opens later finds the commits of an earlier one", async ({ scene }) => {
    const ids = await scene.enqueued(3);
    const [held] = await scene.claim({ limit: 1 });
    await scene.store.close();
    const again = await scene.open("check");
    const rows = await again.runs.list({ limit: 10 });
    expect(idsOf(rows).sort()).toEqual([...ids].sort());
    expect((await again.runs.get(held?.id as string))?.fence).toBe(held?.fence);
  });

  test("a fence that was used before a restart is not used after it", async ({ scene }) => {
    await scene.enqueued(2);
    const before = await scene.claimOne();
    await scene.settle(completed(before));
    await scene.store.close();
    const after = await scene.claimOne({ store: await scene.open() });
    expect(after.fence).toBeGreaterThan(before.fence);
  });
}
