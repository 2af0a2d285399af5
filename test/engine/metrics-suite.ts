// Tests the counts that an instance keeps of itself, on a clock that the test moves.

import { expect } from "vitest";
import { samplesOf } from "../support/prometheus.js";
import { aborted, Door, type Member, obedient, type World, type WorldTest } from "./world.js";

async function valuesOf(world: World, { holdfast }: Member, name: string) {
  return samplesOf(await world.clock.until(holdfast.metrics()), name);
}

export function metricsSuite(test: WorldTest): void {
  test("a run that was taken from a frozen instance counts as lost there and as reclaimed here", async ({
    world,
  }) => {
    const [frozen, healthy] = [world.member(), world.member()];
    const begun = new Door();
    frozen.holdfast.job("study", {
      lease: "10s",
      run: (_, ctx) => {
        begun.open();
        return obedient(ctx.signal);
      },
    });
    healthy.holdfast.job("study", { lease: "10s", run: () => "done" });
    await frozen.holdfast.start();
    const { id } = await frozen.holdfast.enqueue("study", null);
    await world.clock.until(begun.opened);
    await healthy.holdfast.start();
    frozen.clock.pause();
    await world.ended(id);
    frozen.clock.resume();
    await world.clock.advance(20_000);
    expect(await valuesOf(world, healthy, "holdfast_reclaims_total")).toEqual([
      { job: "study", end: "lost", value: 1 },
    ]);
    expect(await valuesOf(world, frozen, "holdfast_lease_losses_total")).toEqual([
      { job: "study", value: 1 },
    ]);
  });

  test("how late a run begins is judged by the database's clock, however wrong the machine's is", async ({
    world,
  }) => {
    const member = world.member({}, { skewMs: 3_600_000 });
    const study = member.holdfast.job("study", { run: () => undefined });
    await member.holdfast.start({ worker: { concurrency: 1 } });
    await world.clock.advance(2_000);
    await world.ended((await study.enqueue(null, { delay: "30s" })).id);
    expect(await valuesOf(world, member, "holdfast_clock_skew_seconds")).toEqual([
      { value: 3_600 },
    ]);
    const [count] = await valuesOf(world, member, "holdfast_run_delay_seconds_count");
    expect(count).toEqual({ job: "study", value: 1 });
    const [sum] = await valuesOf(world, member, "holdfast_run_delay_seconds_sum");
    expect(sum?.value).toBeLessThan(2);
  });

  test("ticks are counted by outcome and reason, with how late they fired", async ({ world }) => {
    const member = world.member();
    const door = new Door();
    const study = member.holdfast.job("study", { run: () => door.opened });
    member.holdfast.schedule("minutely", study, { every: "1m" });
    await member.holdfast.start();
    await world.clock.advance(181_000);
    door.open();
    expect(await valuesOf(world, member, "holdfast_ticks_total")).toEqual([
      { schedule: "minutely", outcome: "fired", reason: "on_time", value: 1 },
      { schedule: "minutely", outcome: "skipped", reason: "overlap", value: 2 },
    ]);
    expect(await valuesOf(world, member, "holdfast_tick_lateness_seconds_count")).toEqual([
      { schedule: "minutely", value: 1 },
    ]);
    expect(await valuesOf(world, member, "holdfast_tick_claims_total")).toEqual([
      { result: "won", value: 3 },
      { result: "lost", value: 0 },
    ]);
  });

  test("of two instances that decide the same tick one counts it as won and the other as lost", async ({
    world,
  }) => {
    const members = [world.member(), world.member()];
    for (const { holdfast } of members) {
      const study = holdfast.job("study", { run: () => undefined });
      holdfast.schedule("minutely", study, { every: "1m" });
      await holdfast.start();
    }
    await world.clock.advance(59_000);
    // Both have read that it is due before either writes.
    for (const { faults } of members) faults.holdUp("schedules.write");
    await world.clock.advance(2_500);
    for (const { faults } of members) faults.deliver("schedules.write");
    await world.clock.advance(1_000);
    const told = await Promise.all(
      members.map((member) => valuesOf(world, member, "holdfast_tick_claims_total")),
    );
    const sum = (result: string) =>
      told
        .flat()
        .filter((each) => each.result === result)
        .reduce((all, { value }) => all + Number(value), 0);
    expect({ won: sum("won"), lost: sum("lost") }).toEqual({ won: 1, lost: 1 });
    expect(
      members.flatMap(({ said }) => said).filter(({ event }) => event === "tick.lost"),
    ).toEqual([{ event: "tick.lost", schedule: "minutely" }]);
  });

  test("without a database only its figures are missing", async ({ world }) => {
    const member = world.member();
    const study = member.holdfast.job("study", { run: () => undefined });
    await member.holdfast.start();
    await world.ended((await study.enqueue(null)).id);
    member.faults.goDown();
    expect(await valuesOf(world, member, "holdfast_database_up")).toEqual([{ value: 0 }]);
    expect(await valuesOf(world, member, "holdfast_queue_depth")).toEqual([]);
    expect(await valuesOf(world, member, "holdfast_runs_total")).toEqual([
      { job: "study", schedule: "", outcome: "completed", value: 1 },
    ]);
    member.faults.comeUp();
    expect(await valuesOf(world, member, "holdfast_database_up")).toEqual([{ value: 1 }]);
  });

  test("a database that never answers is not waited for", async ({ world }) => {
    const member = world.member({}, { free: ["statistics.figures"] });
    await member.holdfast.start();
    member.faults.swallow("statistics.figures");
    expect(await valuesOf(world, member, "holdfast_database_up")).toEqual([{ value: 0 }]);
  });

  test("a hundred readings at once ask the database once, and again after five seconds", async ({
    world,
  }) => {
    const member = world.member();
    await member.holdfast.start();
    const read = () => Promise.all(Array.from({ length: 100 }, () => member.holdfast.metrics()));
    await world.clock.until(read());
    await world.clock.until(read());
    expect(member.faults.of("statistics.figures")).toHaveLength(1);
    expect(member.faults.of("statistics.summary")).toHaveLength(1);
    await world.clock.advance(5_001);
    await world.clock.until(read());
    expect(member.faults.of("statistics.figures")).toHaveLength(2);
  });

  test("attempts that did not end their run, and items that failed, are counted", async ({
    world,
  }) => {
    const member = world.member();
    const study = member.holdfast.job("study", {
      retry: { attempts: 2, delay: "1s" },
      run: async (_, ctx) => {
        await ctx.item("eu", () => Promise.reject(new Error("closed")), { onError: "record" });
        if (ctx.attempt === 1) throw new Error("again");
      },
    });
    await member.holdfast.start();
    await world.ended((await study.enqueue(null)).id);
    expect(await valuesOf(world, member, "holdfast_attempts_total")).toEqual([
      { job: "study", end: "failed", value: 1 },
    ]);
    expect(await valuesOf(world, member, "holdfast_items_failed_total")).toEqual([
      { job: "study", value: 2 },
    ]);
  });

  test("slots in use are counted while runs are executed", async ({ world }) => {
    const member = world.member();
    const door = new Door();
    const study = member.holdfast.job("study", {
      run: (_, ctx) => Promise.race([door.opened, aborted(ctx.signal)]),
    });
    await member.holdfast.start({ worker: { concurrency: 7 } });
    const { id } = await study.enqueue(null);
    await world.reached(id, ({ status }) => status === "running");
    await world.clock.rest();
    expect(await valuesOf(world, member, "holdfast_worker_runs")).toEqual([{ value: 1 }]);
    expect(await valuesOf(world, member, "holdfast_worker_runs_max")).toEqual([{ value: 7 }]);
    door.open();
    await world.ended(id);
    expect(await valuesOf(world, member, "holdfast_worker_runs")).toEqual([{ value: 0 }]);
  });
}
