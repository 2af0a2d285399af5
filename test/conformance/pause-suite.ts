// The pause of everything (S14): once it has committed nothing is fired and nothing is claimed.

import { expect } from "vitest";
import { completed, type SceneTest } from "./scene.js";
import { changeOf, firedProgress, MINUTE_MS } from "./schedule-words.js";

const ASKED = { by: "ada", note: "moving house" };

export function pauseSuite(test: SceneTest): void {
  test("it says since when, by whom and why, until it is lifted", async ({ scene }) => {
    const { store } = scene;
    expect(await store.pauseOfAll()).toBeNull();
    const at = scene.now;
    expect(await store.pauseAll(ASKED)).toEqual({ ...ASKED, at, until: null });
    scene.advance(1_000);
    await store.pauseAll({ by: "bob", note: null });
    expect(await store.pauseOfAll()).toEqual({ ...ASKED, at, until: null });
    await store.pauseAll({ by: "bob", note: "still moving" });
    expect(await store.pauseOfAll()).toMatchObject({ by: "ada", note: "still moving" });
    expect(await store.resumeAll()).toMatchObject({ at, until: scene.now });
    expect(await store.pauseOfAll()).toBeNull();
    expect(await store.resumeAll()).toBeNull();
  });

  test("nothing is claimed while it is on: plain, suspect, limited, one lease each", async ({
    scene,
  }) => {
    const limits = { concurrency: { limit: 1, key: null }, rate: null };
    const job = { name: "few", queue: "default", priority: 0, version: 1 };
    await scene.announce("limits", scene.store, {
      jobs: [{ ...job, policy: scene.run().policy, limits }],
    });
    await scene.enqueued(1);
    await scene.claimOne();
    await scene.loseAll();
    await scene.enqueued(2);
    await scene.enqueued(1, { job: "few", flow: "" });
    const jobs = ["study", "few"];
    await scene.store.pauseAll(ASKED);
    const tries = [
      { jobs },
      { jobs, wantsSuspect: true },
      { jobs, limited: "first" },
      { jobs, limited: "last" },
      { jobs, apart: jobs },
      { jobs, apart: jobs, limited: "last" },
    ] as const;
    for (const each of tries) expect(await scene.claim(each)).toEqual([]);
    await scene.store.resumeAll();
    expect(await scene.claim({ jobs, limited: "last" })).toHaveLength(3);
    expect(await scene.claim({ jobs, wantsSuspect: true })).toHaveLength(1);
  });

  test("what is held goes on: it is renewed and settled, and takes nothing new along", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const held = await scene.claimOne();
    await scene.store.pauseAll(ASKED);
    const { held: renewed } = await scene.store.renew({
      holder: scene.holder,
      fences: [held.fence],
    });
    expect(renewed).toHaveLength(1);
    const { claims, stale } = await scene.store.exchange({
      holder: scene.holder,
      token: crypto.randomUUID(),
      settlements: [completed(held)],
      limit: 5,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      chance: 0,
    });
    expect({ claims, stale }).toEqual({ claims: [], stale: [] });
    expect(await scene.status(held.id)).toBe("completed");
  });

  test("a poll is told to stand still, and that there is nothing to claim or to fire", async ({
    scene,
  }) => {
    await scene.schedules.make("s", { nextAt: scene.now });
    await scene.enqueued(1);
    const before = await scene.poll({ isScheduler: true });
    expect(before).toMatchObject({ halt: null, hasReady: true, hasDueSchedule: true });
    await scene.store.pauseAll(ASKED);
    expect(await scene.poll({ isScheduler: true })).toMatchObject({
      halt: { kind: "all", since: scene.now, note: "moving house" },
      hasReady: false,
      hasDueSchedule: false,
    });
    await scene.store.resumeAll();
    const after = await scene.poll({ isScheduler: true });
    expect(after).toMatchObject({ halt: null, hasReady: true, hasDueSchedule: true });
  });

  test("a decision to fire that was made before it is not written after it", async ({ scene }) => {
    const state = await scene.schedules.make("s", { nextAt: scene.now });
    const id = scene.id();
    const fires = (mode: "scheduled" | "backfill" | "manual") =>
      changeOf(state, {
        progress: firedProgress(state, { at: scene.now, id }),
        runs: [scene.schedules.run({ id, mode, nominalAt: scene.now })],
      });
    await scene.store.pauseAll(ASKED);
    expect(await scene.schedules.write([fires("scheduled")])).toEqual([]);
    expect(await scene.schedules.write([fires("backfill")])).toEqual([]);
    expect(await scene.store.run(id)).toBeNull();
    // A run by hand is made, and waits with the others.
    expect(await scene.schedules.write([fires("manual")])).toEqual([state.id]);
    expect(await scene.claim()).toEqual([]);
    expect(await scene.store.waitingFor(id)).toEqual({
      reason: "paused",
      since: scene.now,
      note: "moving house",
    });
  });

  test("a schedule tells of the pauses that its unrecorded ticks may fall into", async ({
    scene,
  }) => {
    const { store } = scene;
    await store.pauseAll({ by: null, note: "before" });
    await store.resumeAll();
    scene.advance(MINUTE_MS);
    await scene.schedules.make("s", { nextAt: scene.now });
    const at = scene.now;
    await store.pauseAll(ASKED);
    scene.advance(MINUTE_MS);
    await store.resumeAll();
    const over = { ...ASKED, at, until: scene.now };
    scene.advance(MINUTE_MS);
    await store.pauseAll({ by: null, note: null });
    const on = { at: scene.now, until: null, by: null, note: null };
    expect((await scene.schedules.state("s")).pauses).toEqual([over, on]);
    await store.resumeAll();
    await scene.schedules.change("s", { progress: { nextAt: scene.now + 1 } });
    expect((await scene.schedules.state("s")).pauses).toEqual([]);
  });

  test("an old pause is pruned, but not while a tick may fall into it", async ({ scene }) => {
    const { store } = scene;
    await scene.schedules.make("s", { nextAt: scene.now });
    await store.pauseAll(ASKED);
    scene.advance(MINUTE_MS);
    await store.resumeAll();
    scene.advance(10 * MINUTE_MS);
    const prune = () =>
      store.prune({ keepMs: 5 * MINUTE_MS, keepTicksMs: 5 * MINUTE_MS, limit: 10 });
    await prune();
    expect((await scene.schedules.state("s")).pauses).toHaveLength(1);
    await scene.schedules.change("s", { progress: { nextAt: scene.now } });
    await prune();
    await scene.schedules.change("s", { progress: { nextAt: 0 } });
    expect((await scene.schedules.state("s")).pauses).toEqual([]);
  });
}
