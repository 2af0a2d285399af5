// The pause of everything: nothing fires, nothing is claimed, nothing is caught up; active runs go on.

import { expect } from "vitest";
import { ConfigurationError } from "../../src/shared/errors.js";
import {
  ledger,
  MINUTE,
  NOON,
  runLines,
  SECOND,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import { Door, heard, type WorldTest } from "./world.js";

const MINUTELY = { job: "study", cron: "* * * * *" } as const;
const QUICK = { options: { poll: "10s" } } as const;

export function pauseSuite(test: WorldTest): void {
  test("nothing fires and nothing begins until it is lifted, in any instance", async ({
    world,
  }) => {
    const first = student(world, QUICK);
    const second = student(world, QUICK);
    await first.holdfast.start();
    await second.holdfast.start();
    await first.holdfast.schedules.upsert("s", MINUTELY);
    await world.clock.advance(MINUTE + 30 * SECOND);
    const paused = second.holdfast.pause({ note: "the bank is down", by: "ada" });
    expect(await world.clock.until(paused)).toEqual({
      since: new Date(NOON + 90 * SECOND),
      by: "ada",
      note: "the bank is down",
    });
    const { id } = await world.clock.until(first.study.enqueue({}));
    await world.clock.advance(4 * MINUTE);
    expect([...first.ran, ...second.ran]).toEqual(["scheduled 12:01"]);
    expect(await ledger(world)).toEqual(["12:01 on_time"]);
    expect(await world.clock.until(first.holdfast.runs.get(id))).toMatchObject({
      status: "pending",
      waitingFor: { reason: "paused", note: "the bank is down" },
    });
    for (const member of [first, second]) {
      expect(heard(member, "instance.halted")).toHaveLength(1);
      expect(heard(member, "schedule.stuck")).toEqual([]);
    }
    const lifted = first.holdfast.resume({ by: "bob" });
    expect(await world.clock.until(lifted)).toMatchObject({ by: "ada" });
    expect(await world.clock.until(first.holdfast.paused())).toBeNull();
    await world.clock.advance(MINUTE);
    expect(await ledger(world)).toEqual([
      "12:01 on_time",
      "12:02..12:05 paused ×4",
      "12:06 on_time",
    ]);
    expect((await tickRecords(world))[1]?.evidence).toEqual({
      isAll: true,
      since: NOON + 90 * SECOND,
      until: NOON + 330 * SECOND,
      by: "ada",
      note: "the bank is down",
    });
    expect([...first.ran, ...second.ran].sort()).toEqual([
      "enqueued -",
      "scheduled 12:01",
      "scheduled 12:06",
    ]);
    expect(heard(second, "everything.paused")).toMatchObject([{ by: "ada" }]);
    expect(heard(first, "everything.resumed")).toMatchObject([{ by: "bob", pausedMs: 240_000 }]);
    expect(heard(second, "instance.resumed")).toHaveLength(1);
  });

  test("a run that is running goes on to its end", async ({ world }) => {
    const door = new Door();
    const { holdfast, study } = student(world, { ...QUICK, run: () => door.opened });
    await holdfast.start();
    const { id } = await world.clock.until(study.enqueue({}));
    await world.clock.advance(SECOND);
    await world.clock.until(holdfast.pause());
    await world.clock.advance(2 * MINUTE);
    door.open();
    expect((await world.ended(id)).status).toBe("completed");
  });

  test("a schedule's own pause outlives it, and a queue's too", async ({ world }) => {
    const { holdfast } = student(world, QUICK);
    await holdfast.schedules.upsert("s", MINUTELY);
    await holdfast.schedules.pause("s", "its own");
    await holdfast.queues.pause("mail");
    await holdfast.pause();
    await world.clock.advance(MINUTE);
    await holdfast.resume();
    expect(await holdfast.schedules.get("s")).toMatchObject({
      status: "paused",
      pauseNote: "its own",
    });
    expect(
      (await holdfast.queues.list()).find(({ name }) => name === "mail")?.pausedAt,
    ).toBeInstanceOf(Date);
  });

  test("a bounded pass fires, claims and executes nothing meanwhile", async ({ world }) => {
    const { holdfast, study, ran } = student(world);
    await holdfast.schedules.upsert("s", MINUTELY);
    await study.enqueue({});
    await holdfast.pause();
    await world.clock.advance(MINUTE + SECOND);
    const pass = await world.clock.until(holdfast.tick());
    expect(pass).toMatchObject({ fired: [], skipped: [], executed: 0 });
    await holdfast.resume();
    const after = await world.clock.until(holdfast.tick());
    expect(after).toMatchObject({ fired: [], skipped: [{ reason: "paused" }], executed: 1 });
    expect(ran).toEqual(["enqueued -"]);
  });

  test("a trigger makes its run, which waits; if due, it answers that all is paused", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, QUICK);
    await holdfast.start();
    await holdfast.schedules.upsert("s", MINUTELY);
    await world.clock.until(holdfast.pause());
    await world.clock.advance(MINUTE + SECOND);
    const asked = holdfast.schedules.trigger("s", { ifDue: true });
    expect(await world.clock.until(asked)).toMatchObject({ skipped: true, reason: "paused" });
    await world.clock.until(holdfast.schedules.trigger("s"));
    await world.clock.advance(MINUTE);
    expect(await runLines(world)).toEqual(["manual - pending"]);
    await world.clock.until(holdfast.resume());
    await world.clock.advance(SECOND);
    expect(ran).toEqual(["manual -"]);
  });

  test("an edit meanwhile settles the ticks without firing", async ({ world }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { ...MINUTELY, missed: "all" });
    await world.clock.advance(2 * MINUTE + SECOND);
    await holdfast.pause({ note: "why" });
    await world.clock.advance(2 * MINUTE);
    await holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * *" });
    // Ticks that were due before the pause can no longer be run late.
    expect(await ledger(world)).toEqual([
      "12:01 paused",
      "12:02 paused",
      "12:03 paused",
      "12:04 paused",
    ]);
    expect(await runLines(world)).toEqual([]);
  });

  test("remote workers get nothing meanwhile", async ({ world }) => {
    const { holdfast, study } = student(world);
    await study.enqueue({});
    await holdfast.pause();
    const claim = { instance: "elsewhere", jobs: ["study"], limit: 5 };
    expect(await world.clock.until(holdfast.remote.claim(claim))).toEqual([]);
    await holdfast.resume();
    expect(await world.clock.until(holdfast.remote.claim(claim))).toHaveLength(1);
  });

  test("it is explained: a tick in it, one to come, and one that it left out", async ({
    world,
  }) => {
    const { holdfast } = student(world, QUICK);
    const { schedules } = holdfast;
    await holdfast.start();
    await schedules.upsert("s", MINUTELY);
    await world.clock.until(holdfast.pause({ note: "why", by: "ada" }));
    await world.clock.advance(90 * SECOND);
    const explain = (ms: number) => world.clock.until(schedules.explain("s", new Date(NOON + ms)));
    const words = "everything has been paused by ada since 2026-01-15 12:00 UTC";
    const open = await explain(MINUTE);
    expect(open).toMatchObject({ outcome: "skipped", reason: "paused" });
    expect(open.text).toContain(words);
    const planned = await explain(3 * MINUTE);
    expect(planned.text).toContain(
      "will be skipped unless that changes: everything has been paused",
    );
    await world.clock.until(holdfast.resume());
    await world.clock.advance(15 * SECOND);
    const past = await explain(MINUTE);
    expect(past.text).toContain("was skipped: everything was paused by ada");
    expect(past.evidence.join("\n")).toContain("while everything is paused, no schedule fires");
  });

  test("wrong options are refused with their field", async ({ world }) => {
    const { holdfast } = student(world);
    await expect(holdfast.pause({ nte: "x" } as never)).rejects.toThrow(ConfigurationError);
    await expect(holdfast.pause({ note: 5 } as never)).rejects.toThrow("pause().note");
    expect(await holdfast.paused()).toBeNull();
  });
}
