// A tick meets a live run of its schedule: it is left out, waits, runs beside it, or takes its place.

import { expect } from "vitest";
import type { Overlap } from "../../src/schedules/rules/overlap.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import {
  HOUR,
  ledger,
  MINUTE,
  NOON,
  runLines,
  runOf,
  runRecords,
  SECOND,
  stateOf,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import { aborted, Door, obedient, type World, type WorldTest } from "./world.js";

/** A schedule of every ten seconds whose runs take `takesMs`, unless they are aborted. */
function busy(world: World, takesMs: number, attempts = 1) {
  const alive: { now: number; most: number } = { now: 0, most: 0 };
  const run = async ({ signal }: RunContext) => {
    alive.now += 1;
    alive.most = Math.max(alive.most, alive.now);
    try {
      await Promise.race([member.clock.sleep(takesMs), obedient(signal)]);
    } finally {
      alive.now -= 1;
    }
  };
  const member = student(world, { run, attempts });
  const upsert = (overlap: Overlap) =>
    member.holdfast.schedules.upsert("s", { job: "study", every: "10s", overlap });
  return { ...member, alive, upsert };
}

export function scheduleOverlapSuite(test: WorldTest): void {
  test("`skip` leaves out the ticks that meet a live run, and names it", async ({ world }) => {
    const { holdfast, upsert, alive } = busy(world, 25_000);
    await holdfast.start();
    await upsert("skip");
    await world.clock.advance(41 * SECOND);
    expect(await ledger(world)).toEqual([
      "12:00:10 on_time",
      "12:00:20 overlap",
      "12:00:30 overlap",
      "12:00:40 on_time",
    ]);
    const [first, second] = await tickRecords(world);
    expect(second?.evidence?.run).toBe(first?.run);
    expect(alive.most).toBe(1);
  });

  test("`queue` lets one wait, and the others are queue_full", async ({ world }) => {
    const { holdfast, upsert, alive, ran } = busy(world, 25_000);
    await holdfast.start();
    await upsert("queue");
    await world.clock.advance(62 * SECOND);
    expect(await ledger(world)).toEqual([
      "12:00:10 on_time",
      "12:00:20 on_time",
      "12:00:30 queue_full",
      "12:00:40 on_time",
      "12:00:50 queue_full",
      "12:01 queue_full",
    ]);
    expect(ran.slice(0, 3)).toEqual(
      ["12:00:10", "12:00:20", "12:00:40"].map((t) => `scheduled ${t}`),
    );
    expect(alive.most).toBe(1);
  });

  test("a run that waits begins when the one before it ends, not a poll later", async ({
    world,
  }) => {
    const { holdfast, upsert } = busy(world, 13_300);
    await holdfast.start();
    await upsert("queue");
    await world.clock.advance(30 * SECOND);
    const [first, second] = await runRecords(world);
    const waitedMs = (second?.startedAt as number) - (first?.finishedAt as number);
    expect(waitedMs).toBeLessThanOrEqual(10);
  });

  test("`allow` runs them side by side", async ({ world }) => {
    const { holdfast, upsert, alive } = busy(world, 25_000);
    await holdfast.start();
    await upsert("allow");
    await world.clock.advance(41 * SECOND);
    expect((await ledger(world)).every((line) => line.endsWith("on_time"))).toBe(true);
    expect(alive.most).toBe(3);
  });

  test("`replace` cancels the old run, and the new one starts when it has ended", async ({
    world,
  }) => {
    const { holdfast, upsert, alive } = busy(world, 25_000);
    await holdfast.start();
    await upsert("replace");
    await world.clock.advance(32 * SECOND);
    expect(await runLines(world)).toEqual([
      "scheduled 12:00:10 cancelled",
      "scheduled 12:00:20 cancelled",
      "scheduled 12:00:30 running",
    ]);
    const [, second] = await tickRecords(world);
    expect(second?.evidence?.replaced).toEqual([await runOf(world, NOON + 10_000)]);
    const [old, young] = await runRecords(world);
    expect(young?.startedAt).toBeGreaterThanOrEqual(old?.finishedAt as number);
    expect((young?.startedAt as number) - (young?.createdAt as number)).toBeLessThanOrEqual(2_500);
    expect(alive.most).toBe(1);
  });

  for (const fault of ["before", "after"] as const) {
    test(`a replacement goes through although the cancel's ${fault === "before" ? "request" : "answer"} is lost`, async ({
      world,
    }) => {
      const { holdfast, upsert, faults } = busy(world, HOUR);
      await holdfast.start();
      await upsert("replace");
      faults.fail("runs.cancel", fault, { times: 2 });
      await world.clock.advance(29 * SECOND);
      expect(await runLines(world)).toEqual([
        "scheduled 12:00:10 cancelled",
        "scheduled 12:00:20 running",
      ]);
    });
  }

  test("a replacement goes through although its instance dies between the fire and the cancel", async ({
    world,
  }) => {
    const worker = busy(world, HOUR);
    await worker.holdfast.start({ scheduler: false });
    await worker.upsert("replace");
    const first = student(world);
    await first.holdfast.start({ worker: false });
    first.faults.swallow("runs.cancel");
    // The instance that holds the runs cancels the old one, although its scheduler is off.
    await world.clock.advance(29 * SECOND);
    expect(await runLines(world)).toEqual([
      "scheduled 12:00:10 cancelled",
      "scheduled 12:00:20 running",
    ]);
  });

  test("a replacement goes through although the schedule is paused between the fire and the cancel", async ({
    world,
  }) => {
    const worker = busy(world, HOUR);
    await worker.holdfast.start({ scheduler: false });
    await worker.upsert("replace");
    const first = student(world);
    await first.holdfast.start({ worker: false });
    first.faults.swallow("runs.cancel");
    await world.clock.advance(25 * SECOND);
    await worker.holdfast.schedules.pause("s");
    const heir = student(world);
    await heir.holdfast.start({ worker: false });
    await world.clock.advance(4 * SECOND);
    expect(await runLines(world)).toEqual([
      "scheduled 12:00:10 cancelled",
      "scheduled 12:00:20 running",
    ]);
  });

  for (const overlap of ["skip", "queue", "replace"] as const) {
    test(`under \`${overlap}\` a tick that meets a manual or test run waits and is not skipped`, async ({
      world,
    }) => {
      for (const mode of ["manual", "test"] as const) {
        const door = new Door();
        const { holdfast, ran } = student(world, {
          run: (ctx) => (ctx.mode === mode ? door.opened : undefined),
        });
        await holdfast.start();
        const rules = { job: "study", every: "10s", overlap };
        const { schedule } = await holdfast.schedules.upsert(mode, rules);
        const tickAt = schedule.nextAt?.getTime() as number;
        await holdfast.schedules.trigger(mode, { mode });
        await world.clock.advance(tickAt - world.now() + SECOND);
        expect(ran).toEqual([`${mode} -`]);
        expect((await runLines(world, mode)).map((line) => line.split(" ").at(-1))).toEqual([
          "running",
          "pending",
        ]);
        door.open();
        await world.clock.advance(SECOND);
        expect(ran).toHaveLength(2);
        expect(await ledger(world, mode)).toHaveLength(1);
        await world.clock.until(holdfast.schedules.delete(mode));
        await world.clock.until(holdfast.stop());
      }
    });
  }

  test("a run that waits for its next attempt is live", async ({ world }) => {
    const { holdfast } = student(world, {
      attempts: 3,
      run: ({ attempt }) => {
        if (attempt < 3) throw new Error("once more");
      },
    });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "8s" });
    await world.clock.advance(34 * SECOND);
    expect(await ledger(world)).toEqual([
      "12:00:08 on_time",
      "12:00:16 overlap",
      "12:00:24 overlap",
      "12:00:32 on_time",
    ]);
  });

  for (const overlap of ["skip", "queue"] as const) {
    test(`under \`${overlap}\` no two runs of a schedule run at once, whatever makes or revives them`, async ({
      world,
    }) => {
      const { holdfast, alive, upsert } = busy(world, 7_000);
      const { schedules, runs } = holdfast;
      await holdfast.start();
      await upsert(overlap);
      await world.clock.advance(11 * SECOND);
      const revived = await runOf(world, NOON + 10_000);
      await world.clock.until(runs.cancel(revived));
      await world.ended(revived);
      const range = { from: new Date(NOON), to: new Date(world.now()), all: true };
      await world.clock.until(schedules.backfill("s", range));
      for (let round = 0; round < 5; round += 1) {
        const asked = [schedules.trigger("s"), schedules.trigger("s", { mode: "test" })];
        await world.clock.until(Promise.all([...asked, runs.retry(revived)]));
        await world.clock.advance(9_500);
      }
      await world.clock.advance(MINUTE);
      expect(alive.most).toBe(1);
      expect((await world.record(revived)).status).toBe("completed");
      const modes = new Set((await runRecords(world)).map(({ mode }) => mode));
      expect(modes.has("backfill") && modes.has("scheduled")).toBe(true);
    });
  }

  test("an operator's retry waits while another run of the schedule is live", async ({ world }) => {
    let isFailing = true;
    const { holdfast, clock, ran } = student(world, {
      run: async () => {
        if (isFailing) throw new Error("no");
        await clock.sleep(5_000);
      },
    });
    await holdfast.start();
    await holdfast.schedules.upsert("s", { job: "study", every: "10s" });
    await world.clock.advance(11 * SECOND);
    const failed = await runOf(world, NOON + 10_000);
    expect(await world.status(failed)).toBe("failed");
    isFailing = false;
    await world.clock.advance(10 * SECOND);
    expect(await holdfast.runs.retry(failed)).toBe("pending");
    await world.clock.advance(SECOND);
    expect(await world.status(failed)).toBe("pending");
    await world.clock.advance(4 * SECOND);
    expect(await world.status(failed)).toBe("running");
    expect(ran).toEqual(["12:00:10", "12:00:20", "12:00:10"].map((t) => `scheduled ${t}`));
    const run = await world.ended(failed);
    expect(run).toMatchObject({ status: "completed", attempt: 2 });
  });

  test("a run that ignores its signal is replaced after its grace", async ({ world }) => {
    const member = student(world, {
      run: async ({ signal }) => {
        await aborted(signal);
        await member.clock.sleep(HOUR);
      },
    });
    await member.holdfast.start();
    const rules = { job: "study", at: new Date(NOON + 5_000), overlap: "replace" } as const;
    await member.holdfast.schedules.upsert("s", rules);
    await world.clock.advance(6 * SECOND);
    await member.holdfast.schedules.trigger("s");
    await world.clock.advance(40 * SECOND);
    expect(await runLines(world)).toEqual(["scheduled 12:00:05 cancelled", "manual - running"]);
    expect((await stateOf(world)).isReplacing).toBe(false);
  });
}
