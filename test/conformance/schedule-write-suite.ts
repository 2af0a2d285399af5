// Changes of schedules: each whole or not at all, and only at the revision it was decided from.

import { expect } from "vitest";
import { oneTick, REASONS } from "../../src/schedules/rules/tick.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import type { Scene, SceneTest } from "./scene.js";
import { changeOf, firedProgress, stretch } from "./schedule-fixtures.js";

/** A tick that fires now, decided from this state. */
function firing(scene: Scene, state: ScheduleState, at = scene.now) {
  const id = scene.id();
  return {
    run: id,
    change: changeOf(state, {
      progress: firedProgress(state, { at, id }),
      ticks: [oneTick(at, "on_time", { run: id })],
      runs: [scene.schedules.run({ id, nominalAt: at })],
    }),
  };
}

export function scheduleWriteSuite(test: SceneTest): void {
  test("progress, ledger row and run become visible together", async ({ scene }) => {
    const state = await scene.schedules.make("nightly", { nextAt: scene.now });
    const { run, change } = firing(scene, state);
    expect(await scene.schedules.write([change])).toEqual([state.id]);
    const after = await scene.schedules.state("nightly");
    const { live, ...progress } = change.progress;
    expect(after).toMatchObject(progress);
    expect(live).toEqual([run]);
    expect(after.live).toEqual([
      { id: run, mode: "scheduled", nominalAt: scene.now, isGated: false },
    ]);
    expect(after.revision).toBeGreaterThan(state.revision);
    expect(await scene.schedules.ticks("nightly")).toEqual([
      {
        schedule: "nightly",
        firstAt: scene.now,
        lastAt: scene.now,
        count: 1,
        reason: "on_time",
        run,
        evidence: null,
        recordedAt: scene.now,
        recordedBy: "first",
        runStatus: "pending",
        version: 1,
      },
    ]);
    expect(await scene.status(run)).toBe("pending");
  });

  test("all of a schedule's progress is written as it was given", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const progress = {
      cursorAt: scene.now + 1,
      nextAt: null,
      isEnded: true,
      holdUntil: scene.now + 2,
      holdRun: scene.id(),
      lastRun: scene.id(),
      lastTickAt: scene.now + 3,
      isGated: true,
      isReplacing: true,
      tzdata: "2026a",
    };
    await scene.schedules.write([changeOf(state, { progress })]);
    expect(await scene.schedules.state("nightly")).toMatchObject(progress);
  });

  test("at another revision nothing of a change is written, and its neighbours are", async ({
    scene,
  }) => {
    const [a, b, c] = (await Promise.all(
      ["a", "b", "c"].map((name) => scene.schedules.make(name)),
    )) as [ScheduleState, ScheduleState, ScheduleState];
    await scene.schedules.fire("b", { at: scene.now - 1 });
    const before = await scene.schedules.portrait("b");
    const changes = [a, b, c].map((state) => firing(scene, state).change);
    const applied = await scene.schedules.write(changes);
    expect(applied.toSorted()).toEqual([a.id, c.id].sort());
    expect(await scene.schedules.portrait("b")).toEqual(before);
    for (const name of ["a", "c"]) {
      expect(await scene.schedules.ticks(name)).toHaveLength(1);
      expect((await scene.schedules.state(name)).live).toHaveLength(1);
    }
  });

  test("an edit, a pause, a delivery and a backfill at another revision are not written", async ({
    scene,
  }) => {
    const state = await scene.schedules.make("nightly");
    await scene.schedules.fire("nightly", { at: scene.now - 1 });
    const before = await scene.schedules.portrait("nightly");
    const { run, change } = firing(scene, state);
    const whole = {
      ...change,
      standing: {
        pausedAt: 1,
        pausedBy: "ann",
        pauseNote: null,
        brokenAt: null,
        brokenError: null,
      },
      edit: scene.schedules.edit({ kind: "edited", codeHash: "h2" }),
      delivery: { id: "d", inputHash: "h", run },
      backfill: {
        state: scene.schedules.backfill(),
        isNew: true,
        by: null,
        isEnded: false,
        isCancelled: false,
        run: { id: run, at: scene.now },
      },
    };
    expect(await scene.schedules.write([whole])).toEqual([]);
    expect(await scene.schedules.portrait("nightly")).toEqual(before);
    expect(await scene.store.schedules.delivery({ schedule: state.id, id: "d" })).toBeNull();
    expect(await scene.store.schedules.seenDefinitions({ schedule: state.id })).toEqual([]);
    expect(await scene.store.runs.get(run)).toBeNull();
  });

  test("of two decisions made from the same revision the first is applied", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const [one, two] = [firing(scene, state), firing(scene, state)];
    expect(await scene.schedules.write([one.change])).toEqual([state.id]);
    expect(await scene.schedules.write([two.change])).toEqual([]);
    expect(await scene.store.runs.get(two.run)).toBeNull();
    expect(await scene.schedules.ticks("nightly")).toHaveLength(1);
  });

  test("of two changes of one schedule in one call one is applied", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const changes = [firing(scene, state), firing(scene, state, scene.now + 1)];
    const applied = await scene.schedules.write(changes.map(({ change }) => change));
    expect(applied).toEqual([state.id]);
    expect(await scene.schedules.ticks("nightly")).toHaveLength(1);
    expect(await scene.store.runs.list({ schedule: "nightly", limit: 10 })).toHaveLength(1);
  });

  test("a change of a schedule that does not exist is not applied", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const { change, run } = firing(scene, { ...state, id: state.id + 1_000 });
    expect(await scene.schedules.write([change])).toEqual([]);
    expect(await scene.store.runs.get(run)).toBeNull();
    expect(await scene.schedules.write([])).toEqual([]);
  });

  test("a tick that is in the ledger makes the call throw, and nothing of the call is written", async ({
    scene,
  }) => {
    const a = await scene.schedules.make("a");
    await scene.schedules.make("b");
    await scene.schedules.fire("b");
    const b = await scene.schedules.state("b");
    const before = [await scene.schedules.portrait("a"), await scene.schedules.portrait("b")];
    const changes = [firing(scene, a), firing(scene, b)];
    await expect(scene.schedules.write(changes.map(({ change }) => change))).rejects.toThrow();
    expect([await scene.schedules.portrait("a"), await scene.schedules.portrait("b")]).toEqual(
      before,
    );
    for (const { run } of changes) expect(await scene.store.runs.get(run)).toBeNull();
    expect(await scene.schedules.write([firing(scene, a).change])).toEqual([a.id]);
  });

  test("the same tick of two schedules is two ticks", async ({ scene }) => {
    const [a, b] = [await scene.schedules.make("a"), await scene.schedules.make("b")];
    const applied = await scene.schedules.write([firing(scene, a).change, firing(scene, b).change]);
    expect(applied.toSorted()).toEqual([a.id, b.id].sort());
  });

  test("every reason, a stretch and its evidence are read back as they were written", async ({
    scene,
  }) => {
    const state = await scene.schedules.make("nightly");
    const run = scene.id();
    const entries = [
      ...REASONS.map((reason, at) => oneTick(scene.now + at, reason)),
      stretch(scene.now + 100, 288_000),
      oneTick(scene.now + 101, "overlap", {
        evidence: { run, until: scene.now, note: 'it\'s "so"', lastPolledAt: null },
      }),
    ];
    await scene.schedules.write([changeOf(state, { ticks: entries })]);
    const found = await scene.schedules.ticks("nightly");
    expect(found).toEqual(
      entries
        .map((entry) => ({
          ...entry,
          schedule: "nightly",
          recordedAt: scene.now,
          recordedBy: "first",
          runStatus: null,
          version: 1,
        }))
        .reverse(),
    );
  });

  test("a caller that is not an instance can write too", async ({ scene }) => {
    const state = await scene.schedules.make("nightly");
    const { change } = firing(scene, state);
    const applied = await scene.store.schedules.write({ holder: null, changes: [change] });
    expect(applied).toEqual([state.id]);
    expect(await scene.schedules.ticks("nightly")).toMatchObject([{ recordedBy: null }]);
  });

  test("a thousand schedules fire in one write", async ({ scene }) => {
    const names = Array.from({ length: 1_000 }, (_, at) => `s${at}`);
    await scene.schedules.knowJob();
    for (const name of names) await scene.schedules.create(name, { nextAt: scene.now });
    const { schedules } = await scene.store.schedules.due({ limit: 1_000 });
    expect(schedules).toHaveLength(1_000);
    const changes = schedules.map((state) => firing(scene, state).change);
    expect(await scene.schedules.write(changes)).toHaveLength(1_000);
    expect(await scene.schedules.due()).toEqual([]);
    expect(await scene.claim({ limit: 2_000 })).toHaveLength(1_000);
  });
}
