// Pause, resume, edit, delete: due ticks are settled first, by the definition that stood until then.

import { expect } from "vitest";
import { ConfigurationError, ScheduleNotFoundError } from "../../src/shared/errors.js";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  NOON,
  runLines,
  SECOND,
  stateOf,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import type { WorldTest } from "./world.js";

const MINUTELY = { job: "study", cron: "* * * * *" } as const;

export function scheduleChangeSuite(test: WorldTest): void {
  test("a pause settles the ticks before it, and a resume records its ticks as one row", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, { options: { poll: "10s" } });
    await holdfast.start();
    await holdfast.schedules.upsert("s", MINUTELY);
    await world.clock.advance(2 * MINUTE + 30 * SECOND);
    const pause = holdfast.schedules.pause("s", "maintenance", { by: "ada" });
    expect(await world.clock.until(pause)).toMatchObject({
      status: "paused",
      pausedBy: "ada",
      pauseNote: "maintenance",
      nextAt: null,
    });
    await world.clock.advance(4 * MINUTE);
    // An open stretch: nothing is written while it lasts.
    expect(await ledger(world)).toEqual(["12:01 on_time", "12:02 on_time"]);
    const resumed = await world.clock.until(holdfast.schedules.resume("s", { by: "bob" }));
    expect(resumed).toMatchObject({ status: "active", nextAt: at(7 * MINUTE), pausedBy: null });
    await world.clock.advance(MINUTE);
    expect((await ledger(world)).slice(2)).toEqual(["12:03..12:06 paused ×4", "12:07 on_time"]);
    const stretch = (await tickRecords(world))[2];
    const pausedAt = NOON + 150 * SECOND;
    expect(stretch?.evidence).toMatchObject({ by: "ada", note: "maintenance", since: pausedAt });
    expect(ran).toHaveLength(3);
    expect(await holdfast.schedules.versions("s")).toHaveLength(1);
  });

  test("a tick that was due before the pause is fired by it, and none after it", async ({
    world,
  }) => {
    const { holdfast } = student(world, { options: { poll: "10s" } });
    await holdfast.schedules.upsert("s", MINUTELY);
    await world.clock.advance(MINUTE + 10 * SECOND);
    await holdfast.schedules.pause("s");
    expect(await ledger(world)).toEqual(["12:01 on_time"]);
    await holdfast.start();
    await world.clock.advance(10 * MINUTE);
    // The run it has made goes on, and nothing else is made.
    expect(await runLines(world)).toEqual(["scheduled 12:01 completed"]);
  });

  test("a decision made before a pause is not written after it", async ({ world }) => {
    const { holdfast, faults } = student(world, { options: { poll: "10s" } });
    await holdfast.schedules.upsert("s", { ...MINUTELY, missed: "skip" });
    await holdfast.start();
    faults.holdUp("schedules.write");
    const operator = student(world).holdfast;
    await world.clock.advance(MINUTE + 5);
    await operator.schedules.pause("s");
    const before = await ledger(world);
    faults.deliver("schedules.write");
    await world.clock.advance(5 * MINUTE);
    expect(before).toEqual(["12:01 on_time"]);
    expect(await ledger(world)).toEqual(before);
    expect(await runLines(world)).toEqual(["scheduled 12:01 completed"]);
  });

  test("a second pause keeps the author of the first; another note begins a new stretch", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    await schedules.upsert("s", MINUTELY);
    await schedules.pause("s", "one", { by: "ada" });
    await world.clock.advance(90 * SECOND);
    expect(await schedules.pause("s", undefined, { by: "bob" })).toMatchObject({ pausedBy: "ada" });
    expect(await ledger(world)).toEqual([]);
    await schedules.pause("s", "two", { by: "bob" });
    await world.clock.advance(MINUTE);
    await schedules.resume("s");
    expect(await ledger(world)).toEqual(["12:01 paused", "12:02 paused"]);
    await schedules.resume("s");
    expect(await ledger(world)).toHaveLength(2);
  });

  test("an edit settles ticks by the old definition, and the next tick is after it", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    await schedules.upsert("s", { ...MINUTELY, missed: "all" }, { by: "ada" });
    await world.clock.advance(3 * MINUTE + 40 * SECOND);
    const edited = await schedules.upsert(
      "s",
      { job: "study", cron: "*/2 * * * *" },
      { by: "bob" },
    );
    expect(edited.schedule).toMatchObject({ version: 2, nextAt: at(4 * MINUTE) });
    const old = await tickRecords(world);
    expect(old.map(({ version, reason }) => `${version} ${reason}`)).toEqual([
      "1 catch_up",
      "1 catch_up",
      "1 catch_up",
    ]);
    const versions = await schedules.versions("s");
    expect(versions.map(({ kind, by, cron }) => [kind, by, cron])).toEqual([
      ["created", "ada", "* * * * *"],
      ["edited", "bob", "*/2 * * * *"],
    ]);
    expect(versions[1]?.at).toEqual(new Date(world.now()));
  });

  test("ticks that a new definition would have had before it are none, also to be caught up", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world);
    const { schedules } = holdfast;
    const rules = { job: "study", missed: "all" } as const;
    await schedules.upsert("s", { ...rules, cron: "0 * * * *" });
    await schedules.upsert("t", { ...rules, cron: "0 * * * *" });
    await schedules.pause("t");
    await world.clock.advance(41 * MINUTE + SECOND);
    for (const name of ["s", "t"]) await schedules.upsert(name, { ...rules, cron: "*/2 * * * *" });
    await schedules.resume("t");
    await holdfast.start();
    await world.clock.advance(MINUTE);
    expect(await ledger(world)).toEqual(["12:42 on_time"]);
    expect(await ledger(world, "t")).toEqual(["12:42 on_time"]);
    expect(ran).toHaveLength(2);
  });

  test("an edit in the millisecond of a tick does not fire it twice", async ({ world }) => {
    const { schedules } = student(world).holdfast;
    await schedules.upsert("s", MINUTELY);
    await world.clock.advance(MINUTE);
    const { schedule } = await schedules.upsert("s", { job: "study", cron: "*/1 * * * * *" });
    expect(await ledger(world)).toEqual(["12:01 on_time"]);
    expect(schedule.nextAt).toEqual(at(MINUTE + SECOND));
  });

  test("an equal definition changes nothing: no version, no new anchor, no end of a pause", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    const rules = { job: "study", every: "1h", input: { a: 1 }, tags: ["x"] };
    await schedules.upsert("s", rules);
    await world.clock.advance(20 * MINUTE);
    await schedules.pause("s");
    const before = await stateOf(world);
    const { schedule } = await schedules.upsert("s", { ...rules, overlap: "skip" });
    expect(schedule).toMatchObject({ version: 1, status: "paused" });
    expect((await stateOf(world)).revision).toBe(before.revision);
    await schedules.resume("s");
    expect((await stateOf(world)).nextAt).toBe(NOON + HOUR);
  });

  test("of two changes based on the same version one is refused, whatever happened in between", async ({
    world,
  }) => {
    const { holdfast } = student(world, {});
    const { schedules } = holdfast;
    const { schedule } = await schedules.upsert("s", MINUTELY, { ifVersion: 0 });
    expect(schedule.version).toBe(1);
    const by = (who: string, ifVersion: number) => ({ by: who, ifVersion });
    await schedules.upsert("s", { ...MINUTELY, cron: "*/2 * * * *" }, by("ada", 1));
    await expect(
      schedules.upsert("s", { ...MINUTELY, cron: "*/3 * * * *" }, by("bob", 1)),
    ).rejects.toMatchObject({ code: "SCHEDULE_CHANGED", ifVersion: 1, version: 2 });
    // A pause is no other definition, and what is there already needs no version to be so.
    await schedules.pause("s");
    await schedules.upsert("s", { ...MINUTELY, cron: "*/2 * * * *" }, by("ada", 1));
    await expect(schedules.upsert("s", MINUTELY, { ifVersion: 0 })).rejects.toThrow(
      "There is a schedule s already, at version 2. Nothing was changed",
    );
    expect(await schedules.get("s")).toMatchObject({ cron: "*/2 * * * *", version: 2 });
    await schedules.delete("s");
    await expect(schedules.upsert("s", MINUTELY, { ifVersion: 2 })).rejects.toMatchObject({
      code: "SCHEDULE_CHANGED",
      version: null,
    });
    const { version } = (await schedules.upsert("s", MINUTELY, { ifVersion: 0 })).schedule;
    const both = ["*/4 * * * *", "*/5 * * * *"].map((cron) =>
      schedules.upsert("s", { ...MINUTELY, cron }, { ifVersion: version }),
    );
    const settled = await world.clock.until(Promise.allSettled(both));
    expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    for (const ifVersion of [-1, 1.5, "1"])
      await expect(schedules.upsert("s", MINUTELY, { ifVersion } as never)).rejects.toThrow(
        /schedules\.upsert\(\)\.ifVersion: must be the version/,
      );
  });

  test("an edit of a paused schedule leaves it paused, and closes its stretch", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    await schedules.upsert("s", MINUTELY);
    await schedules.pause("s", "why", { by: "ada" });
    await world.clock.advance(2 * MINUTE + SECOND);
    const { schedule } = await schedules.upsert("s", { job: "study", cron: "0 * * * *" });
    expect(schedule).toMatchObject({ status: "paused", pausedBy: "ada", nextAt: null });
    expect(await ledger(world)).toEqual(["12:01..12:02 paused ×2"]);
    await world.clock.advance(HOUR);
    expect(await schedules.resume("s")).toMatchObject({ nextAt: at(2 * HOUR) });
    expect(await ledger(world)).toEqual(["12:01..12:02 paused ×2", "13:00 paused"]);
  });

  test("a deleted schedule fires no more, and one of its name never fires a tick again", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world);
    const { schedules } = holdfast;
    await schedules.upsert("s", MINUTELY);
    const { id } = await stateOf(world);
    await world.clock.advance(MINUTE);
    await schedules.delete("s", { by: "ada" });
    expect(await schedules.get("s")).toBeNull();
    expect((await schedules.list()).schedules).toEqual([]);
    await expect(schedules.trigger("s")).rejects.toThrow(ScheduleNotFoundError);
    await expect(schedules.pause("s")).rejects.toThrow(ScheduleNotFoundError);
    await expect(schedules.delete("s")).rejects.toThrow(ScheduleNotFoundError);
    await schedules.upsert("s", MINUTELY, { by: "bob" });
    await holdfast.start();
    await world.clock.advance(30 * SECOND);
    expect(ran).toEqual(["scheduled 12:01"]);
    await world.clock.until(schedules.delete("s"));
    await world.clock.advance(3 * MINUTE);
    await schedules.upsert("s", MINUTELY);
    await world.clock.advance(MINUTE);
    expect(ran).toEqual(["scheduled 12:01", "scheduled 12:05"]);
    expect(await ledger(world)).toEqual(["12:01 on_time", "12:05 on_time"]);
    expect((await stateOf(world)).id).toBe(id);
    const kinds = (await schedules.versions("s")).map(({ kind }) => kind);
    expect(kinds).toEqual(["created", "deleted", "recreated", "deleted", "recreated"]);
  });

  test("wrong options are refused with their field, and nothing is half-created", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    const wrong: readonly [object, string][] = [
      [{ cron: "61 * * * *" }, "cron"],
      [{ cron: "* * * * *", timezone: "Mars/Olympus" }, "timezone"],
      [{ every: "15m..10m" }, "every"],
      [{ cron: "* * * * *", calendars: ["none"] }, "calendars"],
      [{ at: new Date(NOON - 1) }, "at"],
      [{ cron: "* * * * *", overlap: "both" }, "overlap"],
      [{ cron: "* * * * *", missed: { run: "all", limit: 0 } }, "missed.limit"],
    ];
    for (const [options, field] of wrong) {
      const asked = schedules.upsert("s", { job: "study", ...options } as never);
      const error = await asked.catch((each: unknown) => each);
      expect(error).toBeInstanceOf(ConfigurationError);
      expect((error as ConfigurationError).problems[0]?.field).toContain(field);
    }
    await expect(schedules.upsert("s", { job: "nobody", every: "1m" })).rejects.toThrow("nobody");
    expect(await schedules.get("s")).toBeNull();
    expect(await (await world.store()).schedules.list({ limit: 10 })).toEqual([]);
  });
}
