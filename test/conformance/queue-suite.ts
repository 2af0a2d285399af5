// Queues: how long they are, and pausing them (S14).

import { expect } from "vitest";
import type { SceneTest } from "./scene.js";

export function queueSuite(test: SceneTest): void {
  test("every queue is listed with its ready, waiting and running runs", async ({ scene }) => {
    await scene.enqueued(3, { queue: "b" });
    await scene.enqueued(1, { queue: "b", job: "mail" });
    await scene.enqueued(2, { queue: "a", delayMs: 1_000 });
    await scene.claim({ limit: 2 });
    expect(await scene.store.queues.list()).toEqual([
      { name: "a", ready: 0, waiting: 2, running: 0, pausedAt: null, pauseNote: null },
      { name: "b", ready: 2, waiting: 0, running: 2, pausedAt: null, pauseNote: null },
    ]);
  });

  test("a queue that is paused says since when and why, until it is resumed", async ({ scene }) => {
    const pausedAt = scene.now;
    await scene.store.queues.pause({ queue: "slow", isPaused: true, note: "moving house" });
    scene.advance(1_000);
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    const idle = { name: "slow", ready: 0, waiting: 0, running: 0 };
    expect(await scene.store.queues.list()).toEqual([
      { ...idle, pausedAt, pauseNote: "moving house" },
    ]);
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    expect(await scene.store.queues.list()).toEqual([{ ...idle, pausedAt: null, pauseNote: null }]);
  });
}
