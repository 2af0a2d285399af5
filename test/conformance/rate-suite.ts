// Limits of rate: within any window, by the database's clock, no more runs are claimed than the limit allows; every
// attempt counts.

import { expect } from "vitest";
import { LimitedJob } from "./limited-job.js";
import { completed, handedBack, idsOf, type SceneTest } from "./scene.js";

const MINUTE = 60_000;

export function rateSuite(test: SceneTest): void {
  test("no more runs begin within a window than the limit, and the window slides", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 3, per: "1m" } });
    await job.enqueued(10);
    expect(await job.claim(2)).toHaveLength(2);
    scene.advance(40_000);
    expect(await job.claim()).toHaveLength(1);
    expect(await job.claim()).toEqual([]);
    scene.advance(19_999);
    expect(await job.claim()).toEqual([]);
    scene.advance(1);
    expect(await job.claim()).toHaveLength(2);
    scene.advance(39_999);
    expect(await job.claim()).toEqual([]);
    scene.advance(1);
    expect(await job.claim()).toHaveLength(1);
  });

  test("a rate is for each key where one is given", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 1, per: "1m", key: "account" } });
    await job.enqueued(2, "a");
    await job.enqueued(2, "b");
    expect(await job.claim()).toHaveLength(2);
    expect((await scene.poll()).hasLimited).toBe(false);
    scene.advance(MINUTE);
    expect((await scene.poll()).hasLimited).toBe(true);
    expect(await job.claim()).toHaveLength(2);
  });

  test("a run that ended still counts in its window, and one that is handed back counts again", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 2, per: "1m" } });
    await job.enqueued(3);
    const [first] = await job.claim(1);
    if (first) await scene.settle(handedBack(first));
    expect(await scene.claim()).toEqual([]);
    const [again] = await job.claim(1);
    expect(again?.id).toBe(first?.id);
    if (again) await scene.settle(completed(again));
    expect(await job.claim()).toEqual([]);
    scene.advance(MINUTE);
    expect(await job.claim()).toHaveLength(2);
  });

  test("a lost run waits in line alone for its next attempt", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 5, per: "1h" } });
    const [first] = await job.enqueued(1);
    await job.claim();
    await scene.loseAll();
    expect(await scene.claim({ wantsSuspect: true })).toEqual([]);
    expect(await job.claim()).toEqual([]);
    expect(idsOf(await scene.claim({ wantsSuspect: true, limited: "last" }))).toEqual([first?.id]);
  });

  test("both limits of a job hold, each with its own reach", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, {
      concurrency: { limit: 1, key: "account" },
      rate: { limit: 3, per: "1m" },
    });
    for (const account of ["a", "b", "c", "d"]) await job.enqueued(2, account);
    const held = await job.claim();
    expect(held).toHaveLength(3);
    for (const each of held) await scene.settle(completed(each));
    expect(await job.claim()).toEqual([]);
    scene.advance(MINUTE);
    expect(await job.claim()).toHaveLength(3);
  });

  test("a concurrency of the whole job and a rate of each key hold together", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, {
      concurrency: { limit: 2 },
      rate: { limit: 1, per: "1m", key: "account" },
    });
    await job.enqueued(3, "a");
    await job.enqueued(1, "b");
    await job.enqueued(1, "c");
    const held = await job.claim();
    expect(held).toHaveLength(2);
    expect(await job.claim()).toEqual([]);
    for (const each of held) await scene.settle(completed(each));
    expect(await job.claim()).toHaveLength(1);
    expect(await job.claim()).toEqual([]);
  });

  test("a worker gets the time at which the window lets the next run begin", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 1, per: "10s" } });
    const [, second] = await job.enqueued(2);
    await job.claim(1);
    scene.advance(4_000);
    const { limitedInMs } = await scene.store.claims.exchange({
      holder: scene.holder,
      token: crypto.randomUUID(),
      settlements: [],
      limit: 1,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      random: 0,
      limited: "last",
    });
    expect(limitedInMs ?? null).toBeNull();
    expect(await scene.store.runs.pendingReason(second?.id ?? "")).toEqual({
      reason: "rate",
      key: "",
      limit: 1,
      perMs: 10_000,
      until: scene.now + 6_000,
      ahead: 0,
    });
    scene.advance(6_000);
    expect(idsOf(await job.claim())).toEqual([second?.id]);
  });
}
