// Batches: children of a run, stored once under its fence, counted as they end, and the follow-up run.

import { expect } from "vitest";
import { continuations, heldChildren, heldParent, newBatch, onlyBatch } from "./batch-fixtures.js";
import {
  cancelled,
  completed,
  failed,
  handedBack,
  idsOf,
  LEASE_MS,
  policyWith,
  retried,
  type SceneTest,
} from "./scene.js";

const COUNTS = { scheduled: 0, errors: 0, completed: 0, failed: 0, cancelled: 0 };

export function batchSuite(test: SceneTest): void {
  test("a batch stores its children with their parent and returns their number", async ({
    scene,
  }) => {
    const parent = await heldParent(scene);
    const errors = [{ index: 2, code: "INPUT_INVALID", message: "no" }];
    const runs = [scene.run(), scene.run({ delayMs: 1_000 })];
    const answer = await scene.store.batches.enqueue(newBatch(scene, parent, runs, { errors }));
    expect(answer).toEqual({ scheduled: 2, errors });
    for (const { id } of runs)
      expect(await scene.record(id)).toMatchObject({ parent: parent.id, mode: "enqueued" });
    expect(idsOf(await scene.store.batches.children({ parent: parent.id, limit: 10 }))).toEqual(
      idsOf(runs).reverse(),
    );
    expect(await onlyBatch(scene, parent.id)).toEqual({
      name: "batch",
      scheduled: 2,
      errors,
      completed: 0,
      failed: 0,
      cancelled: 0,
      after: null,
    });
  });

  test("the last end makes the follow-up run with the counts as its input", async ({ scene }) => {
    const { parent, batch, children } = await heldChildren(scene, 3);
    const [first, second, third] = children as [
      (typeof children)[0],
      (typeof children)[0],
      (typeof children)[0],
    ];
    await scene.settle(completed(first), failed(second));
    expect(await continuations(scene)).toEqual([]);
    await scene.settle(cancelled(third));
    const input = { ...COUNTS, scheduled: 3, completed: 1, failed: 1, cancelled: 1 };
    expect(await continuations(scene)).toEqual([{ id: batch.after?.id, input }]);
    expect(await onlyBatch(scene, parent.id)).toMatchObject({
      completed: 1,
      failed: 1,
      cancelled: 1,
      after: batch.after?.id,
    });
    expect(await scene.record(batch.after?.id as string)).toMatchObject({
      parent: parent.id,
      priority: 7,
      status: "pending",
    });
    expect(await scene.claimOne({ jobs: ["after"] })).toMatchObject({ batch: null, attempt: 1 });
  });

  test("an exchange returns whether it made the follow-up run", async ({ scene }) => {
    const { children } = await heldChildren(scene, 2);
    const exchange = (settlements: Parameters<typeof scene.settle>) =>
      scene.store.claims.exchange({
        holder: scene.holder,
        token: crypto.randomUUID(),
        settlements,
        limit: 0,
        wantsSuspect: false,
        jobs: [],
        queues: null,
        random: 0,
      });
    const [first, last] = children.map((held) => completed(held));
    expect(await exchange([first as never])).toMatchObject({ hasContinued: false });
    expect(await exchange([last as never])).toMatchObject({ hasContinued: true });
    expect(await exchange([last as never])).toMatchObject({ hasContinued: false, stale: [] });
  });

  test("children that end together are counted together", async ({ scene }) => {
    const { children } = await heldChildren(scene, 40);
    await scene.settle(
      ...children.map((held, at) => (at % 4 === 0 ? failed(held) : completed(held))),
    );
    const input = { ...COUNTS, scheduled: 40, completed: 30, failed: 10 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("a batch without children makes its follow-up run at once", async ({ scene }) => {
    const parent = await heldParent(scene);
    const errors = [{ index: 0, code: "JOB_UNKNOWN", message: "no" }];
    await scene.store.batches.enqueue(newBatch(scene, parent, [], { errors }));
    expect((await continuations(scene)).map((run) => run.input)).toEqual([
      { ...COUNTS, errors: 1 },
    ]);
  });

  test("the counts are kept without a follow-up job too", async ({ scene }) => {
    const parent = await heldParent(scene);
    await scene.store.batches.enqueue(newBatch(scene, parent, [scene.run()], { after: null }));
    await scene.settle(completed(await scene.claimOne()));
    expect(await onlyBatch(scene, parent.id)).toMatchObject({ completed: 1, after: null });
  });

  test("a later call of the same run and name returns the first result and makes nothing", async ({
    scene,
  }) => {
    const { parent, children } = await heldChildren(scene, 2);
    const before = await scene.store.runs.list({ limit: 100 });
    const again = newBatch(scene, parent, [scene.run(), scene.run(), scene.run()]);
    expect(await scene.store.batches.enqueue(again)).toEqual({ scheduled: 2, errors: [] });
    expect(await scene.store.runs.list({ limit: 100 })).toEqual(before);
    await scene.settle(...children.map((held) => completed(held)));
    // After it has ended too, by another attempt of the run.
    scene.advance(LEASE_MS);
    await scene.store.leases.reclaim({ limit: 10, random: 0 });
    const next = await scene.claimOne({ jobs: ["parent"], wantsSuspect: true });
    expect(next.id).toBe(parent.id);
    expect(await scene.store.batches.enqueue(newBatch(scene, next, [scene.run()]))).toEqual({
      scheduled: 2,
      errors: [],
    });
    expect(await continuations(scene)).toHaveLength(1);
  });

  test("another name of the same run is another batch", async ({ scene }) => {
    const parent = await heldParent(scene);
    await scene.store.batches.enqueue(newBatch(scene, parent, [scene.run()]));
    const second = newBatch(scene, parent, [scene.run()], { name: "second" });
    expect(await scene.store.batches.enqueue(second)).toEqual({ scheduled: 1, errors: [] });
    expect((await scene.store.batches.list(parent.id)).map(({ name }) => name)).toEqual([
      "batch",
      "second",
    ]);
    const only = { parent: parent.id, batch: "second", limit: 10 };
    expect(idsOf(await scene.store.batches.children(only))).toEqual(
      second.children.map(({ run }) => run.id),
    );
  });

  test("a call with a stale fence stores nothing and returns that it is stale", async ({
    scene,
  }) => {
    const parent = await heldParent(scene);
    await scene.loseAll();
    const keyed = scene.run({ key: { key: "k", inputHash: "h" } });
    expect(await scene.store.batches.enqueue(newBatch(scene, parent, [scene.run(), keyed]))).toBe(
      "stale",
    );
    const grant = { id: parent.id, fence: parent.fence };
    expect(await scene.store.batches.enqueueChildren({ parent: grant, runs: [scene.run()] })).toBe(
      "stale",
    );
    expect(await scene.store.batches.list(parent.id)).toEqual([]);
    expect(idsOf(await scene.store.runs.list({ limit: 10 }))).toEqual([parent.id]);
    // The key is still free.
    const [answer] = await scene.enqueue(scene.run({ key: { key: "k", inputHash: "h" } }));
    expect(answer).toMatchObject({ deduplicated: false });
  });

  test("the fence of another run is no right to make children", async ({ scene }) => {
    const parent = await heldParent(scene);
    const other = await heldParent(scene);
    const grant = { id: parent.id, fence: other.fence };
    const batch = { ...newBatch(scene, parent, [scene.run()]), parent: grant };
    expect(await scene.store.batches.enqueue(batch)).toBe("stale");
    expect(await scene.store.batches.list(parent.id)).toEqual([]);
  });

  test("children by the side of a batch have their parent, and count nowhere", async ({
    scene,
  }) => {
    const parent = await heldParent(scene);
    const grant = { id: parent.id, fence: parent.fence };
    const run = scene.run();
    const keyed = scene.run({ key: { key: "k", inputHash: "h" } });
    const again = scene.run({ key: { key: "k", inputHash: "other" } });
    expect(
      await scene.store.batches.enqueueChildren({ parent: grant, runs: [run, keyed, again] }),
    ).toEqual([
      { id: run.id, deduplicated: false },
      { id: keyed.id, deduplicated: false },
      { conflict: keyed.id },
    ]);
    // Its answer was lost: the same call again.
    expect(
      await scene.store.batches.enqueueChildren({ parent: grant, runs: [run, keyed] }),
    ).toEqual([
      { id: run.id, deduplicated: false },
      { id: keyed.id, deduplicated: false },
    ]);
    expect(await scene.claim()).toMatchObject([{ batch: null }, { batch: null }]);
    expect((await scene.record(run.id)).parent).toBe(parent.id);
    expect(await scene.store.batches.children({ parent: parent.id, limit: 10 })).toHaveLength(2);
  });

  test("a key of another input is refused, and so is a key whose run is live outside the batch", async ({
    scene,
  }) => {
    const parent = await heldParent(scene);
    const key = (name: string, inputHash = "h") => ({ key: { key: name, inputHash } });
    await scene.enqueue(scene.run(key("live")), scene.run(key("other", "x")));
    const done = scene.run(key("done"));
    await scene.enqueue(done);
    const held = (await scene.claim({ limit: 3 })).find(({ id }) => id === done.id);
    await scene.settle(failed(held as never));
    const runs = ["free", "live", "other", "done", "free"].map((name) => scene.run(key(name)));
    const batch = newBatch(scene, parent, runs);
    const answer = await scene.store.batches.enqueue(batch);
    expect(answer).toMatchObject({
      // One that is new, once, and one that had ended.
      scheduled: 2,
      errors: [
        { index: 1, code: "KEY_LIVE" },
        { index: 2, code: "KEY_CONFLICT" },
      ],
    });
    expect(await onlyBatch(scene, parent.id)).toMatchObject({ failed: 1, after: null });
    await scene.settle(completed(await scene.claimOne()));
    const input = { scheduled: 2, errors: 2, completed: 1, failed: 1, cancelled: 0 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("a batch of children that had all ended before ends at once", async ({ scene }) => {
    const key = { key: { key: "k", inputHash: "h" } };
    await scene.enqueue(scene.run(key));
    await scene.settle(completed(await scene.claimOne()));
    const parent = await heldParent(scene);
    await scene.store.batches.enqueue(newBatch(scene, parent, [scene.run(key)]));
    const input = { ...COUNTS, scheduled: 1, completed: 1 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("a child that is tried again or handed back has not ended", async ({ scene }) => {
    const { parent, children } = await heldChildren(scene, 2);
    await scene.settle(retried(children[0] as never, 0), handedBack(children[1] as never));
    expect(await onlyBatch(scene, parent.id)).toMatchObject({
      completed: 0,
      failed: 0,
      after: null,
    });
    await scene.settle(...(await scene.claim()).map((held) => completed(held)));
    expect(await continuations(scene)).toHaveLength(1);
  });

  test("a settlement that is repeated or stale counts once", async ({ scene }) => {
    const { parent, children } = await heldChildren(scene, 2);
    const first = completed(children[0] as never);
    await scene.settle(first, first);
    await scene.settle(first);
    await scene.settle(failed({ ...(children[1] as never as object), fence: 9_999 } as never));
    expect(await onlyBatch(scene, parent.id)).toMatchObject({
      completed: 1,
      failed: 0,
      after: null,
    });
  });

  test("a reclaim that ends the last child makes the follow-up run", async ({ scene }) => {
    const { children } = await heldChildren(scene, 1, { policy: policyWith({ onLost: "fail" }) });
    await scene.store.leases.markStarted(children.map(({ id, fence }) => ({ id, fence })));
    await scene.loseAll();
    const input = { ...COUNTS, scheduled: 1, failed: 1 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("a cancel of the last pending child makes the follow-up run", async ({ scene }) => {
    const parent = await heldParent(scene);
    const runs = [scene.run(), scene.run({ delayMs: 60_000 })];
    await scene.store.batches.enqueue(newBatch(scene, parent, runs));
    for (const { id } of runs) await scene.store.runs.cancel({ id, random: 0 });
    const input = { ...COUNTS, scheduled: 2, cancelled: 2 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("an enforced cancel of the last child makes the follow-up run", async ({ scene }) => {
    const { children } = await heldChildren(scene, 1);
    await scene.store.runs.cancel({ id: children[0]?.id as string, random: 0 });
    expect(await continuations(scene)).toEqual([]);
    await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 });
    const input = { ...COUNTS, scheduled: 1, cancelled: 1 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("the batch waits again for a failed child that is retried before the others have ended", async ({
    scene,
  }) => {
    const { parent, children } = await heldChildren(scene, 2);
    await scene.settle(failed(children[0] as never));
    expect(await scene.store.runs.retry({ id: children[0]?.id as string })).toBe("pending");
    await scene.settle(completed(children[1] as never));
    expect(await onlyBatch(scene, parent.id)).toMatchObject({
      failed: 0,
      completed: 1,
      after: null,
    });
    await scene.settle(completed(await scene.claimOne()));
    const input = { ...COUNTS, scheduled: 2, completed: 2 };
    expect((await continuations(scene)).map((run) => run.input)).toEqual([input]);
  });

  test("failed children that are retried later change the counts, and the follow-up run is made once", async ({
    scene,
  }) => {
    const { parent, children } = await heldChildren(scene, 5);
    await scene.settle(...children.map((held, at) => (at < 3 ? failed(held) : completed(held))));
    const retry = { parent: parent.id, limit: 2 };
    const first = await scene.store.batches.retryChildren(retry);
    expect(first).toEqual(idsOf(children).sort().slice(0, 2));
    const rest = await scene.store.batches.retryChildren({ ...retry, after: first[1] as string });
    expect(rest).toHaveLength(1);
    expect(await scene.store.batches.retryChildren(retry)).toEqual([]);
    expect(await onlyBatch(scene, parent.id)).toMatchObject({ failed: 0, completed: 2 });
    await scene.settle(...(await scene.claim()).map((held) => completed(held)));
    expect(await onlyBatch(scene, parent.id)).toMatchObject({ failed: 0, completed: 5 });
    expect(await continuations(scene)).toHaveLength(1);
  });

  test("children are listed by status, page by page, without the follow-up run", async ({
    scene,
  }) => {
    const { parent, children } = await heldChildren(scene, 4);
    const [first, second, third] = children;
    await scene.settle(
      failed(first as never),
      completed(second as never),
      retried(third as never, 0),
    );
    const of = async (status: "failed" | "completed" | "pending" | "running") =>
      idsOf(await scene.store.batches.children({ parent: parent.id, status, limit: 10 }));
    expect(await of("failed")).toEqual([first?.id]);
    expect(await of("completed")).toEqual([second?.id]);
    expect(await of("pending")).toEqual([third?.id]);
    expect(await of("running")).toEqual([children[3]?.id]);
    await scene.settle(
      ...(await scene.claim()).map((held) => completed(held)),
      completed(children[3] as never),
    );
    expect(await continuations(scene)).toHaveLength(1);
    const newest = idsOf(await scene.store.batches.children({ parent: parent.id, limit: 3 }));
    const before = newest.at(-1) as string;
    const oldest = idsOf(
      await scene.store.batches.children({ parent: parent.id, before, limit: 3 }),
    );
    expect([...newest, ...oldest]).toEqual(idsOf(children).sort().reverse());
  });

  test("a batch is kept for as long as the run that made it", async ({ scene }) => {
    const { parent, children } = await heldChildren(scene, 1);
    await scene.settle(completed(children[0] as never));
    const keep = { keepMs: 86_400_000, keepTicksMs: 1, limit: 100 };
    scene.advance(10 * 86_400_000);
    await scene.store.leases.renew({ holder: scene.holder, fences: [parent.fence] });
    await scene.store.retention.prune(keep);
    expect(await scene.store.batches.list(parent.id)).toHaveLength(1);
    await scene.settle(completed(parent));
    scene.advance(10 * 86_400_000);
    await scene.store.retention.prune(keep);
    await scene.store.retention.prune(keep);
    expect(await scene.store.runs.get(parent.id)).toBeNull();
    expect(await scene.store.batches.list(parent.id)).toEqual([]);
  });

  test("a large batch with keys is stored in one call", async ({ scene }) => {
    const parent = await heldParent(scene);
    const runs = Array.from({ length: 6_000 }, (_, at) =>
      scene.run(at % 2 === 0 ? {} : { key: { key: `k${at}`, inputHash: "h" } }),
    );
    const batch = newBatch(scene, parent, runs);
    expect(await scene.store.batches.enqueue(batch)).toEqual({ scheduled: 6_000, errors: [] });
    expect(await scene.claim({ limit: 10_000 })).toHaveLength(6_000);
  });
}
