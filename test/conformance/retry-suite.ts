// Tests an operator's verbs on a run that has ended: retry it, or remove it.

import { expect } from "vitest";
import {
  cancelled,
  completed,
  failed,
  idsOf,
  LEASE_MS,
  policyWith,
  retried,
  type SceneTest,
} from "./scene.js";

export function retrySuite(test: SceneTest): void {
  test("a failed run that is retried gets one attempt more, a larger fence, and keeps its history", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: policyWith({ attempts: 1 }), priority: 7, tags: ["eu"] });
    const first = await scene.claimOne();
    await scene.settle(failed(first));
    expect((await scene.record(first.id)).attemptsMax).toBe(1);
    scene.advance(5_000);
    expect(await scene.store.runs.retry({ id: first.id })).toBe("pending");
    expect(await scene.record(first.id)).toMatchObject({
      status: "pending",
      attempt: 1,
      attemptsMax: 2,
      fence: null,
      finishedAt: null,
      tags: ["eu"],
      error: '{"code":"BROKEN"}',
    });
    const second = await scene.claimOne();
    expect(second).toMatchObject({ id: first.id, attempt: 2, isSuspect: false });
    expect(second.fence).toBeGreaterThan(first.fence);
    expect(second.claim.runs[0]).toMatchObject({ extraAttempts: 1, refunds: 0, laters: 0 });
    await scene.settle(completed(second));
    const attempts = await scene.store.runs.attempts(first.id);
    expect(attempts.map(({ attempt, fence, end }) => [attempt, fence, end])).toEqual([
      [1, first.fence, "failed"],
      [2, second.fence, "completed"],
    ]);
  });

  test("the extra attempt is one: the next loss is final again", async ({ scene }) => {
    await scene.enqueued(1, { policy: policyWith({ attempts: 1 }) });
    const first = await scene.claimOne();
    await scene.settle(failed(first));
    await scene.store.runs.retry({ id: first.id });
    const second = await scene.claimOne();
    await scene.store.leases.markStarted([{ id: second.id, fence: second.fence }]);
    scene.advance(LEASE_MS);
    expect(await scene.store.leases.reclaim({ limit: 1, random: 0 })).toMatchObject([
      { to: "failed" },
    ]);
    expect(await scene.store.runs.retry({ id: first.id })).toBe("pending");
    expect((await scene.record(first.id)).attemptsMax).toBe(3);
  });

  test("a run that was cancelled can be retried, whether it had started or not", async ({
    scene,
  }) => {
    const [pending, running] = await scene.enqueued(2);
    await scene.store.runs.cancel({ id: pending as string, random: 0 });
    await scene.settle(cancelled(await scene.claimOne()));
    for (const id of [pending, running] as string[]) {
      expect(await scene.store.runs.retry({ id })).toBe("pending");
      expect((await scene.record(id)).cancelRequestedAt).toBeNull();
    }
    expect(new Set(idsOf(await scene.claim()))).toEqual(new Set([pending, running]));
    expect(await scene.store.runs.attempts(pending as string)).toEqual([]);
    expect(await scene.store.runs.attempts(running as string)).toMatchObject([
      { end: "cancelled" },
    ]);
  });

  test("only failed and cancelled runs are retried", async ({ scene }) => {
    const [id] = (await scene.enqueued(1)) as [string];
    expect(await scene.store.runs.retry({ id })).toBe("not_terminal");
    const held = await scene.claimOne();
    expect(await scene.store.runs.retry({ id })).toBe("not_terminal");
    await scene.settle(retried(held));
    expect(await scene.store.runs.retry({ id })).toBe("not_terminal");
    scene.advance(1_000);
    await scene.store.work.promote({ limit: 1 });
    await scene.settle(completed(await scene.claimOne()));
    const before = await scene.portrait(id);
    expect(await scene.store.runs.retry({ id })).toBe("completed");
    expect(await scene.portrait(id)).toEqual(before);
    expect(await scene.store.runs.retry({ id: scene.id() })).toBe("not_found");
  });

  test("two operators who retry at once give one attempt", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held));
    const answers = await Promise.all([
      scene.store.runs.retry({ id: held.id }),
      scene.store.runs.retry({ id: held.id }),
      scene.store.runs.retry({ id: held.id }),
    ]);
    expect(answers.toSorted()).toEqual(["not_terminal", "not_terminal", "pending"]);
    expect((await scene.record(held.id)).attemptsMax).toBe(4);
    expect(await scene.claim()).toHaveLength(1);
  });

  test("a removed run is gone with its attempts, and only ended runs are removed", async ({
    scene,
  }) => {
    const [id] = (await scene.enqueued(1)) as [string];
    expect(await scene.store.runs.remove({ id })).toBe("not_terminal");
    await scene.settle(retried(await scene.claimOne(), 0));
    const held = await scene.claimOne();
    expect(await scene.store.runs.remove({ id })).toBe("not_terminal");
    await scene.settle(failed(held));
    expect(await scene.store.runs.remove({ id })).toBe("removed");
    expect(await scene.store.runs.get(id)).toBeNull();
    expect(await scene.store.runs.attempts(id)).toEqual([]);
    expect(await scene.store.runs.list({ limit: 10 })).toEqual([]);
    expect(await scene.store.runs.terminal([id])).toEqual([]);
    expect(await scene.store.runs.remove({ id })).toBe("not_found");
    expect(await scene.store.runs.retry({ id })).toBe("not_found");
  });
}
