// Rules that two guards keep, so that other tests do not notice when one of them is gone: what the
// database's clock decides, a cursor that never goes back, and a pause that lasts while runs still wait.

import { test as base, describe, expect } from "vitest";
import { memoryPlace } from "./places.js";
import { ledger, MINUTE, SECOND, stateOf, student } from "./schedule-fixtures.js";
import { expectEnded, World } from "./world.js";

const test = base.extend<{ world: World }>({
  world: async ({ task: _ }, use) => {
    const world = new World(await memoryPlace());
    await use(world);
    await world.end();
  },
});

describe("clock and pause on SQLite in memory", () => {
  test("a lease ends by the database's clock, however little time has passed for instances", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    one.holdfast.job("study", { lease: "30s", run: () => new Promise(() => undefined) });
    const study = other.holdfast.job("study", { lease: "30s", run: () => "taken over" });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    await world.reached(id, ({ status }) => status === "running", { withinMs: 10_000 });
    await other.holdfast.start();
    one.clock.pause();
    await world.clock.advance(5 * SECOND);
    expectEnded(await world.record(id), "running", 1);
    world.databaseAheadMs = 40 * SECOND;
    expectEnded(await world.ended(id, { withinMs: 3_000 }), "completed", 2);
  });

  test("an edit after the database's clock came back moves no cursor back, and no tick is judged again", async ({
    world,
  }) => {
    const { holdfast } = student(world, { options: { poll: "5s" } });
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await holdfast.start();
    await world.clock.advance(MINUTE + SECOND);
    world.databaseAheadMs = 10 * MINUTE;
    await world.clock.advance(10 * SECOND);
    world.databaseAheadMs = 0;
    const { cursorAt } = await stateOf(world);
    const edit = { job: "study", cron: "* * * * *", overlap: "allow" } as const;
    await world.clock.until(holdfast.schedules.upsert("s", edit));
    expect((await stateOf(world)).cursorAt).toBe(cursorAt);
    await world.clock.advance(12 * MINUTE);
    expect(await ledger(world)).toEqual([
      "12:01 on_time",
      "12:02..12:10 nobody ×9",
      "12:11 on_time",
      "12:12 on_time",
      "12:13 on_time",
    ]);
  });

  test("a paused schedule fires nothing while a run of it still waits for another", async ({
    world,
  }) => {
    const { holdfast, ran } = student(world, {
      run: () => new Promise<void>((resolve) => world.clock.timer(200 * SECOND, () => resolve())),
    });
    const rules = { job: "study", cron: "* * * * *", overlap: "queue" } as const;
    await holdfast.schedules.upsert("s", rules);
    await holdfast.start();
    await world.clock.advance(3 * MINUTE + 30 * SECOND);
    await world.clock.until(holdfast.schedules.pause("s"));
    const before = await ledger(world);
    expect(before).toEqual(["12:01 on_time", "12:02 on_time", "12:03 queue_full"]);
    await world.clock.advance(10 * MINUTE);
    expect(ran).toEqual(["scheduled 12:01", "scheduled 12:02"]);
    expect(await ledger(world)).toEqual(before);
    expect((await stateOf(world)).nextAt).toBeNull();
  });
});
