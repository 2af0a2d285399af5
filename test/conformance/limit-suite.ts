// Limits of concurrency: never more held runs than the limit for each key; a run that ends or waits releases its
// capacity in the same commit; no key waits for another.

import { expect } from "vitest";
import { announceLimits, LimitedJob, limitsOf } from "./limited-job.js";
import {
  cancelled,
  completed,
  failed,
  handedBack,
  idsOf,
  LEASE_MS,
  policyWith,
  postponed,
  retried,
  type SceneTest,
} from "./scene.js";

const PER_ACCOUNT = { concurrency: { limit: 2, key: "account" } };

export function limitSuite(test: SceneTest): void {
  test("no more runs of a key are held than its limit, and other keys do not wait for it", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, PER_ACCOUNT);
    const a = await job.enqueued(5, "a");
    const b = await job.enqueued(1, "b");
    const held = await job.claim();
    expect(idsOf(held).sort()).toEqual(idsOf([...a.slice(0, 2), ...b]).sort());
    expect(held.every(({ claim }) => claim.isLimited)).toBe(true);
    expect(await job.claim()).toEqual([]);
  });

  test("a limit without a key is for the whole job", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 3 } });
    await job.enqueued(2, "a");
    await job.enqueued(2, "b");
    expect(await job.claim()).toHaveLength(3);
    expect(await job.claim()).toEqual([]);
  });

  test("only a claim that requests limited runs gets them", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, PER_ACCOUNT);
    await job.enqueued(1);
    expect(await scene.claim()).toEqual([]);
    expect(await job.claim()).toHaveLength(1);
  });

  test("a free slot goes to the run that is due first, and one step of priority outweighs a minute", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first] = await job.enqueued(1, "a");
    scene.advance(59_000);
    const [urgent] = await job.enqueued(1, "a", { priority: 1 });
    const [late] = await job.enqueued(1, "a");
    const order = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const [held] = await job.claim();
      order.push(held?.id);
      if (held) await scene.settle(completed(held));
    }
    expect(order).toEqual([urgent?.id, first?.id, late?.id]);
  });

  for (const [word, end] of Object.entries({ completed, failed, cancelled, retried, postponed })) {
    test(`a run that is ${word} releases its slot`, async ({ scene }) => {
      const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
      const [first, second] = await job.enqueued(2);
      const [held] = await job.claim();
      expect(held?.id).toBe(first?.id);
      expect((await scene.poll()).hasLimited).toBe(false);
      if (held) await scene.settle(end(held));
      expect((await scene.poll()).hasLimited).toBe(true);
      expect(idsOf(await job.claim())).toEqual([second?.id]);
    });
  }

  test("a run that is handed back keeps its slot and returns to ready at once", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first] = await job.enqueued(2);
    const [held] = await job.claim();
    if (held) await scene.settle(handedBack(held));
    expect((await scene.poll()).hasLimited).toBe(false);
    expect((await scene.poll()).hasReady).toBe(true);
    const [again] = await scene.claim();
    expect(again?.id).toBe(first?.id);
    expect(again?.claim.isLimited).toBe(true);
    if (again) await scene.settle(completed(again));
    expect(await job.claim()).toHaveLength(1);
  });

  test("the first loss keeps the slot, a later one releases it", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first, second] = await job.enqueued(2);
    await job.claim();
    await scene.loseAll();
    expect(await job.claim()).toEqual([]);
    const [suspect] = await scene.claim({ wantsSuspect: true });
    expect(suspect?.id).toBe(first?.id);
    await scene.loseAll();
    expect(idsOf(await job.claim())).toEqual([second?.id]);
  });

  test("a suspect that waited for its delay is claimed alone when its limit lets it", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first] = await job.enqueued(1);
    await job.claim();
    await scene.loseAll();
    await scene.claim({ wantsSuspect: true });
    await scene.loseAll();
    scene.advance(10_000);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(1);
    expect((await scene.poll()).hasSuspect).toBe(true);
    expect(await job.claim()).toEqual([]);
    const [held] = await scene.claim({ wantsSuspect: true, limited: "last" });
    expect(held?.id).toBe(first?.id);
    expect(held?.isSuspect).toBe(true);
  });

  test("a loss that ends its run releases the slot", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const policy = policyWith({ onLost: "fail" });
    const [first] = await job.enqueued(1, "a", { policy });
    const [second] = await job.enqueued(1, "a", { policy });
    const held = await job.claim();
    await scene.store.leases.markStarted(held);
    await scene.loseAll();
    expect(await scene.status(first?.id ?? "")).toBe("failed");
    expect(idsOf(await job.claim())).toEqual([second?.id]);
  });

  test("a cancel releases the slot of a ready run and of a running one", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first, second, third] = await job.enqueued(3);
    const [held] = await job.claim();
    if (held) await scene.settle(handedBack(held));
    await scene.store.runs.cancel({ id: first?.id ?? "", random: 0 });
    expect(idsOf(await job.claim())).toEqual([second?.id]);
    await scene.store.runs.cancel({ id: second?.id ?? "", random: 0 });
    scene.advance(LEASE_MS - 1);
    await scene.store.leases.enforceCancels({ graceMs: 1_000, random: 0 });
    expect(idsOf(await job.claim())).toEqual([third?.id]);
  });

  test("a run that is cancelled in line leaves it to the next", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [first, second] = await job.enqueued(2);
    await scene.store.runs.cancel({ id: first?.id ?? "", random: 0 });
    expect(idsOf(await job.claim())).toEqual([second?.id]);
  });

  test("a run that an operator revives waits in line like any other", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    const [first, second] = await job.enqueued(2);
    const [held] = await job.claim();
    if (held) await scene.settle(failed(held));
    const [other] = await job.claim();
    expect(other?.id).toBe(second?.id);
    expect(await scene.store.runs.retry({ id: first?.id ?? "" })).toBe("pending");
    expect(await scene.claim()).toEqual([]);
    expect(await job.claim()).toEqual([]);
    if (other) await scene.settle(completed(other));
    expect(idsOf(await job.claim())).toEqual([first?.id]);
  });

  test("a limited run enters the line only when it is due", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    const [later] = await job.enqueued(1, "a", { delayMs: 5_000, priority: 100 });
    expect((await scene.poll()).nextWakeAt).toBe(scene.now + 5_000);
    expect(await job.claim()).toEqual([]);
    scene.advance(5_000);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(1);
    expect((await scene.poll()).hasDue).toBe(false);
    expect(idsOf(await job.claim())).toEqual([later?.id]);
  });

  test("a changed limit applies to runs that begin after the change", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    await job.enqueued(5);
    expect(await job.claim()).toHaveLength(1);
    await announceLimits(scene, limitsOf({ concurrency: { limit: 3 } }));
    expect(await job.claim()).toHaveLength(2);
    await announceLimits(scene, limitsOf({ concurrency: { limit: 1 } }));
    expect(await job.claim()).toEqual([]);
    await announceLimits(scene);
    expect(await job.claim()).toHaveLength(2);
  });

  test("runs of one key in several queues share its limit, and a paused queue is passed over", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 2, key: "account" } });
    await job.enqueued(2, "a", { queue: "slow" });
    const [fast] = await job.enqueued(3, "a", { queue: "fast" });
    await scene.store.queues.pause({ queue: "slow", isPaused: true });
    const [held] = await job.claim(1);
    expect(held?.id).toBe(fast?.id);
    await scene.store.queues.pause({ queue: "slow", isPaused: false });
    const [slow] = await scene.claim({ limited: "last", queues: ["slow"] });
    expect(slow?.claim.queue).toBe("slow");
    expect(await job.claim()).toEqual([]);
  });

  test("limited runs and others share the room of a claim, whichever come first", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 5 } }, "mail");
    await job.enqueued(3);
    await scene.enqueued(3);
    const jobs = ["mail", "study"];
    const first = await scene.claim({ limit: 2, limited: "first", jobs });
    expect(first.map((held) => held.job)).toEqual(["mail", "mail"]);
    const last = await scene.claim({ limit: 2, limited: "last", jobs });
    expect(last.map((held) => held.job)).toEqual(["study", "study"]);
    const rest = await scene.claim({ limit: 10, limited: "first", jobs });
    expect(rest.map((held) => held.job).sort()).toEqual(["mail", "study"]);
  });

  test("keys are served in turn, so that a long backlog of one does not hold up another", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 50, key: "account" } });
    await job.enqueued(20, "a");
    const [b] = await job.enqueued(1, "b");
    expect(idsOf(await job.claim(2))).toContain(b?.id);
  });

  test("runs whose input lacks the key member share one key", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account.id" } });
    await job.enqueued(1, { id: 7 });
    await job.enqueued(1, { id: "7" });
    await job.enqueued(2, "nothing there");
    expect(await job.claim()).toHaveLength(3);
  });

  test("an enqueue that is repeated after a lost response waits in line once", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 5 } });
    const runs = [job.run(), job.run()];
    await scene.enqueue(...runs);
    await scene.enqueue(...runs);
    expect(await job.claim()).toHaveLength(2);
  });

  test("a settlement that is stale gives nothing back", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1 } });
    await job.enqueued(2);
    const [held] = await job.claim();
    await scene.loseAll();
    if (held) expect(await scene.settle(completed(held))).toHaveLength(1);
    expect(await job.claim()).toEqual([]);
  });

  test("idle keys are pruned, and live ones stay", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    await job.enqueued(1, "gone");
    await job.enqueued(1, "held");
    await job.enqueued(1, "later", { delayMs: 60_000 });
    const held = await job.claim();
    const gone = held.find(({ claim }) => claim.runs.some(({ input }) => input.includes("gone")));
    if (gone) await scene.settle(completed(gone));
    const keep = { keepMs: 86_400_000, keepTicksMs: 86_400_000, limit: 100 };
    expect(await scene.store.retention.prune(keep)).toBe(1);
    expect(await scene.store.retention.prune(keep)).toBe(0);
    await job.enqueued(1, "held");
    expect(await job.claim()).toEqual([]);
  });

  test("a pending run shows its reason: time, a limit with the runs before it, a paused queue, or none", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    const [first, second, third] = await job.enqueued(3, "acme");
    const [later] = await job.enqueued(1, "acme", { delayMs: 5_000 });
    expect(await scene.store.runs.pendingReason(first?.id ?? "")).toEqual({
      reason: "worker",
      instances: 0,
    });
    await job.claim(1);
    expect(await scene.store.runs.pendingReason(first?.id ?? "")).toBeNull();
    expect(await scene.store.runs.pendingReason(second?.id ?? "")).toEqual({
      reason: "concurrency",
      key: '"acme"',
      limit: 1,
      held: 1,
      ahead: 0,
    });
    expect(await scene.store.runs.pendingReason(third?.id ?? "")).toMatchObject({ ahead: 1 });
    expect(await scene.store.runs.pendingReason(later?.id ?? "")).toEqual({
      reason: "time",
      until: scene.now + 5_000,
    });
    await scene.store.queues.pause({ queue: "default", isPaused: true, note: "moving" });
    expect(await scene.store.runs.pendingReason(third?.id ?? "")).toEqual({
      reason: "paused_queue",
      queue: "default",
      since: scene.now,
      note: "moving",
    });
  });
}
