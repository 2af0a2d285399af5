// Limits where runs come into being or end otherwise than by a plain enqueue and a plain settle: in
// batches, by commits with users' work, inside callers' transactions.

import { expect } from "vitest";
import type { CommitParams } from "../../src/store/commits.js";
import type { NewRun } from "../../src/store/enqueue.js";
import { heldParent, newBatch, onlyBatch } from "./batch-fixtures.js";
import { LimitedJob } from "./limited-job.js";
import { completed, failed, type Held, idsOf, type Scene, type SceneTest } from "./scene.js";

const ONE_AT_ONCE = { concurrency: { limit: 1, key: "account" } };

/** The end of a run by a commit, in whose transaction these runs are stored. */
function commitWith(scene: Scene, held: Held, runs: readonly NewRun[] = []): CommitParams {
  const { id, fence } = held;
  const { store, holder } = scene;
  const isSync = store.engine === "sqlite";
  const work = (tx: unknown) => {
    if (isSync && runs.length > 0) store.enqueue.withinSync({ tx, runs });
    if (isSync || runs.length === 0) return completed(held);
    return store.enqueue.within({ tx, runs }).then(() => completed(held));
  };
  return { id, fence, holder, random: 0, on: null, timeoutMs: 10_000, work };
}

export function limitMeetsSuite(test: SceneTest): void {
  test("children wait for their limit, and the last of them ends the batch and gives its share back", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    const parent = await heldParent(scene);
    const runs = [job.run("a"), job.run("a", { key: { key: "k", inputHash: "h" } })];
    const batch = newBatch(scene, parent, runs);
    expect(await scene.store.batches.enqueue(batch)).toEqual({ scheduled: 2, errors: [] });
    const [stranger] = await job.enqueued(1, "a");
    const order = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const held = await job.claim();
      expect(held).toHaveLength(1);
      expect(await job.claim()).toEqual([]);
      order.push(...idsOf(held));
      await scene.settle(completed(held[0] as Held));
    }
    expect([...order].sort()).toEqual(idsOf([...runs, stranger as NewRun]).sort());
    expect(await onlyBatch(scene, parent.id)).toMatchObject({ completed: 2 });
    expect(idsOf(await scene.claim({ jobs: ["after"] }))).toEqual([batch.after?.id]);
  });

  test("the run after a batch waits for the limit of its own job", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    await job.enqueued(1);
    const [held] = await job.claim();
    const parent = await heldParent(scene);
    const child = scene.run({ job: "plain" });
    const batch = newBatch(scene, parent, [child], { after: job.run(null, { input: "null" }) });
    await scene.store.batches.enqueue(batch);
    await scene.settle(completed(await scene.claimOne({ jobs: ["plain"] })));
    expect(await scene.claim({ jobs: [job.job] })).toEqual([]);
    expect(await job.claim()).toEqual([]);
    await scene.settle(completed(held as Held));
    expect(idsOf(await job.claim())).toEqual([batch.after?.id]);
  });

  test("failed children that are retried together stand in line", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    const parent = await heldParent(scene);
    const runs = [job.run("a"), job.run("a")];
    await scene.store.batches.enqueue(newBatch(scene, parent, runs));
    for (let turn = 0; turn < 2; turn += 1) {
      const [held] = await job.claim();
      await scene.settle(failed(held as Held));
    }
    const revived = await scene.store.batches.retryChildren({ parent: parent.id, limit: 10 });
    expect([...revived].sort()).toEqual(idsOf(runs).sort());
    expect(await job.claim()).toHaveLength(1);
    expect(await job.claim()).toEqual([]);
  });

  test("a commit with a user's work releases the slot of its run", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    const [first, second] = await job.enqueued(2);
    const [held] = await job.claim();
    expect(held?.id).toBe(first?.id);
    expect(await scene.store.commits.run(commitWith(scene, held as Held))).toBe("committed");
    expect(idsOf(await job.claim())).toEqual([second?.id]);
  });

  test("a commit that is refused gives nothing back", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    await job.enqueued(2);
    const [held] = await job.claim();
    const stale = { ...(held as Held), fence: (held as Held).fence + 1 };
    expect(await scene.store.commits.run(commitWith(scene, stale))).toBe("stale");
    expect(await job.claim()).toEqual([]);
  });

  test("runs that are stored in a caller's transaction stand in line once it commits", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    const parent = await heldParent(scene);
    const runs = [job.run("a"), job.run("a", { key: { key: "k", inputHash: "h" } }), job.run("b")];
    await scene.store.commits.run(commitWith(scene, parent, runs));
    const held = await job.claim();
    expect(held).toHaveLength(2);
    expect(await job.claim()).toEqual([]);
    await scene.settle(...held.map((each) => completed(each)));
    expect(await job.claim()).toHaveLength(1);
  });

  test("a key that postpones does so in a caller's transaction, and the limit stays", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, ONE_AT_ONCE);
    const key = { key: "k", inputHash: "h", onDuplicate: "postpone", lastsMs: "live" } as const;
    const [holding] = await job.enqueued(1);
    const [held] = await job.claim();
    const [first] = await job.enqueued(1, "a", { key });
    const parent = await heldParent(scene);
    await scene.store.commits.run(
      commitWith(scene, parent, [job.run("a", { key, delayMs: 5_000 }), job.run("b")]),
    );
    expect(held?.id).toBe(holding?.id);
    scene.advance(5_000);
    while ((await scene.store.work.promote({ limit: 100 })) > 0);
    const others = await job.claim();
    expect(others.map(({ id }) => id)).not.toContain(first?.id);
    await scene.settle(completed(held as Held), ...others.map((each) => completed(each)));
    expect(idsOf(await job.claim())).toEqual([first?.id]);
  });
}
