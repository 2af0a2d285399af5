// The end of the newest tick's run: it draws the next interval of a range, or holds ticks back after a
// failure, in the transaction that ends the run. No other run touches the schedule.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import {
  cancelled,
  completed,
  failed,
  type Held,
  handedBack,
  LEASE_MS,
  policyWith,
  postponed,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";
import { changeOf, MINUTE_MS, STUDY } from "./schedule-fixtures.js";

const RANGE = { minMs: 10 * MINUTE_MS, maxMs: 15 * MINUTE_MS };
const AFTER_FAILURE = { minMs: 20 * MINUTE_MS, maxMs: 40 * MINUTE_MS };
const LOWEST = 0;
const HIGHEST = 0.999999999;

/** Ways in which a run of a schedule ends, each with the chance of the scene. */
const ENDS: Readonly<Record<string, (scene: Scene, id: RunId) => Promise<void>>> = {
  completed: async (scene) => settled(scene, completed),
  "completed by a commit": async (scene) => {
    const held = await scene.claimOne();
    scene.advance(1_234);
    const { id, fence } = held;
    const { holder, random } = scene;
    const work = () => completed(held);
    const params = { id, fence, holder, random, on: null, timeoutMs: 10_000, work };
    expect(await scene.store.commits.run(params)).toBe("committed");
  },
  failed: async (scene) => settled(scene, failed),
  "cancelled by its holder": async (scene) => settled(scene, cancelled),
  "cancelled while pending": async (scene, id) => {
    expect(await scene.store.runs.cancel({ id, random: scene.random })).toBe("cancelled");
  },
  "cancelled by enforcement": async (scene, id) => {
    await scene.claimOne();
    await scene.store.runs.cancel({ id, random: scene.random });
    scene.advance(1_000);
    await scene.store.leases.enforceCancels({ graceMs: 1_000, random: scene.random });
  },
  "cancelled instead of a retry": async (scene, id) => {
    const held = await scene.claimOne();
    await scene.store.runs.cancel({ id, random: scene.random });
    await scene.settle(retried(held));
  },
  "lost for good": async (scene) => {
    const held = await scene.claimOne();
    await scene.store.leases.markStarted([{ id: held.id, fence: held.fence }]);
    await scene.loseAll();
  },
};
const FAILURES = ["failed", "lost for good"];

async function settled(scene: Scene, end: (held: Held) => ReturnType<typeof completed>) {
  const held = await scene.claimOne();
  scene.advance(1_234);
  expect(await scene.settle(end(held))).toEqual([]);
}

/** A run is lost for good at its first loss. */
const FRAGILE = { ...STUDY, policy: policyWith({ onLost: "fail", attempts: 3 }) };

/** The members of a schedule that the end of a run may change. */
const outlook = ({ nextAt, holdUntil, holdRun }: ScheduleState) => ({ nextAt, holdUntil, holdRun });

