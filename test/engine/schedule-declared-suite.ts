// Schedules declared in code: which definition wins during a deploy, which program owns a schedule, and what happens to
// one that no instance declares any more.

import { expect } from "vitest";
import type { HoldfastOptions } from "../../src/instance/config.js";
import type { ScheduleOptions } from "../../src/schedules/rules/schedule.js";
import {
  at,
  HOUR,
  ledger,
  MINUTE,
  NOON,
  runRecords,
  SECOND,
  stateOf,
  student,
} from "./schedule-fixtures.js";
import { heard, type World, type WorldTest } from "./world.js";

const SHOP = { app: "shop", poll: "10s" } as const;
const HOURLY = { cron: "0 * * * *" } as const;
const DAILY = { cron: "0 3 * * *" } as const;

/** A process of an app with these declared schedules, not started. */
function process(
  world: World,
  declared: Readonly<Record<string, ScheduleOptions>>,
  options: HoldfastOptions = SHOP,
  program = "main.js",
) {
  const member = student(world, { options, program });
  for (const [name, rules] of Object.entries(declared))
    member.holdfast.schedule(name, member.study, rules);
  return member;
}

export function scheduleDeclaredSuite(test: WorldTest): void {
  test("a start stores the declarations, and an equal declaration changes nothing at all", async ({
    world,
  }) => {
    const first = process(world, { s: { ...HOURLY, input: { a: 1 } }, once: { at: at(MINUTE) } });
    await first.holdfast.start();
    expect(await first.holdfast.schedules.get("s")).toMatchObject({
      source: "code",
      app: "shop",
      version: 1,
      input: { a: 1 },
    });
    expect(heard(first, "schedule.declared")).toHaveLength(2);
    await world.clock.advance(2 * MINUTE);
    await world.clock.until(first.holdfast.schedules.pause("s", "by an operator", { by: "ada" }));
    await first.holdfast.stop();
    const before = (await stateOf(world)).revision;
    // The time of `once` has passed meanwhile; that is no reason to refuse it.
    const second = process(world, { s: { ...HOURLY, input: { a: 1 } }, once: { at: at(MINUTE) } });
    await second.holdfast.start();
    await world.clock.advance(MINUTE);
    expect((await stateOf(world)).revision).toBe(before);
    expect(await second.holdfast.schedules.get("s")).toMatchObject({
      status: "paused",
      version: 1,
    });
    expect(await second.holdfast.schedules.get("once")).toMatchObject({ status: "ended" });
    expect(heard(second, "schedule.declared")).toEqual([]);
    expect(await ledger(world, "once")).toEqual(["12:01 on_time"]);
  });

  test("during a rolling deploy the older definition does not come back, also after a crash", async ({
    world,
  }) => {
    const old = process(world, { s: HOURLY });
    await old.holdfast.start();
    await world.clock.advance(SECOND);
    const young = process(world, { s: DAILY });
    await young.holdfast.start();
    expect(await young.holdfast.schedules.get("s")).toMatchObject({
      version: 2,
      cron: "0 3 * * *",
    });
    old.clock.pause();
    for (let crash = 0; crash < 3; crash += 1) {
      await world.clock.advance(SECOND);
      const restarted = process(world, { s: HOURLY });
      await restarted.holdfast.start();
      await world.clock.advance(2 * MINUTE);
      expect(heard(restarted, "schedule.refused")).toMatchObject([{ schedule: "s" }]);
      await world.clock.until(restarted.holdfast.stop());
    }
    const versions = await young.holdfast.schedules.versions("s");
    expect(versions.map(({ cron }) => cron)).toEqual(["0 * * * *", "0 3 * * *"]);
    expect((await young.holdfast.schedules.get("s"))?.status).toBe("active");
  });

  test("`plan` shows the changes of a rollback, `apply` makes them, and they stay", async ({
    world,
  }) => {
    const old = process(world, { s: HOURLY });
    await old.holdfast.start();
    await world.clock.advance(SECOND);
    const young = process(world, { s: DAILY });
    await young.holdfast.start();
    await world.clock.advance(SECOND);
    const [planned] = await old.holdfast.schedules.plan();
    expect(planned).toMatchObject({ schedule: "s", change: "older" });
    expect(planned?.ticksBefore[0]).toEqual(new Date("2026-01-16T03:00:00Z"));
    expect(planned?.ticksAfter[0]).toEqual(at(HOUR));
    expect((await stateOf(world)).version).toBe(2);
    await world.clock.until(old.holdfast.schedules.apply());
    expect(await old.holdfast.schedules.get("s")).toMatchObject({ version: 3, cron: "0 * * * *" });
    await world.clock.advance(SECOND);
    const restarted = process(world, { s: DAILY });
    await restarted.holdfast.start();
    expect(heard(restarted, "schedule.refused")).toHaveLength(1);
    expect((await stateOf(world)).version).toBe(3);
  });

  test("releases decide where both compare, whichever was seen first", async ({ world }) => {
    const at2 = { ...SHOP, release: "1.10.0" };
    await process(world, { s: DAILY }, at2).holdfast.start();
    const older = process(world, { s: HOURLY }, { ...SHOP, release: "1.9.3" });
    await older.holdfast.start();
    expect(heard(older, "schedule.refused")).toHaveLength(1);
    expect(await older.holdfast.schedules.get("s")).toMatchObject({
      version: 1,
      release: "1.10.0",
    });
    await process(world, { s: HOURLY }, { ...SHOP, release: "1.11.0-rc.1" }).holdfast.start();
    expect(await older.holdfast.schedules.get("s")).toMatchObject({
      version: 2,
      cron: "0 * * * *",
    });
    await process(
      world,
      { s: { cron: "0 4 * * *" } },
      { ...SHOP, release: "1.11.0" },
    ).holdfast.start();
    expect((await stateOf(world)).version).toBe(3);
  });

  test("another app on the same database is left alone, and so is a schedule that a call made", async ({
    world,
  }) => {
    const shop = process(world, { s: HOURLY });
    await shop.holdfast.start();
    await shop.holdfast.schedules.upsert("called", { job: "study", ...HOURLY });
    const bank = process(world, { s: DAILY, called: DAILY, own: DAILY }, { ...SHOP, app: "bank" });
    await bank.holdfast.start();
    await world.clock.until(shop.holdfast.stop());
    await world.clock.advance(10 * MINUTE);
    expect(await bank.holdfast.schedules.get("s")).toMatchObject({
      app: "shop",
      version: 1,
      status: "active",
      cron: "0 * * * *",
    });
    expect(await bank.holdfast.schedules.get("called")).toMatchObject({
      source: "api",
      version: 1,
    });
    expect(heard(bank, "schedule.refused").map(({ schedule }) => schedule)).toEqual([
      "s",
      "called",
    ]);
    expect(heard(bank, "schedule.vanished")).toEqual([]);
    expect((await bank.holdfast.schedules.plan()).map(({ change }) => change)).toEqual([
      "foreign",
      "foreign",
      "unchanged",
    ]);
  });

  test("a process with the scheduler off stores nothing, but its declarations have not vanished", async ({
    world,
  }) => {
    const worker = process(world, { s: HOURLY });
    await worker.holdfast.start({ scheduler: false });
    expect(await worker.holdfast.schedules.get("s")).toBeNull();
    const scheduler = process(world, { s: HOURLY });
    await scheduler.holdfast.start();
    await world.clock.until(scheduler.holdfast.stop());
    const other = process(world, { t: HOURLY });
    await other.holdfast.start();
    await world.clock.advance(5 * MINUTE);
    expect(await other.holdfast.schedules.get("s")).toMatchObject({ status: "active" });
    expect(heard(other, "schedule.vanished")).toEqual([]);
  });

  test("an edit by a call stays until the definition in code changes", async ({ world }) => {
    const first = process(world, { s: HOURLY });
    await first.holdfast.start();
    await first.holdfast.schedules.upsert("s", { job: "study", cron: "30 * * * *" });
    await world.clock.until(first.holdfast.stop());
    const second = process(world, { s: HOURLY });
    await second.holdfast.start();
    expect(await second.holdfast.schedules.get("s")).toMatchObject({
      cron: "30 * * * *",
      source: "code",
      version: 2,
    });
    await world.clock.advance(SECOND);
    const third = process(world, { s: DAILY });
    await third.holdfast.start();
    expect(await third.holdfast.schedules.get("s")).toMatchObject({
      cron: "0 3 * * *",
      version: 3,
    });
  });

  test("a vanished schedule is reported and paused once no instance announces it, and resumed when declared again", async ({
    world,
  }) => {
    const old = process(world, { s: HOURLY, t: HOURLY });
    await old.holdfast.start();
    const young = process(world, { t: HOURLY });
    await young.holdfast.start();
    await world.clock.advance(3 * MINUTE);
    // The old process still declares it.
    expect((await young.holdfast.schedules.get("s"))?.status).toBe("active");
    await world.clock.until(old.holdfast.stop());
    await world.clock.advance(2 * MINUTE);
    expect(await young.holdfast.schedules.get("s")).toMatchObject({
      status: "paused",
      pausedBy: "holdfast",
    });
    expect(heard(young, "schedule.vanished")).toMatchObject([
      {
        ...{ schedule: "s", isPaused: true, app: "shop" },
        what: expect.stringMatching(
          /^it was paused, and resumes when .* declares it again\. .*: holdfast schedules delete s,/,
        ),
      },
    ]);
    expect((await young.holdfast.schedules.get("t"))?.status).toBe("active");
    await process(world, { s: HOURLY, t: HOURLY }).holdfast.start();
    expect(await young.holdfast.schedules.get("s")).toMatchObject({ status: "active", version: 1 });
  });

  test("two live programs of one app that declare different schedules never pause each other's", async ({
    world,
  }) => {
    const web = process(world, { s: HOURLY }, { ...SHOP, release: "1.5.0" });
    const worker = process(world, { t: HOURLY }, { ...SHOP, release: "1.4.0" });
    await web.holdfast.start();
    await worker.holdfast.start();
    await world.clock.advance(10 * MINUTE);
    for (const name of ["s", "t"])
      expect(await web.holdfast.schedules.get(name)).toMatchObject({ status: "active" });
    expect([web, worker].flatMap((each) => heard(each, "schedule.vanished"))).toEqual([]);
  });

  test("a program that is stopped keeps its schedules while another program of the app runs; only its own code drops them", async ({
    world,
  }) => {
    const web = process(world, { s: HOURLY, kept: HOURLY }, SHOP, "dist/web.js");
    const worker = process(world, { t: HOURLY }, SHOP, "dist/worker.js");
    await web.holdfast.start();
    await worker.holdfast.start();
    await world.clock.until(web.holdfast.stop());
    await world.clock.advance(10 * MINUTE);
    const restarted = process(world, { t: HOURLY }, SHOP, "dist/worker.js");
    await restarted.holdfast.start();
    const status = async (name: string) => (await worker.holdfast.schedules.get(name))?.status;
    expect(await status("s")).toBe("active");
    for (const member of [worker, restarted]) {
      expect(heard(member, "schedule.vanished")).toMatchObject(
        ["kept", "s"].map((schedule) => ({
          ...{ schedule, isPaused: false },
          what: expect.stringMatching(/another program \(dist\/web\.js\) .*schedules pause/),
        })),
      );
    }
    const next = process(world, { kept: HOURLY }, SHOP, "dist/web.js");
    await next.holdfast.start();
    expect(await status("s")).toBe("paused");
    expect(heard(next, "schedule.vanished")).toMatchObject([{ schedule: "s", isPaused: true }]);
    expect(await status("kept")).toBe("active");
  });

  test("`apply` also pauses what another program declared last, unless a live instance declares it", async ({
    world,
  }) => {
    const web = process(world, { s: HOURLY }, SHOP, "dist/web.js");
    await web.holdfast.start();
    const worker = process(world, { t: HOURLY }, SHOP, "dist/worker.js");
    await world.clock.until(worker.holdfast.schedules.apply());
    expect(await worker.holdfast.schedules.get("s")).toMatchObject({ status: "active" });
    await world.clock.until(web.holdfast.stop());
    await world.clock.until(worker.holdfast.schedules.apply());
    expect(await worker.holdfast.schedules.get("s")).toMatchObject({ status: "paused" });
  });

  test("one that vanished is resumed also when it comes back with another definition", async ({
    world,
  }) => {
    const old = process(world, { s: HOURLY });
    await old.holdfast.start();
    await world.clock.until(old.holdfast.stop());
    const without = process(world, {});
    await without.holdfast.start();
    expect((await without.holdfast.schedules.get("s"))?.status).toBe("paused");
    await world.clock.advance(SECOND);
    await process(world, { s: DAILY }).holdfast.start();
    expect(await without.holdfast.schedules.get("s")).toMatchObject({
      status: "active",
      cron: "0 3 * * *",
    });
  });

  test("an older release that comes back for a moment does not revive a schedule that the newer one dropped", async ({
    world,
  }) => {
    const released = (release: string, schedules: Parameters<typeof process>[1]) =>
      process(world, schedules, { app: "bank", poll: "10s", release });
    const old = released("1.4.0", { s: { cron: "* * * * *" } });
    await old.holdfast.start();
    const young = released("1.5.0", {});
    await young.holdfast.start();
    await world.clock.until(old.holdfast.stop());
    await world.clock.advance(2 * MINUTE);
    const status = async () => (await young.holdfast.schedules.get("s"))?.status;
    expect(await status()).toBe("paused");
    const fired = (await runRecords(world, "s")).length;
    const back = released("1.4.0", { s: { cron: "* * * * *" } });
    await back.holdfast.start();
    expect(heard(back, "schedule.refused")).toMatchObject([{ schedule: "s" }]);
    await world.clock.advance(3 * MINUTE);
    expect(await status()).toBe("paused");
    expect(await runRecords(world, "s")).toHaveLength(fired);
    // A rollback: nobody of the newer release is left, so the older one is in force.
    await world.clock.until(young.holdfast.stop());
    await world.clock.advance(3 * MINUTE);
    expect(await back.holdfast.schedules.get("s")).toMatchObject({ status: "active" });
    expect((await runRecords(world, "s")).length).toBeGreaterThan(fired);
  });

  test("if releases do not compare, a schedule that was revived for a moment is paused within two minutes of it", async ({
    world,
  }) => {
    const young = process(world, {});
    const old = process(world, { s: HOURLY });
    await old.holdfast.start();
    await young.holdfast.start();
    await world.clock.until(old.holdfast.stop());
    await world.clock.advance(2 * MINUTE);
    const status = async () => (await young.holdfast.schedules.get("s"))?.status;
    expect(await status()).toBe("paused");
    const back = process(world, { s: HOURLY });
    await back.holdfast.start();
    expect(await status()).toBe("active");
    // As if it were killed: it is no longer seen, and never said goodbye.
    back.clock.pause();
    await world.clock.advance(2 * MINUTE + 20 * SECOND);
    expect(await status()).toBe("paused");
    back.clock.resume();
  });

  test("without a name of the app what vanished is reported alone", async ({ world }) => {
    const nameless = { poll: "10s" };
    const old = process(world, { s: HOURLY }, nameless);
    await old.holdfast.start();
    await world.clock.until(old.holdfast.stop());
    const young = process(world, {}, nameless);
    await young.holdfast.start();
    await world.clock.advance(5 * MINUTE);
    expect((await young.holdfast.schedules.get("s"))?.status).toBe("active");
    expect(heard(young, "schedule.vanished")).toMatchObject([
      {
        schedule: "s",
        isPaused: false,
        app: null,
        what: expect.stringMatching(/^it keeps firing/),
      },
    ]);
  });

  test("a schedule that was declared without an app name belongs to the first app that declares it", async ({
    world,
  }) => {
    const nameless = process(world, { s: HOURLY, t: HOURLY }, { poll: "10s" });
    await nameless.holdfast.start();
    await world.clock.until(nameless.holdfast.stop());
    const shop = process(world, { s: HOURLY });
    await shop.holdfast.start();
    expect(heard(shop, "schedule.refused")).toEqual([]);
    expect((await shop.holdfast.schedules.get("s"))?.app).toBe("shop");
    expect(await shop.holdfast.schedules.get("t")).toMatchObject({ app: null, status: "active" });
  });

  test("missed: latest without within is warned of once for each creation or change, not at every start", async ({
    world,
  }) => {
    const warned = (member: Parameters<typeof heard>[0]) =>
      heard(member, "schedule.warned").map(({ schedule }) => schedule);
    const declared = {
      daily: DAILY,
      bounded: { ...DAILY, missed: { within: "2h" } },
      skips: { ...DAILY, missed: "skip" },
      often: { cron: "*/10 * * * *" },
      weekly: { cron: "0 9 * * 1" },
    } as const;
    const first = process(world, declared);
    await first.holdfast.start();
    expect(warned(first)).toEqual(["daily"]);
    expect(heard(first, "schedule.warned")[0]?.warning).toMatch(
      /up to 1 d late \(missed: "latest"\)\. .* missed: \{ run: "latest", within: "1h" \}/,
    );
    await world.clock.until(first.holdfast.stop());
    const second = process(world, { ...declared, bounded: { cron: "0 5 * * *" } });
    await second.holdfast.start();
    expect(warned(second)).toEqual(["bounded"]);
    const called = { job: "study", cron: "0 9 * * 1-5" };
    const { warnings } = await second.holdfast.schedules.upsert("called", called);
    expect(warnings).toEqual([expect.stringMatching(/up to 3 d late/)]);
    // The caller gets it in the result.
    expect(warned(second)).toEqual(["bounded"]);
  });

  test("a schedule declared after the start is there at once", async ({ world }) => {
    const { holdfast, study, ran } = student(world);
    await holdfast.start();
    await world.clock.rest();
    holdfast.schedule("late", study, { every: "5s" });
    await world.clock.rest();
    expect((await stateOf(world, "late")).nextAt).toBe(NOON + 5_000);
    await world.clock.advance(6 * SECOND);
    expect(ran).toEqual(["scheduled 12:00:05"]);
  });

  test("a start that fails while it reconciles is tried again by the next one", async ({
    world,
  }) => {
    const { holdfast, faults } = process(world, { s: HOURLY });
    faults.fail("schedules.create", "before");
    await expect(holdfast.start()).rejects.toThrow();
    await holdfast.start();
    expect(await holdfast.schedules.get("s")).toMatchObject({ version: 1, status: "active" });
  });

  test("a schedule that was made while its answer was lost is found by the next look", async ({
    world,
  }) => {
    const { holdfast, faults } = process(world, { s: HOURLY });
    faults.fail("schedules.create", "after");
    await world.clock.until(holdfast.start());
    expect(await holdfast.schedules.get("s")).toMatchObject({ version: 1, status: "active" });
  });

  test("of several declarations that are wrong all are named, and none is stored", async ({
    world,
  }) => {
    const past = { at: "2020-01-01T00:00:00Z" };
    const { holdfast } = process(world, {
      a: HOURLY,
      b: past,
      c: { cron: "0 * * * *", calendars: ["no-such"] },
    });
    const refused = await holdfast.start().catch((error: Error) => error.message);
    expect(refused).toContain('schedule("b").at');
    expect(refused).toContain('schedule("c").calendars');
    expect((await holdfast.schedules.list()).schedules).toEqual([]);
  });
}
