// Idempotency keys (S12): the same key with the same input is the same run for all callers; with
// another input it is a conflict.

import { expect } from "vitest";
import type { NewKey, NewRun } from "../../src/store/enqueue.js";
import { completed, idsOf, type Scene, type SceneTest } from "./scene.js";

const key = (name: string, inputHash = "hash"): { key: NewKey } => ({
  key: { key: name, inputHash },
});

export function keySuite(test: SceneTest): void {
  test("the same key and input return the first run, also while it runs and after it ended", async ({
    scene,
  }) => {
    const run = scene.run(key("order-1"));
    expect(await scene.enqueue(run)).toEqual([{ id: run.id, deduplicated: false }]);
    const again = () => scene.enqueue(scene.run(key("order-1")));
    expect(await again()).toEqual([{ id: run.id, deduplicated: true }]);
    const held = await scene.claimOne();
    expect(await again()).toEqual([{ id: run.id, deduplicated: true }]);
    await scene.settle(completed(held));
    expect(await again()).toEqual([{ id: run.id, deduplicated: true }]);
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(1);
    expect((await scene.record(run.id)).key).toBe("order-1");
  });

  test("the same key with another input is a conflict and stores nothing", async ({ scene }) => {
    const run = scene.run(key("order-1"));
    await scene.enqueue(run);
    const other = scene.run(key("order-1", "other"));
    expect(await scene.enqueue(other)).toEqual([{ conflict: run.id }]);
    expect(await scene.store.runs.get(other.id)).toBeNull();
  });

  test("keys of different jobs do not meet", async ({ scene }) => {
    const runs = [scene.run(key("k")), scene.run({ ...key("k"), job: "mail" })];
    expect(await scene.enqueue(...runs)).toEqual(
      runs.map(({ id }) => ({ id, deduplicated: false })),
    );
  });

  test("keys differ by case, inner spaces, accents and length", async ({ scene }) => {
    const names = ["a", "A", "a b", "a  b", "é", "e\u0301", "ß", "ss", "😀", "a".repeat(500)];
    const runs = names.map((name) => scene.run(key(name)));
    const answers = await scene.enqueue(...runs);
    expect(answers).toEqual(runs.map(({ id }) => ({ id, deduplicated: false })));
    expect(await scene.enqueue(...names.map((name) => scene.run(key(name))))).toEqual(
      runs.map(({ id }) => ({ id, deduplicated: true })),
    );
  });

  test("a call that is repeated after a lost response returns the first result", async ({
    scene,
  }) => {
    const runs = [scene.run(key("a")), scene.run(), scene.run(key("b"))];
    const first = await scene.enqueue(...runs);
    expect(first).toEqual(runs.map(({ id }) => ({ id, deduplicated: false })));
    expect(await scene.enqueue(...runs)).toEqual(first);
    expect(idsOf(await scene.claim()).sort()).toEqual(idsOf(runs).sort());
  });

  test("a key asked for twice inside one call is one run, and another input a conflict", async ({
    scene,
  }) => {
    const runs = [
      scene.run(key("k")),
      scene.run(key("k")),
      scene.run(key("k", "other")),
      scene.run(),
    ];
    const [first, , , keyless] = idsOf(runs);
    expect(await scene.enqueue(...runs)).toEqual([
      { id: first, deduplicated: false },
      { id: first, deduplicated: true },
      { conflict: first },
      { id: keyless, deduplicated: false },
    ]);
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(2);
  });

  test("one bad key of a call that is not atomic leaves its neighbours alone", async ({
    scene,
  }) => {
    const taken = scene.run(key("taken"));
    await scene.enqueue(taken);
    const runs = [scene.run(), scene.run(key("taken", "other")), scene.run(key("free"))];
    expect(await scene.enqueue(...runs)).toEqual([
      { id: runs[0]?.id, deduplicated: false },
      { conflict: taken.id },
      { id: runs[2]?.id, deduplicated: false },
    ]);
  });

  test("an atomic call stores nothing at all if one of its keys is a conflict", async ({
    scene,
  }) => {
    const taken = scene.run(key("taken"));
    await scene.enqueue(taken);
    const runs = [scene.run(), scene.run(key("free")), scene.run(key("taken", "other"))];
    const answers = await atomically(scene, runs);
    expect(answers[2]).toEqual({ conflict: taken.id });
    expect(idsOf(await scene.store.runs.list({ limit: 10 }))).toEqual([taken.id]);
    const retry = [runs[0], runs[1]] as NewRun[];
    expect(await atomically(scene, retry)).toEqual(
      retry.map(({ id }) => ({ id, deduplicated: false })),
    );
  });

  test("a refused atomic call leaves no trace that a later call could stumble over", async ({
    scene,
  }) => {
    await scene.enqueue(scene.run(key("taken")));
    const refused = [scene.run({ job: "fresh" }), scene.run(key("taken", "other"))];
    await Promise.all([
      scene.enqueue(scene.run()),
      atomically(scene, refused),
      scene.enqueue(scene.run()),
    ]);
    const [id] = await scene.enqueued(1, { job: "fresh" });
    expect(idsOf(await scene.claim({ jobs: ["fresh"] }))).toEqual([id]);
  });

  test("an atomic call with keys that is repeated after a lost response changes nothing", async ({
    scene,
  }) => {
    const runs = [scene.run(key("a")), scene.run(), scene.run(key("b"))];
    const first = await atomically(scene, runs);
    expect(await atomically(scene, runs)).toEqual(first);
    expect(await scene.claim()).toHaveLength(3);
  });

  test("a deduplicated call changes neither input nor time of the run", async ({ scene }) => {
    const run = scene.run({ ...key("k"), input: '{"a":1,"b":2}', delayMs: 60_000 });
    await scene.enqueue(run);
    const before = await scene.portrait(run.id);
    scene.advance(1_000);
    await scene.enqueue(scene.run({ ...key("k"), input: '{"b":2,"a":1}', priority: 9 }));
    expect(await scene.portrait(run.id)).toEqual(before);
  });

  test("a removed run gives its key back", async ({ scene }) => {
    const run = scene.run(key("k"));
    await scene.enqueue(run);
    await scene.settle(completed(await scene.claimOne()));
    await scene.store.runs.remove({ id: run.id });
    const next = scene.run(key("k", "other"));
    expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
  });

  test("twenty callers with one key at once get one run", async ({ scene }) => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => scene.enqueue(scene.run(key("k")))),
    );
    const ids = new Set(answers.flat().map((answer) => ("id" in answer ? answer.id : "conflict")));
    expect(ids.size).toBe(1);
    expect(answers.flat().filter((answer) => "id" in answer && !answer.deduplicated)).toHaveLength(
      1,
    );
    expect(await scene.store.runs.list({ limit: 30 })).toHaveLength(1);
  });
}

function atomically(scene: Scene, runs: readonly NewRun[]) {
  return scene.store.enqueue.runs({ runs, isAtomic: true, wakesOthers: false });
}
