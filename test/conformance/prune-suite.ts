// Prune: rows past their retention are removed, a bounded amount at a time; live ones stay.

import { expect } from "vitest";
import { completed, failed, idsOf, type Scene, type SceneTest } from "./scene.js";

const DAY_MS = 86_400_000;
const KEEP_MS = 30 * DAY_MS;

/** Until nothing is left to remove. */
async function pruneAll(scene: Scene): Promise<void> {
  for (let times = 0; times < 20; times += 1) {
    if (
      (await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 })) ===
      0
    )
      return;
  }
  throw new Error("There was always more to remove.");
}

export function pruneSuite(test: SceneTest): void {
  test("a fresh database has nothing to prune, and young runs stay", async ({ scene }) => {
    expect(
      await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 }),
    ).toBe(0);
    await scene.enqueued(1);
    await scene.settle(completed(await scene.claimOne()));
    scene.advance(KEEP_MS - DAY_MS);
    await pruneAll(scene);
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(1);
  });

  test("old runs that have ended go with attempts and keys; those that live stay with theirs", async ({
    scene,
  }) => {
    const [done, dead, waiting, ready, running] = [
      "done",
      "dead",
      "waiting",
      "ready",
      "running",
    ].map((key) =>
      scene.run({
        key: { key, inputHash: "h" },
        ...(key === "waiting" ? { delayMs: 2 * KEEP_MS } : {}),
      }),
    ) as [Run, Run, Run, Run, Run];
    await scene.enqueue(done, dead, waiting);
    const [first, second] = await scene.claim();
    await scene.settle(completed(first as Held), failed(second as Held));
    await scene.enqueue(running);
    const held = await scene.claimOne();
    await scene.enqueue(ready);
    scene.advance(KEEP_MS + 3 * DAY_MS);
    await pruneAll(scene);
    expect(idsOf(await scene.store.runs.list({ limit: 10 })).sort()).toEqual(
      [waiting.id, ready.id, running.id].sort(),
    );
    expect(await scene.store.runs.attempts(done.id)).toEqual([]);
    expect(await scene.settle(completed(held))).toEqual([]);
    // The keys of the living still hold; those of the dead are free again.
    for (const { key, id } of [waiting, ready, running]) {
      expect(await scene.enqueue(scene.run({ key }))).toEqual([{ id, deduplicated: true }]);
    }
    for (const { key } of [done, dead]) {
      const next = scene.run({ key });
      expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
    }
  });

  test("one prune removes no more runs than its limit, but for whole days at once", async ({
    scene,
  }) => {
    await scene.enqueued(30);
    await scene.settle(...(await scene.claim({ limit: 30 })).map((each) => completed(each)));
    scene.advance(KEEP_MS + 3 * DAY_MS);
    await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 10 });
    const left = await scene.store.runs.list({ limit: 100 });
    expect(left).toHaveLength(scene.store.engine === "sqlite" ? 20 : 0);
  });

  test("an old run that ended recently stays until its retention is over", async ({ scene }) => {
    const [id] = (await scene.enqueued(1, { key: { key: "k", inputHash: "h" } })) as [string];
    scene.advance(KEEP_MS + 5 * DAY_MS);
    await scene.settle(completed(await scene.claimOne(), '"late"'));
    await pruneAll(scene);
    expect(await scene.record(id)).toMatchObject({ status: "completed", result: '"late"' });
    expect(await scene.store.runs.attempts(id)).toHaveLength(1);
    scene.advance(KEEP_MS + 3 * DAY_MS);
    await pruneAll(scene);
    expect(await scene.store.runs.get(id)).toBeNull();
    expect(await scene.store.runs.attempts(id)).toEqual([]);
    const next = scene.run({ key: { key: "k", inputHash: "other" } });
    expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
  });

  test("an old live run continues unchanged after a prune", async ({ scene }) => {
    await scene.enqueued(1, { input: '{"old":true}', tags: ["eu"] });
    const lost = await scene.claimOne();
    await scene.loseAll();
    scene.advance(KEEP_MS + 5 * DAY_MS);
    await scene.poll();
    const before = await scene.portrait(lost.id);
    await pruneAll(scene);
    expect(await scene.portrait(lost.id)).toEqual(before);
    const held = await scene.claimOne({ wantsSuspect: true });
    expect(held.claim.runs[0]?.input).toBe('{"old":true}');
    await scene.settle(completed(held));
    expect(await scene.store.runs.attempts(lost.id)).toHaveLength(2);
  });

  test("a store works on after weeks of prunes, and days without any", async ({ scene }) => {
    for (let week = 0; week < 8; week += 1) {
      await scene.enqueued(2);
      await scene.settle(completed(await scene.claimOne()), completed(await scene.claimOne()));
      scene.advance(7 * DAY_MS);
      await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    }
    await pruneAll(scene);
    const left = await scene.store.runs.list({ limit: 100 });
    expect(left.length).toBeGreaterThanOrEqual(8);
    expect(left.length).toBeLessThanOrEqual(10);
  });

  test("instances that have been silent for long are forgotten, but not those that hold something", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const silent = await scene.announce("silent");
    scene.advance(KEEP_MS + 3 * DAY_MS);
    await scene.announce("young");
    await pruneAll(scene);
    expect((await scene.record(held.id)).holder).toBe("first");
    expect(await scene.announce("silent")).not.toBe(silent);
  });
}

type Run = ReturnType<Scene["run"]>;
type Held = Awaited<ReturnType<Scene["claimOne"]>>;
