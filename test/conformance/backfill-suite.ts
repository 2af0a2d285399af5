// Backfills of schedules: begun, carried on, ended or cancelled; and which ticks have a completed run.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import type { BackfillChange, BackfillState } from "../../src/store/schedules/changes.js";
import { completed, failed, type Scene, type SceneTest } from "./scene.js";
import { MINUTE_MS } from "./schedule-fixtures.js";

function backfillChange(
  state: BackfillState,
  changes: Partial<BackfillChange> = {},
): BackfillChange {
  return {
    state,
    isNew: false,
    by: null,
    isEnded: false,
    isCancelled: false,
    run: null,
    ...changes,
  };
}

/** A run of the backfill for this tick; answers its id. */
async function fill(scene: Scene, name: string, state: BackfillState, at: number): Promise<RunId> {
  const id = scene.id();
  await scene.schedules.change(name, {
    progress: { live: [id] },
    runs: [scene.schedules.run({ id, mode: "backfill", nominalAt: at })],
    backfill: backfillChange({ ...state, cursorAt: at }, { run: { id, at } }),
  });
  return id;
}

export function backfillSuite(test: SceneTest): void {
  test("a schedule without a backfill says so", async ({ scene }) => {
    expect((await scene.schedules.make("nightly")).backfill).toBeNull();
    expect(await scene.store.schedules.backfills({ name: "nightly" })).toEqual([]);
    expect(await scene.store.schedules.backfills({ name: "nobody" })).toEqual([]);
  });

  test("a new backfill is part of its schedule's state, and listed", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const state = scene.schedules.backfill({ isAll: true, total: 7 });
    const backfill = backfillChange(state, { isNew: true, by: "ann" });
    await scene.schedules.change("nightly", { backfill });
    expect((await scene.schedules.state("nightly")).backfill).toEqual(state);
    expect(await scene.store.schedules.backfills({ name: "nightly" })).toEqual([
      { ...state, createdAt: scene.now, createdBy: "ann", endedAt: null, isCancelled: false },
    ]);
  });

  test("a change without a backfill leaves an open one open", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const state = scene.schedules.backfill();
    await scene.schedules.change("nightly", { backfill: backfillChange(state, { isNew: true }) });
    await scene.schedules.fire("nightly");
    expect((await scene.schedules.state("nightly")).backfill).toEqual(state);
  });

  test("a backfill stores its progress together with its run", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const state = scene.schedules.backfill();
    await scene.schedules.change("nightly", {
      backfill: backfillChange(state, { isNew: true, by: "ann" }),
    });
    const startedAt = scene.now;
    scene.advance(1_000);
    const later = { ...state, cursorAt: state.fromAt + 3 * MINUTE_MS, made: 1, passed: 3 };
    const id = await fill(scene, "nightly", later, later.cursorAt);
    expect((await scene.schedules.state("nightly")).backfill).toEqual(later);
    expect(await scene.store.schedules.backfills({ name: "nightly" })).toEqual([
      { ...later, createdAt: startedAt, createdBy: "ann", endedAt: null, isCancelled: false },
    ]);
    expect(await scene.record(id)).toMatchObject({
      mode: "backfill",
      schedule: "nightly",
      nominalAt: later.cursorAt,
    });
    expect(await scene.schedules.ticks("nightly")).toEqual([]);
  });

  test("a backfill ends or is cancelled, and the next one can begin", async ({ scene }) => {
    await scene.schedules.make("nightly");
    for (const isCancelled of [false, true]) {
      scene.advance(1_000);
      const state = scene.schedules.backfill();
      await scene.schedules.change("nightly", { backfill: backfillChange(state, { isNew: true }) });
      scene.advance(500);
      await scene.schedules.change("nightly", {
        backfill: backfillChange({ ...state, made: 2 }, { isEnded: true, isCancelled }),
      });
      expect((await scene.schedules.state("nightly")).backfill).toBeNull();
      const found = (await scene.store.schedules.backfills({ name: "nightly" })).filter(
        ({ id }) => id === state.id,
      );
      expect(found).toEqual([
        {
          ...state,
          made: 2,
          createdAt: scene.now - 500,
          createdBy: null,
          endedAt: scene.now,
          isCancelled,
        },
      ]);
    }
    expect(await scene.store.schedules.backfills({ name: "nightly" })).toHaveLength(2);
  });

  test("backfills are those of their own schedule", async ({ scene }) => {
    for (const name of ["a", "b"]) {
      await scene.schedules.make(name);
      const backfill = backfillChange(scene.schedules.backfill({ made: name.length }), {
        isNew: true,
        by: name,
      });
      await scene.schedules.change(name, { backfill });
    }
    expect(await scene.store.schedules.backfills({ name: "b" })).toMatchObject([
      { createdBy: "b" },
    ]);
    expect((await scene.schedules.state("a")).backfill?.id).not.toBe(
      (await scene.schedules.state("b")).backfill?.id,
    );
  });

  test("a tick has a completed run by the ledger", async ({ scene }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const other = await scene.schedules.make("other");
    const at = scene.now;
    await scene.schedules.fire("nightly", { at: at - 3 });
    await scene.settle(completed(await scene.claimOne()));
    await scene.schedules.fire("nightly", { at: at - 2 });
    await scene.settle(failed(await scene.claimOne()));
    await scene.schedules.fire("nightly", { at: at - 1 });
    const ticks = [at - 4, at - 3, at - 2, at - 1];
    expect(await scene.store.schedules.completedTicks({ schedule, ticks })).toEqual([at - 3]);
    expect(await scene.store.schedules.completedTicks({ schedule, ticks: [at - 2] })).toEqual([]);
    expect(await scene.store.schedules.completedTicks({ schedule, ticks: [] })).toEqual([]);
    expect(await scene.store.schedules.completedTicks({ schedule: other.id, ticks })).toEqual([]);
  });

  test("a tick has a completed run by a backfill", async ({ scene }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const state = scene.schedules.backfill();
    await scene.schedules.change("nightly", { backfill: backfillChange(state, { isNew: true }) });
    const at = scene.now;
    const ticks = [at - 3, at - 2, at - 1];
    for (const [tick, end] of [
      [at - 3, completed],
      [at - 2, failed],
    ] as const) {
      await fill(scene, "nightly", state, tick);
      expect(await scene.store.schedules.completedTicks({ schedule, ticks })).not.toContain(tick);
      await scene.settle(end(await scene.claimOne()));
    }
    expect(await scene.store.schedules.completedTicks({ schedule, ticks })).toEqual([at - 3]);
  });

  test("a tick that failed and was backfilled, or completed twice, is completed once", async ({
    scene,
  }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const at = scene.now;
    await scene.schedules.fire("nightly", { at: at - 2 });
    await scene.settle(failed(await scene.claimOne()));
    await scene.schedules.fire("nightly", { at: at - 1 });
    await scene.settle(completed(await scene.claimOne()));
    for (const made of [1, 2]) {
      const state = scene.schedules.backfill({ made, isAll: true });
      await scene.schedules.change("nightly", { backfill: backfillChange(state, { isNew: true }) });
      for (const tick of [at - 2, at - 1]) {
        await fill(scene, "nightly", state, tick);
        await scene.settle(completed(await scene.claimOne()));
      }
      await scene.schedules.change("nightly", {
        backfill: backfillChange(state, { isEnded: true }),
      });
    }
    const found = await scene.store.schedules.completedTicks({ schedule, ticks: [at - 2, at - 1] });
    expect(found.toSorted()).toEqual([at - 2, at - 1]);
    expect(await scene.schedules.ticks("nightly")).toHaveLength(2);
  });
}
