// Keys that live for a while or as long as their run, and keys that replace or postpone a run that has
// not begun. Once it has, a new run takes over the key.

import { expect } from "vitest";
import type { NewKey, NewRun } from "../../src/store/enqueue.js";
import { LimitedJob } from "./limited-job.js";
import { completed, idsOf, type SceneTest } from "./scene.js";

const key = (rules: Partial<NewKey> = {}, inputHash = "hash"): { key: NewKey } => ({
  key: { key: "k", inputHash, ...rules },
});

export function duplicateSuite(test: SceneTest): void {
  test("a key for a while is free when it is over, with any input", async ({ scene }) => {
    const first = scene.run(key({ lastsMs: 1_000 }));
    await scene.enqueue(first);
    scene.advance(999);
    expect(await scene.enqueue(scene.run(key()))).toEqual([{ id: first.id, deduplicated: true }]);
    scene.advance(1);
    const next = scene.run(key({ lastsMs: 1_000 }, "other"));
    expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
    expect(await scene.enqueue(scene.run(key()))).toEqual([{ conflict: next.id }]);
  });

  test("a key of a live run is free once that has ended", async ({ scene }) => {
    const first = scene.run(key({ lastsMs: "live" }));
    await scene.enqueue(first);
    const again = () => scene.enqueue(scene.run(key({ lastsMs: "live" })));
    expect(await again()).toEqual([{ id: first.id, deduplicated: true }]);
    const held = await scene.claimOne();
    expect(await again()).toEqual([{ id: first.id, deduplicated: true }]);
    await scene.settle(completed(held));
    const next = scene.run(key({ lastsMs: "live" }, "other"));
    expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
  });

  test("replace gives a pending run the new input and time", async ({ scene }) => {
    const first = scene.run({ ...key(), delayMs: 5_000, priority: 3 });
    await scene.enqueue(first);
    scene.advance(1_000);
    const other = scene.run({
      ...key({ onDuplicate: "replace" }, "other"),
      input: '{"n":2}',
      delayMs: 9_000,
    });
    expect(await scene.enqueue(other)).toEqual([{ id: first.id, deduplicated: true }]);
    expect(await scene.store.runs.get(other.id)).toBeNull();
    expect(await scene.record(first.id)).toMatchObject({
      input: '{"n":2}',
      dueAt: scene.now + 9_000,
      priority: 3,
      status: "pending",
    });
    // From now on the key stands for the new input.
    expect(await scene.enqueue(scene.run(key({}, "other")))).toEqual([
      { id: first.id, deduplicated: true },
    ]);
    expect(await scene.enqueue(scene.run(key()))).toEqual([{ conflict: first.id }]);
  });

  test("postpone moves the time of a pending run and leaves its input", async ({ scene }) => {
    const first = scene.run({ ...key(), delayMs: 1_000 });
    await scene.enqueue(first);
    for (let call = 0; call < 3; call += 1) {
      scene.advance(900);
      const again = scene.run({
        ...key({ onDuplicate: "postpone" }, "other"),
        input: '{"n":9}',
        delayMs: 1_000,
      });
      expect(await scene.enqueue(again)).toEqual([{ id: first.id, deduplicated: true }]);
      await scene.store.work.promote({ limit: 10 });
      expect(await scene.claim()).toEqual([]);
    }
    scene.advance(1_000);
    await scene.store.work.promote({ limit: 10 });
    const [held] = await scene.claim();
    expect(held?.claim.runs[0]).toMatchObject({ id: first.id, input: '{"n":1}' });
  });

  for (const onDuplicate of ["replace", "postpone"] as const) {
    for (const isLimited of [false, true]) {
      const which = isLimited ? "a limited run" : "a run";
      test(`${onDuplicate} with maxWait moves ${which} no further than that after it was enqueued`, async ({
        scene,
      }) => {
        const job = isLimited
          ? await LimitedJob.announce(scene, { concurrency: { limit: 1 } })
          : null;
        const fresh = (rest: Partial<NewRun>) => job?.run("a", rest) ?? scene.run(rest);
        const rules = { onDuplicate, maxWaitMs: 3_000 } as const;
        const enqueuedAt = scene.now;
        const first = fresh({ ...key(rules), delayMs: 1_000 });
        await scene.enqueue(first);
        expect((await scene.record(first.id)).dueAt).toBe(enqueuedAt + 1_000);
        for (const dueAt of [1_800, 2_600, 3_000, 3_000]) {
          scene.advance(800);
          const again = fresh({ ...key(rules, "other"), delayMs: 1_000 });
          expect(await scene.enqueue(again)).toEqual([{ id: first.id, deduplicated: true }]);
          expect((await scene.record(first.id)).dueAt).toBe(enqueuedAt + dueAt);
        }
        // The last call came after that time: the run is still there to be claimed.
        await scene.store.work.promote({ limit: 10 });
        expect(idsOf(await (job ?? scene).claim())).toEqual([first.id]);
      });
    }
  }

  test("a ready run is replaced too, and may have to wait again", async ({ scene }) => {
    const first = scene.run(key());
    await scene.enqueue(first);
    await scene.enqueue(scene.run({ ...key({ onDuplicate: "postpone" }), delayMs: 1_000 }));
    expect(await scene.claim()).toEqual([]);
    await scene.enqueue(scene.run(key({ onDuplicate: "postpone" })));
    expect(idsOf(await scene.claim())).toEqual([first.id]);
  });

  for (const onDuplicate of ["replace", "postpone"] as const) {
    test(`${onDuplicate}: once the run has begun, a new one takes over the key`, async ({
      scene,
    }) => {
      const first = scene.run(key());
      await scene.enqueue(first);
      const held = await scene.claimOne();
      const next = scene.run({ ...key({ onDuplicate }, "other"), delayMs: 1_000 });
      expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
      expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
      await scene.settle(completed(held));
      const third = scene.run({ ...key({ onDuplicate }, "third"), delayMs: 1_000 });
      expect(await scene.enqueue(third)).toEqual([{ id: next.id, deduplicated: true }]);
      expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(2);
    });
  }

  test("each member of a batch sees the changes of the members before it", async ({ scene }) => {
    const rules = { onDuplicate: "replace" } as const;
    const runs = [
      scene.run({ ...key(rules, "1"), input: "1" }),
      scene.run({ ...key(rules, "2"), input: "2" }),
      scene.run(),
      scene.run({ ...key(rules, "3"), input: "3", delayMs: 100 }),
    ];
    const [first, , keyless] = idsOf(runs);
    expect(await scene.enqueue(...runs)).toEqual([
      { id: first, deduplicated: false },
      { id: first, deduplicated: true },
      { id: keyless, deduplicated: false },
      { id: first, deduplicated: true },
    ]);
    expect(await scene.record(first ?? "")).toMatchObject({ input: "3", dueAt: scene.now + 100 });
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(2);
  });

  test("an atomic batch that is refused has replaced nothing", async ({ scene }) => {
    const first = scene.run(key());
    const taken = scene.run({ key: { key: "taken", inputHash: "hash" } });
    await scene.enqueue(first, taken);
    const before = await scene.portrait(first.id);
    const runs: NewRun[] = [
      scene.run({ ...key({ onDuplicate: "replace" }, "other"), input: "2" }),
      scene.run({ key: { key: "taken", inputHash: "other" } }),
    ];
    const answers = await scene.store.enqueue.runs({ runs, isAtomic: true, wakesOthers: false });
    expect(answers[1]).toEqual({ conflict: taken.id });
    expect(await scene.portrait(first.id)).toEqual(before);
  });

  test("a replaced limited run waits under the key of its new input", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    const [busy] = await job.enqueued(1, "busy");
    await job.claim();
    const first = job.run("busy", key());
    await scene.enqueue(first);
    expect(await job.claim()).toEqual([]);
    await scene.enqueue(job.run("free", key({ onDuplicate: "replace" }, "other")));
    expect(idsOf(await job.claim())).toEqual([first.id]);
    expect(busy?.id).not.toBe(first.id);
  });

  test("a limited run that is postponed stays under its own key", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    await job.enqueued(1, "busy");
    await job.claim();
    const first = job.run("busy", key());
    await scene.enqueue(first);
    await scene.enqueue(job.run("free", key({ onDuplicate: "postpone" }, "other")));
    expect(await job.claim()).toEqual([]);
    expect(await scene.store.runs.pendingReason(first.id)).toMatchObject({ reason: "concurrency" });
  });

  test("twenty callers that replace at once leave one run, with the input of one of them", async ({
    scene,
  }) => {
    const runs = Array.from({ length: 20 }, (_, n) =>
      scene.run({ ...key({ onDuplicate: "replace" }, `hash ${n}`), input: `${n}`, delayMs: 1_000 }),
    );
    const answers = (await Promise.all(runs.map((run) => scene.enqueue(run)))).flat();
    expect(answers.filter((answer) => "id" in answer && !answer.deduplicated)).toHaveLength(1);
    const [record] = await scene.store.runs.list({ limit: 30 });
    expect(await scene.store.runs.list({ limit: 30 })).toHaveLength(1);
    expect(await scene.enqueue(scene.run(key({}, `hash ${record?.input}`)))).toEqual([
      { id: record?.id, deduplicated: true },
    ]);
  });
}
