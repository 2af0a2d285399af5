// Items: one result for each over all attempts; written under the fence; counted where they are stored.

import { expect } from "vitest";
import type { Grant } from "../../src/store/claims.js";
import type { ItemWrite } from "../../src/store/items.js";
import { completed, failed, handedBack, type SceneTest } from "./scene.js";

const DAY_MS = 86_400_000;
const KEEP_MS = 30 * DAY_MS;

export function doneItem(
  { id, fence }: Grant,
  key: string,
  value: unknown = 1,
  changes: Partial<ItemWrite> = {},
): ItemWrite {
  return {
    id,
    fence,
    key,
    outcome: "ok",
    value: JSON.stringify(value),
    error: null,
    durationMs: 5,
    ...changes,
  };
}

export function failedItem({ id, fence }: Grant, key: string): ItemWrite {
  const error = '{"code":"BROKEN"}';
  return { id, fence, key, outcome: "failed", value: null, error, durationMs: 5 };
}

export function itemSuite(test: SceneTest): void {
  test("an item keeps its value, its outcome, its times and the attempt that did it", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(1_000);
    const item = doneItem(held, "a", { n: 1 }, { outcome: "OPPORTUNITIES", durationMs: 250.4 });
    expect(await scene.store.items.store([item])).toEqual(["stored"]);
    expect(await scene.store.items.list({ id: held.id, sort: "key", limit: 10 })).toEqual([
      {
        key: "a",
        outcome: "OPPORTUNITIES",
        attempt: 1,
        startedAt: scene.now - 250,
        durationMs: 250,
        value: '{"n":1}',
        error: null,
      },
    ]);
    expect((await scene.record(held.id)).items).toEqual({ OPPORTUNITIES: 1 });
  });

  test("a repeated equal item is not new, and another value changes nothing (S9)", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.items.store([doneItem(held, "a", { n: 1, m: 2 })]);
    const before = await scene.store.items.list({ id: held.id, sort: "key", limit: 10 });
    scene.advance(10);
    const kept = { kept: { outcome: "ok", value: '{"n":1,"m":2}' } };
    expect(
      await scene.store.items.store([
        doneItem(held, "a", { n: 1, m: 2 }),
        doneItem(held, "a", { m: 2, n: 1 }),
        doneItem(held, "a", { n: 2 }),
        doneItem(held, "a", { n: 1, m: 2 }, { outcome: "other" }),
        failedItem(held, "a"),
      ]),
    ).toEqual(["stored", "stored", kept, kept, kept]);
    expect(await scene.store.items.list({ id: held.id, sort: "key", limit: 10 })).toEqual(before);
    expect((await scene.record(held.id)).items).toEqual({ ok: 1 });
  });

  test("the same item twice in one call is stored once, and the later one is judged by the first", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    expect(
      await scene.store.items.store([
        doneItem(held, "a", 1),
        doneItem(held, "b", 1),
        doneItem(held, "a", 1),
        doneItem(held, "a", 2),
      ]),
    ).toEqual(["stored", "stored", "stored", { kept: { outcome: "ok", value: "1" } }]);
    expect((await scene.record(held.id)).items).toEqual({ ok: 2 });
  });

  test("the result of a later try replaces a failed item, and the counts follow", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const first = await scene.claimOne();
    await scene.store.items.store([failedItem(first, "a"), failedItem(first, "b")]);
    await scene.store.items.store([failedItem(first, "a")]);
    expect((await scene.record(first.id)).items).toEqual({ failed: 2 });
    await scene.settle(handedBack(first, false));
    const second = await scene.claimOne();
    expect(
      await scene.store.items.store([doneItem(second, "a"), doneItem(second, "c", 1)]),
    ).toEqual(["stored", "stored"]);
    expect((await scene.record(first.id)).items).toEqual({ failed: 1, ok: 2 });
    const items = await scene.store.items.list({ id: first.id, sort: "key", limit: 10 });
    expect(items.map(({ key, outcome, attempt, error }) => [key, outcome, attempt, error])).toEqual(
      [
        ["a", "ok", 2, null],
        ["b", "failed", 1, '{"code":"BROKEN"}'],
        ["c", "ok", 2, null],
      ],
    );
  });

  test("items of a stale fence change nothing; their neighbours of other runs are stored (S3)", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const [lost, kept] = await scene
      .claim({ limit: 1 })
      .then(async ([one]) => [one, await scene.claimOne()]);
    if (!lost || !kept) throw new Error("Two runs were to be claimed.");
    await scene.settle(handedBack(lost));
    const again = await scene.claimOne();
    expect(again.id).toBe(lost.id);
    expect(
      await scene.store.items.store([
        doneItem(lost, "a"),
        doneItem(kept, "a"),
        doneItem({ id: kept.id, fence: again.fence }, "b"),
        failedItem(lost, "c"),
      ]),
    ).toEqual(["stale", "stored", "stale", "stale"]);
    expect(await scene.store.items.list({ id: lost.id, sort: "key", limit: 10 })).toEqual([]);
    expect((await scene.record(lost.id)).items).toEqual({});
    await scene.settle(completed(again));
    expect(await scene.store.items.store([doneItem(again, "a")])).toEqual(["stale"]);
  });

  test("items that are done are read at once, as many as asked for, or by their keys", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const keys = ["a", "b", "c", "d"];
    await scene.store.items.store([
      ...keys.map((key) => doneItem(held, key, key)),
      failedItem(held, "e"),
    ]);
    const read = (keys: string[] | null, limit: number, charsMax: number) =>
      scene.store.items.done({ id: held.id, keys, limit, charsMax });
    const items = keys.map((key) => ({ key, value: `"${key}"` }));
    expect(await read(null, 10, 1_000)).toEqual({ items, isAll: true });
    expect(await read(null, 2, 1_000)).toEqual({ items: items.slice(0, 2), isAll: false });
    // Three letters each: the one that goes beyond is the last.
    expect(await read(null, 10, 7)).toEqual({ items: items.slice(0, 3), isAll: false });
    expect((await read(["d", "e", "x"], 3, 0)).items).toEqual(items.slice(3));
    expect(
      await scene.store.items.done({ id: scene.id(), keys: null, limit: 5, charsMax: 5 }),
    ).toEqual({ items: [], isAll: true });
  });

  test("items are listed by key or the slowest first, in pages, by outcome", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const slowness = { a: 5, b: 50, c: 5, d: 500, e: 50 };
    await scene.store.items.store([
      ...Object.entries(slowness).map(([key, durationMs]) =>
        doneItem(held, key, key, { durationMs, outcome: durationMs > 5 ? "slow" : "ok" }),
      ),
      failedItem(held, "f"),
    ]);
    const keysOf = async (filter: object) =>
      (await scene.store.items.list({ id: held.id, sort: "key", limit: 10, ...filter })).map(
        ({ key }) => key,
      );
    expect(await keysOf({})).toEqual(["a", "b", "c", "d", "e", "f"]);
    expect(await keysOf({ limit: 2, after: { key: "b", durationMs: 50 } })).toEqual(["c", "d"]);
    expect(await keysOf({ outcome: "failed" })).toEqual(["f"]);
    expect(await keysOf({ sort: "slowest", limit: 3 })).toEqual(["d", "b", "e"]);
    expect(
      await keysOf({ sort: "slowest", after: { key: "b", durationMs: 50 }, outcome: "slow" }),
    ).toEqual(["e"]);
    expect(await keysOf({ sort: "slowest", after: { key: "e", durationMs: 50 } })).toEqual([
      "a",
      "c",
      "f",
    ]);
  });

  test("a thousand items of many runs are one call, each its own way", async ({ scene }) => {
    const ids = await scene.enqueued(10);
    const held = await scene.claim({ limit: 10 });
    const items = held.flatMap((each) =>
      Array.from({ length: 100 }, (_, n) =>
        n % 10 === 0 ? failedItem(each, `${n}`) : doneItem(each, `${n}`, n),
      ),
    );
    expect(new Set(await scene.store.items.store(items))).toEqual(new Set(["stored"]));
    for (const id of ids) expect((await scene.record(id)).items).toEqual({ ok: 90, failed: 10 });
  });

  test("odd keys and values come back as they went in", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const odd = ['"', "\\", "{a,b}", "NULL", "é😀", "a'b", "%", ",", "{}"];
    await scene.store.items.store(odd.map((key) => doneItem(held, key, { [key]: `${key}\0` })));
    const { items } = await scene.store.items.done({
      id: held.id,
      keys: odd,
      limit: 20,
      charsMax: 0,
    });
    const values = new Map(items.map(({ key, value }) => [key, JSON.parse(value)]));
    for (const key of odd) expect(values.get(key)).toEqual({ [key]: `${key}\0` });
  });

  test("an operator's retry keeps the done items", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.items.store([doneItem(held, "a"), failedItem(held, "b")]);
    await scene.settle(failed(held));
    expect(await scene.store.runs.retry({ id: held.id })).toBe("pending");
    const again = await scene.claimOne();
    const { items } = await scene.store.items.done({
      id: held.id,
      keys: null,
      limit: 5,
      charsMax: 99,
    });
    expect(items).toEqual([{ key: "a", value: "1" }]);
    expect(await scene.store.items.store([doneItem(again, "b")])).toEqual(["stored"]);
    expect((await scene.record(held.id)).items).toEqual({ ok: 2 });
  });

  test("items go with their run, when it is removed and when it is pruned", async ({ scene }) => {
    await scene.enqueued(2);
    const [removed, pruned] = await scene.claim();
    if (!removed || !pruned) throw new Error("Two runs were to be claimed.");
    await scene.store.items.store([doneItem(removed, "a"), doneItem(pruned, "a")]);
    await scene.settle(completed(removed), completed(pruned));
    expect(await scene.store.runs.remove({ id: removed.id })).toBe("removed");
    expect(await scene.store.items.list({ id: removed.id, sort: "key", limit: 5 })).toEqual([]);
    expect(await scene.store.items.list({ id: pruned.id, sort: "key", limit: 5 })).toHaveLength(1);
    const [living] = await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.store.items.store([doneItem(held, "a")]);
    scene.advance(KEEP_MS + 3 * DAY_MS);
    for (let times = 0; times < 5; times += 1)
      await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    expect(await scene.store.items.list({ id: pruned.id, sort: "key", limit: 5 })).toEqual([]);
    expect(await scene.store.runs.get(pruned.id)).toBeNull();
    // A live run keeps its items, however old it is.
    expect((await scene.record(living as string)).items).toEqual({ ok: 1 });
    expect(await scene.store.items.list({ id: held.id, sort: "key", limit: 5 })).toHaveLength(1);
  });
}
