// Tests schedules that fail: their runs fail, no instance can evaluate them, or they were left behind. The others go
// on, nothing loops, and the log reports it.

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
} from "./schedule-fixtures.js";
import { Door, heard, type WorldTest } from "./world.js";

const FAST = { poll: "10s" } as const;
const fails = () => {
  throw new Error("no");
};

export function scheduleFailureSuite(test: WorldTest): void {
  test("after a failure the ticks before its delay are skipped, and no run is added", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, { options: FAST, run: fails });
    await holdfast.start();
    const rules = { job: "study", cron: "* * * * *", afterFailure: "150s" };
    await holdfast.schedules.upsert("s", rules);
    await world.clock.advance(6 * MINUTE + SECOND);
    expect(await ledger(world)).toEqual([
      "12:01 on_time",
      "12:02 after_failure",
      "12:03 after_failure",
      "12:04 on_time",
      "12:05 after_failure",
      "12:06 after_failure",
    ]);
    expect(ran).toHaveLength(2);
    const [first, second] = await tickRecords(world);
    expect(second?.evidence?.run).toBe(first?.run);
    const heldMs = (second?.evidence?.until as number) - (NOON + MINUTE);
    expect(heldMs).toBeGreaterThanOrEqual(150 * SECOND);
    expect(heldMs).toBeLessThan(151 * SECOND);
  });

  test("manual runs are not held back, and their failure holds nothing back", async ({ world }) => {
    const { holdfast, ran } = student(world, { options: FAST, run: fails });
    await holdfast.start();
    const rules = { job: "study", cron: "* * * * *", afterFailure: "150s" };
    await holdfast.schedules.upsert("s", rules);
    await holdfast.schedules.trigger("s");
    await world.clock.advance(MINUTE + SECOND);
    expect(await ledger(world)).toEqual(["12:01 on_time"]);
    await holdfast.schedules.trigger("s");
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["manual -", "scheduled 12:01", "manual -"]);
  });

  test("a schedule that always fails runs no more often than it ticks", async ({ world }) => {
    const { holdfast, ran, faults } = student(world, { options: FAST, run: fails });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", cron: "*/5 * * * *" });
    await world.clock.advance(HOUR + SECOND);
    expect(ran).toHaveLength(12);
    expect(faults.of("schedules.write")).toHaveLength(12);
    expect(faults.of("work.poll").length).toBeLessThan(500);
  });

  test("a schedule with an unknown job is broken with a row and an event, and the others go on", async ({
    world,
  }) => {
    const member = student(world);
    const { holdfast, ran } = member;
    holdfast.job("other", {});
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "other", every: "10s" });
    await holdfast.schedules.upsert("good", { job: "study", every: "10s" });
    await world.execute("delete from {job} where name = 'other'");
    await world.clock.advance(21 * SECOND);
    expect(ran).toEqual(["scheduled 12:00:10", "scheduled 12:00:20"]);
    expect(await ledger(world)).toEqual(["12:00:10 broken"]);
    expect(await holdfast.schedules.get("s")).toMatchObject({ status: "broken", nextAt: null });
    expect(heard(member, "schedule.broken")).toMatchObject([{ schedule: "s" }]);
    expect(heard(member, "schedule.broken")[0]?.error).toContain('"other"');
    // Somebody brings the job back, and an operator resumes.
    const heir = student(world).holdfast;
    heir.job("other", { run: () => "done" });
    await heir.start();
    const resumed = await world.clock.until(holdfast.schedules.resume("s"));
    expect(resumed).toMatchObject({ status: "active", nextAt: at(30_000), brokenError: null });
    await world.clock.advance(10 * SECOND);
    expect(await ledger(world)).toEqual(["12:00:10 broken", "12:00:20 broken", "12:00:30 on_time"]);
  });

  test("a definition that cannot be evaluated breaks its own schedule alone, and an edit mends it", async ({
    world,
  }) => {
    const member = student(world);
    const { holdfast, ran } = member;
    await holdfast.start();
    const cron = "*/10 * * * * *";
    await holdfast.schedules.upsert("s", { job: "study", cron, timezone: "Europe/Paris" });
    await holdfast.schedules.upsert("t", { job: "study", cron });
    await holdfast.schedules.upsert("good", { job: "study", cron });
    await world.execute(
      "update {schedule} set version = version + 1, definition = replace(definition, 'Europe/Paris', 'Mars/Olympus') where name = 's'",
    );
    await world.execute(
      "update {schedule} set version = version + 1, definition = '{' where name = 't'",
    );
    await world.clock.advance(21 * SECOND);
    expect(ran).toEqual(["scheduled 12:00:10", "scheduled 12:00:20"]);
    expect(await ledger(world)).toEqual(["12:00:10 broken"]);
    expect(await ledger(world, "t")).toEqual(["12:00:10 broken"]);
    expect(heard(member, "schedule.broken").map(({ schedule }) => schedule)).toEqual(["s", "t"]);
    expect((await holdfast.schedules.list({ status: "broken" })).schedules).toHaveLength(2);
    await world.clock.until(holdfast.schedules.upsert("s", { job: "study", cron }));
    await world.clock.until(holdfast.schedules.delete("t"));
    await world.clock.advance(10 * SECOND);
    expect(await ledger(world)).toEqual(["12:00:10 broken", "12:00:30 on_time"]);
    expect(await holdfast.schedules.get("t")).toBeNull();
  });

  test("a broken schedule with a backfill stops no other schedule", async ({ world }) => {
    const door = new Door();
    const { holdfast, ran } = student(world, {
      run: ({ mode }) => (mode === "backfill" ? door.opened : undefined),
    });
    await holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * * *" });
    await holdfast.schedules.upsert("good", { job: "study", cron: "*/10 * * * * *" });
    await world.clock.advance(25 * SECOND);
    await holdfast.schedules.backfill("s", { from: at(0), to: at(20_000) });
    await holdfast.start();
    await world.clock.advance(SECOND);
    await world.execute(
      "update {schedule} set version = version + 1, definition = '{' where name = 's'",
    );
    door.open();
    ran.length = 0;
    await world.clock.advance(20 * SECOND);
    const good = (await ledger(world, "good")).slice(-2);
    expect(good).toEqual(["12:00:30 on_time", "12:00:40 on_time"]);
    expect(ran.length).toBeGreaterThanOrEqual(2);
  });

  test("a run that waits for another goes on although its schedule broke meanwhile", async ({
    world,
  }) => {
    const member = student(world, { run: () => member.clock.sleep(15_000) });
    const { holdfast } = member;
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "10s", overlap: "queue" });
    await world.clock.advance(21 * SECOND);
    expect((await runLines(world)).at(-1)).toBe("scheduled 12:00:20 pending");
    await world.execute(
      "update {schedule} set version = version + 1, definition = '{' where name = 's'",
    );
    await world.clock.advance(MINUTE);
    expect(await runLines(world)).toEqual([
      "scheduled 12:00:10 completed",
      "scheduled 12:00:20 completed",
    ]);
  });

  test("a write that the database refuses breaks its schedule alone", async ({ world }) => {
    const member = student(world);
    const { holdfast, faults, ran } = member;
    await holdfast.start();
    for (const name of ["s", "good", "fine"])
      await holdfast.schedules.upsert(name, { job: "study", every: "10s" });
    const { id } = await stateOf(world);
    faults.fail("schedules.write", "before", {
      error: new Error("value out of range"),
      fits: ({ changes }) => changes.some((each) => each.id === id && each.runs.length > 0),
      times: 5,
    });
    await world.clock.advance(21 * SECOND);
    expect(ran).toHaveLength(4);
    expect(await runRecords(world)).toEqual([]);
    expect(await holdfast.schedules.get("s")).toMatchObject({ status: "broken" });
    expect(heard(member, "schedule.broken")[0]?.error).toContain("value out of range");
  });

  test("a schedule that was left behind is evaluated by its policy, with a warning and the evidence", async ({
    world,
  }) => {
    const member = student(world, { options: FAST });
    const { holdfast } = member;
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    // Put off again and again: the hourly look would bring it back.
    for (let half = 0; half < 17; half += 1) {
      await world.execute(`update {schedule} set next_at = ${NOON + HOUR}`);
      await world.clock.advance(30 * SECOND);
    }
    await world.clock.advance(10 * SECOND);
    expect(await ledger(world)).toEqual([]);
    await world.execute(`update {schedule} set next_at = ${NOON + MINUTE}`);
    await world.clock.advance(11 * SECOND);
    expect(await ledger(world)).toEqual(["12:01..12:07 nobody ×7", "12:08 stuck_reset"]);
    const [, reset] = await tickRecords(world);
    expect(reset?.evidence?.nextAt).toBe(NOON + MINUTE);
    expect(reset?.evidence?.lastPolledAt).toBeGreaterThan(NOON + 8 * MINUTE);
    expect(heard(member, "schedule.stuck").at(-1)).toMatchObject({
      schedule: "s",
      nextAt: "2026-01-15T12:01:00.000Z",
    });
    await world.clock.advance(MINUTE);
    expect((await ledger(world)).slice(2)).toEqual(["12:09 on_time"]);
  });

  test("a next tick beyond the rule's own is brought back within the hour, with a warning and the evidence", async ({
    world,
  }) => {
    const member = student(world, { options: FAST });
    const { holdfast } = member;
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", cron: "*/5 * * * *" });
    await holdfast.schedules.upsert("rare", { job: "study", cron: "0 0 1 1 *" });
    await world.clock.advance(6 * MINUTE);
    const rare = await stateOf(world, "rare");
    await world.execute(`update {schedule} set next_at = ${NOON + 48 * HOUR} where name = 's'`);
    await world.clock.advance(HOUR + 10 * MINUTE);
    expect(heard(member, "schedule.stuck")).toEqual([
      expect.objectContaining({ schedule: "s", nextAt: "2026-01-17T12:00:00.000Z" }),
    ]);
    const [first, missed, ...rest] = await ledger(world);
    expect(first).toBe("12:05 on_time");
    expect(missed).toMatch(/^12:10\.\..* nobody/);
    expect(rest.at(-1)).toMatch(/on_time$/);
    expect((await stateOf(world, "rare")).nextAt).toBe(rare.nextAt);
  });

  test("a schedule that has lost its next tick gets it back within a poll, and its cursor never goes back", async ({
    world,
  }) => {
    const member = student(world, { options: FAST });
    const { holdfast, ran } = member;
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await world.clock.advance(2 * MINUTE + SECOND);
    await world.execute("update {schedule} set next_at = null");
    await world.clock.advance(15 * SECOND);
    expect(await stateOf(world)).toMatchObject({
      nextAt: NOON + 3 * MINUTE,
      cursorAt: NOON + 2 * MINUTE,
    });
    expect(heard(member, "schedule.stuck")).toHaveLength(1);
    await world.execute(`update {schedule} set next_at = ${NOON - 6 * MINUTE}`);
    await world.clock.advance(HOUR / 20);
    expect(await ledger(world)).toEqual(
      ["12:01", "12:02", "12:03", "12:04", "12:05"].map((time) => `${time} on_time`),
    );
    expect(ran).toHaveLength(5);
  });
}
