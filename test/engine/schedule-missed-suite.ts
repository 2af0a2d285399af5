// No instance was up: the schedule's policy decides about the ticks of that time.

import { expect } from "vitest";
import type { MissedOptions } from "../../src/schedules/rules/schedule.js";
import {
  DAY,
  HOUR,
  ledger,
  MINUTE,
  runLines,
  runRecords,
  SECOND,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import { heard, type World, type WorldTest } from "./world.js";

type Missed = "latest" | "all" | "skip" | MissedOptions;

/** A schedule of every ten minutes, nobody from 12:00 to 13:05, then one instance. */
async function afterAnHour(world: World, missed: Missed | undefined, absentMs = HOUR + 5 * MINUTE) {
  const member = student(world, { run: () => member.clock.sleep(1_000) });
  const { holdfast } = member;
  const rules = { job: "study", cron: "*/10 * * * *" };
  await holdfast.schedules.upsert("s", missed === undefined ? rules : { ...rules, missed });
  await world.clock.advance(absentMs);
  await holdfast.start();
  await world.clock.advance(10 * SECOND);
  return member;
}

const CASES: readonly [string, Missed | undefined, readonly string[]][] = [
  ["by default the newest is fired late", undefined, ["12:10..12:50 nobody ×5", "13:00 late"]],
  ["by `skip` none is fired", "skip", ["12:10..13:00 nobody ×6"]],
  [
    "by `latest` within a time the newest is fired if it is not older",
    { run: "latest", within: "6m" },
    ["12:10..12:50 nobody ×5", "13:00 late"],
  ],
  [
    "by `latest` within a time the newest is too old if it is older",
    { run: "latest", within: "4m" },
    ["12:10..12:50 nobody ×5", "13:00 too_old"],
  ],
  [
    "by `all` every one is fired",
    "all",
    ["12:10", "12:20", "12:30", "12:40", "12:50", "13:00"].map((time) => `${time} catch_up`),
  ],
  [
    "by `all` with a limit the newest are fired",
    { run: "all", limit: 2 },
    ["12:10..12:40 over_limit ×4", "12:50 catch_up", "13:00 catch_up"],
  ],
  [
    "by `all` within a time those that are not older are fired",
    { run: "all", within: "30m" },
    ["12:10..12:30 too_old ×3", "12:40 catch_up", "12:50 catch_up", "13:00 catch_up"],
  ],
  [
    "by `all` with both, either bound holds",
    { run: "all", limit: 4, within: "20m" },
    ["12:10..12:20 over_limit ×2", "12:30..12:40 too_old ×2", "12:50 catch_up", "13:00 catch_up"],
  ],
];

export function scheduleMissedSuite(test: WorldTest): void {
  for (const [name, missed, lines] of CASES) {
    test(`after an outage, ${name}`, async ({ world }) => {
      const { ran } = await afterAnHour(world, missed);
      expect(await ledger(world)).toEqual(lines);
      const fired = lines.filter((line) => /late|catch_up/.test(line));
      expect(ran).toEqual(fired.map((line) => `scheduled ${line.split(" ")[0]}`));
    });
  }

  test("ticks within the grace are on time, each by itself", async ({ world }) => {
    const { holdfast, ran } = student(world);
    const rules = { job: "study", every: "5s", grace: "12s", overlap: "allow" } as const;
    await holdfast.schedules.upsert("s", rules);
    await world.clock.advance(31 * SECOND);
    await holdfast.start();
    await world.clock.advance(SECOND);
    expect(await ledger(world)).toEqual([
      "12:00:05..12:00:15 nobody ×3",
      "12:00:20 on_time",
      "12:00:25 on_time",
      "12:00:30 on_time",
    ]);
    expect(ran).toHaveLength(3);
  });

  test("a tick exactly as old as the grace is on time, and one a millisecond older is late", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", cron: "0 13 * * *", grace: "20s" });
    await holdfast.schedules.upsert("t", { job: "study", cron: "0 13 * * *", grace: "19s" });
    await world.clock.advance(HOUR + 20 * SECOND);
    await holdfast.schedules.pause("s");
    await holdfast.schedules.pause("t");
    expect(await ledger(world)).toEqual(["13:00 on_time"]);
    expect(await ledger(world, "t")).toEqual(["13:00 late"]);
  });

  test("catch-up runs execute in sequence, before the tick on time, under every overlap policy", async ({
    world,
  }) => {
    let atOnce = 0;
    let mostAtOnce = 0;
    const member = student(world, {
      run: async () => {
        atOnce += 1;
        mostAtOnce = Math.max(mostAtOnce, atOnce);
        await member.clock.sleep(3_000);
        atOnce -= 1;
      },
    });
    const { holdfast, ran } = member;
    const rules = { job: "study", cron: "* * * * *", overlap: "queue", missed: "all" } as const;
    await holdfast.schedules.upsert("s", rules);
    await world.clock.advance(3 * MINUTE + 31 * SECOND);
    await holdfast.start();
    await world.clock.advance(40 * SECOND);
    expect(await ledger(world)).toEqual([
      "12:01 catch_up",
      "12:02 catch_up",
      "12:03 catch_up",
      "12:04 on_time",
    ]);
    expect(ran).toEqual(["12:01", "12:02", "12:03", "12:04"].map((time) => `scheduled ${time}`));
    expect(mostAtOnce).toBe(1);
    const runs = await runRecords(world);
    for (const [index, run] of runs.slice(1, 3).entries())
      expect(run.startedAt).toBeGreaterThanOrEqual(runs[index]?.finishedAt as number);
  });

  test("one that is on time leaves nothing for `latest` to make up for", async ({ world }) => {
    await afterAnHour(world, "latest", HOUR + 10 * SECOND);
    expect(await ledger(world)).toEqual(["12:10..12:50 nobody ×5", "13:00 on_time"]);
  });

  test("a missed stretch names the last poll and is logged in one line", async ({ world }) => {
    const early = student(world);
    await early.holdfast.start();
    await world.clock.advance(5 * SECOND);
    await early.holdfast.stop();
    const member = await afterAnHour(world, "skip");
    const [stretch] = await tickRecords(world);
    const lastPolledAt = stretch?.evidence?.lastPolledAt as number;
    expect(Math.abs(lastPolledAt - Date.UTC(2026, 0, 15, 12, 0, 5))).toBeLessThan(2_000);
    expect(heard(member, "tick.missed")).toMatchObject([
      { schedule: "s", reason: "nobody", count: 6, lastTick: "2026-01-15T13:00:00.000Z" },
    ]);
  });
}

