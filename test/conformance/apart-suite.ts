// Tests runs that are claimed apart: each has a lease of its own, since a remote worker will renew and end it.

import { expect } from "vitest";
import { continuations, heldChildren } from "./batch-fixtures.js";
import { completed, type Held, handedBack, idsOf, LEASE_MS, type SceneTest } from "./scene.js";

export function apartSuite(test: SceneTest): void {
  test("runs of a job that is claimed apart have a lease each, the others share theirs", async ({
    scene,
  }) => {
    const apart = await scene.enqueued(3);
    const shared = await scene.enqueued(3, { job: "mail" });
    const claims = await scene.claims({ jobs: ["study", "mail"], apart: ["study"] });
    const of = (job: string) => claims.filter((claim) => claim.job === job);
    expect(of("study").map(({ runs }) => idsOf(runs))).toEqual(apart.map((id) => [id]));
    expect(of("mail").map(({ runs }) => idsOf(runs).sort())).toEqual([shared]);
    expect(new Set(claims.map(({ fence }) => fence)).size).toBe(4);
  });

  test("one that is renewed lives on while its neighbour of the same claim expires", async ({
    scene,
  }) => {
    await scene.enqueued(2);
    const [kept, dropped] = await scene.claim({ apart: ["study"] });
    if (!kept || !dropped) throw new Error("Two runs were to be claimed.");
    scene.advance(LEASE_MS - 1);
    await scene.store.leases.renew({ holder: scene.holder, fences: [kept.fence] });
    scene.advance(1);
    const reclaimed = await scene.store.leases.reclaim({ limit: 10, random: 0 });
    expect(idsOf(reclaimed)).toEqual([dropped.id]);
    expect(await scene.settle(completed(dropped))).toEqual([
      { id: dropped.id, fence: dropped.fence },
    ]);
    expect(await scene.settle(completed(kept))).toEqual([]);
  });

  test("a separate claim keeps its limit and applies its settlements", async ({ scene }) => {
    await scene.enqueued(5);
    const [first, second] = await scene.claim({ limit: 2, apart: ["study"] });
    if (!first || !second) throw new Error("Two runs were to be claimed.");
    const { claims, stale } = await scene.store.claims.exchange({
      holder: scene.holder,
      token: crypto.randomUUID(),
      settlements: [completed(first), handedBack(second)],
      limit: 2,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      random: 0,
      apart: ["study"],
    });
    expect(stale).toEqual([]);
    expect(claims.map(({ runs }) => runs.length)).toEqual([1, 1]);
    expect((await scene.record(first.id)).status).toBe("completed");
  });

  test("a repeated claim under one name returns the runs that it already holds", async ({
    scene,
  }) => {
    await scene.enqueued(5);
    const named = { token: crypto.randomUUID(), isNamed: true, apart: ["study"], limit: 2 };
    const first = await scene.claim({ ...named, limited: "last" });
    expect(first).toHaveLength(2);
    const isFirst = ({ id }: Held) => idsOf(first).includes(id);
    for (const limited of ["last", "first", undefined] as const) {
      const again = await scene.claim({ ...named, ...(limited && { limited }), limit: 4 });
      expect(again.map(({ fence }) => fence)).toEqual(first.map(({ fence }) => fence));
    }
    await scene.settle(completed(first[0] as Held));
    expect(idsOf(await scene.claim(named))).toEqual(idsOf(first.slice(1)));
    await scene.settle(completed(first[1] as Held));
    // Under a name with nothing left to it a claim is a new one.
    const next = await scene.claim(named);
    expect(next).toHaveLength(2);
    expect(next.some(isFirst)).toBe(false);
  });

  test("a claim apart counts down the batches of the children that it settles", async ({
    scene,
  }) => {
    const { batch, children } = await heldChildren(scene, 2);
    const [first, second] = children;
    if (!first || !second) throw new Error("Two children were to be claimed.");
    const waiting = await scene.enqueued(2);
    const exchange = (settlements: Parameters<typeof scene.settle>) =>
      scene.store.claims.exchange({
        holder: scene.holder,
        token: crypto.randomUUID(),
        settlements,
        limit: 2,
        wantsSuspect: false,
        jobs: ["study"],
        queues: null,
        random: 0,
        apart: ["study"],
      });
    const { claims, ...one } = await exchange([completed(first)]);
    expect(one).toMatchObject({ stale: [], hasContinued: false });
    expect(claims.map(({ runs }) => idsOf(runs))).toEqual(waiting.map((id) => [id]));
    expect(await exchange([completed(second)])).toMatchObject({ stale: [], hasContinued: true });
    expect(await continuations(scene)).toMatchObject([{ id: batch.after?.id }]);
  });

  test("a run that is handed back with a delay waits for it, and its attempt is refunded", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne({ apart: ["study"] });
    const back = {
      ...handedBack(held),
      to: "pending",
      end: "handed_back",
      isRefund: true,
    } as const;
    expect(await scene.settle({ ...back, delayMs: 5_000 })).toEqual([]);
    scene.advance(4_999);
    expect(await scene.store.work.promote({ limit: 1 })).toBe(0);
    scene.advance(1);
    expect(await scene.store.work.promote({ limit: 1 })).toBe(1);
    expect(await scene.claimOne()).toMatchObject({ id: held.id, attempt: 1 });
  });
}
