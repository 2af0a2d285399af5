// How long ticks are kept; and that the ledger refuses a second tick before and after a prune.

import { expect } from "vitest";
import { oneTick } from "../../src/core/tick.js";
import type { Scene, SceneTest } from "./scene.js";
import { MINUTE_MS, stretch } from "./schedule-words.js";

const DAY_MS = 86_400_000;
const KEEP_TICKS_MS = 30 * DAY_MS;
const PARAMS = { keepMs: 90 * DAY_MS, keepTicksMs: KEEP_TICKS_MS, limit: 10 };

/** Until nothing is left to remove. */
async function pruneAll(scene: Scene): Promise<void> {
  for (let times = 0; times < 20; times += 1) {
    if ((await scene.store.prune(PARAMS)) === 0) return;
  }
  throw new Error("There was always more to remove.");
}

export function schedulePruneSuite(test: SceneTest): void {
  test("prune removes ticks past their time and keeps newer ones", async ({ scene }) => {
    await scene.schedules.make("a");
    const old = Array.from({ length: 30 }, (_, at) => oneTick(scene.now + at, "nobody"));
    await scene.schedules.change("a", { ticks: old });
    scene.advance(20 * DAY_MS);
    const newer = await scene.schedules.fire("a");
    scene.advance(20 * DAY_MS);
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toMatchObject([{ run: newer }]);
    expect(await scene.status(newer)).toBe("pending");
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toHaveLength(1);
  });

  test("a stretch is kept for as long as its last tick is", async ({ scene }) => {
    await scene.schedules.make("a");
    await pruneAll(scene);
    const firstAt = scene.now;
    scene.advance(40 * DAY_MS);
    const days = stretch(firstAt, (39 * DAY_MS) / MINUTE_MS);
    await scene.schedules.change("a", { ticks: [days] });
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toMatchObject([days]);
    scene.advance(KEEP_TICKS_MS + 2 * DAY_MS);
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toEqual([]);
  });

  test("a tick that was judged late, of a day long ago, is kept like any other", async ({
    scene,
  }) => {
    await scene.schedules.make("a");
    await scene.schedules.fire("a", { at: scene.now - 20 * DAY_MS });
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toHaveLength(1);
    scene.advance(KEEP_TICKS_MS);
    await pruneAll(scene);
    expect(await scene.schedules.ticks("a")).toEqual([]);
  });

  test("the ledger works on after weeks of prunes, and days without any", async ({ scene }) => {
    await scene.schedules.make("a");
    for (let week = 0; week < 10; week += 1) {
      await scene.schedules.fire("a");
      scene.advance(7 * DAY_MS);
      await scene.store.prune(PARAMS);
    }
    await pruneAll(scene);
    const left = await scene.schedules.ticks("a");
    expect(left.length).toBeGreaterThanOrEqual(4);
    expect(left.length).toBeLessThanOrEqual(5);
  });

  test("a tick stays one tick through prunes: the second is refused", async ({ scene }) => {
    await scene.schedules.make("a");
    const ticks = [-1, 0, 1, 2, 3].map((day) => oneTick(scene.now + day * DAY_MS, "nobody"));
    await scene.schedules.change("a", { ticks });
    for (let day = 0; day < 4; day += 1) {
      for (const tick of ticks) {
        await expect(scene.schedules.change("a", { ticks: [tick] })).rejects.toThrow();
      }
      expect(await scene.schedules.ticks("a")).toHaveLength(ticks.length);
      scene.advance(DAY_MS);
      await scene.store.prune(PARAMS);
    }
  });
}
