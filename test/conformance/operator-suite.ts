// Tests the verbs of operators: ending stale runs, and reading the whole.

import { expect } from "vitest";
import type { InstanceRecord } from "../../src/store/instances.js";
import type { Since } from "../../src/store/statistics.js";
import { completed, failed, type Held, policyWith, type Scene, type SceneTest } from "./scene.js";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const NEVER_MS = 10 * 365 * 86_400_000;
const LONG = policyWith({ leaseMs: 60 * MINUTE_MS, timeoutMs: 600 * MINUTE_MS });

const reclaim = (scene: Scene) => scene.store.leases.reclaim({ limit: 100, random: 0 });

export function operatorSuite(test: SceneTest): void {
  test("a lease whose holder was silent for too long ends now, and is lost", async ({ scene }) => {
    await scene.enqueued(1, { policy: LONG });
    const silent = await scene.claimOne();
    scene.advance(10 * MINUTE_MS - 1);
    const stale = { silentMs: 10 * MINUTE_MS, ranMs: NEVER_MS };
    expect(await scene.store.leases.expireStale(stale)).toBe(0);
    expect(await reclaim(scene)).toEqual([]);
    scene.advance(1);
    expect(await scene.store.leases.expireStale(stale)).toBe(1);
    expect(await reclaim(scene)).toMatchObject([{ id: silent.id, end: "lost", to: "pending" }]);
  });

  test("a holder that renews is not silent, but after its time limit it cannot renew", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: LONG });
    const held = await scene.claimOne();
    scene.advance(30 * MINUTE_MS);
    await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    expect(
      await scene.store.leases.expireStale({ silentMs: 10 * MINUTE_MS, ranMs: 31 * MINUTE_MS }),
    ).toBe(0);
    const stale = { silentMs: 10 * MINUTE_MS, ranMs: 30 * MINUTE_MS };
    expect(await scene.store.leases.expireStale(stale)).toBe(1);
    await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    scene.advance(5_000);
    expect(await reclaim(scene)).toMatchObject([{ id: held.id, end: "timeout", to: "pending" }]);
  });

  test("a silent holder over its time limit is lost: onLost fail ends the run", async ({
    scene,
  }) => {
    await scene.enqueued(1, { policy: { ...LONG, onLost: "fail" } });
    const held = await scene.claimOne();
    await scene.store.leases.markStarted([held]);
    scene.advance(20 * MINUTE_MS);
    expect(await scene.store.leases.expireStale({ silentMs: MINUTE_MS, ranMs: MINUTE_MS })).toBe(1);
    expect(await reclaim(scene)).toMatchObject([{ id: held.id, end: "lost", to: "failed" }]);
  });

  test("a lease that expired by itself keeps its outcome and is not counted", async ({ scene }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: MINUTE_MS, timeoutMs: MINUTE_MS }) });
    const held = await scene.claimOne();
    scene.advance(30_000);
    await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    scene.advance(60 * MINUTE_MS);
    expect(await scene.store.leases.expireStale({ silentMs: 1, ranMs: 1 })).toBe(0);
    expect(await reclaim(scene)).toMatchObject([{ end: "timeout" }]);
  });

  test("a cleanup that respects leases takes nothing within a run's own lease and timeout", async ({
    scene,
  }) => {
    const policy = policyWith({ leaseMs: 20 * MINUTE_MS, timeoutMs: 40 * MINUTE_MS });
    await scene.enqueued(1, { policy });
    const held = await scene.claimOne();
    const atOnce = { silentMs: 0, ranMs: 0, respectsLeases: true };
    for (let i = 0; i < 2; i += 1) {
      scene.advance(19 * MINUTE_MS);
      expect(await scene.store.leases.expireStale(atOnce)).toBe(0);
      expect(await reclaim(scene)).toEqual([]);
      await scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    }
    scene.advance(2 * MINUTE_MS);
    await scene.store.leases.expireStale(atOnce);
    scene.advance(5_000);
    expect(await reclaim(scene)).toMatchObject([{ id: held.id, end: "timeout" }]);
  });

  test("instances are listed page by page with their runs: live ones first, then the newest", async ({
    scene,
  }) => {
    await scene.enqueued(3);
    await scene.claim({ limit: 2 });
    const silent = await scene.announce("silent");
    scene.advance(61_000);
    const retired = await scene.announce("retired");
    await scene.store.instances.retire({ holder: retired });
    await scene.announce("newest", scene.store, {
      app: "shop",
      release: "1.2.3",
      isScheduler: true,
      jobs: [{ name: "study", queue: "default", priority: 0, version: 1, policy: LONG }],
    });
    await scene.poll();
    const found: InstanceRecord[] = [];
    for (;;) {
      const after = found.at(-1);
      const page = await scene.store.instances.list({ limit: 1, ...(after ? { after } : {}) });
      if (page.length === 0) break;
      found.push(...page);
    }
    expect(found.map(({ id, isLive, held }) => [id, isLive, held])).toEqual([
      ["newest", true, 0],
      ["first", true, 2],
      ["retired", false, 0],
      ["silent", false, 0],
    ]);
    expect(found.at(-1)?.no).toBe(silent);
    expect(await scene.store.instances.list({ limit: 10 })).toEqual(found);
    expect(found[0]).toMatchObject({
      app: "shop",
      release: "1.2.3",
      isScheduler: true,
      jobs: ["study"],
      startedAt: scene.now,
      seenAt: scene.now,
      retiredAt: null,
    });
    expect(found[2]?.retiredAt).toBe(scene.now);
  });

  test("statistics count ended runs, by stretch and by job, and separate runs that were made by hand", async ({
    scene,
  }) => {
    const startedAt = scene.now;
    await scene.enqueued(2);
    await scene.enqueued(1, { mode: "manual" });
    const [one, two, byHand] = (await scene.claim()) as [Held, Held, Held];
    await scene.settle(completed(one), failed(two), failed(byHand));
    scene.advance(2 * HOUR_MS);
    await scene.enqueued(1, { job: "mail" });
    await scene.settle(completed(await scene.claimOne({ jobs: ["mail"] })));
    const all = { since: { agoMs: 3 * HOUR_MS }, bucketMs: HOUR_MS, job: null };
    const rows = await scene.store.statistics.summary(all);
    const shown = rows.map(({ at, job, status, runs, regular }) => [
      at,
      job,
      status,
      runs,
      regular,
    ]);
    expect(new Set(shown.map((row) => row.join()))).toEqual(
      new Set(
        [
          [startedAt, null, "completed", 1, 1],
          [startedAt, null, "failed", 2, 1],
          [scene.now, null, "completed", 1, 1],
          [null, "study", "completed", 1, 1],
          [null, "study", "failed", 2, 1],
          [null, "mail", "completed", 1, 1],
        ].map((row) => row.join()),
      ),
    );
    const late = await scene.store.statistics.summary({
      ...all,
      since: { at: startedAt + HOUR_MS },
    });
    expect(late.map(({ job }) => job)).toEqual([null, "mail"]);
    const mail = await scene.store.statistics.summary({
      ...all,
      job: "mail",
      bucketMs: 24 * HOUR_MS,
    });
    expect(mail.map(({ at }) => at)).toEqual([startedAt - (startedAt % (24 * HOUR_MS)), null]);
  });

  test("failures are those of the newest failed runs that ended since then, newest end first", async ({
    scene,
  }) => {
    await scene.enqueued(4);
    const [one, two, three, four] = (await scene.claim()) as [Held, Held, Held, Held];
    await scene.settle(failed(three));
    scene.advance(HOUR_MS);
    await scene.settle(failed(one), completed(four));
    scene.advance(1);
    await scene.settle(failed(two));
    const ids = async (since: Since, limit = 10) =>
      (await scene.store.statistics.failures({ since, limit })).map(({ id }) => id);
    expect(await ids({ agoMs: 2 * HOUR_MS })).toEqual([two.id, one.id, three.id]);
    expect(await ids({ at: scene.now - 1 })).toEqual([two.id, one.id]);
    expect(await ids({ agoMs: 2 * HOUR_MS }, 2)).toEqual([two.id, three.id]);
    const [newest] = await scene.store.statistics.failures({ since: { agoMs: 0 }, limit: 1 });
    expect(newest).toBeUndefined();
  });
}
