// A run by hand or by an outside cron: beside the cadence, once per delivery, and with `ifDue` only if a tick is due
// and no run is live.

import { expect } from "vitest";
import { ConfigurationError, DeliveryConflictError } from "../../src/shared/errors.js";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  runLines,
  runRecords,
  SECOND,
  stateOf,
  student,
} from "./schedule-fixtures.js";
import { Door, type World, type WorldTest } from "./world.js";

const HOURLY = { job: "study", cron: "0 * * * *" } as const;

/** An instance whose runs wait until the door opens. */
function held(world: World) {
  const door = new Door();
  return { ...student(world, { run: () => door.opened }), door };
}

export function scheduleTriggerSuite(test: WorldTest): void {
  test("manual and test runs take the schedule's input and leave cadence and ledger alone", async ({
    world,
  }) => {
    const inputs: unknown[] = [];
    const { holdfast, ran } = student(world, { run: (_, input) => void inputs.push(input) });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { ...HOURLY, input: { a: [1, "é"] }, tags: ["eu"] });
    const before = await stateOf(world);
    const manual = await holdfast.schedules.trigger("s");
    await world.clock.advance(SECOND);
    await holdfast.schedules.trigger("s", { mode: "test", input: { b: 2 } });
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["manual -", "test -"]);
    expect(inputs).toEqual([{ a: [1, "é"] }, { b: 2 }]);
    expect(await holdfast.runs.get(manual.runId as string)).toMatchObject({
      mode: "manual",
      schedule: "s",
      nominalAt: null,
      tags: ["eu"],
    });
    const { nextAt, cursorAt, lastRun, lastTickAt } = await stateOf(world);
    expect({ nextAt, cursorAt, lastRun, lastTickAt }).toEqual({
      nextAt: before.nextAt,
      cursorAt: before.cursorAt,
      lastRun: null,
      lastTickAt: null,
    });
    expect(await ledger(world)).toEqual([]);
  });

  test("while a run is live `skip` answers locked, with holder and until once it is held", async ({
    world,
  }) => {
    const { holdfast, door } = held(world);
    await holdfast.schedules.upsert("s", HOURLY);
    await holdfast.schedules.trigger("s");
    const waiting = { skipped: true, reason: "locked", holder: null, until: null };
    const nextAt = at(HOUR);
    expect(await holdfast.schedules.trigger("s")).toEqual({ ...waiting, nextAt });
    await holdfast.start();
    await world.clock.advance(SECOND);
    const locked = await holdfast.schedules.trigger("s");
    expect(locked).toMatchObject({ reason: "locked", holder: holdfast.instanceId, nextAt });
    expect((locked.skipped && locked.until?.getTime()) as number).toBeGreaterThan(world.now());
    door.open();
    await world.clock.advance(SECOND);
    expect((await holdfast.schedules.trigger("s")).runId).toBeDefined();
    expect(await runRecords(world)).toHaveLength(2);
  });

  test("under `queue` a trigger waits, under `allow` it runs beside, under `replace` it takes over", async ({
    world,
  }) => {
    const { holdfast, clock } = student(world, {
      run: ({ signal }) =>
        Promise.race([
          clock.sleep(10_000),
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
        ]),
    });
    await holdfast.start();
    for (const overlap of ["queue", "allow", "replace"] as const) {
      await holdfast.schedules.upsert(overlap, { ...HOURLY, overlap });
      await holdfast.schedules.trigger(overlap);
    }
    await world.clock.advance(2 * SECOND);
    for (const overlap of ["queue", "allow", "replace"])
      await world.clock.until(holdfast.schedules.trigger(overlap));
    await world.clock.advance(3 * SECOND);
    expect(await runLines(world, "queue")).toEqual(["manual - running", "manual - pending"]);
    expect(await runLines(world, "allow")).toEqual(["manual - running", "manual - running"]);
    expect(await runLines(world, "replace")).toEqual(["manual - cancelled", "manual - running"]);
    await world.clock.advance(MINUTE);
    expect(await runLines(world, "queue")).toEqual(["manual - completed", "manual - completed"]);
  });

  test("under `replace` a trigger waits for a test run instead of cancelling it", async ({
    world,
  }) => {
    const { holdfast, door } = held(world);
    await holdfast.start();
    await holdfast.schedules.upsert("s", { ...HOURLY, overlap: "replace" });
    await holdfast.schedules.trigger("s", { mode: "test" });
    await world.clock.advance(SECOND);
    await holdfast.schedules.trigger("s");
    await world.clock.advance(5 * SECOND);
    expect(await runLines(world)).toEqual(["test - running", "manual - pending"]);
    door.open();
    await world.clock.advance(2 * SECOND);
    expect(await runLines(world)).toEqual(["test - completed", "manual - completed"]);
  });

  test("a paused schedule can be triggered by hand, and stays paused", async ({ world }) => {
    const { holdfast, ran } = student(world);
    await holdfast.start();
    await holdfast.schedules.upsert("s", HOURLY);
    await holdfast.schedules.pause("s");
    await holdfast.schedules.trigger("s");
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["manual -"]);
    expect((await holdfast.schedules.get("s"))?.status).toBe("paused");
  });

  test("of two simultaneous calls with `ifDue` one fires the tick and the other is locked", async ({
    world,
  }) => {
    const one = student(world).holdfast;
    const other = student(world).holdfast;
    await one.schedules.upsert("s", HOURLY);
    await world.clock.advance(HOUR + SECOND);
    const asked = [one, other].map(({ schedules }) => schedules.trigger("s", { ifDue: true }));
    const answers = await world.clock.until(Promise.all(asked));
    const fired = answers.filter(({ runId }) => runId !== undefined);
    const locked = answers.filter((answer) => answer.skipped && answer.reason === "locked");
    expect([fired.length, locked.length]).toEqual([1, 1]);
    expect(await runLines(world)).toEqual(["scheduled 13:00 pending"]);
    expect(await ledger(world)).toEqual(["13:00 on_time"]);
  });

  test("`ifDue` returns not_due with the next time, or paused, and fires missed ticks by the policy", async ({
    world,
  }) => {
    const { schedules } = student(world).holdfast;
    await schedules.upsert("s", HOURLY);
    const notDue = { skipped: true, reason: "not_due", nextAt: at(HOUR) };
    expect(await schedules.trigger("s", { ifDue: true })).toMatchObject(notDue);
    await world.clock.advance(3 * HOUR + 10 * MINUTE);
    const { runId } = await schedules.trigger("s", { ifDue: true });
    expect((await runRecords(world)).map(({ id }) => id)).toEqual([runId]);
    expect(await ledger(world)).toEqual(["13:00..14:00 nobody ×2", "15:00 late"]);
    await schedules.upsert("t", { ...HOURLY, missed: "skip" });
    await schedules.pause("t");
    await world.clock.advance(HOUR);
    expect(await schedules.trigger("t", { ifDue: true })).toMatchObject({ reason: "paused" });
    await schedules.upsert("u", { ...HOURLY, missed: "skip" });
    await world.clock.advance(HOUR);
    const next = (await schedules.get("u"))?.nextAt;
    expect(await schedules.trigger("u", { ifDue: true })).toMatchObject({ reason: "not_due" });
    expect((await schedules.get("u"))?.nextAt).not.toEqual(next);
    expect(await ledger(world, "u")).toEqual(["17:00 nobody"]);
    await expect(schedules.trigger("s", { ifDue: true, mode: "test" })).rejects.toThrow(
      ConfigurationError,
    );
  });

  test("a delivery that is repeated answers with its run, and with another input conflicts", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    const { schedules } = holdfast;
    await schedules.upsert("s", HOURLY);
    const given = { deliveryId: "d1", input: { a: 1, b: 2 } };
    const first = await schedules.trigger("s", given);
    await holdfast.start();
    await world.clock.advance(SECOND);
    const again = await schedules.trigger("s", { deliveryId: "d1", input: { b: 2, a: 1 } });
    expect(again).toEqual(first);
    await expect(schedules.trigger("s", { deliveryId: "d1", input: {} })).rejects.toThrow(
      DeliveryConflictError,
    );
    await schedules.upsert("t", HOURLY);
    expect((await schedules.trigger("t", given)).runId).not.toBe(first.runId);
    expect(await runRecords(world)).toHaveLength(1);
  });

  test("a delivery that was skipped is judged anew, and one delivered to two at once makes one run", async ({
    world,
  }) => {
    const { holdfast, door } = held(world);
    const other = student(world).holdfast;
    await holdfast.start();
    await holdfast.schedules.upsert("s", HOURLY);
    await holdfast.schedules.trigger("s");
    const skipped = await holdfast.schedules.trigger("s", { deliveryId: "d2" });
    expect(skipped).toMatchObject({ skipped: true, reason: "locked" });
    door.open();
    await world.clock.advance(SECOND);
    const asked = [holdfast, other].map((each) =>
      each.schedules.trigger("s", { deliveryId: "d2" }),
    );
    const [one, two] = await world.clock.until(Promise.all(asked));
    expect(one?.runId).toBeDefined();
    expect(two).toEqual(one);
    expect(await runRecords(world)).toHaveLength(2);
  });

  test("a delivery with `ifDue` that fired answers with that run again", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", HOURLY);
    await world.clock.advance(HOUR);
    const first = await holdfast.schedules.trigger("s", { ifDue: true, deliveryId: "d" });
    await holdfast.start();
    await world.clock.advance(SECOND);
    const again = await holdfast.schedules.trigger("s", { ifDue: true, deliveryId: "d" });
    expect(again).toEqual(first);
    expect(await runRecords(world)).toHaveLength(1);
  });

  for (const ifDue of [false, true]) {
    test(`a trigger${ifDue ? " with ifDue" : ""} whose answer is lost makes one run, and knows it`, async ({
      world,
    }) => {
      const { holdfast, faults } = student(world);
      await holdfast.schedules.upsert("s", HOURLY);
      await world.clock.advance(HOUR);
      faults.fail("schedules.write", "after");
      const asked = holdfast.schedules.trigger("s", ifDue ? { ifDue } : {});
      const { runId } = await world.clock.until(asked);
      expect((await runRecords(world)).map(({ id }) => id)).toContain(runId);
      await holdfast.start();
      await world.clock.advance(SECOND);
      expect(await runLines(world)).toEqual(
        ifDue ? ["scheduled 13:00 completed"] : ["manual - completed", "scheduled 13:00 completed"],
      );
    });
  }

  test("in a process that was not started, a trigger first brings the declared schedules up to date", async ({
    world,
  }) => {
    const { holdfast, study } = student(world);
    holdfast.schedule("declared", study, { cron: "0 * * * *" });
    expect((await holdfast.schedules.trigger("declared")).runId).toBeDefined();
    expect(await holdfast.schedules.get("declared")).toMatchObject({ source: "code", version: 1 });
  });
}
