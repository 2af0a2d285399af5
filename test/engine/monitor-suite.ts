// Monitors: remote work checks in here. A tick with a check-in is fired, one without is missed and opens an alert, and
// all code for runs and ticks works for them.

import { expect } from "vitest";
import type { AlertNotice } from "../../src/alerts/alert-view.js";
import type { PingOptions } from "../../src/schedules/check-in.js";
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
  tickRecords,
} from "./schedule-fixtures.js";
import { heard, type World, type WorldTest } from "./world.js";

const HOURLY = { monitor: true, cron: "0 * * * *", grace: "10m" } as const;

/**
 * The monitor "backup": a tick every hour, ten minutes of grace. Nothing polls; `pass` lets time go by and
 * then does what an outside cron would, so that hours cost two statements and not thousands.
 */
async function monitored(world: World, options: object = {}) {
  const told: string[] = [];
  const to = ({ event, kind, subject }: AlertNotice) =>
    void told.push(`${event} ${kind} ${subject.name}`);
  const member = world.member({ alerts: { failureRate: { atLeast: 1 }, to: [to] } });
  const { holdfast } = member;
  await holdfast.schedules.upsert("backup", { ...HOURLY, ...options });
  return {
    ...member,
    member,
    told,
    ping: (given?: PingOptions) => holdfast.schedules.ping("backup", given),
    explain: async (afterNoonMs: number) =>
      (await holdfast.schedules.explain("backup", at(afterNoonMs))).text,
    pass: async (ms: number) => {
      await world.clock.advance(ms);
      await world.clock.until(holdfast.tick());
    },
    wrong: async () => (await holdfast.check()).checks.filter(({ ok }) => !ok),
  };
}

