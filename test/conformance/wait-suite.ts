// Steps, waits and signals: each write carries the fence of the holder, deadlines stay, and an end is recorded once.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import type { NewWait, Suspended } from "../../src/store/steps.js";
import type { Store } from "../../src/store/store.js";
import { LimitedJob } from "./limited-job.js";
import { completed, failed, type Held, retried, type Scene, type SceneTest } from "./scene.js";

const KEEP_MS = 60_000;
const EVER_MS = 10 * KEEP_MS;

async function heldRun(scene: Scene): Promise<Held> {
  await scene.enqueued(1);
  return scene.claimOne();
}

/** The grant alone. */
const grantOf = ({ id, fence }: Held) => ({ id, fence });

const newStep = (name: string, value: string) => ({ name, value, tries: 1, ranMs: 5 });

const forSignal = (changes: Partial<NewWait> = {}): NewWait => ({
  ...{ name: "wait", kind: "signal", signal: "ready", key: "k" },
  ...changes,
});

function wait(scene: Scene, held: Held, ...waits: NewWait[]) {
  return scene.store.steps.wait({ ...grantOf(held), waits });
}

function send(scene: Scene, value: string, changes: { key?: string; keepMs?: number } = {}) {
  const signal = { name: "ready", key: "k", value, keepMs: KEEP_MS, ...changes };
  return scene.store.signals.send(signal);
}

function suspend(scene: Scene, held: Held, store: Store = scene.store): Promise<Suspended> {
  const { mode, schedule, batch, claim } = held;
  const common = { ...grantOf(held), mode, schedule, batch, isLimited: claim.isLimited };
  return store.steps.suspend({ ...common, ranMs: 5, holder: scene.holder, random: 0 });
}

/** What the holder gets of waits that are over: their names and values. */
async function collected(scene: Scene, held: Held): Promise<unknown> {
  const found = await scene.store.steps.collect(grantOf(held));
  return found === "stale" ? found : found.ended.map(({ name, value }) => [name, value]);
}

const stored = (value: unknown, at: number) => JSON.stringify({ value, at });

/** The run is due, and somebody holds it anew. */
async function resumed(scene: Scene, id: RunId): Promise<Held> {
  await scene.store.work.promote({ limit: 10 });
  const held = await scene.claimOne();
  expect(held.id).toBe(id);
  return held;
}

