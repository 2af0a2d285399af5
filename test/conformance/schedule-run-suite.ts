// The runs that schedules make: their values, how they wait at a gate, and how they are revived.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import {
  cancelled,
  completed,
  failed,
  idsOf,
  POLICY,
  policyWith,
  retried,
  type SceneTest,
} from "./scene.js";
import { changeOf, STUDY } from "./schedule-fixtures.js";

const LATER_MS = 86_400_000;

export function scheduleRunSuite(test: SceneTest): void {
  test("a run has its schedule, mode, nominal time, input and the options of its job", async ({
    scene,
  }) => {
    const input = '{ "b": 1e3,  "a": "ü\\u0041" }';
    const { id: schedule } = await scene.schedules.make("nightly", { input, tags: ["eu", "x"] });
    const id = await scene.schedules.fire("nightly", { at: scene.now - 5 });
    expect(await scene.record(id)).toMatchObject({
      job: "study",
      queue: STUDY.queue,
      priority: STUDY.priority,
      status: "pending",
      mode: "scheduled",
      schedule: "nightly",
      nominalAt: scene.now - 5,
      createdAt: scene.now,
      attempt: 0,
      attemptsMax: POLICY.retry.attempts,
      input,
      tags: ["eu", "x"],
    });
    const { claim } = await scene.claimOne();
    expect(claim).toMatchObject({ job: "study", queue: STUDY.queue, policy: POLICY });
    expect(claim.runs).toMatchObject([
      {
        id,
        input,
        mode: "scheduled",
        version: STUDY.version,
        priority: STUDY.priority,
        nominalAt: scene.now - 5,
        schedule,
      },
    ]);
  });

  test("a claim that is read back has the schedule too", async ({ scene }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const id = await scene.schedules.fire("nightly");
    const token = crypto.randomUUID();
    const claims = await scene.claims({ token });
    expect(claims).toMatchObject([{ runs: [{ id, schedule, nominalAt: scene.now }] }]);
    expect(await scene.store.claims.byToken({ holder: scene.holder, token })).toEqual(claims);
  });

  test("a run has the options that its job has at its creation", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const policy = policyWith({ attempts: 7 });
    const job = { ...STUDY, queue: "other", priority: 9, version: 3, policy };
    await scene.announce("newer", scene.store, { jobs: [job] });
    const id = await scene.schedules.fire("nightly");
    expect(await scene.record(id)).toMatchObject({ queue: "other", priority: 9, attemptsMax: 7 });
    expect((await scene.claimOne()).claim.runs).toMatchObject([{ id, version: 3 }]);
  });

  test("a schedule's own priority and queue go before the job's", async ({ scene }) => {
    await scene.schedules.make("nightly", { priority: -7, queue: "slow" });
    const id = await scene.schedules.fire("nightly");
    expect(await scene.record(id)).toMatchObject({ queue: "slow", priority: -7 });
    expect((await scene.claimOne({ queues: ["slow"] })).id).toBe(id);
  });

  test("a run that no schedule made has none", async ({ scene }) => {
    const [id] = (await scene.enqueued(1)) as [RunId];
    expect((await scene.record(id)).schedule).toBeNull();
    expect((await scene.claimOne()).claim.runs).toMatchObject([{ schedule: null }]);
  });

  test("a run with an input of its own gets that one, byte for byte", async ({ scene }) => {
    await scene.schedules.make("nightly");
    for (const mode of ["manual", "test", "backfill"] as const) {
      const id = await scene.schedules.trigger("nightly", { mode, input: '{ "own" : null}' });
      expect(await scene.record(id)).toMatchObject({
        mode,
        input: '{ "own" : null}',
        nominalAt: null,
      });
    }
  });

  test("a gated run is neither promoted nor claimed, however long it waits", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const id = await scene.schedules.fire("nightly", { run: { isGated: true } });
    for (const waitMs of [0, LATER_MS]) {
      scene.advance(waitMs);
      expect(await scene.poll()).toMatchObject({ hasReady: false, hasDue: false });
      expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
      expect(await scene.claim()).toEqual([]);
      expect(await scene.status(id)).toBe("pending");
    }
  });

  test("an opened gate lets its run be claimed, once, however often it is opened", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    const id = await scene.schedules.fire("nightly", { run: { isGated: true } });
    scene.advance(5);
    for (let times = 0; times < 2; times += 1) {
      await scene.schedules.change("nightly", { progress: { isGated: false }, opens: id });
      expect((await scene.schedules.state("nightly")).live).toMatchObject([{ isGated: false }]);
    }
    const held = await scene.claim();
    expect(held).toMatchObject([{ id, attempt: 1 }]);
    await scene.schedules.change("nightly", { opens: id });
    expect(await scene.claim()).toEqual([]);
    await scene.settle(...held.map((each) => completed(each)));
    await scene.schedules.change("nightly", { opens: id });
    expect(await scene.status(id)).toBe("completed");
    expect(await scene.claim()).toEqual([]);
  });

  test("an opened run is ordered by its priority like any other", async ({ scene }) => {
    await scene.schedules.make("nightly", { priority: 50 });
    const id = await scene.schedules.fire("nightly", { run: { isGated: true } });
    const [plain] = await scene.enqueued(1);
    await scene.schedules.change("nightly", { opens: id });
    expect((await scene.claimOne()).id).toBe(id);
    expect((await scene.claimOne()).id).toBe(plain);
  });

  test("opening one gate leaves the others closed", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const [one, two] = [
      await scene.schedules.fire("nightly", { at: scene.now - 1, run: { isGated: true } }),
      await scene.schedules.fire("nightly", { run: { isGated: true } }),
    ];
    await scene.schedules.change("nightly", { opens: two });
    expect(idsOf(await scene.claim())).toEqual([two]);
    expect((await scene.schedules.state("nightly")).live).toMatchObject([
      { id: one, isGated: true },
      { id: two, isGated: false },
    ]);
  });

  test("a gated run is cancelled at once and its gate opens nothing", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const id = await scene.schedules.fire("nightly", { run: { isGated: true } });
    expect(await scene.store.runs.cancel({ id, random: 0 })).toBe("cancelled");
    const state = await scene.schedules.state("nightly");
    expect(state.live).toEqual([]);
    await scene.schedules.write([changeOf(state, { opens: id })]);
    expect(await scene.status(id)).toBe("cancelled");
    expect(await scene.claim()).toEqual([]);
  });

  test("a failed or cancelled run is revived with one attempt more than its limit", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    for (const end of [failed, cancelled]) {
      scene.advance(1);
      const id = await scene.schedules.fire("nightly");
      await scene.settle(end(await scene.claimOne()));
      await scene.schedules.change("nightly", {
        progress: { live: [id] },
        revives: { id, isGated: false },
      });
      expect(await scene.record(id)).toMatchObject({
        status: "pending",
        attempt: 1,
        attemptsMax: POLICY.retry.attempts + 1,
        finishedAt: null,
      });
      expect((await scene.schedules.state("nightly")).live).toMatchObject([{ id }]);
      const held = await scene.claimOne();
      expect(held).toMatchObject({ id, attempt: 2 });
      await scene.settle(completed(held));
      expect(await scene.store.runs.attempts(id)).toHaveLength(2);
    }
  });

  test("a run that is revived behind a gate waits there", async ({ scene }) => {
    await scene.schedules.make("nightly");
    const id = await scene.schedules.fire("nightly");
    await scene.settle(failed(await scene.claimOne()));
    await scene.schedules.change("nightly", {
      progress: { live: [id], isGated: true },
      revives: { id, isGated: true },
    });
    scene.advance(LATER_MS);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
    expect(await scene.claim()).toEqual([]);
    expect((await scene.schedules.state("nightly")).live).toMatchObject([{ id, isGated: true }]);
    await scene.schedules.change("nightly", { opens: id });
    expect(await scene.claimOne()).toMatchObject({ id, attempt: 2 });
  });

  test("a run that has not failed is not revived, and the change writes nothing", async ({
    scene,
  }) => {
    await scene.schedules.make("nightly");
    const other = await scene.schedules.make("other");
    const id = await scene.schedules.fire("nightly");
    const refuses = async () => {
      const before = [await scene.schedules.portrait("nightly"), await scene.portrait(id)];
      const state = await scene.schedules.state("nightly");
      const change = changeOf(state, {
        progress: { cursorAt: scene.now + 1, live: [id] },
        revives: { id, isGated: false },
      });
      const { revision } = await scene.schedules.state("other");
      const neighbour = { ...changeOf(other), revision };
      expect(await scene.schedules.write([change, neighbour])).toEqual([other.id]);
      const after = [await scene.schedules.portrait("nightly"), await scene.portrait(id)];
      expect(after).toEqual(before);
    };
    await refuses();
    const held = await scene.claimOne();
    await refuses();
    await scene.settle(retried(held));
    await refuses();
    scene.advance(1_000);
    await scene.store.work.promote({ limit: 1 });
    await scene.settle(completed(await scene.claimOne()));
    await refuses();
  });

  test("a delivery is found afterwards, by its own schedule alone", async ({ scene }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const other = await scene.schedules.make("other");
    const run = scene.id();
    const delivery = { id: "d'1", inputHash: "h", run };
    expect(await scene.store.schedules.delivery({ schedule, id: "d'1" })).toBeNull();
    await scene.schedules.change("nightly", {
      runs: [scene.schedules.run({ id: run, mode: "manual" })],
      delivery,
    });
    expect(await scene.store.schedules.delivery({ schedule, id: "d'1" })).toEqual({
      run,
      inputHash: "h",
    });
    expect(await scene.store.schedules.delivery({ schedule, id: "d" })).toBeNull();
    expect(await scene.store.schedules.delivery({ schedule: other.id, id: "d'1" })).toBeNull();
  });

  test("a second delivery of the same id throws and writes nothing", async ({ scene }) => {
    const { id: schedule } = await scene.schedules.make("nightly");
    const deliver = (run: RunId) =>
      scene.schedules.change("nightly", {
        runs: [scene.schedules.run({ id: run, mode: "manual" })],
        delivery: { id: "d", inputHash: "h", run },
      });
    const [first, second] = [scene.id(), scene.id()];
    await deliver(first);
    const before = await scene.schedules.portrait("nightly");
    await expect(deliver(second)).rejects.toThrow();
    expect(await scene.schedules.portrait("nightly")).toEqual(before);
    expect(await scene.store.runs.get(second)).toBeNull();
    expect(await scene.store.schedules.delivery({ schedule, id: "d" })).toMatchObject({
      run: first,
    });
  });
}
