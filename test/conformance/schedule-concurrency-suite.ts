// Several stores that decide the same ticks at the same moment: exactly one of them writes.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import { oneTick } from "../../src/schedules/rules/tick.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import type { Store } from "../../src/store/store.js";
import { completed, idsOf, type Scene, type SceneTest } from "./scene.js";
import { changeOf, firedProgress, MINUTE_MS } from "./schedule-fixtures.js";

const ROUNDS = 50;

function firing(scene: Scene, state: ScheduleState, at = scene.now) {
  const id = scene.id();
  return changeOf(state, {
    progress: firedProgress(state, { at, id }),
    ticks: [oneTick(at, "on_time", { run: id })],
    runs: [scene.schedules.run({ id, nominalAt: at })],
  });
}

export function scheduleConcurrencySuite(test: SceneTest): void {
  test("of two stores that write from the same revision exactly one does", async ({ scene }) => {
    const stores = [await scene.open(), await scene.open()];
    await scene.schedules.make("nightly");
    const made: RunId[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      scene.advance(1_000);
      const state = await scene.schedules.state("nightly");
      const changes = stores.map(() => firing(scene, state));
      const answers = await Promise.all(
        stores.map((store, at) => scene.schedules.write([changes[at] as Change], store)),
      );
      expect(answers.flat()).toEqual([state.id]);
      const winner = answers.findIndex(({ length }) => length === 1);
      made.push(...idsOf((changes[winner] as Change).runs));
    }
    const runs = await scene.store.runs.list({ schedule: "nightly", limit: 1_000 });
    expect(idsOf(runs).sort()).toEqual(made.toSorted());
    const ticks = await scene.store.schedules.ticks({ schedule: "nightly", limit: 1_000 });
    expect(ticks.map(({ run }) => run).sort()).toEqual(made.toSorted());
  });

  test("stores that write many schedules in any order make each tick once", async ({ scene }) => {
    const stores = [await scene.open(), await scene.open(), await scene.open()];
    const names = Array.from({ length: 12 }, (_, at) => `s${at}`);
    for (const name of names) await scene.schedules.make(name, { nextAt: scene.now });
    const fireAll = async (store: Store, isBackwards: boolean) => {
      const { schedules } = await store.schedules.due({ limit: 100 });
      const changes = schedules.map((state) => firing(scene, state));
      return scene.schedules.write(isBackwards ? changes.toReversed() : changes, store);
    };
    for (let round = 0; round < 15; round += 1) {
      const answers = await Promise.all(stores.map((store, at) => fireAll(store, at % 2 === 1)));
      const applied = answers.flat();
      expect(new Set(applied).size).toBe(applied.length);
      // A schedule that one store skipped because another was changing it is still due at the next read.
      await fireAll(scene.store, false);
      expect(await scene.schedules.due()).toEqual([]);
      scene.advance(60 * MINUTE_MS);
    }
    expect(await scene.store.schedules.ticks({ limit: 1_000 })).toHaveLength(15 * names.length);
    expect(await scene.store.runs.list({ limit: 1_000 })).toHaveLength(15 * names.length);
  });

  test("of many stores that make the same schedule one does", async ({ scene }) => {
    const stores = [await scene.open(), await scene.open(), await scene.open()];
    for (let round = 0; round < 15; round += 1) {
      const name = `s${round}`;
      const edit = scene.schedules.edit({ codeHash: "h" });
      const progress = scene.schedules.progress();
      const answers = await Promise.all(
        stores.map((store) => store.schedules.create({ name, edit, progress })),
      );
      expect(answers.filter((answer) => answer !== null)).toHaveLength(1);
      expect(await scene.store.schedules.versions({ name })).toHaveLength(1);
    }
  });

  test("a run's end and a decision at the same moment: the draw is never overwritten by what did not see it", async ({
    scene,
  }) => {
    const [settler, decider] = [await scene.open(), await scene.open()];
    const range = { minMs: 10 * MINUTE_MS, maxMs: 15 * MINUTE_MS };
    await scene.schedules.make("pulse", { range });
    for (let round = 0; round < 25; round += 1) {
      scene.advance(1_000);
      await scene.schedules.fire("pulse");
      const held = await scene.claimOne();
      const state = await scene.schedules.state("pulse");
      const change = changeOf(state, { progress: { tzdata: String(round) } });
      const [applied, answer] = await Promise.all([
        scene.schedules.write([change], decider),
        settler.claims.exchange({
          holder: scene.holder,
          token: crypto.randomUUID(),
          settlements: [completed(held)],
          limit: 0,
          wantsSuspect: false,
          jobs: [],
          queues: null,
          random: 0,
        }),
      ]);
      expect(answer.stale).toEqual([]);
      const after = await scene.schedules.state("pulse");
      expect(after.nextAt).toBe(scene.now + range.minMs);
      expect(after.tzdata === String(round)).toBe(applied.length === 1);
    }
  });
}

type Change = ReturnType<typeof firing>;
