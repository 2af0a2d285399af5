// Each alert is opened when its condition begins, once, and resolved by itself when it ends; an
// instance with neither scheduler nor worker is enough to notice.

import { expect } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { openKinds, watcher } from "./alert-fixtures.js";
import { at, HOUR, MINUTE, NOON, SECOND, student } from "./schedule-fixtures.js";
import { Door, heard, type WorldTest } from "./world.js";

const FAST = { poll: "10s" } as const;
const QUIET = { ...FAST, alerts: false } as const;
const fails = () => {
  throw new Error("the market is closed");
};

export function alertSuite(test: WorldTest): void {
  test("silent: with every scheduler dead, an instance that only serves HTTP reports the missing tick", async ({
    world,
  }) => {
    const scheduler = student(world, { options: QUIET });
    await scheduler.holdfast.start();
    await scheduler.holdfast.schedules.upsert("s", { job: "study", cron: "*/10 * * * *" });
    const page = await watcher(world);
    await world.clock.advance(11 * MINUTE);
    expect(page.lines()).toEqual([]);
    scheduler.clock.pause();
    await world.clock.advance(13 * MINUTE);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened silent s"]);
    const [alert] = page.notices;
    expect(alert).toMatchObject({ severity: "critical", subject: { type: "schedule", name: "s" } });
    expect(alert?.message).toMatch(
      /tick of 2026-01-15T12:20:00\.000Z is not recorded 5 min.* after its time; an instance with the scheduler on last polled 1\d min/,
    );
    expect(heard(page, "alert.opened")).toHaveLength(1);
    scheduler.clock.resume();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened silent s", "resolved silent s"]);
    expect(await openKinds(page)).toEqual([]);
  });

  test("silent: a pass of an outside cron evaluates it too, after it has fired due ticks", async ({
    world,
  }) => {
    const told: string[] = [];
    const cron = student(world, {
      options: {
        ...FAST,
        alerts: { to: [({ kind, subject }) => void told.push(`${kind} ${subject.name}`)] },
      },
    });
    await cron.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await world.execute(
      "update {schedule} set broken_at = 1, broken_error = 'no such zone', next_at = null",
    );
    await world.clock.advance(10 * MINUTE);
    await world.clock.until(cron.holdfast.tick());
    expect(told).toEqual(["broken s"]);
    await world.clock.until(cron.holdfast.tick());
    expect(told).toEqual(["broken s"]);
  });

  test("stuck: a schedule that was left behind alerts until it ticks in time again", async ({
    world,
  }) => {
    // It has nowhere to tell it, and looks all the same.
    const one = student(world, { options: FAST });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "*/5 * * * *" });
    const page = await watcher(world);
    // Put off again and again: the hourly look would bring it back.
    for (let half = 0; half < 24; half += 1) {
      await world.execute(`update {schedule} set next_at = ${NOON + HOUR}`);
      await world.clock.advance(MINUTE / 2);
    }
    expect(page.lines()).toEqual([]);
    await world.execute(`update {schedule} set next_at = ${NOON + 5 * MINUTE}`);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened stuck s"]);
    expect(page.notices[0]?.message).toMatch(/Was stuck .* and was reset/);
    await world.clock.advance(10 * MINUTE);
    expect(page.lines()).toEqual(["opened stuck s", "resolved stuck s"]);
  });

  test("broken: a schedule that cannot be evaluated alerts until it is mended", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await world.execute("update {schedule} set definition = 'no JSON'");
    const page = await watcher(world);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened broken s"]);
    expect(page.notices[0]?.message).toMatch(/^Has been broken since 2026-01-15T12:01/);
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened broken s", "resolved broken s"]);
  });

  test("stale: ten minutes without a heartbeat alert until an instance reclaims the run", async ({
    world,
  }) => {
    const one = world.member(QUIET);
    const job = one.holdfast.job<unknown>("study", {
      lease: "30m",
      run: () => new Door().opened,
    });
    await one.holdfast.start();
    const { id } = await job.enqueue({});
    await world.clock.advance(SECOND);
    const page = await watcher(world);
    one.clock.pause();
    await world.clock.advance(9 * MINUTE);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(2 * MINUTE + 10 * SECOND);
    expect(page.lines()).toEqual(["opened stale study"]);
    expect(page.notices[0]?.message).toContain(
      `${id} held by ${one.holdfast.instanceId}, silent for 1`,
    );
    await world.clock.advance(20 * MINUTE);
    expect(page.lines()).toContain("resolved stale study");
  });

  test("reclaimed: a run that a silent worker lost alerts for an hour, also if it has long succeeded", async ({
    world,
  }) => {
    const worker = (run: () => unknown) => {
      const member = world.member(QUIET);
      return { member, job: member.holdfast.job<unknown>("study", { lease: "30s", run }) };
    };
    const { member: silent, job } = worker(() => new Door().opened);
    await silent.holdfast.start();
    const { id } = await job.enqueue({});
    await world.clock.advance(SECOND);
    const page = await watcher(world, { alerts: { reclaimed: "1h" } });
    silent.clock.pause();
    const { member: heir } = worker(() => "done");
    await heir.holdfast.start();
    await world.clock.advance(3 * MINUTE);
    expect(await heir.holdfast.runs.get(id)).toMatchObject({ status: "completed", attempt: 2 });
    expect(page.lines()).toEqual(["opened reclaimed study"]);
    expect(page.notices[0]?.message).toMatch(
      /^1 time a run was taken from its silent holder and given another attempt: /,
    );
    expect(page.notices[0]?.message).toContain(`${id} from ${silent.holdfast.instanceId}, `);
    await world.clock.advance(55 * MINUTE);
    expect(await openKinds(page)).toEqual(["reclaimed study"]);
    await world.clock.advance(5 * MINUTE);
    expect(page.lines()).toEqual(["opened reclaimed study", "resolved reclaimed study"]);
  });

  test("reclaimed: off by default, and a schedule has a rule of its own or none", async ({
    world,
  }) => {
    const one = world.member(QUIET);
    const study = one.holdfast.job<unknown>("study", {
      ...{ lease: "30s", run: () => new Door().opened },
    });
    await one.holdfast.start();
    const { id } = await study.enqueue({});
    const upsert = (name: string, alerts: object) =>
      one.holdfast.schedules.upsert(name, { job: "study", every: "1d", alerts });
    await upsert("own", { reclaimed: "2h" });
    await upsert("none", { reclaimed: false });
    for (const name of ["own", "none"]) await one.holdfast.schedules.trigger(name);
    await world.clock.advance(SECOND);
    const quiet = await watcher(world, { alerts: { noWorker: false } });
    one.clock.pause();
    await world.clock.advance(5 * MINUTE);
    expect(quiet.lines()).toEqual(["opened reclaimed own"]);
    await quiet.holdfast.stop();
    const page = await watcher(world, { alerts: { reclaimed: "1h", noWorker: false } });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened reclaimed study"]);
    expect(page.notices[0]?.evidence).toMatchObject({ count: 1, runs: [{ id, schedule: null }] });
  });

  test("failureRate: more than a fifth failed in 24 h, without runs that were made by hand", async ({
    world,
  }) => {
    let isBad = true;
    const one = student(world, {
      options: QUIET,
      run: () => {
        if (isBad) throw new Error("no");
      },
    });
    await one.holdfast.start();
    const page = await watcher(world, { alerts: { failureRate: { atLeast: 1 } } });
    await one.holdfast.schedules.upsert("s", { job: "study", at: at(HOUR * 900).toISOString() });
    await one.holdfast.schedules.trigger("s");
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual([]);
    await one.study.enqueue({});
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate study"]);
    expect(page.notices[0]?.message).toBe("1 of 1 run failed within 1 d: 100 %, above 20 %.");
    isBad = false;
    await one.study.enqueueMany([1, 2, 3]);
    await world.clock.advance(2 * MINUTE);
    expect(await openKinds(page)).toEqual(["failureRate study"]);
    await one.study.enqueue({});
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate study", "resolved failureRate study"]);
  });

  test("failureRate: fewer than five runs say nothing, unless a rule asks for fewer", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET, run: fails });
    await one.holdfast.start();
    const page = await watcher(world);
    await one.study.enqueueMany([1, 2, 3, 4]);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual([]);
    await one.study.enqueue({});
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate study"]);
    expect(page.notices[0]?.message).toBe("5 of 5 runs failed within 1 d: 100 %, above 20 %.");
  });

  test("failureRate: a schedule with alerts: false takes its runs out of the rate of its job", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET, run: (_, input) => input === "bad" && fails() });
    await one.holdfast.start();
    const rules = { job: "study", cron: "* * * * *" };
    await one.holdfast.schedules.upsert("bad", { ...rules, input: "bad", alerts: false });
    await one.holdfast.schedules.upsert("good", { ...rules, input: "good" });
    const page = await watcher(world);
    await world.clock.advance(20 * MINUTE);
    expect(page.lines()).toEqual([]);
    await one.holdfast.schedules.upsert("bad", { ...rules, input: "bad" });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate study"]);
    await one.holdfast.schedules.upsert("bad", { ...rules, input: "bad", alerts: false });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate study", "resolved failureRate study"]);
  });

  test("failureRate: of schedules that do not count for their job, no more than the newest ticks are read", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET, run: (_, input) => input === "bad" && fails() });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("bad", {
      ...{ job: "study", cron: "* * * * *", input: "bad", alerts: false },
    });
    await world.clock.advance(20 * MINUTE);
    const seen = await (await world.store()).alerts.observeApart({
      ...{ schedules: ["bad"], overMs: HOUR, limit: 10 },
    });
    expect(seen.reduce((sum, { ticks }) => sum + ticks, 0)).toBe(10);
    expect(Math.min(...seen.map(({ oldestAt }) => oldestAt))).toBe(NOON + 10 * MINUTE);
    expect(seen.reduce((sum, { failed }) => sum + failed, 0)).toBe(10);
  });

  test("running: more than five at once, only where it is set", async ({ world }) => {
    const door = new Door();
    const one = student(world, { options: QUIET, run: () => door.opened });
    await one.holdfast.start();
    const usual = await watcher(world);
    await one.study.enqueueMany([1, 2, 3, 4, 5, 6]);
    await world.clock.advance(3 * MINUTE);
    expect(usual.lines()).toEqual([]);
    await world.clock.until(usual.holdfast.stop());
    const page = await watcher(world, { alerts: { running: { above: 5 } } });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened running runs"]);
    expect(page.notices[0]?.message).toBe("6 runs at the same time; the limit is 5.");
    door.open();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened running runs", "resolved running runs"]);
  });

  test("slow: three minutes for each item, or half an hour in all", async ({ world }) => {
    const one = world.member(QUIET);
    const doors = [new Door(), new Door()];
    const job = one.holdfast.job<unknown>("study", {
      run: async (_, ctx) => {
        for (const [index, door] of doors.entries())
          await ctx.item(`item-${index}`, () => door.opened);
      },
    });
    await one.holdfast.start();
    await job.enqueue({});
    const page = await watcher(world, { alerts: { slow: { perItem: "3m", total: "30m" } } });
    await world.clock.advance(2 * MINUTE + 30 * SECOND);
    doors[0]?.open();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(3 * MINUTE);
    expect(page.lines()).toEqual(["opened slow study"]);
    expect(page.notices[0]?.message).toMatch(
      /^1 run takes longer than expected: .*, 1 item done\.$/,
    );
    doors[1]?.open();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened slow study", "resolved slow study"]);
  });

  test("noWorker: runs of a job that no instance executes, though one that only serves declares it", async ({
    world,
  }) => {
    const page = await watcher(world, {
      prepare: ({ holdfast }) => void holdfast.job("study", { run: async () => undefined }),
    });
    await page.holdfast.enqueue("study", {});
    await world.clock.advance(4 * MINUTE + 30 * SECOND);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened noWorker study"]);
    expect(page.notices[0]?.message).toMatch(
      /^1 run in queue "default" wait for a worker, the oldest for 5 min/,
    );
    const one = student(world, { options: QUIET });
    await one.holdfast.start();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened noWorker study", "resolved noWorker study"]);
  });

  test("waiting_too_long: a run that waits for a signal for longer, but not one that sleeps", async ({
    world,
  }) => {
    const one = world.member({ ...QUIET });
    const approve = one.holdfast.job("approve", {
      run: async (_: unknown, ctx) => void (await ctx.waitFor("approved", { key: "o-7" })),
    });
    const nap = one.holdfast.job("nap", { run: (_: unknown, ctx) => ctx.sleep("9h") });
    await one.holdfast.start();
    await approve.enqueue({});
    await nap.enqueue({});
    const page = await watcher(world, { alerts: { waiting_too_long: "1h" } });
    await world.clock.advance(58 * MINUTE);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(4 * MINUTE);
    expect(page.lines()).toEqual(["opened waiting_too_long approve"]);
    expect(page.notices[0]?.message).toMatch(
      /^1 run waits for longer than expected: \S+ for 1 h.*, for the signal "approved"\.$/,
    );
    await one.holdfast.signal("approved", { key: "o-7" });
    await world.clock.advance(2 * MINUTE);
    expect(page.lines().at(-1)).toBe("resolved waiting_too_long approve");
  });

  test("noWorker: a queue that is paused waits for people, not for a worker", async ({ world }) => {
    const page = await watcher(world, {
      prepare: ({ holdfast }) => void holdfast.job("study", { run: async () => undefined }),
    });
    await page.holdfast.queues.pause("default");
    await page.holdfast.enqueue("study", {});
    await world.clock.advance(10 * MINUTE);
    expect(page.lines()).toEqual([]);
    await page.holdfast.queues.resume("default");
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened noWorker study"]);
  });

  test("consecutiveFailures: alerts after three, pauses after five with a note, and again only after another failure", async ({
    world,
  }) => {
    let isBad = true;
    const one = student(world, {
      options: QUIET,
      run: () => (isBad ? fails() : undefined),
    });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    const page = await watcher(world, {
      alerts: { failureRate: false, consecutiveFailures: { after: 3, pauseAfter: 5 } },
    });
    await world.clock.advance(2 * MINUTE + 30 * SECOND);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened consecutiveFailures s"]);
    expect(page.notices[0]?.message).toContain("the market is closed");
    expect(page.notices[0]?.message).toMatch(/^[34] runs failed in a row/);
    await world.clock.advance(3 * MINUTE);
    const paused = await one.holdfast.schedules.get("s");
    expect(paused).toMatchObject({ status: "paused", pausedBy: "alerts" });
    expect(paused?.pauseNote).toMatch(
      /^paused by its alert rule after 5 failed runs in a row: the market is closed$/,
    );
    const [alert] = (await page.holdfast.alerts.list()).alerts;
    expect(alert?.message).toMatch(/The schedule was paused\.$/);
    await one.holdfast.schedules.resume("s");
    await world.clock.advance(30 * SECOND);
    expect((await one.holdfast.schedules.get("s"))?.status).toBe("active");
    await world.clock.advance(2 * MINUTE);
    expect((await one.holdfast.schedules.get("s"))?.status).toBe("paused");
    isBad = false;
    await one.holdfast.schedules.resume("s");
    await world.clock.advance(3 * MINUTE);
    expect((await one.holdfast.schedules.get("s"))?.status).toBe("active");
    expect(page.lines().at(-1)).toBe("resolved consecutiveFailures s");
  });

  test("consecutiveFailures: where more have failed than were read, the message says at least how many", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET, run: fails });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    const alerts = { failureRate: false, consecutiveFailures: 1 } as const;
    await world.clock.advance(11 * MINUTE + SECOND);
    const few = await watcher(world, { alerts });
    await world.clock.advance(2 * MINUTE);
    expect(few.notices[0]?.message).toMatch(/^1[123] runs failed in a row, the last one/);
    await world.clock.advance(30 * MINUTE);
    const [alert] = (await few.holdfast.alerts.list()).alerts;
    expect(alert?.message).toMatch(/^At least 25 runs failed in a row, the last one/);
    expect(alert?.evidence).toMatchObject({ failures: 25, isAtLeast: true });
  });

  test("skipped: three ticks in a row that met a live run, also one that only waits for a worker", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET });
    await one.holdfast.start({ worker: false });
    const rules = { job: "study", cron: "* * * * *" };
    await one.holdfast.schedules.upsert("s", rules);
    await one.holdfast.schedules.upsert("own", { ...rules, alerts: { skipped: 6 } });
    await one.holdfast.schedules.upsert("off", { ...rules, alerts: false });
    const page = await watcher(world, { alerts: { noWorker: false } });
    await world.clock.advance(3 * MINUTE + 30 * SECOND);
    expect(page.lines()).toEqual([]);
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual(["opened skipped s"]);
    expect(page.notices[0]).toMatchObject({
      severity: "warning",
      message: expect.stringMatching(
        /^[34] ticks in a row were skipped, the last one that of 2026-01-15T12:0[45]:00\.000Z: the run of an earlier tick still waits for a worker\.$/,
      ),
    });
    await world.clock.advance(4 * MINUTE);
    expect(page.lines()).toEqual(["opened skipped s", "opened skipped own"]);
    await student(world, { options: QUIET }).holdfast.start({ scheduler: false });
    await world.clock.advance(3 * MINUTE);
    expect(page.lines().slice(2).toSorted()).toEqual([
      ...["resolved skipped own", "resolved skipped s"],
    ]);
  });

  test("clockSkew: an instance whose clock is wrong is named, until it is right or gone", async ({
    world,
  }) => {
    const wrong = await watcher(world, { skewMs: 20 * SECOND });
    await world.clock.advance(3 * MINUTE);
    const { instanceId } = wrong.holdfast;
    expect(wrong.lines()).toEqual([`opened clockSkew ${instanceId}`]);
    expect(wrong.notices[0]?.message).toBe(
      "Its clock is 20 s ahead of the database's; the limit is 5 s.",
    );
    const page = await watcher(world, { skewMs: -SECOND });
    await world.clock.until(wrong.holdfast.stop());
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual([`resolved clockSkew ${instanceId}`]);
  });

  test("clockSkew: a database whose clock went back is named with the size of the step, in health, an alert and a log line", async ({
    world,
  }) => {
    world.databaseAheadMs = HOUR;
    const one = student(world, { options: QUIET });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    await one.holdfast.schedules.upsert("m", { monitor: true, cron: "0 0 1 1 *" });
    const page = await watcher(world, { skewMs: HOUR });
    const clocks = async () =>
      (await page.holdfast.health()).figures.find(({ name }) => name === "clocks");
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toEqual([]);
    expect(await clocks()).toMatchObject({ ok: true, found: "agree" });
    world.databaseAheadMs = 0;
    await world.clock.advance(2 * MINUTE);
    expect(page.lines()).toContain("opened clockSkew clock");
    const notice = page.notices.find(({ subject }) => subject.name === "clock");
    expect(notice?.message).toMatch(
      /^The database's clock went back by 5\d min.* or more: ticks up to 2026-01-15T13:0[12]:00\.000Z are already recorded, so no schedule fires before then\.$/,
    );
    expect(await clocks()).toMatchObject({
      ok: false,
      found: expect.stringMatching(
        /^the database's clock went back by 5\d min.*; this process is 1 h ahead of the database; instance/,
      ),
    });
    const [stepped, ...more] = heard(one, "clock.stepped");
    expect(more).toEqual([]);
    expect(stepped?.steppedMs).toBeGreaterThan(HOUR - 11 * SECOND);
    expect(stepped?.steppedMs).toBeLessThanOrEqual(HOUR);
    await world.clock.advance(HOUR);
    expect(page.lines()).toContain("resolved clockSkew clock");
  });

  test("a process whose clock is off the database's says so in its log, once for each size", async ({
    world,
  }) => {
    const wrong = await watcher(world, { alerts: { clockSkew: false }, skewMs: -HOUR });
    const right = await watcher(world, { skewMs: 2 * SECOND });
    await world.clock.advance(5 * MINUTE);
    const { instanceId: instance } = wrong.holdfast;
    expect(heard(wrong, "clock.skewed")).toMatchObject([{ instance, skewMs: -HOUR }]);
    expect(heard(right, "clock.skewed")).toEqual([]);
    world.databaseAheadMs = MINUTE;
    await world.clock.advance(MINUTE);
    expect(heard(wrong, "clock.skewed").map(({ skewMs }) => skewMs)).toEqual([
      ...[-HOUR, -HOUR - MINUTE],
    ]);
  });

  test("the list of instances has the clock offset of each, for users and over HTTP", async ({
    world,
  }) => {
    const expected: Record<string, number | null> = {};
    for (const skewMs of [20 * SECOND, -3 * SECOND, 0])
      expected[(await watcher(world, { skewMs })).holdfast.instanceId] = skewMs;
    await world.clock.advance(3 * MINUTE);
    // Nothing is said of one that has not looked twice.
    const { holdfast } = await watcher(world, { skewMs: HOUR });
    expected[holdfast.instanceId] = null;
    const { instances } = await holdfast.instances.list();
    expect(Object.fromEntries(instances.map(({ id, skewMs }) => [id, skewMs]))).toEqual(expected);
    const handler = createHandler(holdfast, { openOnLoopback: true, secrets: {} });
    const answer = await handler(new Request("http://127.0.0.1:4780/api/instances"), {
      remoteAddress: "127.0.0.1",
    });
    const told = (await answer.json()) as { instances: { id: string; skewMs: number | null }[] };
    expect(Object.fromEntries(told.instances.map(({ id, skewMs }) => [id, skewMs]))).toEqual(
      expected,
    );
  });

  test("a schedule's rules stand in place of the general ones, and are edited like the rest of it", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET, run: fails });
    await one.holdfast.start();
    const rules = { job: "study", cron: "* * * * *" };
    const alerts = { consecutiveFailures: 2, silent: false, stale: "30m" } as const;
    await one.holdfast.schedules.upsert("own", { ...rules, alerts });
    await one.holdfast.schedules.upsert("other", { ...rules, alerts: false });
    expect((await one.holdfast.schedules.get("own"))?.alerts).toEqual({
      stale: "30m",
      silent: false,
      consecutiveFailures: { after: 2 },
    });
    const page = await watcher(world, { alerts: { failureRate: false } });
    await world.clock.advance(4 * MINUTE);
    expect(page.lines()).toEqual(["opened consecutiveFailures own"]);
    await one.holdfast.schedules.upsert("own", {
      ...rules,
      alerts: { consecutiveFailures: false },
    });
    await world.clock.advance(HOUR + 5 * MINUTE);
    expect(page.lines().slice(0, 2)).toEqual([
      "opened consecutiveFailures own",
      "resolved consecutiveFailures own",
    ]);
    one.clock.pause();
    await world.clock.advance(10 * MINUTE);
    expect(page.lines().slice(2)).toEqual(["opened silent own"]);
  });

  test("a schedule's own failure rate is of its own runs", async ({ world }) => {
    const one = student(world, { options: QUIET, run: (_, input) => input === "bad" && fails() });
    await one.holdfast.start();
    const rules = {
      job: "study",
      cron: "* * * * *",
      alerts: { failureRate: { above: 0.5, atLeast: 3 } },
    };
    await one.holdfast.schedules.upsert("good", { ...rules, input: "good" });
    await one.holdfast.schedules.upsert("bad", { ...rules, input: "bad" });
    const page = await watcher(world, { alerts: { failureRate: { above: 0.4, atLeast: 1 } } });
    await world.clock.advance(5 * MINUTE);
    expect(page.lines()).toEqual(["opened failureRate bad"]);
  });

  test("while everything is paused nothing is silent and no worker is missed", async ({
    world,
  }) => {
    const one = student(world, { options: QUIET });
    await one.holdfast.start();
    await one.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    const page = await watcher(world);
    await one.holdfast.pause({ note: "a move of the database" });
    await one.study.enqueue({});
    await world.clock.until(one.holdfast.stop());
    await world.clock.advance(15 * MINUTE);
    expect(page.lines()).toEqual([]);
    await page.holdfast.resume();
    await world.clock.advance(2 * MINUTE);
    expect(page.lines().toSorted()).toEqual(["opened noWorker study", "opened silent s"]);
  });

  test("ten thousand silent schedules are one alert", async ({ world }) => {
    const one = student(world, { options: QUIET });
    for (let no = 0; no < 30; no += 1)
      await one.holdfast.schedules.upsert(`s${no}`, { job: "study", cron: "* * * * *" });
    const page = await watcher(world);
    await world.clock.advance(10 * MINUTE);
    expect(page.lines()).toEqual(["opened silent many schedules"]);
    expect(page.notices[0]?.message).toMatch(
      /^30 subjects at once \(silent\): s0; s1; s2; s3; s4; and 25 more/,
    );
  });

  test("with alerts: false nothing is evaluated; an outage of the database is reported after it", async ({
    world,
  }) => {
    const off = student(world, { options: QUIET });
    await off.holdfast.start();
    await world.clock.advance(5 * MINUTE);
    expect(off.faults.calls.some(({ verb }) => verb === "alerts.takeTurn")).toBe(false);
    const page = await watcher(world);
    page.faults.fail("alerts.observeSchedules", "before", { times: 2 });
    await off.holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *" });
    off.clock.pause();
    await world.clock.advance(10 * MINUTE);
    expect(heard(page, "store.failed").map(({ what }) => what)).toEqual(["alerts", "alerts"]);
    expect(page.lines()).toEqual(["opened silent s"]);
  });
}
