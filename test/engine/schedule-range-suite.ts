// Intervals that are drawn: one tick outstanding, and the end of its run decides the next one.

import { expect } from "vitest";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  NOON,
  runRecords,
  SECOND,
  stateOf,
  student,
} from "./schedule-fixtures.js";
import { Door, type WorldTest } from "./world.js";

const FAST = { poll: "20s" } as const;

export function scheduleRangeSuite(test: WorldTest): void {
  test("the first tick is the creation, and the end of its run draws the next one", async ({
    world,
  }) => {
    const { holdfast, clock, ran } = student(world, { run: () => clock.sleep(30_000) });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "10m..15m" });
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["scheduled 12:00"]);
    // While it runs, the upper bound stands in.
    const fallbackAt = (await stateOf(world)).nextAt as number;
    expect(fallbackAt - NOON).toBeGreaterThanOrEqual(15 * MINUTE);
    expect(fallbackAt - NOON).toBeLessThanOrEqual(15 * MINUTE + 1_000);
    await world.clock.advance(30 * SECOND);
    const [first] = await runRecords(world);
    const drawnMs = ((await stateOf(world)).nextAt as number) - (first?.finishedAt as number);
    expect(drawnMs).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(drawnMs).toBeLessThanOrEqual(15 * MINUTE);
  });

  test("every tick is the next time that its predecessor stored, and draws differ", async ({
    world,
  }) => {
    const { holdfast } = student(world, { options: FAST });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "1m..2m", from: at(MINUTE) });
    const stored: number[] = [NOON + MINUTE];
    for (let count = 0; count < 8; count += 1) {
      await world.clock.advance((stored.at(-1) as number) - world.now() + 1);
      await world.clock.rest();
      stored.push((await stateOf(world)).nextAt as number);
    }
    const ticks = (await holdfast.schedules.ticks("s")).ticks.map((tick) => tick.at.getTime());
    expect(ticks.toReversed()).toEqual(stored.slice(0, -1));
    const gaps = stored.slice(1).map((each, index) => each - (stored[index] as number));
    expect(new Set(gaps).size).toBeGreaterThan(4);
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(MINUTE);
  });

  test("a failed run draws from afterFailure, and a failing schedule does not loop", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, {
      options: FAST,
      run: () => {
        throw new Error("no");
      },
    });
    await holdfast.start();
    const rules = { job: "study", every: "1m..2m", afterFailure: "20m..30m" };
    await holdfast.schedules.upsert("s", rules);
    await world.clock.advance(SECOND);
    const [first] = await runRecords(world);
    const drawnMs = ((await stateOf(world)).nextAt as number) - (first?.finishedAt as number);
    expect(drawnMs).toBeGreaterThanOrEqual(20 * MINUTE);
    expect(drawnMs).toBeLessThanOrEqual(30 * MINUTE);
    await world.clock.advance(HOUR);
    expect(ran.length).toBeGreaterThanOrEqual(2);
    expect(ran.length).toBeLessThanOrEqual(4);
  });

  test("a tick that meets its own long run is skipped, and one stays outstanding", async ({
    world,
  }) => {
    const door = new Door();
    const { holdfast } = student(world, { options: FAST, run: () => door.opened });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "1m..1m" });
    await world.clock.advance(130 * SECOND);
    const lines = (await ledger(world)).map((line) => line.split(" ")[1]);
    expect(lines).toEqual(["on_time", "overlap", "overlap"]);
    const before = (await stateOf(world)).nextAt as number;
    expect(before).toBeGreaterThan(world.now());
    door.open();
    await world.clock.advance(SECOND);
    const after = (await stateOf(world)).nextAt as number;
    // The end of the run of the newest fired tick has replaced the fallback.
    expect(after).not.toBe(before);
    expect(await runRecords(world)).toHaveLength(1);
  });

  test("manual and test runs do not touch the next tick", async ({ world }) => {
    const { holdfast, ran } = student(world, { options: FAST });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "10m..15m" });
    await world.clock.advance(SECOND);
    const { nextAt } = await stateOf(world);
    await holdfast.schedules.trigger("s");
    await world.clock.advance(SECOND);
    await holdfast.schedules.trigger("s", { mode: "test" });
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["scheduled 12:00", "manual -", "test -"]);
    expect((await stateOf(world)).nextAt).toBe(nextAt);
  });

  test("after an outage it fires once, late; by missed skip it is recorded as missed", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", every: "1m..2m" });
    await holdfast.schedules.upsert("skip", { job: "study", every: "1m..2m", missed: "skip" });
    const within = { run: "latest", within: "1h" } as const;
    await holdfast.schedules.upsert("old", { job: "study", every: "1m..2m", missed: within });
    await world.clock.advance(3 * HOUR);
    await holdfast.start();
    await world.clock.advance(SECOND);
    expect(await ledger(world)).toEqual(["12:00 late"]);
    expect(await ledger(world, "skip")).toEqual(["12:00 nobody"]);
    expect(await ledger(world, "old")).toEqual(["12:00 too_old"]);
    expect(await runRecords(world, "skip")).toEqual([]);
    // From an old tick the next one would be due at once.
    for (const name of ["s", "skip", "old"])
      expect((await stateOf(world, name)).nextAt).toBeGreaterThanOrEqual(
        world.now() + MINUTE - SECOND,
      );
  });

  test("resume and edit draw a new interval from now", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", every: "10m..20m", from: at(HOUR) });
    await holdfast.schedules.pause("s");
    expect((await stateOf(world)).nextAt).toBeNull();
    await world.clock.advance(2 * HOUR);
    await holdfast.schedules.resume("s");
    const resumedMs = ((await stateOf(world)).nextAt as number) - world.now();
    expect(resumedMs).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(resumedMs).toBeLessThanOrEqual(20 * MINUTE);
    await holdfast.schedules.upsert("s", { job: "study", every: "40m..50m" });
    const editedMs = ((await stateOf(world)).nextAt as number) - world.now();
    expect(editedMs).toBeGreaterThanOrEqual(40 * MINUTE);
    expect(editedMs).toBeLessThanOrEqual(50 * MINUTE);
  });

  test("a drawn tick that an exclusion covers moves to its end", async ({ world }) => {
    const { holdfast, ran } = student(world);
    await holdfast.schedules.upsert("s", {
      job: "study",
      every: "1h..1h",
      exclude: ["2026-01-15"],
    });
    await world.clock.advance(12 * HOUR - SECOND);
    await holdfast.start();
    await world.clock.advance(SECOND / 2);
    expect(ran).toEqual([]);
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["scheduled 01-16 00:00"]);
  });

  test("the fallback past `until` does not end a schedule whose draw may still be before it", async ({
    world,
  }) => {
    const { holdfast } = student(world, { options: FAST });
    await holdfast.start();
    const until = at(10 * MINUTE - SECOND);
    await holdfast.schedules.upsert("s", { job: "study", every: "1m..10m", until });
    await world.clock.advance(SECOND);
    expect(await holdfast.schedules.get("s")).toMatchObject({ status: "active" });
    await world.clock.advance(30 * MINUTE);
    expect((await ledger(world)).length).toBeGreaterThanOrEqual(2);
    expect(await holdfast.schedules.get("s")).toMatchObject({ status: "ended", nextAt: null });
  });
}
