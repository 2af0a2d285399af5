// Edge cases of schedules where two rules meet, and mistakes of callers.

import { expect } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { ConfigurationError } from "../../src/shared/errors.js";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  runLines,
  SECOND,
  stateOf,
  student,
} from "./schedule-fixtures.js";
import type { WorldTest } from "./world.js";

const MINUTELY = { job: "study", cron: "* * * * *" } as const;

export function scheduleEdgeSuite(test: WorldTest): void {
  test("calls at once on one schedule wait for one another and are all answered", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { ...MINUTELY, overlap: "allow" });
    const calls = Array.from({ length: 60 }, () => holdfast.schedules.trigger("s"));
    const answers = await world.clock.until(Promise.all(calls));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(60);
  });

  test("calendars that are changed at once leave their schedules with the last rules", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.calendars.upsert("c", { dates: ["2026-02-01"] });
    await holdfast.schedules.upsert("s", { ...MINUTELY, calendars: ["c"] });
    const days = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"];
    const changes = days.map((day) => holdfast.calendars.upsert("c", { dates: [day] }));
    const edit = holdfast.schedules.upsert("s", { ...MINUTELY, calendars: ["c"], input: 1 });
    await world.clock.until(Promise.all([...changes, edit]));
    const [calendar] = await (await world.store()).calendars.list();
    const { when } = JSON.parse((await stateOf(world)).definition);
    expect(when.calendars).toEqual([{ name: "c", rules: calendar?.rules }]);
  });

  test("an edit, a resume and a recreation end a hold after a failure", async ({ world }) => {
    const { holdfast } = student(world, {
      run: () => {
        throw new Error("no");
      },
    });
    const careful = { ...MINUTELY, afterFailure: "1h" };
    await holdfast.start();
    await holdfast.schedules.upsert("s", careful);
    await world.clock.advance(2 * MINUTE + SECOND);
    expect(await ledger(world)).toEqual(["12:01 on_time", "12:02 after_failure"]);
    await world.clock.until(holdfast.schedules.upsert("s", { ...careful, input: 1 }));
    await world.clock.advance(MINUTE);
    expect((await ledger(world)).at(-1)).toBe("12:03 on_time");
    expect((await stateOf(world)).holdUntil).not.toBeNull();
    await world.clock.until(holdfast.schedules.pause("s"));
    await world.clock.until(holdfast.schedules.resume("s"));
    expect((await stateOf(world)).holdUntil).toBeNull();
  });

  test("a grid keeps its phase when dates are left out of it", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", every: "1h" });
    await world.clock.advance(10 * MINUTE);
    const exclude = ["2026-01-20"];
    await holdfast.schedules.upsert("s", { job: "study", every: "1h", exclude });
    expect((await holdfast.schedules.get("s"))?.nextAt).toEqual(at(HOUR));
  });

  test("an equal upsert of a time that has passed changes nothing", async ({ world }) => {
    const { holdfast } = student(world);
    const once = { job: "study", at: at(MINUTE) };
    await holdfast.start();
    await holdfast.schedules.upsert("s", once);
    await world.clock.advance(2 * MINUTE);
    const { schedule } = await world.clock.until(holdfast.schedules.upsert("s", once));
    expect(schedule).toMatchObject({ status: "ended", version: 1 });
    const other = holdfast.schedules.upsert("s", { ...once, input: 1, at: at(90 * SECOND) });
    await expect(world.clock.until(other)).rejects.toThrow("at");
  });

  test("an operator's pause takes over one that would end by itself", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", MINUTELY);
    await holdfast.schedules.pause("s", "vanished", { by: "holdfast" });
    await holdfast.schedules.pause("s", undefined, { by: "ana" });
    expect(await holdfast.schedules.get("s")).toMatchObject({ pausedBy: "ana", pauseNote: null });
  });

  test("a repeated delivery is the same run although the schedule's input was edited", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { ...MINUTELY, input: 1 });
    const first = await holdfast.schedules.trigger("s", { deliveryId: "d" });
    await world.clock.until(holdfast.schedules.upsert("s", { ...MINUTELY, input: 2 }));
    expect(await holdfast.schedules.trigger("s", { deliveryId: "d" })).toEqual(first);
  });

  test("a test replaces a live run like any other trigger", async ({ world }) => {
    const { holdfast, clock } = student(world, { run: () => clock.sleep(10 * MINUTE) });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { ...MINUTELY, overlap: "replace", until: at(MINUTE) });
    await world.clock.advance(MINUTE + SECOND);
    await world.clock.until(holdfast.schedules.trigger("s", { mode: "test" }));
    await world.clock.advance(2 * MINUTE);
    expect(await runLines(world)).toEqual(["scheduled 12:01 cancelled", "test - running"]);
  });

  test("catch-up runs come before the tick on time, and it does not replace them", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { ...MINUTELY, overlap: "replace", missed: "all" });
    await world.clock.advance(3 * MINUTE);
    await holdfast.start();
    await world.clock.advance(20 * SECOND);
    expect(await runLines(world)).toEqual([
      "scheduled 12:01 completed",
      "scheduled 12:02 completed",
      "scheduled 12:03 completed",
    ]);
  });

  test("a backfill takes its turn although the schedule is always busy", async ({ world }) => {
    const { holdfast, clock } = student(world, { run: () => clock.sleep(70 * SECOND) });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { ...MINUTELY, overlap: "queue" });
    await world.clock.advance(5 * MINUTE);
    const range = { from: at(MINUTE), to: at(2 * MINUTE), all: true };
    await world.clock.until(holdfast.schedules.backfill("s", range));
    await world.clock.advance(30 * MINUTE);
    expect((await holdfast.schedules.backfills("s"))[0]).toMatchObject({ status: "done", made: 2 });
  });

  const MISTAKES: Record<string, (holdfast: Holdfast) => unknown> = {
    "upsert without options": (h) => h.schedules.upsert("s", undefined as never),
    "upsert with null": (h) => h.schedules.upsert("s", null as never),
    "a job that is a number": (h) => h.schedules.upsert("s", { job: 5 as never, every: "1m" }),
    "a name that is a number": (h) => h.schedules.pause(5 as never),
    "a name that is missing": (h) => h.schedules.trigger(undefined as never),
    "a note that is an object": (h) => h.schedules.pause("s", { by: "ana" } as never),
    "a note of a megabyte": (h) => h.schedules.pause("s", "x".repeat(1_000_000)),
    "an unknown member beside by": (h) => h.schedules.resume("s", { who: "me" } as never),
    "null for options of a list": (h) => h.schedules.list(null as never),
    "a backfill without a range": (h) => h.schedules.backfill("s", undefined as never),
    "a backfill of all that is no boolean": (h) =>
      h.schedules.backfill("s", { from: at(0), to: at(1), all: "yes" as never }),
    "a calendar without options": (h) => h.calendars.upsert("c", null as never),
  };
  for (const [what, mistake] of Object.entries(MISTAKES)) {
    test(`${what} is refused by an error that names the field`, async ({ world }) => {
      const { holdfast } = student(world);
      await holdfast.schedules.upsert("s", MINUTELY);
      const refused = await Promise.resolve()
        .then(() => mistake(holdfast))
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ConfigurationError);
      expect((refused as Error).message).toMatch(/^(schedules|calendars)\.\w+\(.*(must|not known)/);
      expect((await holdfast.schedules.get("s"))?.version).toBe(1);
    });
  }

  test("a schedule can be declared for a job by its name", async ({ world }) => {
    const { holdfast, ran } = student(world);
    holdfast.schedule("s", "study", { every: "10s" });
    expect(() => holdfast.schedule("t", undefined as never, { every: "10s" })).toThrow(".job");
    expect(() => holdfast.schedule("t", "study", undefined as never)).toThrow("must be an object");
    await holdfast.start();
    await world.clock.advance(11 * SECOND);
    expect(ran).toEqual(["scheduled 12:00:10"]);
  });
}
