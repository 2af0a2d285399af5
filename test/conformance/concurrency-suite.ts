// Several stores on one database at the same time, each with connections of its own.

import { expect } from "vitest";
import type { RunId } from "../../src/runs/rules/run.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import type { Store } from "../../src/store/store.js";
import { IS_POOLED } from "./places.js";
import {
  completed,
  type Held,
  handedBack,
  idsOf,
  LEASE_MS,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";

async function openStores(
  scene: Scene,
  count: number,
): Promise<{ store: Store; holder: number }[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const store = await scene.open();
      return { store, holder: await scene.announce(`member-${at}`, store) };
    }),
  );
}

export function concurrencySuite(test: SceneTest): void {
  test.skipIf(IS_POOLED)(
    "a store that listens is woken by what another one enqueues",
    async ({ scene }) => {
      const listener = await scene.open();
      let isWoken = false;
      const stop = listener.onWake(() => {
        isWoken = true;
      });
      await scene.poll({ jobs: [] }, listener);
      while (!isWoken) {
        await scene.store.enqueue.runs({ runs: [scene.run()], isAtomic: false, wakesOthers: true });
        await new Promise<void>((resolve) => systemClock.soon(resolve));
      }
      stop();
    },
  );

  test.skipIf(IS_POOLED)(
    "a store distinguishes its own writes from those of others",
    async ({ scene }) => {
      const { store } = scene;
      // On SQLite a store hears of others alone.
      if (store.engine === "sqlite") return;
      const heard: boolean[] = [];
      const stop = store.onWake(({ isOwn }) => heard.push(isOwn));
      await scene.poll({ jobs: [] }, store);
      const tell = async (teller: typeof store) => {
        const before = heard.length;
        while (heard.length === before) {
          await teller.enqueue.runs({ runs: [scene.run()], isAtomic: false, wakesOthers: true });
          await new Promise<void>((resolve) => systemClock.soon(resolve));
        }
        return new Set(heard.slice(before));
      };
      expect(await tell(store)).toEqual(new Set([true]));
      const other = await scene.open();
      await store.enqueue.runs({ runs: [scene.run()], isAtomic: false, wakesOthers: false });
      heard.length = 0;
      await tell(other);
      expect(heard).toContain(false);
      stop();
    },
  );

  test("claims made at once are disjoint and never exceed their limit", async ({ scene }) => {
    await scene.enqueued(150);
    await scene.enqueued(150, { job: "mail" });
    const members = await openStores(scene, 4);
    const seen = new Map<RunId, number>();
    const fences = new Map<number, number>();
    await Promise.all(
      members.map(async ({ store, holder }) => {
        for (let misses = 0; misses < 3; ) {
          const held = await scene.claim({ store, holder, limit: 7, jobs: ["study", "mail"] });
          expect(held.length).toBeLessThanOrEqual(7);
          if (held.length === 0) misses += 1;
          for (const { id, fence } of held) {
            seen.set(id, (seen.get(id) ?? 0) + 1);
            expect(fences.get(fence) ?? holder).toBe(holder);
            fences.set(fence, holder);
          }
        }
      }),
    );
    expect(seen.size).toBe(300);
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
  });

  test("a crowd that claims one run gives it to one", async ({ scene }) => {
    const members = await openStores(scene, 4);
    for (let times = 0; times < 10; times += 1) {
      const [id] = await scene.enqueued(1);
      const claims = await Promise.all(
        members.map(({ store, holder }) => scene.claim({ store, holder, limit: 1 })),
      );
      expect(idsOf(claims.flat())).toEqual([id]);
    }
  });

  test("many callers with one key get one run, over several stores", async ({ scene }) => {
    const members = await openStores(scene, 4);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => {
        const run = scene.run({ key: { key: "k", inputHash: "h" } });
        return members[at % 4]?.store.enqueue.runs({
          runs: [run],
          isAtomic: at % 3 === 0,
          wakesOthers: false,
        });
      }),
    );
    const flat = answers.flat();
    const ids = new Set(flat.map((answer) => (answer && "id" in answer ? answer.id : "none")));
    expect(ids.size).toBe(1);
    expect(flat.filter((answer) => answer && "id" in answer && !answer.deduplicated)).toHaveLength(
      1,
    );
    expect(await scene.store.runs.list({ limit: 30 })).toHaveLength(1);
  });

  test("batches whose keys overlap in opposite orders all succeed", async ({ scene }) => {
    const members = await openStores(scene, 4);
    for (let round = 0; round < 5; round += 1) {
      const keys = Array.from({ length: 40 }, (_, at) => `round-${round}-${at}`);
      await Promise.all(
        members.map(({ store }, at) => {
          const order = at % 2 === 0 ? keys : keys.toReversed();
          const runs = order.map((key) => scene.run({ key: { key, inputHash: "h" } }));
          return store.enqueue.runs({ runs, isAtomic: at > 1, wakesOthers: false });
        }),
      );
    }
    expect(await scene.store.runs.list({ limit: 1_000 })).toHaveLength(200);
  });

  test("of a settlement and a reclaim at the same moment one wins, and the loser gets a refusal", async ({
    scene,
  }) => {
    const [completer, reclaimer] = (await openStores(scene, 2)) as [Member, Member];
    for (let round = 0; round < 10; round += 1) {
      await scene.enqueued(5);
      const held = await scene.claim({ ...completer, limit: 5 });
      scene.advance(LEASE_MS);
      const [answer, reclaimed] = await Promise.all([
        completer.store.claims.exchange({
          holder: completer.holder,
          token: crypto.randomUUID(),
          settlements: held.map((each) => completed(each)),
          limit: 0,
          wantsSuspect: false,
          jobs: [],
          queues: null,
          random: 0,
        }),
        reclaimer.store.leases.reclaim({ limit: 10, random: 0 }),
      ]);
      expect(idsOf(answer.stale).sort()).toEqual(idsOf(reclaimed).sort());
      for (const { id } of held) {
        const isLost = reclaimed.some((lost) => lost.id === id);
        expect(await scene.status(id)).toBe(isLost ? "pending" : "completed");
        if (isLost) await scene.store.runs.cancel({ id, random: 0 });
      }
    }
  });

  test("of two concurrent reclaims each lease is reclaimed by one", async ({ scene }) => {
    const members = await openStores(scene, 3);
    for (let times = 0; times < 30; times += 1) {
      await scene.enqueued(1);
      await scene.claimOne();
    }
    scene.advance(LEASE_MS);
    const lost = await Promise.all(
      members.map(({ store }) => store.leases.reclaim({ limit: 100, random: 0 })),
    );
    expect(new Set(idsOf(lost.flat())).size).toBe(30);
    expect(lost.flat()).toHaveLength(30);
  });

  test("a renewal and a reclaim at the same moment never both have the lease", async ({
    scene,
  }) => {
    const [holder, reclaimer] = (await openStores(scene, 2)) as [Member, Member];
    for (let round = 0; round < 15; round += 1) {
      await scene.enqueued(1);
      const held = await scene.claimOne({ ...holder });
      scene.advance(LEASE_MS);
      const [renewal, reclaimed] = await Promise.all([
        holder.store.leases.renew({ holder: holder.holder, fences: [held.fence] }),
        reclaimer.store.leases.reclaim({ limit: 10, random: 0 }),
      ]);
      const kept = await holder.store.leases.renew({ holder: holder.holder, fences: [held.fence] });
      expect(kept.held).toHaveLength(reclaimed.length === 0 ? 1 : 0);
      if (renewal.held.length > 0) expect(reclaimed).toEqual([]);
      if (reclaimed.length === 0) await scene.settle(completed(held));
      else await scene.store.runs.cancel({ id: held.id, random: 0 });
    }
  });

  test("a cancel that meets a claim takes effect on one side of it, never between", async ({
    scene,
  }) => {
    const [claimer, operator] = (await openStores(scene, 2)) as [Member, Member];
    for (let round = 0; round < 15; round += 1) {
      const [id] = (await scene.enqueued(1)) as [RunId];
      const [held, answer] = await Promise.all([
        scene.claim({ ...claimer, limit: 1 }),
        operator.store.runs.cancel({ id, random: 0 }),
      ]);
      expect(answer).toBe(held.length === 0 ? "cancelled" : "requested");
      if (held[0]) await scene.settle(retried(held[0]));
      expect(await scene.status(id)).toBe("cancelled");
    }
  });

  test("promotions at once move each run once", async ({ scene }) => {
    const members = await openStores(scene, 3);
    await scene.enqueued(200, { delayMs: 1_000 });
    scene.advance(1_000);
    const moved = await Promise.all(members.map(({ store }) => store.work.promote({ limit: 150 })));
    const rest = await scene.store.work.promote({ limit: 1_000 });
    expect(moved.reduce((sum, count) => sum + count, rest)).toBe(200);
    expect(await scene.claim({ limit: 1_000 })).toHaveLength(200);
  });

  test("under all these calls at once, every run completes once and no grant is given twice", async ({
    scene,
  }) => {
    const count = 120;
    const members = await openStores(scene, 3);
    const ids = new Set(await scene.enqueued(count));
    const completions = new Map<RunId, number>();
    const grants = new Set<string>();
    const lastFence = new Map<RunId, number>();
    const dice = seeded(8814);
    const work = async ({ store, holder }: Member) => {
      let held: Held[] = [];
      while (completions.size < count) {
        const ending = held.map((each) => {
          const roll = dice();
          if (roll < 0.1) return null;
          if (roll < 0.25) return handedBack(each);
          return completed(each);
        });
        const settlements = ending.filter((each) => each !== null);
        const { claims, stale } = await store.claims.exchange({
          holder,
          token: crypto.randomUUID(),
          settlements,
          limit: 5,
          wantsSuspect: dice() < 0.5,
          jobs: ["study"],
          queues: null,
          random: 0,
        });
        for (const { id, fence, to } of settlements) {
          const isStale = stale.some((each) => each.id === id && each.fence === fence);
          if (to === "completed" && !isStale) completions.set(id, (completions.get(id) ?? 0) + 1);
        }
        held = claims.flatMap(({ fence, runs }) =>
          runs.map((run) => ({ ...run, fence })),
        ) as unknown as Held[];
        for (const { id, fence } of held) {
          expect(grants.has(`${id} ${fence}`)).toBe(false);
          grants.add(`${id} ${fence}`);
          expect(fence).toBeGreaterThan(lastFence.get(id) ?? 0);
          lastFence.set(id, fence);
        }
        scene.advance(dice() < 0.2 ? 10_000 : 100);
        await store.leases.reclaim({ limit: 10, random: dice() });
        await store.work.promote({ limit: 100 });
        // A run that was lost too often has failed: an operator gives it another chance.
        for (const { id } of await store.runs.list({ status: "failed", limit: 10 })) {
          await store.runs.retry({ id });
        }
      }
    };
    await Promise.all(members.map(work));
    expect(new Set(completions.keys())).toEqual(ids);
    expect([...completions.values()].every((times) => times === 1)).toBe(true);
    expect(await scene.store.runs.list({ status: "completed", limit: 1_000 })).toHaveLength(count);
  });
}

type Member = { store: Store; holder: number };

/** Chance from one number, so that a failure can be seen again as far as the database allows. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}
