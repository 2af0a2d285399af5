// Enqueue: stored values, due times, and the result of a repeated call.

import { expect } from "vitest";
import { completed, idsOf, policyWith, type SceneTest } from "./scene.js";

export function enqueueSuite(test: SceneTest): void {
  test("an enqueued run reads back as it was given, pending and due at once", async ({ scene }) => {
    const policy = policyWith({ attempts: 7 });
    const run = scene.run({
      job: "mail",
      queue: "slow",
      policy,
      input: '{"to":["a","b"]}',
      mode: "manual",
      version: 4,
      priority: -100,
      tags: ["eu", "nightly"],
    });
    expect(await scene.enqueue(run)).toEqual([{ id: run.id, deduplicated: false }]);
    expect(await scene.store.runs.get(run.id)).toEqual({
      id: run.id,
      job: "mail",
      queue: "slow",
      status: "pending",
      mode: "manual",
      priority: -100,
      attempt: 0,
      attemptsMax: 7,
      fence: null,
      input: '{"to":["a","b"]}',
      result: null,
      error: null,
      schedule: null,
      parent: null,
      nominalAt: null,
      createdAt: scene.now,
      dueAt: scene.now,
      startedAt: null,
      finishedAt: null,
      updatedAt: scene.now,
      heartbeatAt: null,
      holder: null,
      leaseUntil: null,
      key: null,
      tags: ["eu", "nightly"],
      cancelRequestedAt: null,
      items: {},
    });
    expect(await scene.store.runs.attempts(run.id)).toEqual([]);
  });

  test("a claimed run carries everything that its handler needs", async ({ scene }) => {
    const tags = ['a "b"', "ü"];
    const run = scene.run({ input: "[1]", mode: "test", version: 9, priority: 3, tags });
    await scene.enqueue(run);
    const { claim } = await scene.claimOne();
    expect(claim).toMatchObject({ job: "study", queue: "default", attempt: 1, policy: run.policy });
    expect(claim.runs).toEqual([
      {
        id: run.id,
        input: "[1]",
        mode: "test",
        version: 9,
        priority: 3,
        createdAt: scene.now,
        dueAt: scene.now,
        nominalAt: null,
        schedule: null,
        batch: null,
        tags,
        refunds: 0,
        laters: 0,
        extraAttempts: 0,
      },
    ]);
  });

  test("a call with many runs returns them in their order", async ({ scene }) => {
    const runs = Array.from({ length: 2_500 }, () => scene.run());
    const answers = await scene.enqueue(...runs);
    expect(answers).toEqual(runs.map(({ id }) => ({ id, deduplicated: false })));
    const claimed = await scene.claim({ limit: 3_000 });
    expect(idsOf(claimed)).toEqual(idsOf(runs));
  });

  test("an empty call stores nothing", async ({ scene }) => {
    expect(await scene.enqueue()).toEqual([]);
    expect(await scene.store.runs.list({ limit: 10 })).toEqual([]);
  });

  test("a call that is repeated after a lost response makes no second run", async ({ scene }) => {
    const runs = [scene.run(), scene.run({ delayMs: 1_000 })];
    const first = await scene.enqueue(...runs);
    expect(await scene.enqueue(...runs)).toEqual(first);
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(2);
    expect(await scene.claim()).toHaveLength(1);
  });

  test("a repeated run among new ones is stored once, and the new ones as well", async ({
    scene,
  }) => {
    const [old, fresh, other] = [scene.run(), scene.run(), scene.run()];
    await scene.enqueue(old);
    expect(await scene.enqueue(fresh, old, other)).toHaveLength(3);
    expect(idsOf(await scene.claim())).toEqual([old.id, fresh.id, other.id]);
  });

  test("a repeated call does not bring back a run that has started or ended", async ({ scene }) => {
    const [ended, running] = [scene.run(), scene.run()];
    await scene.enqueue(ended, running);
    const [first] = await scene.claim();
    await scene.settle(completed(first as typeof first & object));
    await scene.enqueue(ended, running);
    expect(await scene.claim()).toEqual([]);
    expect(await scene.status(ended.id)).toBe("completed");
    expect(await scene.status(running.id)).toBe("running");
  });

  test("a run with a delay waits by the database's clock, and no longer", async ({ scene }) => {
    const [id] = await scene.enqueued(1, { delayMs: 60_000 });
    expect((await scene.record(id as string)).dueAt).toBe(scene.now + 60_000);
    scene.advance(59_999);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
    expect(await scene.claim()).toEqual([]);
    scene.advance(1);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(1);
    expect(idsOf(await scene.claim())).toEqual([id]);
  });

  test("a run with an instant waits for it and ignores its delay", async ({ scene }) => {
    const [id] = await scene.enqueued(1, { dueAt: scene.now + 5_000, delayMs: 1 });
    expect((await scene.record(id as string)).dueAt).toBe(scene.now + 5_000);
    scene.advance(5_000);
    await scene.store.work.promote({ limit: 10 });
    expect((await scene.claimOne()).claim.runs[0]?.dueAt).toBe(scene.now);
  });

  test("a run with an instant in the past is due at once, before runs that became due later", async ({
    scene,
  }) => {
    const [fresh] = await scene.enqueued(1);
    const [old] = await scene.enqueued(1, { dueAt: scene.now - 1_000 });
    expect(idsOf(await scene.claim())).toEqual([old, fresh]);
  });

  test("delays of years are kept exactly", async ({ scene }) => {
    const years = 30 * 365 * 86_400_000;
    const [id] = await scene.enqueued(1, { delayMs: years });
    expect((await scene.record(id as string)).dueAt).toBe(scene.now + years);
  });
}
