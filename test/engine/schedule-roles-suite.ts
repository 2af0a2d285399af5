// Checks that runs gated by their schedule are released, and `waitingFor` is true, whatever roles the instances of a fleet have.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import { MINUTE, runRecords, SECOND, type Student, student } from "./schedule-fixtures.js";
import type { World, WorldTest } from "./world.js";

/** `http`: remote workers claim and complete through an instance that serves the API. */
type Roles = { readonly scheduler: boolean; readonly worker: boolean; readonly http: boolean };

const ON_OFF = [true, false] as const;
const SPLITS: readonly Roles[] = ON_OFF.flatMap((scheduler) =>
  ON_OFF.flatMap((worker) => ON_OFF.map((http) => ({ scheduler, worker, http }))),
);

/** No tick of it comes while a test runs. */
const YEARLY = { job: "study", cron: "0 0 1 1 *" } as const;

/** Gated runs of all kinds, made by an operator's process that polls nothing. */
async function gatedRuns(world: World): Promise<Student> {
  const operator = student(world);
  const { schedules } = operator.holdfast;
  const every = { job: "study", cron: "*/10 * * * *", missed: "all" } as const;
  await schedules.upsert("chain", every);
  await world.clock.advance(35 * MINUTE);
  await world.clock.until(operator.holdfast.tick({ limit: 0 }));
  await schedules.pause("chain", "its ticks are not wanted");
  await schedules.upsert("queue", { ...YEARLY, overlap: "queue" });
  await schedules.upsert("replace", { ...YEARLY, overlap: "replace" });
  await schedules.upsert("backfill", { ...YEARLY, overlap: "queue" });
  for (const name of ["queue", "queue", "queue", "replace", "replace"])
    await schedules.trigger(name);
  await schedules.backfill("backfill", { from: "2023-06-01", to: "2025-06-01" });
  return operator;
}

const GATED = ["chain", "queue", "replace", "backfill"] as const;
const DONE = {
  chain: ["completed", "completed", "completed"],
  queue: ["completed", "completed", "completed"],
  // The first one may have completed before anybody could cancel it.
  replace: [expect.stringMatching(/cancelled|completed/), "completed"],
  backfill: ["completed", "completed"],
};

async function statuses(world: World) {
  const all = await Promise.all(
    GATED.map(async (name) => {
      const runs = await runRecords(world, name);
      return [name, runs.map(({ status }) => status)] as const;
    }),
  );
  return Object.fromEntries(all);
}

/** One instance with these roles, and what goes on around it for a minute. */
async function work(world: World, { scheduler, worker, http }: Roles): Promise<void> {
  const { holdfast } = student(world);
  if (scheduler || worker)
    await holdfast.start({ scheduler, worker: worker ? { concurrency: 2 } : false });
  for (let second = 0; second < 60; second += 1) {
    if (http) {
      const asked = { instance: "remote", jobs: ["study"], limit: 10 };
      const runs = await world.clock.until(holdfast.remote.claim(asked));
      for (const { id, fence } of runs)
        await world.clock.until(holdfast.remote.complete({ id, fence }, null));
    }
    await world.clock.advance(SECOND);
  }
}

export function scheduleRolesSuite(test: WorldTest): void {
  for (const roles of SPLITS) {
    const names = Object.entries(roles).map(([role, isOn]) => `${role} ${isOn ? "on" : "off"}`);
    test(`gated runs are released, and waitingFor is true: ${names.join(", ")}`, async ({
      world,
    }) => {
      const { holdfast } = await gatedRuns(world);
      const queued = (await runRecords(world, "queue")).map(({ id }) => id);
      const waits = async (id: RunId | undefined) =>
        (await holdfast.runs.get(id as RunId))?.waitingFor?.reason;
      expect(await Promise.all(queued.map(waits))).toEqual(["worker", "schedule", "schedule"]);
      if (roles.worker || roles.http) {
        await work(world, roles);
        expect(await statuses(world)).toEqual(DONE);
        return;
      }
      // Nobody executes anything: an earlier run ends by being cancelled.
      await holdfast.runs.cancel(queued[0] as RunId);
      await work(world, roles);
      expect(await Promise.all(queued.map(waits))).toEqual([undefined, "worker", "schedule"]);
      expect(await holdfast.runs.get(queued[1] as RunId)).toMatchObject({
        status: "pending",
        waitingFor: { reason: "worker", instances: roles.scheduler ? 1 : 0 },
      });
    });
  }

  test("gated runs are released where tick() is called and nothing is started, at the times that it names", async ({
    world,
  }) => {
    await gatedRuns(world);
    const { holdfast } = student(world);
    for (let calls = 0; calls < 30; calls += 1) {
      const { nextWakeAt } = await world.clock.until(holdfast.tick({ limit: 2 }));
      const waitMs = (nextWakeAt?.getTime() ?? Number.POSITIVE_INFINITY) - world.now();
      if (waitMs > MINUTE) break;
      await world.clock.advance(Math.max(1, waitMs));
    }
    expect(await statuses(world)).toEqual(DONE);
  });

  test("an instance without the scheduler releases gated runs and fires no tick", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    await holdfast.schedules.upsert("s", { job: "study", cron: "* * * * *", overlap: "queue" });
    await holdfast.schedules.trigger("s");
    await holdfast.schedules.trigger("s");
    await holdfast.start({ scheduler: false });
    await world.clock.advance(5 * MINUTE);
    const runs = await runRecords(world);
    expect(runs.map(({ mode, status }) => `${mode} ${status}`)).toEqual([
      "manual completed",
      "manual completed",
    ]);
  });

  test("a gated run begins when the one before it ends, not a poll later, also without a scheduler", async ({
    world,
  }) => {
    const { holdfast } = student(world, {
      run: () => new Promise<void>((resolve) => world.clock.timer(3_300, resolve)),
      options: { poll: "30s" },
    });
    await holdfast.schedules.upsert("s", { ...YEARLY, overlap: "queue" });
    await holdfast.start({ scheduler: false });
    await holdfast.schedules.trigger("s");
    await holdfast.schedules.trigger("s");
    await world.clock.advance(10 * SECOND);
    const [first, second] = await runRecords(world);
    expect([first?.status, second?.status]).toEqual(["completed", "completed"]);
    const waitedMs = (second?.startedAt as number) - (first?.finishedAt as number);
    expect(waitedMs).toBeLessThanOrEqual(10);
  });
}