export function scheduleEndSuite(test: SceneTest): void {
  for (const [name, end] of Object.entries(ENDS)) {
    const isFailure = FAILURES.includes(name);

    test(`the end of the newest tick's run draws the next tick of a range: ${name}`, async ({
      scene,
    }) => {
      await scene.schedules.knowJob(FRAGILE);
      await scene.schedules.make("pulse", { range: RANGE, afterFailure: AFTER_FAILURE });
      for (const random of [LOWEST, HIGHEST]) {
        scene.advance(1);
        scene.random = random;
        const id = await scene.schedules.fire("pulse");
        await end(scene, id);
        expect(["completed", "failed", "cancelled"]).toContain(await scene.status(id));
        const { minMs, maxMs } = isFailure ? AFTER_FAILURE : RANGE;
        const drawnMs = random === LOWEST ? minMs : maxMs;
        expect(outlook(await scene.schedules.state("pulse"))).toEqual({
          nextAt: scene.now + drawnMs,
          holdUntil: null,
          holdRun: null,
        });
      }
    });

    test(`for a schedule without a range a failure holds ticks back, nothing else does: ${name}`, async ({
      scene,
    }) => {
      await scene.schedules.knowJob(FRAGILE);
      await scene.schedules.make("nightly", { afterFailure: AFTER_FAILURE });
      for (const random of [LOWEST, HIGHEST]) {
        scene.advance(1);
        scene.random = random;
        const id = await scene.schedules.fire("nightly", { holdUntil: null, holdRun: null });
        const { nextAt } = await scene.schedules.state("nightly");
        await end(scene, id);
        const { minMs, maxMs } = AFTER_FAILURE;
        const heldMs = random === LOWEST ? minMs : maxMs;
        expect(outlook(await scene.schedules.state("nightly"))).toEqual({
          nextAt,
          holdUntil: isFailure ? scene.now + heldMs : null,
          holdRun: isFailure ? id : null,
        });
      }
    });

    test(`a decision made before the newest tick's run ended is refused: ${name}`, async ({
      scene,
    }) => {
      await scene.schedules.knowJob(FRAGILE);
      await scene.schedules.make("pulse", { range: RANGE, afterFailure: AFTER_FAILURE });
      const id = await scene.schedules.fire("pulse");
      const read = await scene.schedules.state("pulse");
      await end(scene, id);
      const drawn = await scene.schedules.state("pulse");
      expect(drawn.revision).toBeGreaterThan(read.revision);
      const late = changeOf(read, { progress: { nextAt: scene.now } });
      expect(await scene.schedules.write([late])).toEqual([]);
      expect(await scene.schedules.state("pulse")).toEqual(drawn);
    });
  }

  test("without bounds for failures a failed run draws from the range", async ({ scene }) => {
    await scene.schedules.make("pulse", { range: RANGE });
    await scene.schedules.fire("pulse");
    await scene.settle(failed(await scene.claimOne()));
    expect((await scene.schedules.state("pulse")).nextAt).toBe(scene.now + RANGE.minMs);
  });

  test("without bounds at all a run's end leaves its schedule alone", async ({ scene }) => {
    await scene.schedules.make("nightly");
    await scene.schedules.fire("nightly");
    const before = outlook(await scene.schedules.state("nightly"));
    await scene.settle(failed(await scene.claimOne()));
    expect(outlook(await scene.schedules.state("nightly"))).toEqual(before);
  });

  test("a failure that holds ticks back refuses decisions made before it", async ({ scene }) => {
    await scene.schedules.make("nightly", { afterFailure: AFTER_FAILURE });
    await scene.schedules.fire("nightly");
    const read = await scene.schedules.state("nightly");
    await scene.settle(failed(await scene.claimOne()));
    expect(await scene.schedules.write([changeOf(read)])).toEqual([]);
  });

  test("a success leaves an earlier hold as it is", async ({ scene }) => {
    await scene.schedules.make("nightly", { afterFailure: AFTER_FAILURE });
    const hold = { holdUntil: scene.now + 5, holdRun: scene.id() };
    await scene.schedules.fire("nightly", hold);
    await scene.settle(completed(await scene.claimOne()));
    expect(await scene.schedules.state("nightly")).toMatchObject(hold);
  });

  for (const [kind, bounds] of [
    ["a range", { range: RANGE, afterFailure: AFTER_FAILURE }],
    ["no range", { afterFailure: AFTER_FAILURE }],
  ] as const) {
    test(`the end of an older tick's run changes nothing of a schedule with ${kind}`, async ({
      scene,
    }) => {
      await scene.schedules.make("pulse", bounds);
      for (const at of [-3, -2, -1, 0]) await scene.schedules.fire("pulse", { at: scene.now + at });
      const newest = (await scene.schedules.state("pulse")).lastRun;
      const { live, ...before } = await scene.schedules.state("pulse");
      const held = (await scene.claim()).filter(({ id }) => id !== newest);
      const [one, two, three] = held as [Held, Held, Held];
      scene.advance(1_000);
      await scene.settle(completed(one), failed(two));
      await scene.store.runs.cancel({ id: three.id, random: 0 });
      await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 });
      const { live: left, ...after } = await scene.schedules.state("pulse");
      expect(after).toEqual(before);
      expect([live.length, left.length]).toEqual([4, 1]);
    });

    test(`the end of a run that no tick made changes nothing of a schedule with ${kind}`, async ({
      scene,
    }) => {
      await scene.schedules.make("pulse", bounds);
      await scene.schedules.fire("pulse", { run: { isGated: true } });
      for (const mode of ["manual", "test", "backfill"] as const) {
        await scene.schedules.trigger("pulse", { mode });
        const { live: _live, ...before } = await scene.schedules.state("pulse");
        const end = mode === "test" ? completed : failed;
        await scene.settle(end(await scene.claimOne()));
        const { live: _left, ...after } = await scene.schedules.state("pulse");
        expect(after).toEqual(before);
      }
    });

    test(`a run that returns to pending does not change a schedule with ${kind}`, async ({
      scene,
    }) => {
      await scene.schedules.make("pulse", bounds);
      await scene.schedules.fire("pulse");
      const before = await scene.schedules.state("pulse");
      for (const again of [handedBack, postponed, retried]) {
        await scene.settle(again(await scene.claimOne()));
        expect(await scene.schedules.state("pulse")).toEqual(before);
        scene.advance(1_000);
        await scene.store.work.promote({ limit: 1 });
      }
      await scene.claimOne();
      scene.advance(LEASE_MS);
      expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toMatchObject([
        { to: "pending" },
      ]);
      expect(await scene.schedules.state("pulse")).toEqual(before);
    });

    test(`a stale settlement changes nothing of a schedule with ${kind}`, async ({ scene }) => {
      await scene.schedules.make("pulse", bounds);
      const id = await scene.schedules.fire("pulse");
      const held = await scene.claimOne();
      await scene.loseAll();
      const before = await scene.schedules.state("pulse");
      expect(await scene.settle(failed(held))).toEqual([{ id, fence: held.fence }]);
      expect(await scene.schedules.state("pulse")).toEqual(before);
    });
  }

  test("a schedule without a next tick stays without one", async ({ scene }) => {
    for (const name of ["paused", "ended", "deleted"]) {
      await scene.schedules.make(name, { range: RANGE, afterFailure: AFTER_FAILURE });
      await scene.schedules.fire(name);
    }
    await scene.schedules.pause("paused");
    await scene.schedules.change("ended", { progress: { nextAt: null, isEnded: true } });
    await scene.schedules.remove("deleted");
    await scene.settle(...(await scene.claim()).map((held) => completed(held)));
    for (const name of ["paused", "ended", "deleted"]) {
      expect((await scene.schedules.state(name)).nextAt).toBeNull();
    }
    expect(await scene.schedules.due()).toEqual([]);
  });

  test("runs of many schedules that end together draw for each of them", async ({ scene }) => {
    const names = Array.from({ length: 20 }, (_, at) => `s${at}`);
    for (const name of names) {
      await scene.schedules.make(name, { range: RANGE });
      await scene.schedules.fire(name);
    }
    const held = await scene.claim({ limit: 100 });
    scene.advance(77);
    await scene.settle(...held.map((each) => completed(each)));
    for (const name of names) {
      const drawnMs = Number((await scene.schedules.state(name)).nextAt) - scene.now;
      expect(drawnMs).toBeGreaterThanOrEqual(RANGE.minMs);
      expect(drawnMs).toBeLessThanOrEqual(RANGE.maxMs);
    }
  });

  test("the next end draws from the bounds of the edit", async ({ scene }) => {
    await scene.schedules.make("pulse", { range: RANGE });
    await scene.schedules.fire("pulse");
    const range = { minMs: 3, maxMs: 4 };
    await scene.schedules.change("pulse", {
      edit: scene.schedules.edit({ kind: "edited", range }),
    });
    await scene.settle(completed(await scene.claimOne()));
    expect((await scene.schedules.state("pulse")).nextAt).toBe(scene.now + 3);
  });
}
