// Tests the writes of monitors: a start on the schedule's row, and runs that ended remotely, written with their tick
// in one commit and only at the revision that they were decided from.

import { expect } from "vitest";
import { oneTick } from "../../src/schedules/rules/tick.js";
import type { CheckIn } from "../../src/store/schedules/changes.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import type { Scene, SceneTest } from "./scene.js";
import { changeOf, MINUTE_MS } from "./schedule-fixtures.js";

const DEFINITION = '{"when":{"kind":"every","everyMs":600000},"overlap":"skip","monitor":true}';
const MONITOR = { definition: DEFINITION, job: "monitor:backup", tags: ["db"] } as const;

/** A check-in for the tick of now. */
function checkingIn(scene: Scene, state: ScheduleState, given: Partial<CheckIn> = {}) {
  const checkIn: CheckIn = {
    id: scene.id(),
    mode: "scheduled",
    nominalAt: scene.now,
    status: "completed",
    ranMs: null,
    error: null,
    isAgain: false,
    ...given,
  };
  const tick = checkIn.isAgain ? [] : [oneTick(scene.now, "on_time", { run: checkIn.id })];
  const cursorAt = scene.now;
  return {
    id: checkIn.id,
    change: changeOf(state, { checkIn, ticks: tick, progress: { cursorAt } }),
  };
}

export function monitorSuite(test: SceneTest): void {
  test("a monitor needs no announced job, and keeps its start until that counts no more", async ({
    scene,
  }) => {
    expect(await scene.schedules.create("backup", MONITOR)).not.toBeNull();
    const before = await scene.schedules.state("backup");
    expect(before).toMatchObject({ isMonitor: true, isJobKnown: true, beganAt: null });
    await scene.schedules.change("backup", { beganAt: scene.now });
    expect(await scene.schedules.state("backup")).toMatchObject({ beganAt: scene.now });
    await scene.schedules.change("backup", {});
    expect(await scene.schedules.state("backup")).toMatchObject({ beganAt: scene.now });
    await scene.schedules.change("backup", { beganAt: null });
    expect(await scene.schedules.state("backup")).toMatchObject({ beganAt: null });
    await scene.schedules.change("backup", { beganAt: scene.now });
    const edit = scene.schedules.edit({ kind: "edited" });
    await scene.schedules.change("backup", { edit });
    expect(await scene.schedules.state("backup")).toMatchObject({
      isMonitor: false,
      beganAt: null,
    });
  });

  test("a check-in is a run that has ended, with its tick and its count, or nothing of it is", async ({
    scene,
  }) => {
    await scene.schedules.create("backup", MONITOR);
    const state = await scene.schedules.state("backup");
    const { id, change } = checkingIn(scene, state, { ranMs: 5 * MINUTE_MS });
    expect(await scene.schedules.write([change])).toEqual([state.id]);
    expect(await scene.store.runs.get(id)).toMatchObject({
      job: "monitor:backup",
      status: "completed",
      mode: "scheduled",
      schedule: "backup",
      nominalAt: scene.now,
      startedAt: scene.now - 5 * MINUTE_MS,
      finishedAt: scene.now,
      tags: ["db"],
      fence: null,
    });
    expect(await scene.schedules.ticks("backup")).toMatchObject([{ run: id, reason: "on_time" }]);
    // Decided from what stands no more: neither tick nor run.
    const late = checkingIn(scene, state);
    expect(await scene.schedules.write([late.change])).toEqual([]);
    expect(await scene.store.runs.get(late.id)).toBeNull();
    expect(await scene.schedules.ticks("backup")).toHaveLength(1);
  });

  test("a check-in and a start that were decided before the pause of everything are not written after it", async ({
    scene,
  }) => {
    await scene.schedules.create("backup", MONITOR);
    const state = await scene.schedules.state("backup");
    const { id, change } = checkingIn(scene, state);
    await scene.store.pause.begin({ note: null, by: null });
    expect(await scene.schedules.write([change])).toEqual([]);
    expect(await scene.schedules.write([changeOf(state, { beganAt: scene.now })])).toEqual([]);
    expect(await scene.store.runs.get(id)).toBeNull();
    expect(await scene.schedules.ticks("backup")).toEqual([]);
    await scene.store.pause.end({});
    expect(await scene.schedules.write([change])).toEqual([state.id]);
  });

  test("a second check-in about a run takes the place of the first, and keeps when it began", async ({
    scene,
  }) => {
    await scene.schedules.create("backup", MONITOR);
    const first = checkingIn(scene, await scene.schedules.state("backup"), {
      status: "failed",
      ranMs: MINUTE_MS,
      error: '{"code":"REPORTED","name":"Reported","message":"full"}',
    });
    await scene.schedules.write([first.change]);
    const startedAt = scene.now - MINUTE_MS;
    expect(await scene.store.runs.get(first.id)).toMatchObject({ status: "failed", startedAt });
    const again = checkingIn(scene, await scene.schedules.state("backup"), {
      id: first.id,
      isAgain: true,
    });
    await scene.schedules.write([again.change]);
    expect(await scene.store.runs.get(first.id)).toMatchObject({
      status: "completed",
      error: null,
      startedAt,
      finishedAt: scene.now,
    });
    expect(await scene.store.runs.list({ schedule: "backup", limit: 10 })).toHaveLength(1);
  });
}