export function monitorSuite(test: WorldTest): void {
  test("a check-in within the grace fires the tick, and is kept as a run that has ended", async ({
    world,
  }) => {
    const { holdfast, ping, explain, member, pass, wrong } = await monitored(world, {
      tags: ["db"],
    });
    expect(await holdfast.schedules.get("backup")).toMatchObject({
      monitor: true,
      job: "monitor:backup",
      nextAt: at(HOUR),
      grace: "10m",
    });
    await pass(HOUR + 4 * MINUTE);
    expect(await ledger(world, "backup")).toEqual([]);
    expect((await holdfast.schedules.get("backup"))?.nextAt).toEqual(at(HOUR));
    expect(await explain(HOUR)).toMatch(/its check-in is expected by 2026-01-15 13:10 UTC\.$/);
    const pinged = await ping();
    expect(pinged).toEqual({
      state: "ok",
      tick: at(HOUR),
      runId: expect.any(String),
      repeated: false,
      paused: false,
      nextDeadlineAt: at(2 * HOUR + 10 * MINUTE),
    });
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
    expect(await holdfast.runs.get(String(pinged.runId))).toMatchObject({
      status: "completed",
      mode: "scheduled",
      schedule: "backup",
      nominalAt: at(HOUR),
      startedAt: null,
      durationMs: null,
      tags: ["db"],
    });
    expect(await holdfast.schedules.get("backup")).toMatchObject({
      lastStatus: "completed",
      lastTickAt: at(HOUR),
      nextAt: at(2 * HOUR),
    });
    expect(await explain(HOUR)).toMatch(/was fired: it checked in 4 min after the tick/);
    // Said again, as by a client that got no answer, it is the same.
    await pass(MINUTE);
    expect(await ping()).toMatchObject({ runId: pinged.runId, repeated: true, tick: at(HOUR) });
    await pass(20 * MINUTE);
    expect(await runLines(world, "backup")).toEqual(["scheduled 13:00 completed"]);
    expect(heard(member, "monitor.pinged")).toHaveLength(2);
    expect(await wrong()).toEqual([]);
  });

  test("silent: a monitor without its check-in alerts until one comes, in time or late", async ({
    world,
  }) => {
    const { ping, explain, member, pass, told, wrong } = await monitored(world);
    await pass(HOUR + 9 * MINUTE);
    expect(told).toEqual([]);
    await pass(3 * MINUTE);
    expect(await ledger(world, "backup")).toEqual(["13:00 no_ping"]);
    expect(heard(member, "tick.missed")).toMatchObject([{ schedule: "backup", reason: "no_ping" }]);
    expect(told).toEqual(["opened silent backup"]);
    expect(await explain(HOUR)).toBe(
      'The tick of "backup" at 2026-01-15 13:00 UTC was missed: no check-in arrived between 2026-01-15 12:30 UTC and 2026-01-15 13:10 UTC.',
    );
    // It came late: that does not stand for the next tick.
    expect(await ping()).toMatchObject({ tick: null, repeated: false });
    expect(await ping()).toMatchObject({ tick: null, repeated: true });
    await pass(MINUTE);
    expect(told).toEqual(["opened silent backup", "resolved silent backup"]);
    await pass(HOUR);
    expect(await ledger(world, "backup")).toEqual(["13:00 no_ping", "14:00 no_ping"]);
    expect(told.slice(2)).toEqual(["opened silent backup"]);
    await pass(50 * MINUTE);
    expect(await ping()).toMatchObject({ tick: at(3 * HOUR) });
    await pass(MINUTE);
    expect(told.slice(3)).toEqual(["resolved silent backup"]);
    expect(await runLines(world, "backup")).toEqual([
      "manual - completed",
      "scheduled 15:00 completed",
    ]);
    expect(await wrong()).toEqual([]);
  });

  test("a start gives the duration, and its end is awaited from there on, once", async ({
    world,
  }) => {
    const { ping, explain, holdfast, pass } = await monitored(world);
    await pass(HOUR + 8 * MINUTE);
    expect(await ping({ state: "start" })).toMatchObject({
      tick: at(HOUR),
      runId: null,
      nextDeadlineAt: at(HOUR + 18 * MINUTE),
    });
    await pass(7 * MINUTE);
    expect(await holdfast.schedules.get("backup")).toMatchObject({
      beganAt: at(HOUR + 8 * MINUTE),
    });
    expect(await ping({ state: "start" })).toMatchObject({
      repeated: true,
      nextDeadlineAt: at(HOUR + 18 * MINUTE),
    });
    const { runId } = await ping();
    expect(await holdfast.runs.get(String(runId))).toMatchObject({ durationMs: 7 * MINUTE });
    expect(await holdfast.schedules.get("backup")).toMatchObject({ beganAt: null });
    // Begun and never ended.
    await pass(45 * MINUTE);
    expect(await ping({ state: "start" })).toMatchObject({ tick: at(2 * HOUR) });
    await pass(11 * MINUTE);
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time", "14:00 no_ping"]);
    expect(await explain(2 * HOUR)).toMatch(
      /no check-in arrived between .* and 2026-01-15 14:10 UTC; its start was reported at 2026-01-15 14:00 UTC, its end never was\.$/,
    );
    expect(await stateOf(world, "backup")).toMatchObject({ beganAt: null });
  });

  test("a failure counts as one, and the last word about a tick holds", async ({ world }) => {
    const { ping, holdfast, member, pass, told, wrong } = await monitored(world, {
      alerts: { consecutiveFailures: { after: 1 } },
    });
    await pass(HOUR + MINUTE);
    const failed = await ping({ state: "fail", reason: "the disk is full" });
    expect(await holdfast.runs.get(String(failed.runId))).toMatchObject({
      status: "failed",
      error: { code: "REPORTED", message: "the disk is full" },
    });
    expect(heard(member, "monitor.failed")).toMatchObject([{ schedule: "backup" }]);
    await pass(MINUTE);
    expect(told.toSorted()).toEqual([
      "opened consecutiveFailures backup",
      "opened failureRate monitor:backup",
    ]);
    await expect(holdfast.runs.retry(String(failed.runId))).rejects.toThrow(/is a monitor/);
    // Tried again over there, it went well: the same tick, the same run.
    expect(await ping()).toMatchObject({ runId: failed.runId, repeated: false, tick: at(HOUR) });
    await pass(MINUTE);
    expect(told).toContain("resolved consecutiveFailures backup");
    expect(await ping({ state: "fail" })).toMatchObject({ runId: failed.runId });
    expect(await runLines(world, "backup")).toEqual(["scheduled 13:00 failed"]);
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
    expect(await wrong()).toEqual([]);
  });

  test("an early check-in counts for the next tick only when that is the nearest", async ({
    world,
  }) => {
    const { ping, explain, pass } = await monitored(world);
    expect(await ping()).toMatchObject({ tick: null });
    await pass(58 * MINUTE);
    expect(await ping()).toMatchObject({
      tick: at(HOUR),
      nextDeadlineAt: at(2 * HOUR + 10 * MINUTE),
    });
    await pass(4 * MINUTE);
    expect(await ping()).toMatchObject({ tick: at(HOUR), repeated: true });
    await pass(10 * MINUTE);
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
    expect(await explain(HOUR)).toMatch(/was fired: it checked in 2 min early/);
  });

  test("the same delivery twice is one check-in, whatever came in between", async ({ world }) => {
    const { ping, pass } = await monitored(world);
    await pass(HOUR);
    const first = await ping({ deliveryId: "d1" });
    await pass(HOUR);
    expect(await ping({ deliveryId: "d1" })).toMatchObject({
      runId: first.runId,
      tick: at(HOUR),
      repeated: true,
    });
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
    const [one, two] = await Promise.all([ping({ deliveryId: "d2" }), ping({ deliveryId: "d2" })]);
    expect(one.runId).toBe(two.runId);
    expect(await runRecords(world, "backup")).toHaveLength(2);
  });

  test("a delivery that said nothing new says nothing new for the next tick either", async ({
    world,
  }) => {
    const { ping, pass } = await monitored(world);
    await pass(HOUR);
    const first = await ping();
    expect(await ping({ deliveryId: "d" })).toMatchObject({ runId: first.runId, repeated: true });
    await pass(HOUR);
    expect(await ping({ deliveryId: "d" })).toMatchObject({ runId: first.runId, repeated: true });
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
  });

  test("a check-in whose answer from the database was lost counts once, also where several ticks wait", async ({
    world,
  }) => {
    const { ping, pass, faults } = await monitored(world, { grace: "3h" });
    await pass(2 * HOUR + MINUTE);
    faults.fail("schedules.write", "after");
    expect(await world.clock.until(ping())).toMatchObject({ tick: at(HOUR), repeated: false });
    expect(await ledger(world, "backup")).toEqual(["13:00 on_time"]);
    faults.fail("schedules.write", "after");
    const failed = await world.clock.until(ping({ state: "fail", deliveryId: "d" }));
    expect(failed).toMatchObject({ tick: at(2 * HOUR), repeated: false });
    expect(await runLines(world, "backup")).toHaveLength(2);
  });

  test("nothing is expected while it is paused, or everything is; an edit ends the waiting", async ({
    world,
  }) => {
    const { ping, holdfast, pass, wrong } = await monitored(world);
    await pass(HOUR + MINUTE);
    await holdfast.schedules.pause("backup", "moving house");
    expect(await ping()).toMatchObject({ paused: true, tick: null, runId: null });
    await pass(2 * HOUR);
    await holdfast.schedules.resume("backup");
    expect(await ledger(world, "backup")).toEqual(["13:00 paused", "14:00..15:00 paused ×2"]);
    await pass(50 * MINUTE);
    await holdfast.pause();
    expect(await ping()).toMatchObject({ paused: true });
    await pass(30 * MINUTE);
    await holdfast.resume();
    await pass(MINUTE);
    expect((await ledger(world, "backup")).at(-1)).toBe("16:00 paused");
    // 17:00 waits when it becomes a monitor of every half hour: it is judged no more.
    await pass(38 * MINUTE + SECOND);
    await holdfast.schedules.upsert("backup", { ...HOURLY, cron: "*/30 * * * *" });
    await pass(HOUR);
    expect((await ledger(world, "backup")).slice(3)).toEqual(["17:00 paused", "17:30 no_ping"]);
    await holdfast.schedules.delete("backup");
    await expect(ping()).rejects.toThrow(/no schedule/i);
    expect(await wrong()).toEqual([]);
  });

  test("ticks follow the clocks of their zone, and after an absence those of it are one row", async ({
    world,
  }) => {
    // 2026-03-29 02:30 does not exist in Paris: the tick is at 03:00 local, 01:00 UTC.
    await world.clock.advance(Date.UTC(2026, 2, 28, 12) - NOON);
    const { ping, pass, wrong, holdfast } = await monitored(world, {
      cron: "30 2 * * *",
      timezone: "Europe/Paris",
    });
    await pass(Date.UTC(2026, 2, 29, 1, 5) - world.now());
    expect(await ping()).toMatchObject({ tick: new Date(Date.UTC(2026, 2, 29, 1)) });
    await pass(3 * 24 * HOUR);
    const rows = (await tickRecords(world, "backup")).map(
      ({ firstAt, count, reason }) =>
        `${new Date(firstAt).toISOString().slice(5, 16)} ${reason} ×${count}`,
    );
    expect(rows).toEqual(["03-29T01:00 on_time ×1", "03-30T00:30 no_ping ×3"]);
    const tick = new Date(Date.UTC(2026, 2, 31, 0, 30));
    const { evidence } = await holdfast.schedules.explain("backup", tick);
    expect(evidence.join("\n")).toMatch(/polled at 2026-03-29 .* before the tick/);
    expect(await wrong()).toEqual([]);
  });

  test("triggers, backfills and retries of a monitor are refused, and so are check-ins for other schedules", async ({
    world,
  }) => {
    const { holdfast, ping, pass } = await monitored(world);
    const { schedules } = holdfast;
    await expect(schedules.trigger("backup")).rejects.toThrow(/backup is a monitor/);
    await expect(schedules.backfill("backup", { from: at(-HOUR), to: at(0) })).rejects.toThrow(
      /is a monitor/,
    );
    await expect(ping({ state: "done" as never })).rejects.toThrow(/"start", "ok", "fail"/);
    await expect(ping({ reason: "x" })).rejects.toThrow(/state "fail" alone/);
    await expect(schedules.ping("nobody")).rejects.toThrow(/no schedule/i);
    holdfast.job("study", { run: () => null });
    await schedules.upsert("s", { job: "study", cron: "0 * * * *" });
    await expect(schedules.ping("s")).rejects.toThrow(/monitor: true/);
    await expect(schedules.upsert("t", { ...HOURLY, job: "study" } as never)).rejects.toThrow(
      /job.*a monitor runs nothing here/,
    );
    // Declared in code, it is one like any other.
    holdfast.schedule("declared", { monitor: true, every: "1h" });
    await schedules.apply();
    expect(await schedules.get("declared")).toMatchObject({ monitor: true, source: "code" });
    // A long reason is cut, not refused.
    await pass(HOUR);
    const { runId } = await ping({ state: "fail", reason: "x".repeat(5_000) });
    expect((await holdfast.runs.get(String(runId)))?.error?.message.length).toBeLessThan(2_100);
  });
}
