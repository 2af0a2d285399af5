// A tick becomes a run: on time, once, by whichever instance, and only where the definition has a tick.

import { expect } from "vitest";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  NOON,
  runLines,
  runRecords,
  SECOND,
  stateOf,
  student,
  tickRecords,
  timeText,
} from "./schedule-fixtures.js";
import type { WorldTest } from "./world.js";

export function scheduleTickSuite(test: WorldTest): void {
  test("a tick fires at its time, and the handler gets tick, lateness and mode", async ({
    world,
  }) => {
    const seen: unknown[] = [];
    const { holdfast } = student(world, {
      run: ({ mode, nominalAt, lateMs }, input) => seen.push({ mode, nominalAt, lateMs, input }),
    });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "10s", input: { market: "eu" } });
    await world.clock.advance(9_999);
    expect(await ledger(world)).toEqual([]);
    await world.clock.advance(3);
    await world.clock.rest();
    const [tick] = (await holdfast.schedules.ticks("s")).ticks;
    expect(tick).toMatchObject({ outcome: "fired", reason: "on_time", version: 1 });
    const lateMs = tick?.lateMs as number;
    expect(lateMs).toBeLessThanOrEqual(2);
    expect(tick?.recordedBy).toBe(holdfast.instanceId);
    expect(seen).toEqual([
      { mode: "scheduled", nominalAt: at(10_000), lateMs, input: { market: "eu" } },
    ]);
    const run = await world.record(tick?.runId as string);
    expect(run).toMatchObject({ schedule: "s", mode: "scheduled", nominalAt: NOON + 10_000 });
    expect(await holdfast.schedules.get("s")).toMatchObject({
      lastRunId: tick?.runId,
      lastStatus: "completed",
      lastTickAt: at(10_000),
      nextAt: at(20_000),
    });
  });

  test("an instance that did not make the schedule fires within a poll, and says how late", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world);
    await holdfast.start();
    await student(world).holdfast.schedules.upsert("s", {
      job: "study",
      every: "5s",
      until: at(5_000),
    });
    await world.clock.advance(7_000);
    expect(ran).toEqual(["scheduled 12:00:05"]);
    const [tick] = (await holdfast.schedules.ticks("s")).ticks;
    expect(tick?.lateMs).toBeGreaterThanOrEqual(0);
    expect(tick?.lateMs).toBeLessThanOrEqual(1_200);
  });

  test("of four instances on one database each of fifty ticks has one run, and none is early", async ({
    world,
  }) => {
    const members = [0, 90_000, -90_000, 0].map((skewMs) => student(world, { skewMs }));
    await members[0]?.holdfast.schedules.upsert("s", { job: "study", every: "1s" });
    await Promise.all(members.map(({ holdfast }) => holdfast.start()));
    await world.clock.advance(50 * SECOND + 900);
    const ticks = await tickRecords(world);
    expect(ticks.map(({ firstAt }) => firstAt - NOON)).toEqual(
      Array.from({ length: 50 }, (_, index) => (index + 1) * 1_000),
    );
    for (const { firstAt, recordedAt } of ticks) expect(recordedAt).toBeGreaterThanOrEqual(firstAt);
    const runs = await runRecords(world);
    expect(runs.map(({ nominalAt }) => nominalAt)).toEqual(ticks.map(({ firstAt }) => firstAt));
    expect(members.flatMap(({ ran }) => ran).sort()).toEqual(
      ticks.map(({ firstAt }) => `scheduled ${timeText(firstAt)}`).sort(),
    );
  });

  test("an instance with the scheduler off fires nothing; one without a worker fires and runs nothing", async ({
    world,
  }) => {
    const worker = student(world);
    await worker.holdfast.schedules.upsert("s", { job: "study", every: "5s", overlap: "allow" });
    await worker.holdfast.start({ scheduler: false });
    await world.clock.advance(12 * SECOND);
    expect(await ledger(world)).toEqual([]);
    await worker.holdfast.stop();
    const scheduler = student(world);
    await scheduler.holdfast.start({ worker: false });
    await world.clock.advance(12 * SECOND);
    expect(await runLines(world)).toEqual([
      "scheduled 12:00:05 pending",
      "scheduled 12:00:10 pending",
      "scheduled 12:00:15 pending",
      "scheduled 12:00:20 pending",
    ]);
    expect([...worker.ran, ...scheduler.ran]).toEqual([]);
  });

  test("a schedule with `at` fires once and has ended", async ({ world }) => {
    const { holdfast, ran } = student(world);
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", at: at(3_000) });
    await world.clock.advance(MINUTE);
    expect(ran).toEqual(["scheduled 12:00:03"]);
    expect(await holdfast.schedules.get("s")).toMatchObject({ status: "ended", nextAt: null });
    expect(await ledger(world)).toEqual(["12:00:03 on_time"]);
  });

  test("a grid begins at `from` with that tick, or one interval after creation; `until` is inclusive", async ({
    world,
  }) => {
    const { holdfast } = student(world, { options: { poll: "10s" } });
    await world.clock.advance(500);
    await holdfast.start();
    const every = { job: "study", every: "20s" };
    await holdfast.schedules.upsert("free", every);
    await holdfast.schedules.upsert("bound", { ...every, from: at(10_000), until: at(50_000) });
    await holdfast.schedules.upsert("short", { ...every, from: at(10_000), until: at(49_999) });
    await world.clock.advance(70 * SECOND);
    const fired = ["12:00:10 on_time", "12:00:30 on_time", "12:00:50 on_time"];
    expect(await ledger(world, "bound")).toEqual(fired);
    expect(await ledger(world, "short")).toEqual(fired.slice(0, 2));
    expect((await ledger(world, "free")).slice(0, 2)).toEqual([
      "12:00:20 on_time",
      "12:00:40 on_time",
    ]);
    expect((await holdfast.schedules.get("bound"))?.status).toBe("ended");
  });

  test("times that dates and calendars exclude are no ticks and have no row", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.calendars.upsert("holidays", { dates: ["2026-01-19"] });
    await holdfast.schedules.upsert("s", {
      job: "study",
      cron: "0 */6 * * *",
      exclude: ["2026-01-16..2026-01-18"],
      calendars: ["holidays"],
      missed: { run: "all" },
    });
    await world.clock.advance(5 * 24 * HOUR - HOUR);
    await holdfast.start();
    await world.clock.advance(2 * SECOND);
    expect(await ledger(world)).toEqual([
      "18:00 catch_up",
      "01-20 00:00 catch_up",
      "01-20 06:00 catch_up",
    ]);
  });

  test("a new calendar rule holds from now on, and the ticks before it stay as they were", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.calendars.upsert("holidays", { dates: ["2026-02-01"] });
    const rules = { job: "study", cron: "0 0 * * *", calendars: ["holidays"] };
    await holdfast.schedules.upsert("s", { ...rules, missed: { run: "all" } });
    await world.clock.advance(37 * HOUR);
    await holdfast.calendars.upsert("holidays", { dates: ["2026-01-18", "2026-01-16"] });
    expect((await holdfast.schedules.get("s"))?.nextAt).toEqual(new Date("2026-01-19T00:00:00Z"));
    expect(await ledger(world)).toEqual(["01-16 00:00 catch_up", "01-17 00:00 catch_up"]);
    await expect(holdfast.calendars.delete("holidays")).rejects.toThrow("holidays");
  });

  test("a new calendar rule leaves a grid where it was", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.calendars.upsert("holidays", { dates: ["2026-02-01"] });
    await holdfast.schedules.upsert("s", { job: "study", every: "6h", calendars: ["holidays"] });
    await world.clock.advance(HOUR);
    await holdfast.calendars.upsert("holidays", { dates: ["2026-02-02"] });
    expect((await stateOf(world)).nextAt).toBe(NOON + 6 * HOUR);
  });

  test("the ticker sends one write for many schedules that are due at once", async ({ world }) => {
    const { holdfast, faults, ran } = student(world);
    await holdfast.start({ worker: { concurrency: 50 } });
    for (let count = 0; count < 40; count += 1)
      await holdfast.schedules.upsert(`s${count}`, { job: "study", cron: "* * * * *" });
    faults.clear();
    await world.clock.advance(MINUTE + 5);
    await world.clock.rest();
    expect(ran).toHaveLength(40);
    expect(faults.of("schedules.write")).toHaveLength(1);
    expect(faults.of("schedules.due").length).toBeLessThanOrEqual(2);
    expect((await stateOf(world, "s7")).cursorAt).toBe(NOON + MINUTE);
  });
}
