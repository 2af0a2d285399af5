// Lost replies around a tick: it is fired once, or recorded once, whichever reply is lost.

import { expect } from "vitest";
import type { Verb } from "../support/faulty-store.js";
import {
  at,
  ledger,
  MINUTE,
  NOON,
  runRecords,
  SECOND,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import { heard, type World, type WorldTest } from "./world.js";

const VERBS = ["schedules.write", "schedules.due", "work.poll"] as const satisfies readonly Verb[];

async function expectEachOnce(world: World, count: number): Promise<void> {
  const ticks = await tickRecords(world);
  const nominal = Array.from({ length: count }, (_, index) => NOON + (index + 1) * 5_000);
  expect(ticks.map(({ firstAt }) => firstAt)).toEqual(nominal);
  expect(ticks.map(({ reason }) => reason)).toEqual(nominal.map(() => "on_time"));
  const runs = await runRecords(world);
  expect(runs.map(({ nominalAt }) => nominalAt)).toEqual(nominal);
  for (const run of runs) expect(ticks.some((tick) => tick.run === run.id)).toBe(true);
}

export function scheduleFaultSuite(test: WorldTest): void {
  for (const fault of ["before", "after"] as const) {
    const what = fault === "before" ? "never arrives" : "takes effect, but whose answer is lost";
    for (const verb of VERBS) {
      test(`a ${verb} that ${what} gives every tick one run, also with two instances`, async ({
        world,
      }) => {
        const members = [student(world), student(world)];
        const rules = { job: "study", every: "5s", overlap: "allow", until: at(20_000) } as const;
        await members[0]?.holdfast.schedules.upsert("s", rules);
        for (const { holdfast } of members) await holdfast.start();
        for (let round = 0; round < 4; round += 1) {
          for (const { faults } of members) faults.fail(verb, fault, { times: 1 + (round % 2) });
          await world.clock.advance(5 * SECOND);
        }
        for (const { faults } of members) faults.comeUp();
        await world.clock.advance(10 * SECOND);
        await expectEachOnce(world, 4);
        expect(members.flatMap((member) => heard(member, "schedule.broken"))).toEqual([]);
      });
    }
  }

  test("a write that hangs is made by another instance, and its late arrival changes nothing", async ({
    world,
  }) => {
    const slow = student(world);
    const other = student(world);
    await slow.holdfast.schedules.upsert("s", { job: "study", every: "5s", overlap: "allow" });
    await slow.holdfast.start();
    slow.faults.holdUp("schedules.write");
    await world.clock.advance(6 * SECOND);
    expect(await ledger(world)).toEqual([]);
    await other.holdfast.start();
    await world.clock.advance(6 * SECOND);
    slow.faults.deliver("schedules.write");
    await world.clock.advance(5 * SECOND);
    await expectEachOnce(world, 3);
  });

  test("an instance that is frozen between its decision and its write fires nothing afterwards", async ({
    world,
  }) => {
    const frozen = student(world);
    const heir = student(world);
    await frozen.holdfast.schedules.upsert("s", { job: "study", every: "5s", overlap: "allow" });
    await frozen.holdfast.start();
    frozen.faults.keepBack("schedules.due");
    await world.clock.advance(5 * SECOND + 5);
    frozen.clock.pause();
    await heir.holdfast.start();
    await world.clock.advance(10 * SECOND);
    frozen.clock.resume();
    frozen.faults.deliver("schedules.due");
    await world.clock.advance(5 * SECOND);
    await expectEachOnce(world, 4);
  });

  test("clocks of machines that are minutes off change nothing about when ticks fire", async ({
    world,
  }) => {
    const members = [-90, 90, 300].map((seconds) => student(world, { skewMs: seconds * SECOND }));
    await members[0]?.holdfast.schedules.upsert("s", { job: "study", every: "5s" });
    for (const { holdfast } of members) await holdfast.start();
    await world.clock.advance(31 * SECOND);
    await expectEachOnce(world, 6);
    for (const { firstAt, recordedAt } of await tickRecords(world)) {
      expect(recordedAt - firstAt).toBeGreaterThanOrEqual(0);
      expect(recordedAt - firstAt).toBeLessThanOrEqual(1_200);
    }
  });

  test("a database whose clock jumps ahead and comes back fires no tick twice", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, { options: { poll: "5s" } });
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await holdfast.start();
    await world.clock.advance(MINUTE + SECOND);
    world.databaseAheadMs = 3 * MINUTE;
    await world.clock.advance(10 * SECOND);
    world.databaseAheadMs = 0;
    await world.clock.advance(5 * MINUTE);
    expect(await ledger(world)).toEqual([
      "12:01 on_time",
      "12:02..12:03 nobody ×2",
      "12:04 on_time",
      "12:05 on_time",
      "12:06 on_time",
    ]);
    expect(new Set(ran).size).toBe(ran.length);
  });
}