export function waitSuite(test: SceneTest): void {
  test("a step is stored once: a repetition returns its number and keeps the first value", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    const finish = (...steps: ReturnType<typeof newStep>[]) =>
      scene.store.steps.finish({ ...grantOf(held), steps });
    expect(await finish(newStep("a", "1"), newStep("b", "2"))).toEqual([1, 2]);
    expect(await finish(newStep("b", "9"), newStep("c", "3"))).toEqual([2, 3]);
    const { steps, isAll } = await scene.store.steps.list({ id: held.id, after: 0 });
    expect(steps.map(({ name, no, value }) => [name, no, value])).toEqual([
      ["a", 1, "1"],
      ["b", 2, "2"],
      ["c", 3, "3"],
    ]);
    expect(isAll).toBe(true);
    const after = await scene.store.steps.list({ id: held.id, after: 2 });
    expect(after.steps.map(({ name }) => name)).toEqual(["c"]);
  });

  test("under an old fence no step, wait or end is stored, and no run is suspended", async ({
    scene,
  }) => {
    const old = await heldRun(scene);
    await wait(scene, old, forSignal());
    await scene.loseAll();
    const held = await scene.claimOne({ wantsSuspect: true });
    expect(held.id).toBe(old.id);
    await send(scene, "1");
    const steps = [newStep("a", "1")];
    expect(await scene.store.steps.finish({ ...grantOf(old), steps })).toBe("stale");
    expect(await wait(scene, old, forSignal({ name: "again" }))).toBe("stale");
    expect(await collected(scene, old)).toBe("stale");
    expect(await suspend(scene, old)).toEqual({ result: "stale" });
    expect((await scene.store.steps.list({ id: old.id, after: 0 })).steps).toEqual([]);
    expect(await scene.store.steps.waits(old.id)).toMatchObject([{ name: "wait" }]);
    expect(await scene.status(old.id)).toBe("running");
    expect(await collected(scene, held)).toEqual([["wait", stored(1, scene.now)]]);
  });

  test("a wait that is stored again keeps its deadline", async ({ scene }) => {
    const held = await heldRun(scene);
    const sleep: NewWait = { name: "sleep", kind: "sleep", delayMs: 1_000 };
    const until = scene.now + 1_000;
    expect(await wait(scene, held, sleep)).toMatchObject({ waits: [{ until }] });
    scene.advance(400);
    expect(await wait(scene, held, sleep)).toMatchObject({ waits: [{ until }] });
  });

  test("a suspended run gives back its lease, uses up no attempt, and is due at its first deadline", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(
      scene,
      held,
      { name: "long", kind: "sleep", delayMs: 9_000 },
      { name: "short", kind: "sleep", delayMs: 2_000 },
    );
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: 2_000 });
    const { status, attempt, fence } = await scene.record(held.id);
    expect([status, attempt, fence]).toEqual(["pending", 0, null]);
    expect(await scene.poll()).toMatchObject({ hasDue: false, nextWakeAt: scene.now + 2_000 });
    scene.advance(2_000);
    const again = await resumed(scene, held.id);
    expect(again.attempt).toBe(1);
    expect(again.fence).toBeGreaterThan(held.fence);
    expect(await collected(scene, again)).toEqual([["short", null]]);
    expect(await scene.store.steps.waits(held.id)).toMatchObject([{ name: "long" }]);
  });

  test("a repeated suspension returns the result of the first one", async ({ scene }) => {
    const held = await heldRun(scene);
    await wait(scene, held, { name: "sleep", kind: "sleep", delayMs: 2_000 });
    await suspend(scene, held);
    const before = await scene.portrait(held.id);
    scene.advance(500);
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: 1_500 });
    expect(await scene.portrait(held.id)).toEqual(before);
  });

  test("a run whose waits have ended unknown to its holder is due again at once, and counts as begun", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(scene, held, { name: "sleep", kind: "sleep", delayMs: 1_000 });
    scene.advance(1_000);
    expect(await collected(scene, held)).toEqual([["sleep", null]]);
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: 0 });
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: 0 });
    scene.advance(1);
    const again = await resumed(scene, held.id);
    expect(again.attempt).toBe(1);
    expect(again.claim.runs[0]?.laters).toBe(1);
  });

  test("a run without an open wait is not suspended", async ({ scene }) => {
    const held = await heldRun(scene);
    expect(await suspend(scene, held)).toEqual({ result: "no_wait" });
    expect(await scene.status(held.id)).toBe("running");
  });

  test("a run for which something is over already is due at once when it is suspended", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(scene, held, forSignal());
    await send(scene, "1");
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: 0 });
    expect(await collected(scene, await resumed(scene, held.id))).toEqual([
      ["wait", stored(1, scene.now)],
    ]);
  });

  test("a signal wakes every sleeping run that waits for it, and no other", async ({ scene }) => {
    await scene.enqueued(3);
    const [one, two, other] = (await scene.claim({ limit: 3 })) as [Held, Held, Held];
    for (const held of [one, two]) await wait(scene, held, forSignal());
    await wait(scene, other, forSignal({ key: "another" }));
    for (const held of [one, two, other]) await suspend(scene, held);
    expect((await scene.poll()).nextWakeAt).toBeNull();
    await send(scene, "1");
    expect(await scene.store.signals.wake({ limit: 10 })).toMatchObject({ woken: 2 });
    await scene.store.work.promote({ limit: 10 });
    const woken = await scene.claim({ limit: 10 });
    expect(woken.map(({ id }) => id).sort()).toEqual([one.id, two.id].sort());
    expect((await scene.poll()).hasWakes).toBe(false);
  });

  test("a run in its retry delay is not woken, and keeps the signal for its next attempt", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(scene, held, forSignal());
    await scene.settle({ ...retried(held, 5_000), mayWait: true });
    await send(scene, "1");
    const sentAt = scene.now;
    expect(await scene.store.signals.wake({ limit: 10 })).toMatchObject({ woken: 0 });
    expect(await scene.poll()).toMatchObject({ hasDue: false, nextWakeAt: scene.now + 5_000 });
    scene.advance(5_000);
    const again = await resumed(scene, held.id);
    expect(await collected(scene, again)).toEqual([["wait", stored(1, sentAt)]]);
  });

  test("a signal that was stored by the deadline wins, whenever the run looks; a later one does not", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(
      scene,
      held,
      forSignal({ name: "in time", delayMs: 1_000 }),
      forSignal({ name: "late", key: "late", delayMs: 1_000 }),
    );
    scene.advance(1_000);
    const sentAt = scene.now;
    await send(scene, "1");
    scene.advance(1);
    await send(scene, "2", { key: "late" });
    expect(await collected(scene, held)).toEqual([
      ["in time", stored(1, sentAt)],
      ["late", null],
    ]);
  });

  test("an end is recorded once, and neither a later signal nor another execution changes it", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    await wait(scene, held, forSignal({ delayMs: 1_000 }));
    scene.advance(2_000);
    expect(await collected(scene, held)).toEqual([["wait", null]]);
    await send(scene, "1");
    expect(await collected(scene, held)).toEqual([]);
    await scene.settle(retried(held, 0));
    const again = await scene.claimOne();
    expect(await collected(scene, again)).toEqual([]);
    const { steps } = await scene.store.steps.list({ id: held.id, after: 0 });
    expect(steps).toMatchObject([{ name: "wait", kind: "signal", value: null, fence: held.fence }]);
  });

  test("ends with large values are recorded in parts and read in parts, each once and in their order", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    const keys = Array.from({ length: 24 }, (_, n) => `k${String(n).padStart(2, "0")}`);
    await wait(
      scene,
      held,
      ...keys.map((key) => forSignal({ name: key, key })),
      forSignal({ name: "open", key: "open" }),
    );
    const value = JSON.stringify("x".repeat(250_000));
    for (const key of keys) {
      await send(scene, value, { key });
      scene.advance(1);
    }
    const found = await scene.store.steps.collect(grantOf(held));
    if (found === "stale") throw new Error("the run is held");
    expect(found.ended.map(({ name }) => name)).toEqual(keys);
    expect(found.ended.map(({ no }) => no)).toEqual(keys.map((_, at) => at + 1));
    expect(found.waits.map(({ name }) => name)).toEqual(["open"]);
    const pages: string[][] = [];
    for (let isAll = false, after = 0; !isAll; ) {
      const page = await scene.store.steps.list({ id: held.id, after });
      pages.push(page.steps.map(({ name }) => name));
      expect(page.steps.every((step) => Number(step.value?.length) > value.length)).toBe(true);
      after = Number(page.steps.at(-1)?.no);
      isAll = page.isAll;
    }
    expect(pages.flat()).toEqual(keys);
    expect(pages.map((page) => page.length)).toEqual([17, 7]);
    expect(await collected(scene, held)).toEqual([]);
    expect(await suspend(scene, held)).toEqual({ result: "suspended", wakeInMs: null });
  });

  test("a wait counts signals from its own earliest time on", async ({ scene }) => {
    await send(scene, "1");
    const sentAt = scene.now;
    scene.advance(1);
    const held = await heldRun(scene);
    await wait(
      scene,
      held,
      forSignal({ name: "new", signalSince: scene.now }),
      forSignal({ name: "since then", signalSince: sentAt }),
      forSignal({ name: "any" }),
    );
    expect(await collected(scene, held)).toEqual([
      ["any", stored(1, sentAt)],
      ["since then", stored(1, sentAt)],
    ]);
  });

  test("a signal that an open wait may need is neither pruned nor replaced", async ({ scene }) => {
    const held = await heldRun(scene);
    await wait(scene, held, forSignal());
    await send(scene, "1");
    await send(scene, "1", { key: "unneeded" });
    await scene.store.signals.wake({ limit: 10 });
    const sentAt = scene.now;
    scene.advance(EVER_MS);
    expect(await scene.store.signals.prune({ keepMs: KEEP_MS, limit: 10 })).toBe(1);
    expect(await scene.store.signals.find("ready", "unneeded")).toBeNull();
    expect(await send(scene, "2")).toBe("conflict");
    expect(await collected(scene, held)).toEqual([["wait", stored(1, sentAt)]]);
    expect(await scene.store.signals.prune({ keepMs: KEEP_MS, limit: 10 })).toBe(1);
    expect(await send(scene, "2")).toBe("stored");
  });

  test("a woken run takes its place in a limit like any other", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    const [first, second] = await job.enqueued(2);
    const [held] = (await job.claim()) as [Held];
    expect(held.id).toBe(first?.id);
    await wait(scene, held, forSignal());
    await suspend(scene, held);
    const [next] = (await job.claim()) as [Held];
    expect(next.id).toBe(second?.id);
    await send(scene, "1");
    expect(await scene.store.signals.wake({ limit: 10 })).toMatchObject({ woken: 1 });
    await scene.store.work.promote({ limit: 10 });
    expect(await job.claim()).toEqual([]);
    expect(await scene.claim()).toEqual([]);
    await scene.settle(completed(next));
    expect((await job.claim()).map(({ id }) => id)).toEqual([held.id]);
  });

  test("the waits of a run that has ended go, and its open calls are named", async ({ scene }) => {
    const parent = await heldRun(scene);
    const calls = [
      { name: "cancelled with it", isLeft: false },
      { name: "left", isLeft: true },
    ];
    const children = [];
    for (const call of calls) {
      const child = scene.run({ job: "child" });
      children.push(child.id);
      const { id, fence } = parent;
      await scene.store.batches.call({ parent: { id, fence }, generation: 0, child, ...call });
    }
    await scene.settle({ ...completed(parent), mayWait: true });
    expect((await scene.poll()).hasWakes).toBe(true);
    const { ended } = await scene.store.signals.wake({ limit: 10 });
    expect(ended).toEqual([{ run: parent.id, children: [children[0]] }]);
    await scene.store.signals.forgetEnded(parent.id);
    expect(await scene.store.steps.waits(parent.id)).toEqual([]);
    expect((await scene.poll()).hasWakes).toBe(false);
  });

  test("a call makes one child for its step and generation, whose end wakes the sleeping caller", async ({
    scene,
  }) => {
    const parent = await heldRun(scene);
    const { id, fence } = parent;
    const call = (generation: number) => {
      const child = scene.run({ job: "child" });
      const params = { parent: { id, fence }, name: "call", generation, child, isLeft: false };
      return scene.store.batches.call(params);
    };
    const first = await call(0);
    expect(await call(0)).toEqual(first);
    await suspend(scene, parent);
    const child = await scene.claimOne({ jobs: ["child"] });
    expect(await scene.claim({ jobs: ["child"] })).toEqual([]);
    await scene.settle(completed(child, "7"));
    expect(await scene.store.signals.wake({ limit: 10 })).toMatchObject({ woken: 1 });
    expect(await collected(scene, await resumed(scene, id))).toEqual([["call", "7"]]);
  });

  test("steps are read by name, counted with the open waits, and listed for people", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    const { id } = held;
    const steps = [newStep("a", "1"), newStep("b", "2")];
    await scene.store.steps.finish({ ...grantOf(held), steps });
    await wait(scene, held, forSignal({ name: "open" }), forSignal({ name: "late", key: "late" }));
    const named = await scene.store.steps.named({ id, names: ["b", "open", "never"] });
    expect(named.map(({ name, no, value }) => [name, no, value])).toEqual([["b", 2, "2"]]);
    expect(await scene.store.steps.count(id)).toBe(4);
    await send(scene, "1");
    const received = (key: string) => scene.store.steps.hasReceived({ id, signal: "ready", key });
    expect(await received("k")).toBe(false);
    await collected(scene, held);
    expect(await received("k")).toBe(true);
    expect(await received("late")).toBe(false);
    const params = { id, after: 0, openAfter: null, limit: 10 };
    const shown = await scene.store.runs.steps(params);
    expect(shown.isFollowed).toBe(false);
    expect(shown.steps.map(({ name, no }) => [name, no])).toEqual([
      ["a", 1],
      ["b", 2],
      ["open", 3],
      ["late", null],
    ]);
  });

  test("a run is reopened from a step once it has failed: that step and all after it are forgotten", async ({
    scene,
  }) => {
    const held = await heldRun(scene);
    const { id } = held;
    const steps = [newStep("a", "1"), newStep("b", "2"), newStep("c", "3")];
    await scene.store.steps.finish({ ...grantOf(held), steps });
    const reopen = (fromStep: string | null) => scene.store.steps.reopen({ id, fromStep });
    expect(await reopen("b")).toBeNull();
    await scene.settle(failed(held));
    expect(await reopen("never")).toBeNull();
    expect(await reopen(null)).toEqual([]);
    expect(await reopen("b")).toEqual([]);
    const left = await scene.store.steps.list({ id, after: 0 });
    expect(left.steps.map(({ name }) => name)).toEqual(["a"]);
  });

  test("a run that has completed is not reopened", async ({ scene }) => {
    const held = await heldRun(scene);
    const { id } = held;
    await scene.store.steps.finish({ ...grantOf(held), steps: [newStep("a", "1")] });
    await scene.settle(completed(held));
    expect(await scene.store.steps.reopen({ id, fromStep: "a" })).toBeNull();
    expect(await scene.store.steps.count(id)).toBe(1);
  });

  test("a failed call of a reopened run waits again for its run, and a finished one keeps its result", async ({
    scene,
  }) => {
    const parent = await heldRun(scene);
    const { id, fence } = parent;
    for (const name of ["good", "bad"]) {
      const child = scene.run({ job: name });
      await scene.store.batches.call({
        ...{ parent: { id, fence }, name, generation: 0, child, isLeft: false },
      });
    }
    const good = await scene.claimOne({ jobs: ["good"] });
    const bad = await scene.claimOne({ jobs: ["bad"] });
    await scene.settle(completed(good, "7"), failed(bad));
    await scene.store.steps.collect(grantOf(parent));
    await scene.settle(failed(parent));
    expect(await scene.store.steps.reopen({ id, fromStep: null })).toEqual([bad.id]);
    const left = await scene.store.steps.list({ id, after: 0 });
    expect(left.steps.map(({ name, value }) => [name, value])).toEqual([["good", "7"]]);
    expect(await scene.store.steps.waits(id)).toMatchObject([
      { name: "bad", kind: "run", child: bad.id },
    ]);
  });
}
