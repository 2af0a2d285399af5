// Progress: reported only by the holder of a run, and a heartbeat at the same time.

import { expect } from "vitest";
import type { ProgressWrite } from "../../src/store/progress.js";
import {
  completed,
  type Held,
  LEASE_MS,
  policyWith,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";

function told({ id, fence }: Held, changes: Partial<ProgressWrite> = {}): ProgressWrite {
  return { id, fence, stage: null, done: null, total: null, agoMs: 0, stages: [], ...changes };
}

function tell(scene: Scene, ...writes: ProgressWrite[]) {
  return scene.store.progress.write({ holder: scene.holder, writes });
}

async function known(scene: Scene, id: string) {
  return (await scene.store.progress.of([id]))[0];
}

export function progressSuite(test: SceneTest): void {
  test("the progress of a holder is stored with the database's time", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    expect(await scene.store.progress.of([held.id])).toEqual([]);
    await tell(
      scene,
      told(held, {
        stage: "look",
        done: 3,
        total: 10.5,
        agoMs: 200,
        stages: [{ stage: "look", agoMs: 300 }],
      }),
    );
    expect(await known(scene, held.id)).toEqual({
      id: held.id,
      attempt: 1,
      at: scene.now - 200,
      stage: "look",
      done: 3,
      total: 10.5,
      stages: [{ stage: "look", at: scene.now - 300 }],
    });
  });

  test("one call stores the progress of many runs and renews their leases", async ({ scene }) => {
    await scene.enqueued(2);
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 5_000 }) });
    const held = await scene.claim();
    scene.advance(2_000);
    const answer = await tell(scene, ...held.map((each, done) => told(each, { done })));
    expect(answer.unknown).toEqual([]);
    expect(answer.held.map(({ leaseMs }) => leaseMs).sort((a, b) => a - b)).toEqual([
      5_000,
      LEASE_MS,
    ]);
    expect(answer.held.flatMap(({ ids }) => ids).sort()).toEqual(held.map(({ id }) => id).sort());
    const records = await scene.store.progress.of(held.map(({ id }) => id));
    expect(records.map(({ done }) => done).sort()).toEqual([0, 1, 2]);
    for (const { id } of held)
      expect(await scene.record(id)).toMatchObject({ heartbeatAt: scene.now });
  });

  test("stages keep their start times when they are reported again", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const first = { stage: "load", agoMs: 0 };
    await tell(scene, told(held, { stage: "load", stages: [first] }));
    const begun = scene.now;
    scene.advance(1_000);
    const stages = [
      { stage: "load", agoMs: 990 },
      { stage: "sort", agoMs: 10 },
      { stage: "load", agoMs: 0 },
    ];
    await tell(scene, told(held, { stage: "load", stages }));
    await tell(scene, told(held, { stage: "load", stages }));
    expect((await known(scene, held.id))?.stages).toEqual([
      { stage: "load", at: begun },
      { stage: "sort", at: scene.now - 10 },
      { stage: "load", at: scene.now },
    ]);
  });

  test("the progress of a later attempt replaces that of an earlier one", async ({ scene }) => {
    await scene.enqueued(1);
    const first = await scene.claimOne();
    const stages = [{ stage: "load", agoMs: 0 }];
    await tell(scene, told(first, { stage: "load", done: 5, total: 9, stages }));
    await scene.settle(retried(first, 0));
    expect(await known(scene, first.id)).toMatchObject({ done: 5, attempt: 1 });
    const second = await scene.claimOne();
    await tell(scene, told(second, { done: 1 }));
    expect(await known(scene, first.id)).toMatchObject({
      attempt: 2,
      stage: null,
      done: 1,
      total: null,
      stages: [],
    });
  });

  test("S3: a holder that lost a run stores no progress and renews nothing", async ({ scene }) => {
    await scene.enqueued(1);
    const first = await scene.claimOne();
    await tell(scene, told(first, { done: 1 }));
    await scene.loseAll();
    expect(await tell(scene, told(first, { done: 2 }))).toEqual({ held: [], unknown: [] });
    const second = await scene.claimOne({ wantsSuspect: true });
    await tell(scene, told(second, { done: 7 }));
    const before = [await scene.portrait(first.id), await known(scene, first.id)];
    scene.advance(1_000);
    expect(await tell(scene, told(first, { done: 3 }))).toEqual({ held: [], unknown: [] });
    expect([await scene.portrait(first.id), await known(scene, first.id)]).toEqual(before);
  });

  test("S3: a settled run gets no progress, even if its siblings are still held", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await scene.settle(completed(one));
    const answer = await tell(scene, told(one, { done: 1 }), told(two, { done: 2 }));
    expect(answer.held).toMatchObject([{ fence: two.fence, ids: [two.id] }]);
    expect(await known(scene, one.id)).toBeUndefined();
    expect(await known(scene, two.id)).toMatchObject({ done: 2 });
  });

  test("S3: a holder cannot store progress of the run of another", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const holder = await scene.announce("second");
    const writes = [told(held, { done: 1 })];
    expect(await scene.store.progress.write({ holder, writes })).toEqual({ held: [], unknown: [] });
    expect(await known(scene, held.id)).toBeUndefined();
  });

  test("the progress of a run is removed with the run", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await tell(scene, told(one, { done: 1 }), told(two, { done: 2 }));
    await scene.settle(completed(one), completed(two));
    expect(await known(scene, one.id)).toMatchObject({ done: 1 });
    await scene.store.runs.remove({ id: one.id });
    expect(await known(scene, one.id)).toBeUndefined();
    scene.advance(40 * 86_400_000);
    await scene.store.retention.prune({ keepMs: 86_400_000, keepTicksMs: 86_400_000, limit: 100 });
    expect(await known(scene, two.id)).toBeUndefined();
  });
}
