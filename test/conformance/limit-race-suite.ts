// Limits and keys when several stores act at once: never one too many, nothing left behind.

import { expect } from "vitest";
import type { Store } from "../../src/store/store.js";
import { LimitedJob } from "./limited-job.js";
import {
  completed,
  type Held,
  handedBack,
  heldBy,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";

async function storesOf(scene: Scene, count: number): Promise<Store[]> {
  return Promise.all(Array.from({ length: count }, () => scene.open()));
}

export function limitRaceSuite(test: SceneTest): void {
  test("workers that claim, settle and enqueue at once never hold more than the limit of a key", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 2, key: "account" } });
    const stores = await storesOf(scene, 4);
    const accounts = ["a", "b", "c"];
    const roundsMore = 8;
    const total = 30 + stores.length * roundsMore;
    for (let at = 0; at < 30; at += 1) await job.enqueued(1, accounts[at % 3]);
    const held = new Map<string, Set<string>>();
    let ended = 0;
    let most = 0;
    const accountOf = ({ claim, id }: Held) =>
      String(claim.runs.find((run) => run.id === id)?.input);
    const work = async (store: Store, worker: number) => {
      for (let round = 0; ended < total && round < 400; round += 1) {
        if (round < roundsMore) await job.enqueued(1, accounts[round % 3]);
        const claims = heldBy(
          (
            await store.claims.exchange({
              holder: scene.holder,
              token: crypto.randomUUID(),
              settlements: [],
              limit: 3,
              wantsSuspect: false,
              jobs: ["study"],
              queues: null,
              random: 0,
              limited: "first",
            })
          ).claims,
        );
        for (const each of claims) {
          const runs = held.get(accountOf(each)) ?? new Set();
          held.set(accountOf(each), runs.add(each.id));
          most = Math.max(most, runs.size);
        }
        const settlements = claims.map((each, at) => {
          const kind = (round + at + worker) % 7;
          if (kind === 0 && each.attempt === 1) return retried(each, 1);
          return kind === 1 ? handedBack(each) : completed(each);
        });
        // No longer counted before it is given back: the other order would count it twice.
        for (const [at, each] of claims.entries())
          if (settlements[at]?.to !== "pending" || !settlements[at]?.isRefund)
            held.get(accountOf(each))?.delete(each.id);
        ended += settlements.filter(({ to }) => to === "completed").length;
        if (settlements.length > 0)
          await store.claims.exchange({
            holder: scene.holder,
            token: crypto.randomUUID(),
            settlements,
            limit: 0,
            wantsSuspect: false,
            jobs: [],
            queues: null,
            random: 0,
          });
        scene.advance(2);
        await store.work.promote({ limit: 100 });
      }
    };
    await Promise.all(stores.map(work));
    expect(most).toBe(2);
    const left = await scene.store.runs.list({ limit: 1_000, status: "pending" });
    expect(left).toEqual([]);
    // Nothing is left behind: each key has all of its room.
    for (const account of accounts) await job.enqueued(3, account);
    expect(await job.claim()).toHaveLength(6);
  });

  test("workers that claim at once never exceed the rate", async ({ scene }) => {
    const job = await LimitedJob.announce(scene, { rate: { limit: 5, per: "1m" } });
    await job.enqueued(40);
    const stores = await storesOf(scene, 4);
    for (let minute = 0; minute < 3; minute += 1) {
      const held = await Promise.all(stores.map((store) => job.claim(3, store)));
      const more = await job.claim();
      expect(held.flat().length + more.length).toBe(5);
      scene.advance(60_000);
    }
  });

  test("batches that replace the same keys in other orders neither deadlock nor leave two runs", async ({
    scene,
  }) => {
    const stores = await storesOf(scene, 4);
    const names = Array.from({ length: 12 }, (_, at) => `k${at}`);
    const batch = (round: number, worker: number) =>
      names.map((_, at) => {
        const name = names[(at * (worker * 2 + 1) + round) % names.length] as string;
        const key = { key: name, inputHash: `${round} ${worker}`, onDuplicate: "replace" } as const;
        return scene.run({ key, input: `"${round} ${worker}"`, delayMs: worker % 2 });
      });
    await Promise.all(
      stores.map(async (store, worker) => {
        for (let round = 0; round < 5; round += 1) {
          const runs = batch(round, worker);
          await store.enqueue.runs({ runs, isAtomic: worker === 0, wakesOthers: false });
          await store.work.promote({ limit: 100 });
        }
      }),
    );
    expect(await scene.store.runs.list({ limit: 1_000 })).toHaveLength(names.length);
  });

  test("a run that enters a line while empty lines are removed does not lose its place", async ({
    scene,
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 1, key: "account" } });
    const [tidier, caller] = (await storesOf(scene, 2)) as [Store, Store];
    // So many that removing them takes longer than many runs take to come.
    const accounts = Array.from({ length: 3_000 }, (_, at) => `a${String(at).padStart(4, "0")}`);
    for (let round = 0; round < 3; round += 1) {
      const visits = accounts.map((account) => job.run(account, { delayMs: 1_000_000 }));
      await scene.enqueue(...visits);
      // A hundred at a time: a call waits at most half a minute for its turn, and a busy machine must not miss that.
      for (let at = 0; at < visits.length; at += 100) {
        const some = visits.slice(at, at + 100);
        await Promise.all(some.map(({ id }) => scene.store.runs.cancel({ id, random: 0 })));
      }
      const isOver = tidier.retention
        .prune({ keepMs: 1e9, keepTicksMs: 1e9, limit: 10_000 })
        .then(() => true as const);
      const came = new Set<string>();
      for (const account of accounts.toReversed().slice(0, 400)) {
        const run = job.run(account);
        await caller.enqueue.runs({ runs: [run], isAtomic: false, wakesOthers: false });
        came.add(run.id);
        if (await Promise.race([isOver, false])) break;
      }
      await isOver;
      const held: Held[] = [];
      for (let more = -1; more < held.length; ) {
        more = held.length;
        held.push(...(await job.claim()));
      }
      expect(new Set(held.map(({ id }) => id))).toEqual(came);
      await scene.settle(...held.map((each) => completed(each)));
    }
  });

  test("a run that is claimed while it is replaced is either replaced or begun, never both", async ({
    scene,
  }) => {
    const [one, two] = (await storesOf(scene, 2)) as [Store, Store];
    for (let round = 0; round < 10; round += 1) {
      const key = { key: `r${round}`, inputHash: "old" };
      const first = scene.run({ key, input: '"old"' });
      await scene.enqueue(first);
      const by = scene.run({
        key: { ...key, inputHash: "new", onDuplicate: "replace" },
        input: '"new"',
      });
      const [answers, held] = await Promise.all([
        one.enqueue.runs({ runs: [by], isAtomic: false, wakesOthers: false }),
        scene.claim({ store: two }),
      ]);
      const [answer] = answers;
      const begun = [...held, ...(await scene.claim())];
      const inputs = begun.map(({ claim }) => claim.runs[0]?.input).sort();
      const isReplaced = answer !== undefined && "id" in answer && answer.id === first.id;
      expect(inputs).toEqual(isReplaced ? ['"new"'] : ['"new"', '"old"']);
      await scene.settle(...begun.map((each) => completed(each)));
    }
  });
}
