// How long ticks are kept; and that the ledger refuses a second tick before and after a prune.

import { expect } from "vitest";
import { oneTick } from "../../src/schedules/rules/tick.js";
import type { Scene, SceneTest } from "./scene.js";
import { MINUTE_MS, stretch } from "./schedule-fixtures.js";

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const KEEP_TICKS_MS = 30 * DAY_MS;
const PARAMS = { keepMs: KEEP_TICKS_MS, keepTicksMs: KEEP_TICKS_MS, limit: 10 };
/** The usual: runs for thirty days, the whole ledger for seven. */
const USUAL = { keepMs: 30 * DAY_MS, keepTicksMs: 7 * DAY_MS, limit: 1_000 };

/** Until nothing is left to remove. */
async function pruneAll(scene: Scene, params = PARAMS): Promise<void> {
  for (let times = 0; times < 20; times += 1) {
    if ((await scene.store.retention.prune(params)) === 0) return;
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

  test("ticks that did not fire, and the newest 200 of each schedule, are kept for as long as runs", async ({
    scene,
  }) => {
    const { schedules } = scene;
    await pruneAll(scene, USUAL);
    for (const name of ["often", "seldom"]) await schedules.make(name);
    const firstAt = scene.now;
    const fired = (at: number) => oneTick(at, "on_time");
    const minutes = (count: number) =>
      Array.from({ length: count }, (_, no) => firstAt + no * MINUTE_MS);
    const missedAt = firstAt + 30 * SECOND_MS;
    await schedules.change("often", {
      ticks: [...minutes(300).map(fired), oneTick(missedAt, "nobody")],
    });
    await schedules.change("seldom", { ticks: minutes(20).map(fired) });
    const count = async (name: string, reason: string) =>
      (await scene.store.schedules.ticks({ schedule: name, limit: 1_000 })).filter(
        (tick) => tick.reason === reason,
      ).length;
    scene.advance(6 * DAY_MS);
    await pruneAll(scene, USUAL);
    expect(await count("often", "on_time")).toBe(300);
    scene.advance(3 * DAY_MS);
    await pruneAll(scene, USUAL);
    expect(await count("often", "on_time")).toBe(200);
    expect(await count("often", "nobody")).toBe(1);
    expect(await count("seldom", "on_time")).toBe(20);
    // Enough has fired meanwhile: of that day no run is among the newest any more, and it was judged.
    await schedules.change("often", {
      ticks: Array.from({ length: 250 }, (_, no) => fired(scene.now + no)),
    });
    scene.advance(15 * DAY_MS);
    await pruneAll(scene, USUAL);
    expect(await count("seldom", "on_time")).toBe(20);
    expect(await count("often", "nobody")).toBe(1);
    scene.advance(8 * DAY_MS);
    await pruneAll(scene, USUAL);
    expect(await count("seldom", "on_time")).toBe(0);
    expect(await count("often", "nobody")).toBe(0);
    expect(await count("often", "on_time")).toBe(200);
  });

  test("of ticks of one minute that did not fire the first is kept with any that is a minute long: two rows a minute at most", async ({
    scene,
  }) => {
    const { schedules } = scene;
    await pruneAll(scene, USUAL);
    await schedules.make("a");
    const firstAt = scene.now - (scene.now % MINUTE_MS) + MINUTE_MS;
    const skipped = Array.from({ length: 600 }, (_, no) =>
      oneTick(firstAt + no * SECOND_MS, "overlap"),
    );
    const days = stretch(firstAt + 10 * MINUTE_MS, 5);
    await schedules.change("a", { ticks: [...skipped, days] });
    const newerAt = firstAt + DAY_MS;
    await schedules.change("a", {
      ticks: Array.from({ length: 200 }, (_, no) => oneTick(newerAt + no, "on_time")),
    });
    scene.advance(20 * DAY_MS);
    await pruneAll(scene, USUAL);
    const left = await scene.store.schedules.ticks({
      schedule: "a",
      toAt: newerAt - 1,
      limit: 1_000,
    });
    expect(left.map(({ firstAt: at }) => (at - firstAt) / MINUTE_MS).toReversed()).toEqual([
      ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    ]);
    await expect(schedules.change("a", { ticks: [oneTick(firstAt, "nobody")] })).rejects.toThrow();
  });

  test("a tick that is judged while its day is old, and one of it was removed, is kept", async ({
    scene,
  }) => {
    const { schedules } = scene;
    await pruneAll(scene, USUAL);
    await schedules.make("a");
    const oldAt = scene.now;
    await schedules.change("a", { ticks: [oneTick(oldAt, "nobody")] });
    scene.advance(10 * DAY_MS);
    await pruneAll(scene, USUAL);
    await schedules.change("a", { ticks: [oneTick(oldAt + 1, "catch_up")] });
    await pruneAll(scene, USUAL);
    expect(await schedules.ticks("a")).toHaveLength(2);
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
      await scene.store.retention.prune(PARAMS);
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
      await scene.store.retention.prune(PARAMS);
    }
  });
}
