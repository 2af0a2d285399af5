// Schedules, ticks and runs of schedules as people list them.

import { expect } from "vitest";
import { OUTCOMES, oneTick } from "../../src/schedules/rules/tick.js";
import type { ScheduleFilter } from "../../src/store/schedules/schedules.js";
import type { TickFilter, TickRecord } from "../../src/store/schedules/ticks.js";
import { completed, failed, idsOf, type Scene, type SceneTest } from "./scene.js";
import { MINUTE_MS, stretch, UPRIGHT } from "./schedule-fixtures.js";

async function names(scene: Scene, filter: Partial<ScheduleFilter> = {}): Promise<string[]> {
  const found = await scene.store.schedules.list({ limit: 100, ...filter });
  return found.map(({ name }) => name);
}

async function tickTimes(scene: Scene, filter: Partial<TickFilter> = {}): Promise<number[]> {
  const found = await scene.store.schedules.ticks({ limit: 100, ...filter });
  return found.map(({ firstAt }) => (firstAt - scene.now) / MINUTE_MS);
}

export function scheduleListSuite(test: SceneTest): void {
  test("schedules are listed in the order of their names, page by page", async ({ scene }) => {
    const given = ["b", "a.b", "a", "a-b", "c10", "c9"];
    for (const name of given) await scene.schedules.make(name);
    expect(await names(scene)).toEqual(given.toSorted());
    const seen: string[] = [];
    for (;;) {
      const after = seen.at(-1);
      const page = await names(scene, { limit: 4, ...(after === undefined ? {} : { after }) });
      seen.push(...page);
      if (page.length < 4) break;
    }
    expect(seen).toEqual(given.toSorted());
  });

  test("schedules are listed by name, job, app and state, alone and together", async ({
    scene,
  }) => {
    await scene.schedules.make("active", { app: "shop" });
    await scene.schedules.make("other", { job: "mail" });
    await scene.schedules.make("ended", { isEnded: true, nextAt: null });
    await scene.schedules.make("paused", { app: "shop" });
    await scene.schedules.pause("paused");
    await scene.schedules.make("broken");
    await scene.schedules.change("broken", {
      progress: { nextAt: null },
      standing: { ...UPRIGHT, brokenAt: scene.now, brokenError: "no zone" },
    });
    expect(await names(scene, { state: "active" })).toEqual(["active", "other"]);
    for (const state of ["ended", "paused", "broken"] as const) {
      expect(await names(scene, { state })).toEqual([state]);
    }
    expect(await names(scene, { name: "other" })).toEqual(["other"]);
    expect(await names(scene, { name: "oth" })).toEqual([]);
    expect(await names(scene, { job: "mail" })).toEqual(["other"]);
    expect(await names(scene, { app: "shop" })).toEqual(["active", "paused"]);
    expect(await names(scene, { app: "shop", state: "paused" })).toEqual(["paused"]);
    expect(await names(scene, { job: "mail", app: "shop" })).toEqual([]);
  });

  test("a deleted schedule is not listed", async ({ scene }) => {
    await scene.schedules.make("a");
    await scene.schedules.make("b");
    await scene.schedules.remove("a");
    expect(await names(scene)).toEqual(["b"]);
    expect(await names(scene, { name: "a" })).toEqual([]);
  });

  test("a listed schedule has all of its state and the status of its newest run", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly", { app: "shop", codeHash: "h" });
    const record = async () => (await scene.store.schedules.list({ name: "nightly", limit: 1 }))[0];
    expect(await record()).toMatchObject({ lastStatus: null, lastRunAt: null, live: [] });
    const id = await scene.schedules.fire("nightly");
    const whole = await scene.schedules.state("nightly");
    const { live: _live, backfill: _backfill, pauses: _pauses, ...state } = whole;
    expect(await record()).toMatchObject({ ...state, live: [id], lastStatus: "pending" });
    const held = await scene.claimOne();
    expect(await record()).toMatchObject({ lastStatus: "running" });
    await scene.settle(failed(held));
    expect(await record()).toMatchObject({ lastStatus: "failed" });
    await scene.schedules.fire("nightly", { at: scene.now + 1 });
    await scene.settle(completed(await scene.claimOne()));
    expect(await record()).toMatchObject({ lastStatus: "completed" });
  });

  test("ticks are listed newest first, by outcome and by schedule", async ({ scene }) => {
    await scene.schedules.make("a");
    await scene.schedules.make("b");
    const at = (minute: number) => scene.now + minute * MINUTE_MS;
    await scene.schedules.change("a", {
      ticks: [oneTick(at(-5), "late"), oneTick(at(-4), "overlap"), oneTick(at(-3), "nobody")],
    });
    await scene.schedules.change("b", {
      ticks: [oneTick(at(-2), "on_time"), oneTick(at(-1), "paused"), oneTick(at(0), "broken")],
    });
    expect(await tickTimes(scene)).toEqual([0, -1, -2, -3, -4, -5]);
    expect(await tickTimes(scene, { schedule: "a" })).toEqual([-3, -4, -5]);
    expect(await tickTimes(scene, { schedule: "nobody" })).toEqual([]);
    const byOutcome = OUTCOMES.map((outcome) => tickTimes(scene, { outcome }));
    expect(await Promise.all(byOutcome)).toEqual([
      [-2, -5],
      [-1, -4],
      [0, -3],
    ]);
    expect(await tickTimes(scene, { schedule: "a", outcome: "missed" })).toEqual([-3]);
  });

  test("a range of ticks holds its ends and every stretch that touches it", async ({ scene }) => {
    await scene.schedules.make("a");
    const at = (minute: number) => scene.now + minute * MINUTE_MS;
    await scene.schedules.change("a", {
      ticks: [stretch(at(-50), 11), oneTick(at(-30), "late"), stretch(at(-20), 11)],
    });
    const between = (from: number, to: number) =>
      tickTimes(scene, { schedule: "a", fromAt: at(from), toAt: at(to) });
    expect(await between(-100, 0)).toEqual([-20, -30, -50]);
    expect(await between(-45, -44)).toEqual([-50]);
    expect(await between(-40, -30)).toEqual([-30, -50]);
    expect(await between(-39, -31)).toEqual([]);
    expect(await between(-30, -20)).toEqual([-20, -30]);
    expect(await between(-9, 0)).toEqual([]);
    expect(await tickTimes(scene, { schedule: "a", fromAt: at(-10) })).toEqual([-20]);
    expect(await tickTimes(scene, { schedule: "a", toAt: at(-45) })).toEqual([-50]);
    expect(await tickTimes(scene, { fromAt: at(-45), toAt: at(-30) })).toEqual([-30, -50]);
  });

  test("ticks are read page by page without gaps or repeats, for one schedule and for all", async ({
    scene,
  }) => {
    for (const name of ["a", "b", "c"]) {
      await scene.schedules.make(name);
      const ticks = Array.from({ length: 5 }, (_, at) => oneTick(scene.now - at, "late"));
      await scene.schedules.change(name, { ticks });
    }
    const read = async (filter: Partial<TickFilter>): Promise<TickRecord[]> => {
      const seen: TickRecord[] = [];
      for (;;) {
        const last = seen.at(-1);
        const before = last ? { at: last.firstAt, schedule: last.schedule } : undefined;
        const page = await scene.store.schedules.ticks({
          limit: 2,
          ...filter,
          ...(before && { before }),
        });
        seen.push(...page);
        if (page.length < 2) return seen;
      }
    };
    for (const [filter, count] of [
      [{ schedule: "b" }, 5],
      [{}, 15],
      [{ outcome: "fired" }, 15],
    ] as const) {
      const seen = await read(filter);
      expect(seen).toHaveLength(count);
      expect(new Set(seen.map(({ schedule, firstAt }) => `${schedule} ${firstAt}`)).size).toBe(
        count,
      );
      const times = seen.map(({ firstAt }) => firstAt);
      expect(times).toEqual(times.toSorted((one, two) => two - one));
    }
  });

  test("runs are listed by their schedule", async ({ scene }) => {
    await scene.schedules.make("a");
    await scene.schedules.make("b");
    await scene.enqueued(1);
    const tick = await scene.schedules.fire("a");
    await scene.schedules.fire("b");
    const manual = await scene.schedules.trigger("a");
    const ids = async (filter: object) =>
      idsOf(await scene.store.runs.list({ ...filter, limit: 10 }));
    expect(await ids({ schedule: "a" })).toEqual([tick, manual].sort().reverse());
    expect(await ids({ schedule: "a", mode: "manual" })).toEqual([manual]);
    expect(await ids({ schedule: "a", status: "running" })).toEqual([]);
    expect(await ids({ schedule: "nobody" })).toEqual([]);
  });
}
