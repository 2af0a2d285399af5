// Tests durable waits on PostgreSQL alone: what happens between the statements of a suspension, and ends of called runs that
// come by SQL.

import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { until } from "../support/until.js";
import { POSTGRES_URL, postgresPlace, whileLocked } from "./places.js";
import { failed, type Held, Scene } from "./scene.js";

type Setting = { readonly scene: Scene; readonly place: Awaited<ReturnType<typeof postgresPlace>> };

const test = base.extend<{ setting: Setting }>({
  setting: async ({ task: _ }, use) => {
    const place = await postgresPlace();
    const scene = await Scene.start(place);
    await use({ scene, place });
    await scene.end();
  },
});

function suspend(scene: Scene, { id, fence, mode, schedule, batch }: Held) {
  const common = { id, fence, mode, schedule, batch, isLimited: false };
  return scene.store.steps.suspend({ ...common, ranMs: 5, holder: scene.holder, random: 0 });
}

describe.skipIf(POSTGRES_URL === undefined)("durable waits on PostgreSQL", () => {
  test("a signal that comes after a suspension looked for it and before its commit wakes the run", async ({
    setting: { scene, place },
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const { id, fence } = held;
    const waits = [{ name: "wait", kind: "signal", signal: "ready", key: "k" } as const];
    await scene.store.steps.wait({ id, fence, waits });
    const other = await scene.open("off");
    const wake = () => other.signals.wake({ limit: 10 });
    const waiting = `select from pg_locks l
      where not l.granted and l.relation = '"${place.schema}".waiting'::regclass`;
    let suspending: Promise<unknown> = Promise.resolve();
    // The suspension stops where it writes the run back, after it has looked for what is over.
    await whileLocked(`lock table "${place.schema}".waiting in share mode`, async () => {
      suspending = suspend(scene, held);
      await until("the suspension waits", async () => (await place.sql(waiting)).rowCount);
      await other.signals.send({ name: "ready", key: "k", value: "1", keepMs: 60_000 });
      expect(await wake()).toMatchObject({ woken: 0 });
    });
    expect(await suspending).toMatchObject({ result: "suspended", wakeInMs: null });
    expect((await scene.poll()).hasWakes).toBe(true);
    expect(await wake()).toMatchObject({ woken: 1 });
    expect((await scene.poll()).hasDue).toBe(true);
  });

  test("a run that another retry revives meanwhile forgets no step", async ({
    setting: { scene, place },
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const { id, fence } = held;
    const steps = [{ name: "a", value: "1", tries: 1, ranMs: 5 }];
    await scene.store.steps.finish({ id, fence, steps });
    await scene.settle(failed(held));
    const operator = new pg.Client(POSTGRES_URL);
    await operator.connect();
    // As a retry does it: the run is live again, and its next execution finds its step.
    await operator.query(`begin; delete from "${place.schema}".outcome`);
    const reopening = scene.store.steps.reopen({ id, fromStep: "a" });
    const waiting = `select from pg_locks l join pg_locks x using (pid)
      where not l.granted and x.relation = '"${place.schema}".outcome'::regclass`;
    await Promise.race([
      reopening,
      until("the other retry is waited for", async () => (await place.sql(waiting)).rowCount),
    ]);
    await operator.query("commit");
    await operator.end();
    expect(await reopening).toBeNull();
    expect(await scene.store.steps.count(id)).toBe(1);
  });

  test("a called run that is completed by SQL wakes its caller", async ({
    setting: { scene, place },
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const parent = { id: held.id, fence: held.fence };
    const child = scene.run({ job: "child" });
    await scene.store.batches.call({
      ...{ parent, name: "call", generation: 0, child, isLeft: false },
    });
    await suspend(scene, held);
    const called = await scene.claimOne({ jobs: ["child"] });
    await place.sql(`select $schema.complete('${called.id}', ${called.fence}, '7')`);
    expect(await scene.store.signals.wake({ limit: 10 })).toMatchObject({ woken: 1 });
    await scene.store.work.promote({ limit: 10 });
    const { id, fence } = await scene.claimOne();
    expect(await scene.store.steps.collect({ id, fence })).toMatchObject({
      ended: [{ name: "call", value: "7" }],
    });
  });
});
