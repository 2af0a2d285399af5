// Which schedules must be evaluated: by their next tick and by the ends of their runs, and by nothing else.

import { expect } from "vitest";
import { completed, failed, type Held, retried, type Scene, type SceneTest } from "./scene.js";
import { MINUTE_MS, UPRIGHT } from "./schedule-fixtures.js";

/** One run that goes on, and one behind it that waits for it. */
async function gated(scene: Scene, name: string): Promise<[string, string]> {
  await scene.schedules.make(name);
  const first = await scene.schedules.fire(name, { at: scene.now - 1 });
  const second = await scene.schedules.fire(name, { run: { isGated: true } });
  return [first, second];
}

export function scheduleDueSuite(test: SceneTest): void {
  test("a schedule is due from the instant of its next tick on, by the database's clock", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly", { nextAt: scene.now + 1_000 });
    scene.advance(999);
    expect(await scene.schedules.due()).toEqual([]);
    scene.advance(1);
    const { now, schedules, hasMore } = await scene.store.schedules.due({ limit: 10 });
    expect({ now, hasMore }).toEqual({ now: scene.now, hasMore: false });
    expect(schedules).toEqual([await scene.schedules.state("nightly")]);
  });

  test("the most overdue are first, up to the limit, and more are announced", async ({ scene }) => {
    for (const [name, agoMs] of [
      ["b", 200],
      ["a", 300],
      ["d", 0],
      ["c", 100],
    ] as const) {
      await scene.schedules.make(name, { nextAt: scene.now - agoMs });
    }
    const due = async (limit: number) => {
      const { schedules, hasMore } = await scene.store.schedules.due({ limit });
      return [schedules.map(({ name }) => name).join(""), hasMore];
    };
    expect(await due(10)).toEqual(["abcd", false]);
    expect(await due(3)).toEqual(["abc", true]);
    expect(await due(1)).toEqual(["a", true]);
  });

  test("a paused, broken, ended or deleted schedule is not due", async ({ scene }) => {
    for (const name of ["paused", "broken", "deleted"]) {
      await scene.schedules.make(name, { nextAt: scene.now });
    }
    await scene.schedules.make("ended", { nextAt: null, isEnded: true });
    await scene.schedules.pause("paused");
    await scene.schedules.change("broken", {
      progress: { nextAt: null },
      standing: { ...UPRIGHT, brokenAt: scene.now, brokenError: "no zone" },
    });
    await scene.schedules.remove("deleted");
    expect(await scene.schedules.due()).toEqual([]);
    expect((await scene.poll({ isScheduler: true })).hasDueSchedule).toBe(false);
  });

  test("a schedule that lost its next tick is looked at", async ({ scene }) => {
    await scene.schedules.make("lost", { nextAt: null });
    await scene.schedules.make("sound");
    expect(await scene.schedules.due()).toEqual(["lost"]);
    expect((await scene.poll({ isScheduler: true })).hasDueSchedule).toBe(true);
  });

  test("a schedule with a gated run is looked at once the runs before it have ended", async ({
    scene,
  }) => {
    const [first, second] = await gated(scene, "nightly");
    expect(await scene.schedules.due()).toEqual([]);
    const held = await scene.claimOne();
    expect(held.id).toBe(first);
    expect(await scene.schedules.due()).toEqual([]);
    await scene.settle(retried(held));
    expect(await scene.schedules.due()).toEqual([]);
    scene.advance(1_000);
    await scene.store.work.promote({ limit: 1 });
    expect(await scene.schedules.due()).toEqual([]);
    await scene.settle(completed(await scene.claimOne()));
    expect(await scene.schedules.due()).toEqual(["nightly"]);
    expect((await scene.poll({ isScheduler: true })).hasDueSchedule).toBe(true);
    await scene.schedules.change("nightly", { progress: { isGated: false }, opens: second });
    expect(await scene.schedules.due()).toEqual([]);
  });

  test("however the run before it ends, a gated run is looked at", async ({ scene }) => {
    await gated(scene, "failed");
    await scene.settle(failed(await scene.claimOne()));
    const [pending] = await gated(scene, "cancelled");
    await scene.store.runs.cancel({ id: pending, random: 0 });
    const [running] = await gated(scene, "enforced");
    await scene.claimOne();
    await scene.store.runs.cancel({ id: running, random: 0 });
    expect((await scene.schedules.due()).sort()).toEqual(["cancelled", "failed"]);
    await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 });
    expect((await scene.schedules.due()).sort()).toEqual(["cancelled", "enforced", "failed"]);
  });

  test("a paused schedule with a run at its gate is returned too", async ({ scene }) => {
    await gated(scene, "nightly");
    await scene.schedules.pause("nightly");
    expect(await scene.schedules.due()).toEqual([]);
    await scene.settle(completed(await scene.claimOne()));
    expect(await scene.schedules.due()).toEqual(["nightly"]);
  });

  test("a schedule that replaces its runs is looked at until it no longer does", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    await scene.schedules.change("nightly", { progress: { isReplacing: true } });
    expect(await scene.schedules.due()).toEqual(["nightly"]);
    await scene.schedules.change("nightly", { progress: { isReplacing: false } });
    expect(await scene.schedules.due()).toEqual([]);
  });

  test("a schedule with an open backfill is looked at until that has ended", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const backfill = {
      state: scene.schedules.backfill(),
      isNew: true,
      by: null,
      isEnded: false,
      isCancelled: false,
      run: null,
    };
    await scene.schedules.change("nightly", { backfill });
    expect(await scene.schedules.due()).toEqual(["nightly"]);
    const ended = { ...backfill, isNew: false, isEnded: true };
    await scene.schedules.change("nightly", { backfill: ended });
    expect(await scene.schedules.due()).toEqual([]);
  });

  test("a schedule that is due for several reasons is returned once", async ({ scene }) => {
    await gated(scene, "nightly");
    await scene.settle(completed(await scene.claimOne()));
    await scene.schedules.change("nightly", {
      progress: { nextAt: scene.now, isReplacing: true },
      backfill: {
        state: scene.schedules.backfill(),
        isNew: true,
        by: null,
        isEnded: false,
        isCancelled: false,
        run: null,
      },
    });
    await scene.schedules.make("other", { nextAt: scene.now - 1 });
    expect((await scene.schedules.due()).sort()).toEqual(["nightly", "other"]);
    const { hasMore } = await scene.store.schedules.due({ limit: 3 });
    expect(hasMore).toBe(false);
  });

  test("live runs are those that are not terminal, in the order in which they go", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    const ids: string[] = [];
    for (const at of [-3, -2, -1]) {
      ids.push(await scene.schedules.fire("nightly", { at: scene.now + at }));
    }
    const manual = await scene.schedules.trigger("nightly", { isGated: true });
    const [one, two, three] = ids as [string, string, string];
    await scene.schedules.change("nightly", { progress: { live: [manual, three, two, one] } });
    const live = async () =>
      (await scene.schedules.state("nightly")).live.map(({ id, mode, nominalAt, isGated }) => [
        id,
        mode,
        nominalAt === null ? null : nominalAt - scene.now,
        isGated,
      ]);
    const all = [
      [manual, "manual", null, true],
      [three, "scheduled", -1, false],
      [two, "scheduled", -2, false],
      [one, "scheduled", -3, false],
    ];
    expect(await live()).toEqual(all);
    const [first, second] = (await scene.claim({ limit: 2 })) as [Held, Held];
    expect(await live()).toEqual(all);
    await scene.settle(completed(first), retried(second));
    expect(await live()).toEqual(all.filter(([id]) => id !== first.id));
  });

  test("a run that was removed is no longer live", async ({ scene }) => {
    const [first, second] = await gated(scene, "nightly");
    await scene.settle(completed(await scene.claimOne()));
    expect(await scene.store.runs.remove({ id: first })).toBe("removed");
    expect((await scene.schedules.state("nightly")).live).toMatchObject([{ id: second }]);
    expect(await scene.schedules.due()).toEqual(["nightly"]);
  });

  test("hasDueSchedule is returned to schedulers only", async ({ scene }) => {
    await scene.schedules.make("nightly", { nextAt: scene.now + 1 });
    expect((await scene.poll({ isScheduler: true })).hasDueSchedule).toBe(false);
    scene.advance(1);
    expect((await scene.poll({ isScheduler: true })).hasDueSchedule).toBe(true);
    expect((await scene.poll({ isScheduler: false })).hasDueSchedule).toBe(false);
  });

  test("a scheduler wakes at the next tick, or for the next waiting run if that is earlier", async ({
    scene,
  }) => {
    const start = scene.now;
    await scene.schedules.make("a", { nextAt: start + 5_000 });
    await scene.schedules.make("b", { nextAt: start + 3_000 });
    const wakeAt = async () => (await scene.poll({ isScheduler: true })).nextWakeAt;
    expect(await wakeAt()).toBe(start + 3_000);
    await scene.enqueued(1, { delayMs: 2_000 });
    expect(await wakeAt()).toBe(start + 2_000);
    scene.advance(3_000);
    expect(await scene.poll({ isScheduler: true })).toMatchObject({
      hasDueSchedule: true,
      nextWakeAt: start + 5_000,
    });
    await scene.schedules.fire("b", { nextAt: start + MINUTE_MS });
    expect(await wakeAt()).toBe(start + 5_000);
  });

  test("hasGated: a run of a schedule waits at its gate", async ({ scene }) => {
    const hasGated = async () => (await scene.poll({ isScheduler: true })).hasGated;
    await scene.schedules.make("plain");
    await scene.schedules.fire("plain");
    expect(await hasGated()).toBe(false);
    const [, second] = await gated(scene, "nightly");
    expect(await hasGated()).toBe(true);
    await scene.schedules.change("nightly", { progress: { isGated: false }, opens: second });
    expect(await hasGated()).toBe(false);
  });

  test("hasFreeGate is returned once the earlier run has ended, also to instances that do not schedule", async ({
    scene,
  }) => {
    const hasFreeGate = async () => (await scene.poll({ isScheduler: false })).hasFreeGate;
    const gates = async () => {
      const { schedules } = await scene.store.schedules.due({ limit: 10, only: "gates" });
      return schedules.map(({ name }) => name);
    };
    await scene.schedules.make("due", { nextAt: scene.now });
    const [, second] = await gated(scene, "nightly");
    expect([await hasFreeGate(), await gates()]).toEqual([false, []]);
    expect(await scene.store.runs.pendingReason(second)).toEqual({ reason: "schedule" });
    await scene.settle(completed(await scene.claimOne()));
    expect([await hasFreeGate(), await gates()]).toEqual([true, ["nightly"]]);
    expect((await scene.poll({ isScheduler: true })).hasFreeGate).toBe(false);
    expect(await scene.store.runs.pendingReason(second)).toMatchObject({ reason: "worker" });
    await scene.schedules.change("nightly", { progress: { isGated: false }, opens: second });
    expect([await hasFreeGate(), await gates()]).toEqual([false, []]);
    expect(await scene.store.runs.pendingReason(second)).toMatchObject({ reason: "worker" });
  });

  test("lastPolledAt is when a scheduler had polled before this poll", async ({ scene }) => {
    const other = await scene.announce("second");
    const start = scene.now;
    const last = async (isScheduler: boolean, holder = scene.holder) => {
      scene.advance(1_000);
      const { lastPolledAt } = await scene.poll({ isScheduler, holder, wantsLastPoll: true });
      return lastPolledAt === null ? null : lastPolledAt - start;
    };
    expect(await last(false)).toBeNull();
    expect(await last(true)).toBeNull();
    expect(await last(true)).toBe(2_000);
    await last(false, other);
    expect(await last(true, other)).toBe(3_000);
    expect(await last(true)).toBe(5_000);
    expect(await last(true, other)).toBe(6_000);
  });

  test("lastPolledAt is returned on request, and if a schedule is due", async ({ scene }) => {
    const polledAt = scene.now;
    const last = async () => (await scene.poll({ isScheduler: true })).lastPolledAt;
    expect(await last()).toBeNull();
    scene.advance(1_000);
    expect(await last()).toBeNull();
    expect((await scene.poll({ wantsLastPoll: true })).lastPolledAt).toBe(polledAt + 1_000);
    await scene.schedules.make("due", { nextAt: scene.now });
    expect(await last()).toBe(polledAt + 1_000);
  });
}
