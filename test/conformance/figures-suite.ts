// Tests the figures that a store gives to metrics: bounded counts of the whole.

import { expect } from "vitest";
import type { FigureRecord } from "../../src/store/statistics.js";
import type { Scene, SceneTest } from "./scene.js";

const figureOf = (figures: readonly FigureRecord[], kind: string, state: string) =>
  figures.find((each) => each.kind === kind && each.state === state)?.value;

export function figuresSuite(test: SceneTest): void {
  test("runs are counted by queue and state, up to the limit", async ({ scene }) => {
    await scene.enqueued(5);
    await scene.enqueued(2, { delayMs: 60_000 });
    await scene.claim({ limit: 2 });
    const figures = await scene.store.statistics.figures({ limit: 100 });
    const states = ["ready", "waiting", "running"];
    expect(states.map((state) => figureOf(figures, "queue", state))).toEqual([3, 2, 2]);
    const cut = await scene.store.statistics.figures({ limit: 1 });
    expect(figureOf(cut, "queue", "ready")).toBe(1);
    expect(figureOf(cut, "queue", "waiting")).toBe(1);
  });

  test("live instances are counted, retired and silent ones are not", async ({ scene }) => {
    const counts = async () => {
      const figures = await scene.store.statistics.figures({ limit: 10 });
      return ["any", "scheduler"].map((state) => figureOf(figures, "instance", state));
    };
    const before = await counts();
    const holder = await announced(scene, true);
    await announced(scene, false);
    const [any = 0, scheduler = 0] = before;
    expect(await counts()).toEqual([any + 2, scheduler + 1]);
    await scene.store.instances.retire({ holder });
    expect(await counts()).toEqual([any + 1, scheduler]);
    scene.advance(24 * 3_600_000);
    expect(await counts()).toEqual([0, 0]);
  });

  test("locks that are held and calls that wait for one are counted", async ({ scene }) => {
    const [first, second] = [crypto.randomUUID(), crypto.randomUUID()];
    const ask = { name: "import", holder: "a", leaseMs: 60_000, waiting: null };
    await scene.store.locks.acquire({ ...ask, token: first });
    await scene.store.locks.acquire({ ...ask, token: second, waiting: { priority: 0 } });
    const figures = await scene.store.statistics.figures({ limit: 10 });
    expect(figureOf(figures, "lock", "held")).toBe(1);
    expect(figureOf(figures, "lock", "waiting")).toBe(1);
    scene.advance(61_000);
    const later = await scene.store.statistics.figures({ limit: 10 });
    expect(figureOf(later, "lock", "held")).toBe(0);
    expect(figureOf(later, "lock", "waiting")).toBe(0);
  });

  test("open waits are counted by what ends them, up to the limit", async ({ scene }) => {
    await scene.enqueued(1);
    const { id, fence } = await scene.claimOne();
    await scene.store.steps.wait({
      ...{ id, fence },
      waits: [
        { name: "nap", kind: "sleep", delayMs: 60_000 },
        { name: "approved", kind: "signal", signal: "approved", key: "7" },
        { name: "paid", kind: "signal", signal: "paid", key: "7" },
      ],
    });
    const counts = async (limit: number) => {
      const figures = await scene.store.statistics.figures({ limit });
      return ["sleep", "signal", "run"].map((kind) => figureOf(figures, "wait", kind) ?? 0);
    };
    expect(await counts(10)).toEqual([1, 2, 0]);
    expect((await counts(2)).reduce((sum, count) => sum + count)).toBe(2);
  });

  test("names of schedules are found by their numbers; numbers of none are left out", async ({
    scene,
  }) => {
    expect(await scene.store.schedules.names([1, 2, 3])).toEqual(new Map());
    expect(await scene.store.schedules.names([])).toEqual(new Map());
  });
}

function announced(scene: Scene, isScheduler: boolean): Promise<number> {
  return scene.store.instances.announce({
    instanceId: `host:1:${crypto.randomUUID()}`,
    app: null,
    release: null,
    jobs: [],
    schedules: [],
    isScheduler,
    pollMs: 1_000,
  });
}
