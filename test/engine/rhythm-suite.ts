// Tests the cost and the fairness of an instance: statements when idle, the buffer, and long runs beside short ones.

import { expect } from "vitest";
import { LATERS_MAX } from "../../src/runs/rules/run.js";
import { RetryLater } from "../../src/shared/errors.js";
import { expectEnded, type WorldTest } from "./world.js";

export function rhythmSuite(test: WorldTest): void {
  test("an idle instance sends one poll a second and nothing else", async ({ world }) => {
    const { holdfast, faults } = world.member({ alerts: false });
    holdfast.job("study", { run: () => "done" });
    await holdfast.start();
    await world.clock.advance(120_000);
    faults.clear();
    await world.clock.advance(600_000);
    expect(new Set(faults.calls.map(({ verb }) => verb))).toEqual(new Set(["work.poll"]));
    expect(faults.calls.length).toBeLessThanOrEqual(615);
    expect(faults.calls.length).toBeGreaterThanOrEqual(585);
    const gaps = faults.calls.slice(1).map(({ atMs }, at) => atMs - (faults.calls[at]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(799);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1_201);
  });

  test("the instance with the turn for alerts sends five statements a minute, the others one", async ({
    world,
  }) => {
    const members = [world.member(), world.member()];
    for (const { holdfast } of members) {
      holdfast.job("study", { run: () => "done" });
      await holdfast.start();
    }
    await world.clock.advance(120_000);
    for (const { faults } of members) faults.clear();
    await world.clock.advance(600_000);
    const asked = members.map(({ faults }) =>
      faults.calls.filter(({ verb }) => verb !== "work.poll"),
    );
    const verbs = new Set(asked.flat().map(({ verb }) => verb));
    const look = [
      "alerts.observeSchedules",
      "alerts.observeRest",
      "statistics.summary",
      "alerts.listOpen",
    ];
    expect(verbs).toEqual(new Set(["alerts.takeTurn", ...look]));
    expect(asked.flat().length).toBeLessThanOrEqual(60);
  });

  test("an instance with nothing but long runs sends polls and heartbeats alone", async ({
    world,
  }) => {
    const { holdfast, faults, clock } = world.member({ alerts: false });
    const study = holdfast.job("study", { run: () => clock.sleep(600_000) });
    await holdfast.start({ worker: { concurrency: 3 } });
    await study.enqueueMany(Array.from({ length: 30 }, () => ({})));
    await world.clock.advance(120_000);
    faults.clear();
    await world.clock.advance(300_000);
    expect(new Set(faults.calls.map(({ verb }) => verb))).toEqual(
      new Set(["work.poll", "leases.renew"]),
    );
    expect(faults.of("leases.renew").length).toBeLessThanOrEqual(31);
  });

  test("long runs in every place do not wear out those that wait behind them", async ({
    world,
  }) => {
    const { holdfast, faults, clock } = world.member();
    const study = holdfast.job<number>("study", {
      retry: { attempts: 2 },
      run: (ms) => clock.sleep(ms),
    });
    await holdfast.start({ worker: { concurrency: 10 } });
    // Thousands of short runs make the instance believe in short runs.
    for (const { id } of await study.enqueueMany(Array.from({ length: 500 }, () => 1)))
      await world.ended(id);
    await study.enqueueMany(Array.from({ length: 10 }, () => 1_200_000));
    const short = await study.enqueueMany(Array.from({ length: 200 }, () => 1));
    await world.clock.advance(10_000);
    faults.clear();
    await world.clock.advance(1_100_000);
    const handedBack = faults
      .of("claims.exchange")
      .flatMap(({ params }) => params.settlements).length;
    expect(handedBack).toBeLessThanOrEqual(400);
    for (const { id } of short)
      expectEnded(await world.ended(id, { withinMs: 200_000 }), "completed", 1);
  });

  test("runs that wait behind long ones in one instance are given to another", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    for (const { holdfast, clock } of [one, other])
      holdfast.job<number>("study", { run: (ms) => clock.sleep(ms) });
    await one.holdfast.start({ worker: { concurrency: 2 } });
    const study = world.member().holdfast.job<number>("study", {});
    for (const { id } of await study.enqueueMany(Array.from({ length: 300 }, () => 1)))
      await world.ended(id);
    await study.enqueueMany([3_600_000, 3_600_000, ...Array.from({ length: 100 }, () => 5)]);
    await world.clock.advance(1_500);
    await other.holdfast.start();
    const { runs } = await one.holdfast.runs.list({ limit: 100 });
    for (const { id } of runs)
      expectEnded(await world.ended(id, { withinMs: 10_000 }), "completed", 1);
  });

  test("a claim never asks for more than there is room for", async ({ world }) => {
    const { holdfast, faults, clock } = world.member();
    const study = holdfast.job("study", { run: () => clock.sleep(50) });
    await holdfast.start({ worker: { concurrency: 5 } });
    const enqueued = await study.enqueueMany(Array.from({ length: 400 }, () => ({})));
    for (const { id } of enqueued) await world.ended(id);
    for (const { params, answer } of faults.of("claims.exchange")) {
      const claimed = (answer?.claims ?? []).reduce((sum, { runs }) => sum + runs.length, 0);
      expect(claimed).toBeLessThanOrEqual(params.limit);
      // Five at once and 200 ms of work in the buffer, at 50 ms each.
      expect(params.limit).toBeLessThanOrEqual(25);
    }
  });

  test("large inputs are not gathered by the thousand, neither to be stored nor to be run", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const input = "x".repeat(200_000);
    const study = holdfast.job("study", { run: () => "done" });
    const enqueued = await Promise.all(Array.from({ length: 300 }, () => study.enqueue(input)));
    await holdfast.start();
    for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
    for (const { params } of faults.of("enqueue.runs"))
      expect(params.runs.length * input.length).toBeLessThanOrEqual(10_000_000);
    for (const { params } of faults.of("claims.exchange"))
      expect(params.limit * input.length).toBeLessThanOrEqual(40_000_000);
  });

  test("an instance that runs nothing claims nothing, whichever wake-ups it gets", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    const study = holdfast.job("study", { run: () => "done" });
    await holdfast.start({ worker: false });
    for (let count = 0; count < 20; count += 1) await study.enqueue({});
    await world.clock.advance(5_000);
    expect(faults.of("claims.exchange")).toEqual([]);
  });

  test("large results travel in statements of a bounded size", async ({ world }) => {
    const { holdfast, faults } = world.member();
    const study = holdfast.job("study", { run: () => "x".repeat(1_000_000) });
    await holdfast.start({ worker: { concurrency: 40 } });
    await world.clock.rest();
    faults.fail("claims.exchange", "before", {
      times: 1,
      fits: ({ settlements }) => settlements.length > 0,
    });
    const enqueued = await study.enqueueMany(Array.from({ length: 40 }, () => ({})));
    for (const { id } of enqueued) expectEnded(await world.ended(id), "completed", 1);
    for (const { params } of faults.of("claims.exchange")) {
      const chars = params.settlements.reduce(
        (sum, each) => sum + (each.to === "pending" ? 0 : (each.result?.length ?? 0)),
        0,
      );
      expect(chars).toBeLessThanOrEqual(10_000_000);
    }
  });

  test("a handler that puts its run off for ever is stopped after a thousand times", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    let startCount = 0;
    const study = holdfast.job("study", {
      run: () => {
        startCount += 1;
        throw new RetryLater({ delay: 0 });
      },
    });
    await holdfast.start();
    const { id } = await study.enqueue({});
    const run = await world.ended(id);
    expectEnded(run, "failed", 1);
    expect(startCount).toBe(LATERS_MAX + 1);
    expect(JSON.parse(run.error as string)).toMatchObject({ code: "RETRY_LATER" });
  });
}
