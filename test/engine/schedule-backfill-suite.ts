// A backfill makes runs for ticks of the past, one after the other, and changes nothing else.

import { expect } from "vitest";
import { BackfillRunningError, ConfigurationError } from "../../src/shared/errors.js";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  runLines,
  runRecords,
  SECOND,
  student,
} from "./schedule-fixtures.js";
import { Door, type World, type WorldTest } from "./world.js";

const EVERY = { job: "study", cron: "*/10 * * * *" } as const;

/** Ticks from 12:10 to 13:00, of which the last has a run. */
async function afterAnHour(world: World, given: Parameters<typeof student>[1] = {}) {
  const member = student(world, given);
  await member.holdfast.schedules.upsert("s", EVERY);
  await world.clock.advance(HOUR + 5 * MINUTE);
  await member.holdfast.start();
  await world.clock.advance(SECOND);
  member.ran.length = 0;
  return member;
}

function pause(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => world.clock.timer(ms, resolve));
}

export function scheduleBackfillSuite(test: WorldTest): void {
  test("a backfill runs the ticks that have no completed run, in sequence, and counts them", async ({
    world,
  }) => {
    let atOnce = 0;
    let mostAtOnce = 0;
    const { holdfast, ran } = await afterAnHour(world, {
      run: async () => {
        atOnce += 1;
        mostAtOnce = Math.max(mostAtOnce, atOnce);
        await pause(world, 2_000);
        atOnce -= 1;
      },
    });
    await world.clock.advance(5 * SECOND);
    const before = await ledger(world);
    const asked = holdfast.schedules.backfill("s", { from: at(1), to: at(2 * HOUR), by: "ada" });
    const backfill = await world.clock.until(asked);
    // Future ticks are no part of it.
    expect(backfill).toMatchObject({ status: "running", total: 6, made: 0, createdBy: "ada" });
    await world.clock.advance(5 * SECOND);
    const [going] = await holdfast.schedules.backfills("s");
    expect(going).toMatchObject({ status: "running", total: 6 });
    expect(going?.made).toBeLessThan(5);
    await world.clock.advance(20 * SECOND);
    expect(ran).toEqual(
      ["12:10", "12:20", "12:30", "12:40", "12:50"].map((time) => `backfill ${time}`),
    );
    expect(mostAtOnce).toBe(1);
    expect(await holdfast.schedules.backfills("s")).toMatchObject([
      { status: "done", total: 6, made: 5, passed: 1 },
    ]);
    expect(await ledger(world)).toEqual(before);
  });

  test("a second backfill skips completed ticks of the first, unless it asks for all", async ({
    world,
  }) => {
    let isFailing = true;
    const { holdfast, ran } = await afterAnHour(world, {
      run: ({ nominalAt }) => {
        if (isFailing && nominalAt?.getTime() === at(20 * MINUTE).getTime()) throw new Error("no");
      },
    });
    const range = { from: at(10 * MINUTE), to: at(30 * MINUTE) };
    await world.clock.until(holdfast.schedules.backfill("s", range));
    await world.clock.advance(10 * SECOND);
    isFailing = false;
    await world.clock.until(holdfast.schedules.backfill("s", range));
    await world.clock.advance(10 * SECOND);
    await world.clock.until(holdfast.schedules.backfill("s", { ...range, all: true }));
    await world.clock.advance(10 * SECOND);
    expect(ran.map((line) => line.split(" ")[1])).toEqual([
      ...["12:10", "12:20", "12:30"],
      ...["12:20"],
      ...["12:10", "12:20", "12:30"],
    ]);
    const [all, second] = await holdfast.schedules.backfills("s");
    expect(second).toMatchObject({ made: 1, passed: 2 });
    expect(all).toMatchObject({ made: 3, passed: 0 });
  });

  test("the cadence goes on beside a backfill: ticks fire and wait, none is skipped for it", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, { run: () => pause(world, 4_000) });
    await holdfast.schedules.upsert("s", {
      job: "study",
      every: "10s",
      missed: "skip",
      grace: "1s",
    });
    await world.clock.advance(2 * MINUTE - SECOND);
    await holdfast.start({ worker: { concurrency: 5 } });
    await world.clock.until(holdfast.schedules.backfill("s", { from: at(1), to: at(50_000) }));
    await world.clock.advance(63 * SECOND);
    const recent = (await ledger(world)).slice(1);
    expect(recent.filter((line) => line.includes("overlap"))).toEqual([]);
    expect(recent).toContain("12:02:30 on_time");
    expect(recent).toContain("12:03 on_time");
    expect(ran.filter((line) => line.startsWith("backfill"))).toHaveLength(5);
    const runs = await runRecords(world);
    const spans = runs.filter(({ startedAt }) => startedAt !== null);
    for (const one of spans)
      for (const other of spans)
        if (one !== other && (one.startedAt as number) < (other.startedAt as number))
          expect(other.startedAt).toBeGreaterThanOrEqual(
            one.finishedAt ?? Number.POSITIVE_INFINITY,
          );
  });

  test("a cancelled backfill makes no more runs, and the one it has made goes on", async ({
    world,
  }) => {
    const door = new Door();
    const { holdfast } = await afterAnHour(world, {
      run: ({ mode }) => (mode === "backfill" ? door.opened : undefined),
    });
    await world.clock.until(holdfast.schedules.backfill("s", { from: at(1), to: at(HOUR) }));
    await world.clock.advance(3 * SECOND);
    const again = holdfast.schedules.backfill("s", { from: at(1), to: at(HOUR) });
    await expect(again).rejects.toThrow(BackfillRunningError);
    expect(await world.clock.until(holdfast.schedules.cancelBackfill("s"))).toBe(true);
    expect(await world.clock.until(holdfast.schedules.cancelBackfill("s"))).toBe(false);
    door.open();
    await world.clock.advance(10 * SECOND);
    expect(await holdfast.schedules.backfills("s")).toMatchObject([
      { status: "cancelled", made: 1 },
    ]);
    expect((await runLines(world)).filter((line) => line.startsWith("backfill"))).toEqual([
      "backfill 12:10 completed",
    ]);
  });

  test("a deleted schedule makes no more runs for its backfill, and a new one of its name none either", async ({
    world,
  }) => {
    const { holdfast } = await afterAnHour(world, { run: () => pause(world, 3_000) });
    await world.clock.advance(5 * SECOND);
    await world.clock.until(holdfast.schedules.backfill("s", { from: at(1), to: at(HOUR) }));
    await world.clock.advance(4 * SECOND);
    await world.clock.until(holdfast.schedules.delete("s"));
    const made = (await runRecords(world)).length;
    await world.clock.advance(20 * SECOND);
    await holdfast.schedules.upsert("s", { job: "study", cron: "0 0 * * *" });
    await world.clock.advance(20 * SECOND);
    expect(await runRecords(world)).toHaveLength(made);
    expect(await holdfast.schedules.backfills("s")).toMatchObject([{ status: "cancelled" }]);
  });

  test("a backfill goes on in another instance, and of a paused schedule", async ({ world }) => {
    const first = await afterAnHour(world, { run: () => pause(world, 3_000) });
    await world.clock.advance(5 * SECOND);
    const asked = first.holdfast.schedules.backfill("s", { from: at(1), to: at(HOUR) });
    await world.clock.until(asked);
    await world.clock.advance(4 * SECOND);
    await world.clock.until(first.holdfast.schedules.pause("s"));
    await world.clock.until(first.holdfast.stop());
    const heir = student(world);
    await heir.holdfast.start();
    await world.clock.advance(20 * SECOND);
    const [backfill] = await heir.holdfast.schedules.backfills("s");
    expect(backfill).toMatchObject({ status: "done", made: 5, passed: 1 });
    const made = (await runRecords(world)).filter(({ mode }) => mode === "backfill");
    expect(new Set(made.map(({ nominalAt }) => nominalAt)).size).toBe(5);
    expect(made.every(({ status }) => status === "completed")).toBe(true);
  });

  test("a lost answer never gives a backfill a second run for a tick", async ({ world }) => {
    const { holdfast, faults } = await afterAnHour(world);
    faults.fail("schedules.write", "after", {
      times: 4,
      fits: ({ changes }) => changes.some(({ backfill }) => backfill?.run != null),
    });
    await world.clock.until(holdfast.schedules.backfill("s", { from: at(1), to: at(HOUR) }));
    await world.clock.advance(MINUTE);
    expect((await runLines(world)).filter((line) => line.startsWith("backfill"))).toEqual(
      ["12:10", "12:20", "12:30", "12:40", "12:50"].map((time) => `backfill ${time} completed`),
    );
  });

  test("a backfill of nothing is done at once, and an interval that is drawn has none", async ({
    world,
  }) => {
    const { holdfast } = await afterAnHour(world);
    const nothing = { from: at(1 * MINUTE), to: at(9 * MINUTE) };
    const asked = world.clock.until(holdfast.schedules.backfill("s", nothing));
    expect(await asked).toMatchObject({ status: "done", total: 0 });
    await holdfast.schedules.upsert("drawn", { job: "study", every: "1h..2h" });
    await expect(holdfast.schedules.backfill("drawn", nothing)).rejects.toThrow(ConfigurationError);
    const reversed = holdfast.schedules.backfill("s", { from: at(2), to: at(1) });
    await expect(reversed).rejects.toThrow(ConfigurationError);
  });
}