/** Those of them that ask something of the database too. */
export function scheduleAbsenceSuite(test: WorldTest): void {
  test("instances that come back together fire once, and an outage makes no schedule stuck", async ({
    world,
  }) => {
    const members = [1, 2, 3].map(() => student(world));
    await members[0]?.holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * *" });
    for (const { holdfast } of members) await holdfast.start();
    for (const { clock } of members) clock.pause();
    await world.clock.advance(HOUR + 5 * MINUTE);
    for (const { clock } of members) clock.resume();
    await world.clock.advance(20 * SECOND);
    expect(await ledger(world)).toEqual(["12:10..12:50 nobody ×5", "13:00 late"]);
    expect(await runLines(world)).toEqual(["scheduled 13:00 completed"]);
    expect(members.flatMap((member) => heard(member, "schedule.stuck"))).toEqual([]);
  });

  test("a poll of another instance a moment before does not make an absence look like a stuck schedule", async ({
    world,
  }) => {
    const member = student(world);
    await member.holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * *" });
    await member.holdfast.start();
    await world.clock.advance(5 * SECOND);
    member.clock.pause();
    await world.clock.advance(HOUR + 5 * MINUTE);
    // Its scheduler is on, it polls for the first time, and what is due it has not looked at yet.
    const observer = await world.store();
    const holder = await observer.instances.announce({
      instanceId: "observer",
      app: null,
      release: null,
      jobs: [],
      schedules: [],
      isScheduler: true,
      pollMs: SECOND,
    });
    await observer.work.poll({ holder, jobs: [], queues: null, isScheduler: true });
    await world.clock.advance(100);
    member.clock.resume();
    await world.clock.advance(20 * SECOND);
    expect(await ledger(world)).toEqual(["12:10..12:50 nobody ×5", "13:00 late"]);
    expect(heard(member, "schedule.stuck")).toEqual([]);
  });

  test("an instance that outlives an outage of the database goes on by the policy", async ({
    world,
  }) => {
    const member = student(world);
    await member.holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * *" });
    await member.holdfast.start();
    member.faults.goDown();
    await world.clock.advance(25 * MINUTE);
    member.faults.comeUp();
    await world.clock.advance(20 * SECOND);
    expect(await ledger(world)).toEqual(["12:10 nobody", "12:20 late"]);
    expect(heard(member, "schedule.stuck")).toEqual([]);
  });

  test("a minutely schedule is back in cadence two polls after 200 days without an instance", async ({
    world,
  }) => {
    const { holdfast, faults, ran } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await world.clock.advance(200 * DAY + 45 * SECOND);
    faults.clear();
    await holdfast.start();
    await world.clock.advance(2_400);
    const ticks = await tickRecords(world);
    expect(ticks.map(({ reason }) => reason)).toEqual(["nobody", "late"]);
    expect(ticks.reduce((sum, { count }) => sum + count, 0)).toBe(288_000);
    expect(ran).toHaveLength(1);
    // The work is bounded: what was written, and how often the database was asked.
    const written = faults.of("schedules.write").flatMap(({ params }) => params.changes);
    expect(written.flatMap(({ ticks: rows }) => rows)).toHaveLength(2);
    expect(written.flatMap(({ runs }) => runs)).toHaveLength(1);
    expect(faults.of("schedules.write").length).toBeLessThanOrEqual(2);
    expect(faults.of("schedules.due").length).toBeLessThanOrEqual(3);
    const next = (await holdfast.schedules.get("s"))?.nextAt as Date;
    expect(next.getTime() - world.now()).toBeLessThanOrEqual(MINUTE);
    await world.clock.advance(MINUTE);
    expect((await tickRecords(world)).at(-1)).toMatchObject({ reason: "on_time" });
  });

  test("200 days of every second, all to be caught up, are in the ledger within a few passes", async ({
    world,
  }) => {
    const { holdfast, faults } = student(world);
    const missed = { run: "all", limit: 5 } as const;
    await holdfast.schedules.upsert("s", { job: "study", every: "1s", missed });
    await world.clock.advance(200 * DAY);
    await holdfast.start({ worker: false });
    await world.clock.advance(2_400);
    const ticks = await tickRecords(world);
    const count = ticks.reduce((sum, each) => sum + each.count, 0);
    expect(count).toBeGreaterThanOrEqual(200 * 86_400);
    expect(ticks.filter(({ reason }) => reason === "catch_up")).toHaveLength(5);
    expect(faults.of("schedules.write").length).toBeLessThanOrEqual(6);
  });
}
