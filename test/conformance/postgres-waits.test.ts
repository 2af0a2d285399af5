// Tests durable waits on PostgreSQL alone: what happens between the statements of a suspension, and ends of called runs that
// come by SQL.

import pg from "pg";
import { test as base, describe, expect } from "vitest";
import type { Store } from "../../src/store/store.js";
import { until } from "../support/until.js";
import { POSTGRES_URL, postgresPlace, whileLocked } from "./places.js";
import { failed, type Held, LEASE_MS, Scene } from "./scene.js";

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

const newStep = (name: string) => ({ name, value: "1", tries: 1, ranMs: 5 });
const NAP = { name: "nap", kind: "sleep", delayMs: 60_000 } as const;

/** How many statements that read leases wait for a row that somebody has locked. */
async function waiting({ place }: Setting): Promise<number> {
  const found =
    await place.sql(`select count(distinct l.pid)::int as waiting from pg_locks l join pg_locks x using (pid)
    where not l.granted and x.granted and x.relation = '"${place.schema}".lease'::regclass`);
  return Number(found.rows[0].waiting);
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

  test("the same steps and waits, sent twice at once, are stored once and answered alike", async ({
    setting,
  }) => {
    const { scene, place } = setting;
    await scene.enqueued(1);
    const { id, fence } = await scene.claimOne();
    await scene.store.steps.finish({ id, fence, steps: [newStep("before")] });
    const stores = [scene.store, await scene.open("off")];
    // Both have begun before one of them goes on, so that neither sees what the other one stores.
    const both = async <T>(send: (store: Store) => Promise<T>): Promise<T[]> => {
      let answers: Promise<T[]> = Promise.resolve([]);
      await whileLocked(`select from "${place.schema}".lease for update`, async () => {
        answers = Promise.all(stores.map(send));
        const wait = until("both wait for the lease", async () => (await waiting(setting)) === 2);
        await Promise.race([answers, wait]);
      });
      return answers;
    };
    const steps = [newStep("a"), newStep("before"), newStep("b")];
    const [numbers, repeated] = await both((store) => store.steps.finish({ id, fence, steps }));
    expect(numbers).toEqual([2, 1, 3]);
    expect(repeated).toEqual(numbers);
    const { steps: stored } = await scene.store.steps.list({ id, after: 0 });
    expect(stored.map(({ name }) => name)).toEqual(["before", "a", "b"]);
    const [open, again] = await both((store) => store.steps.wait({ id, fence, waits: [NAP] }));
    expect(open).toMatchObject({ waits: [{ name: "nap", until: scene.now + 60_000 }] });
    expect(again).toEqual(open);
    const retry = (tries: number) =>
      ({ name: "c", kind: "retry", delayMs: 60_000 * tries, tries }) as const;
    await scene.store.steps.wait({ id, fence, waits: [retry(1)] });
    const [tried, triedAgain] = await both((store) =>
      store.steps.wait({ id, fence, waits: [retry(2)] }),
    );
    expect(tried).toMatchObject({
      waits: [{ name: "c", tries: 2, until: scene.now + 120_000 }, {}],
    });
    expect(triedAgain).toEqual(tried);
  });

  test("a holder whose run is being reclaimed stores neither a step nor a wait", async ({
    setting,
  }) => {
    const { scene, place } = setting;
    await scene.enqueued(1);
    const { id, fence } = await scene.claimOne();
    const [reclaimer, other] = [await scene.open("off"), await scene.open("off")];
    scene.advance(LEASE_MS);
    let reclaiming: Promise<unknown> = Promise.resolve();
    let answers: Promise<unknown> = Promise.resolve();
    // The reclaim has the lease and stops where it makes the run ready, until this row is rolled back.
    const row = `insert into "${place.schema}".ready values ('${id}', 0, 0, 0, 0, 0, 0, 0, 0, false, false)`;
    await whileLocked(row, async () => {
      reclaiming = reclaimer.leases.reclaim({ limit: 10, random: 0 });
      await until("the reclaim waits", async () => (await waiting(setting)) === 1);
      const sent = [
        scene.store.steps.finish({ id, fence, steps: [newStep("a")] }),
        other.steps.wait({ id, fence, waits: [NAP] }),
      ];
      answers = Promise.all(sent);
      const wait = until("both wait for it", async () => (await waiting(setting)) === 3);
      await Promise.race([...sent, wait]);
    });
    expect(await answers).toEqual(["stale", "stale"]);
    expect(await reclaiming).toHaveLength(1);
    expect(await scene.store.steps.count(id)).toBe(0);
  });

  test("a run is not reclaimed while a step of it is stored", async ({ setting }) => {
    const { scene, place } = setting;
    await scene.enqueued(1);
    const { id, fence } = await scene.claimOne();
    const reclaimer = await scene.open("off");
    scene.advance(LEASE_MS);
    const reclaim = () => reclaimer.leases.reclaim({ limit: 10, random: 0 });
    let storing: Promise<unknown> = Promise.resolve();
    // The lease is locked, and the step stops at its number until this row is rolled back.
    const row = `insert into "${place.schema}".step (run, no, name, kind, generation, fence, tries, started_at, ended_at)
      values ('${id}', 1, 'other', 0, 0, 0, 1, 0, 0)`;
    await whileLocked(row, async () => {
      storing = scene.store.steps.finish({ id, fence, steps: [newStep("a")] });
      await until("the step waits", async () => (await waiting(setting)) === 1);
      expect(await reclaim()).toEqual([]);
    });
    expect(await storing).toEqual([1]);
    expect(await reclaim()).toHaveLength(1);
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
