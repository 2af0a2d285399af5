// The pause of everything (S14): once it has committed nothing is fired and nothing is claimed.

import { expect } from "vitest";
import { completed, type SceneTest } from "./scene.js";
import { changeOf, firedProgress, MINUTE_MS } from "./schedule-fixtures.js";

const ASKED = { by: "ada", note: "moving house" };

export function pauseSuite(test: SceneTest): void {
  test("it has its time, author and note until it is lifted", async ({ scene }) => {
    const { store } = scene;
    expect(await store.pause.get()).toBeNull();
    const at = scene.now;
    expect(await store.pause.begin(ASKED)).toEqual({ ...ASKED, at, until: null });
    scene.advance(1_000);
    await store.pause.begin({ by: "bob", note: null });
    expect(await store.pause.get()).toEqual({ ...ASKED, at, until: null });
    await store.pause.begin({ by: "bob", note: "still moving" });
    expect(await store.pause.get()).toMatchObject({ by: "ada", note: "still moving" });
    expect(await store.pause.end()).toMatchObject({ at, until: scene.now });
    expect(await store.pause.get()).toBeNull();
    expect(await store.pause.end()).toBeNull();
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
    await scene.store.pause.begin(ASKED);
    const tries = [
      { jobs },
      { jobs, wantsSuspect: true },
      { jobs, limited: "first" },
      { jobs, limited: "last" },
      { jobs, apart: jobs },
      { jobs, apart: jobs, limited: "last" },
    ] as const;
    for (const each of tries) expect(await scene.claim(each)).toEqual([]);
    await scene.store.pause.end();
    expect(await scene.claim({ jobs, limited: "last" })).toHaveLength(3);
    expect(await scene.claim({ jobs, wantsSuspect: true })).toHaveLength(1);
  });

  test("held runs are renewed and settled, but their holder claims no new ones", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const held = await scene.claimOne();
    await scene.store.pause.begin(ASKED);
    const { held: renewed } = await scene.store.leases.renew({
      holder: scene.holder,
      fences: [held.fence],
    });
    expect(renewed).toHaveLength(1);
    const { claims, stale } = await scene.store.claims.exchange({
      holder: scene.holder,
      token: crypto.randomUUID(),
      settlements: [completed(held)],
      limit: 5,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      random: 0,
    });
    expect({ claims, stale }).toEqual({ claims: [], stale: [] });
    expect(await scene.status(held.id)).toBe("completed");
  });

  test("a poll returns that everything is paused and that nothing can be claimed or fired", async ({
    scene,
  }) => {
    await scene.schedules.make("s", { nextAt: scene.now });
    await scene.enqueued(1);
    const before = await scene.poll({ isScheduler: true });
    expect(before).toMatchObject({ pause: null, hasReady: true, hasDueSchedule: true });
    await scene.store.pause.begin(ASKED);
    expect(await scene.poll({ isScheduler: true })).toMatchObject({
      pause: { kind: "all", since: scene.now, note: "moving house" },
      hasReady: false,
      hasDueSchedule: false,
    });
    await scene.store.pause.end();
    const after = await scene.poll({ isScheduler: true });
    expect(after).toMatchObject({ pause: null, hasReady: true, hasDueSchedule: true });
  });

  test("a decision to fire that was made before it is not written after it", async ({ scene }) => {
    const state = await scene.schedules.make("s", { nextAt: scene.now });
    const id = scene.id();
    const fires = (mode: "scheduled" | "backfill" | "manual") =>
      changeOf(state, {
        progress: firedProgress(state, { at: scene.now, id }),
        runs: [scene.schedules.run({ id, mode, nominalAt: scene.now })],
      });
    await scene.store.pause.begin(ASKED);
    expect(await scene.schedules.write([fires("scheduled")])).toEqual([]);
    expect(await scene.schedules.write([fires("backfill")])).toEqual([]);
    expect(await scene.store.runs.get(id)).toBeNull();
    // A run by hand is made, and waits with the others.
    expect(await scene.schedules.write([fires("manual")])).toEqual([state.id]);
    expect(await scene.claim()).toEqual([]);
    expect(await scene.store.runs.pendingReason(id)).toEqual({
      reason: "paused",
      since: scene.now,
      note: "moving house",
    });
  });

  test("a schedule lists the pauses that may cover its unrecorded ticks", async ({ scene }) => {
    const { store } = scene;
    await store.pause.begin({ by: null, note: "before" });
    await store.pause.end();
    scene.advance(MINUTE_MS);
    await scene.schedules.make("s", { nextAt: scene.now });
    const at = scene.now;
    await store.pause.begin(ASKED);
    scene.advance(MINUTE_MS);
    await store.pause.end();
    const over = { ...ASKED, at, until: scene.now };
    scene.advance(MINUTE_MS);
    await store.pause.begin({ by: null, note: null });
    const on = { at: scene.now, until: null, by: null, note: null };
    expect((await scene.schedules.state("s")).pauses).toEqual([over, on]);
    await store.pause.end();
    await scene.schedules.change("s", { progress: { nextAt: scene.now + 1 } });
    expect((await scene.schedules.state("s")).pauses).toEqual([]);
  });

  test("an old pause is pruned, but not while a tick may fall into it", async ({ scene }) => {
    const { store } = scene;
    await scene.schedules.make("s", { nextAt: scene.now });
    await store.pause.begin(ASKED);
    scene.advance(MINUTE_MS);
    await store.pause.end();
    scene.advance(10 * MINUTE_MS);
    const prune = () =>
      store.retention.prune({ keepMs: 5 * MINUTE_MS, keepTicksMs: 5 * MINUTE_MS, limit: 10 });
    await prune();
    expect((await scene.schedules.state("s")).pauses).toHaveLength(1);
    await scene.schedules.change("s", { progress: { nextAt: scene.now } });
    await prune();
    await scene.schedules.change("s", { progress: { nextAt: 0 } });
    expect((await scene.schedules.state("s")).pauses).toEqual([]);
  });
}
