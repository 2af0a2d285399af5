// Settle: the next state of a run under its current fence, and the result of a repeated settlement.

import { expect } from "vitest";
import type { Settlement } from "../../src/store/claims.js";
import {
  cancelled,
  completed,
  failed,
  type Held,
  handedBack,
  idsOf,
  postponed,
  retried,
  type SceneTest,
  timedOut,
} from "./scene.js";

const KINDS: readonly [name: string, settlement: (held: Held) => Settlement][] = [
  ["completion", (held) => completed(held)],
  ["failure", (held) => failed(held)],
  ["cancellation", (held) => cancelled(held)],
  ["retry", (held) => retried(held)],
  ["time-out", (held) => timedOut(held)],
  ["postponement", (held) => postponed(held)],
  ["hand-back", (held) => handedBack(held)],
];

export function settleSuite(test: SceneTest): void {
  test("a completed run keeps its result, its times and the fence that ended it", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(250);
    expect(await scene.settle({ ...completed(held, '{"ok":true}'), ranMs: 200 })).toEqual([]);
    expect(await scene.record(held.id)).toMatchObject({
      status: "completed",
      attempt: 1,
      fence: held.fence,
      result: '{"ok":true}',
      error: null,
      startedAt: scene.now - 200,
      finishedAt: scene.now,
      updatedAt: scene.now,
      holder: "first",
      leaseUntil: null,
    });
    expect(await scene.store.runs.attempts(held.id)).toEqual([
      {
        attempt: 1,
        fence: held.fence,
        holder: "first",
        end: "completed",
        startedAt: scene.now - 200,
        endedAt: scene.now,
        error: null,
      },
    ]);
  });

  test("a failed run keeps its error and is not tried again", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held, '{"code":"PERMANENT"}'));
    expect(await scene.record(held.id)).toMatchObject({
      status: "failed",
      error: '{"code":"PERMANENT"}',
      result: null,
    });
    scene.advance(86_400_000);
    await scene.store.work.promote({ limit: 10 });
    expect(await scene.claim()).toEqual([]);
  });

  test("a run that is tried again waits for its delay, by the database's clock", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(100);
    await scene.settle(retried(held, 1_500));
    expect(await scene.record(held.id)).toMatchObject({
      status: "pending",
      attempt: 1,
      dueAt: scene.now + 1_500,
      error: '{"code":"AGAIN"}',
      fence: null,
      holder: null,
    });
    scene.advance(1_499);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(0);
    scene.advance(1);
    expect(await scene.store.work.promote({ limit: 10 })).toBe(1);
    expect((await scene.claimOne()).attempt).toBe(2);
  });

  test("without a delay it can be claimed at once", async ({ scene }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 0));
    expect((await scene.claimOne()).attempt).toBe(2);
  });

  for (const delayMs of [Number.NaN, Number.POSITIVE_INFINITY, -5, 0.4, 1e300]) {
    test(`a run that is to wait for ${delayMs} ms is pending afterwards, not lost`, async ({
      scene,
    }) => {
      const [id] = (await scene.enqueued(1)) as [string];
      await scene.settle(retried(await scene.claimOne(), delayMs));
      expect(await scene.status(id)).toBe("pending");
      expect(idsOf(await scene.store.runs.list({ status: "pending", limit: 10 }))).toEqual([id]);
    });
  }

  test("a run that is handed back burns no attempt, and the next holder knows how often it was", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    for (let times = 0; times < 3; times += 1) {
      const held = await scene.claimOne();
      expect(held.attempt).toBe(1);
      expect(held.claim.runs[0]?.refunds).toBe(times);
      await scene.settle(handedBack(held));
    }
    await scene.settle(handedBack(await scene.claimOne(), false));
    const burnt = await scene.claimOne();
    expect(burnt.attempt).toBe(2);
    expect(burnt.claim.runs[0]?.refunds).toBe(3);
  });

  test("a run that asked for a later time burns no attempt, and its wishes are counted apart", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    for (let times = 0; times < 3; times += 1) {
      const held = await scene.claimOne();
      expect(held.attempt).toBe(1);
      expect(held.claim.runs[0]).toMatchObject({ laters: times, refunds: 0 });
      await scene.settle(postponed(held, 60_000));
      expect((await scene.record(held.id)).dueAt).toBe(scene.now + 60_000);
      scene.advance(60_000);
      await scene.store.work.promote({ limit: 1 });
    }
  });

  test("the history of a run has every attempt in order, with its end", async ({ scene }) => {
    const [id] = await scene.enqueued(1);
    const fences: number[] = [];
    for (const end of [handedBack, retried, postponed, timedOut, completed]) {
      const held = await scene.claimOne();
      fences.push(held.fence);
      await scene.settle(end(held));
      scene.advance(1_000);
      await scene.store.work.promote({ limit: 1 });
    }
    const attempts = await scene.store.runs.attempts(id as string);
    expect(attempts.map(({ attempt, end }) => [attempt, end])).toEqual([
      [1, "handed_back"],
      [1, "failed"],
      [2, "later"],
      [2, "timeout"],
      [3, "completed"],
    ]);
    expect(attempts.map(({ fence }) => fence)).toEqual(fences);
  });

  test("part of a claim can be settled; the rest stays held under its fence", async ({ scene }) => {
    const ids = await scene.enqueued(5);
    const held = await scene.claim();
    expect(await scene.settle(...held.slice(0, 2).map((each) => completed(each)))).toEqual([]);
    expect(await scene.settle(failed(held[3] as Held))).toEqual([]);
    expect(await scene.status(ids[2] as string)).toBe("running");
    const renewal = await scene.store.leases.renew({
      holder: scene.holder,
      fences: [(held[0] as Held).fence],
    });
    expect([...(renewal.held[0]?.ids ?? [])].sort()).toEqual([ids[2], ids[4]]);
    expect(await scene.settle(completed(held[2] as Held), completed(held[4] as Held))).toEqual([]);
    expect(await scene.store.runs.list({ status: "running", limit: 10 })).toEqual([]);
  });

  test("one exchange settles and claims, and never claims a run that it has just handed back", async ({
    scene,
  }) => {
    const [first, second] = await scene.enqueued(2);
    const held = await scene.claimOne();
    const { claims, stale } = await scene.store.claims.exchange({
      holder: scene.holder,
      token: crypto.randomUUID(),
      settlements: [completed(held)],
      limit: 10,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      random: 0,
    });
    expect(stale).toEqual([]);
    expect(claims.flatMap(({ runs }) => idsOf(runs))).toEqual([second]);
    expect(await scene.status(first as string)).toBe("completed");
  });

  test("runs that are settled together each keep their own values", async ({ scene }) => {
    await scene.enqueued(4);
    const held = await scene.claim();
    scene.advance(1_000);
    const [first, second, third, fourth] = held as [Held, Held, Held, Held];
    const settlements = [
      { ...completed(first, "null"), ranMs: 5 },
      { ...completed(second, '{"a \\"b\\"":[1,"{}"]}'), ranMs: 5 },
      { ...failed(third), ranMs: 5 },
      { ...completed(fourth, "null"), ranMs: 7 },
    ];
    expect(await scene.settle(...settlements)).toEqual([]);
    const records = await Promise.all(held.map(({ id }) => scene.record(id)));
    expect(records).toMatchObject(
      settlements.map(({ id, fence, to, error, ranMs, ...rest }) => ({
        ...{ id, fence, status: to, error, result: "result" in rest ? rest.result : null },
        ...{ startedAt: scene.now - ranMs, finishedAt: scene.now },
      })),
    );
  });

  test("a thousand runs of many claims are settled at once, each its own way", async ({
    scene,
  }) => {
    await scene.enqueued(1_000);
    const held: Held[] = [];
    for (let times = 0; times < 4; times += 1) held.push(...(await scene.claim({ limit: 250 })));
    const ways = [completed, failed, cancelled, retried, handedBack];
    const stale = await scene.settle(
      ...held.map((each, at) => (ways[at % 5] as (held: Held) => Settlement)(each)),
    );
    expect(stale).toEqual([]);
    for (const [status, count] of [
      ["completed", 200],
      ["failed", 200],
      ["cancelled", 200],
      ["pending", 400],
      ["running", 0],
    ] as const) {
      expect(await scene.store.runs.list({ status, limit: 1_000 })).toHaveLength(count);
    }
  });

  test("of a lease that ends as a whole each run keeps its own result and times", async ({
    scene,
  }) => {
    await scene.enqueued(4);
    const held = await scene.claim({ limit: 3 });
    scene.advance(1_000);
    const results = held.map(({ id }, at) => (at === 1 ? null : JSON.stringify({ of: id })));
    const settlements = held.map((each, at) => ({
      ...completed(each, results[at]),
      ranMs: at * 10,
    }));
    expect(await scene.settleWhole(...settlements)).toEqual([]);
    const records = await Promise.all(held.map(({ id }) => scene.record(id)));
    expect(records).toMatchObject(
      settlements.map(({ id, fence, ranMs }, at) => ({
        ...{ id, fence, result: results[at], status: "completed", attempt: 1, error: null },
        ...{ startedAt: scene.now - ranMs, finishedAt: scene.now },
      })),
    );
    // Repeated since its answer was lost, it is not stale and changes nothing.
    expect(await scene.settleWhole(...settlements)).toEqual([]);
    expect(await Promise.all(held.map(({ id }) => scene.record(id)))).toEqual(records);
    expect(await scene.claim()).toHaveLength(1);
  });

  test("of a lease that lost a run meanwhile the others end, and that one is stale", async ({
    scene,
  }) => {
    await scene.enqueued(3);
    const held = await scene.claim();
    const [first, second, third] = held as [Held, Held, Held];
    await scene.store.runs.cancel({ id: second.id, random: 0 });
    await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 });
    const { id, fence } = second;
    const settlements = held.map((each) => completed(each, JSON.stringify(each.id)));
    expect(await scene.settleWhole(...settlements)).toEqual([{ id, fence }]);
    expect(await scene.status(id)).toBe("cancelled");
    for (const each of [first, third])
      expect(await scene.record(each.id)).toMatchObject({
        status: "completed",
        result: JSON.stringify(each.id),
      });
  });

  test("runs of a lease that end together end each its own way", async ({ scene }) => {
    await scene.enqueued(3);
    const [first, second, third] = (await scene.claim()) as [Held, Held, Held];
    const stale = await scene.settleWhole(completed(first), failed(second), retried(third));
    expect(stale).toEqual([]);
    const statuses = [first, second, third].map(({ id }) => scene.status(id));
    expect(await Promise.all(statuses)).toEqual(["completed", "failed", "pending"]);
  });

  for (const [name, settlement] of KINDS) {
    test(`a ${name} that is repeated after a lost response is not stale and changes nothing more`, async ({
      scene,
    }) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      expect(await scene.settle(settlement(held))).toEqual([]);
      const before = await scene.portrait(held.id);
      scene.advance(10);
      expect(await scene.settle(settlement(held))).toEqual([]);
      expect(await scene.portrait(held.id)).toEqual(before);
      // Also when it has gone on since then.
      scene.advance(2_000);
      await scene.store.work.promote({ limit: 1 });
      await scene.claim();
      expect(await scene.settle(settlement(held))).toEqual([]);
    });
  }

  test("the same settlement twice in one exchange is applied once", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    expect(
      await scene.settle(completed(one), retried(two, 0), completed(one), retried(two, 0)),
    ).toEqual([]);
    expect(await scene.store.runs.attempts(one.id)).toHaveLength(1);
    expect(await scene.claim()).toHaveLength(1);
  });

  test("a repeated failure is not stale after an operator has retried the run", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held));
    await scene.store.runs.retry({ id: held.id });
    expect(await scene.settle(failed(held))).toEqual([]);
    expect(await scene.status(held.id)).toBe("pending");
  });

  test("a run cannot be settled in another way under the same fence", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(completed(held));
    const before = await scene.portrait(held.id);
    for (const other of [failed(held), cancelled(held), retried(held), handedBack(held)]) {
      expect(await scene.settle(other)).toEqual([{ id: held.id, fence: held.fence }]);
    }
    expect(await scene.portrait(held.id)).toEqual(before);
    expect(await scene.store.runs.terminal([held.id, scene.id()])).toEqual([held.id]);
  });

  test("a run that failed does not complete under the same fence", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held));
    expect(await scene.settle(completed(held))).toEqual([{ id: held.id, fence: held.fence }]);
    expect(await scene.settle(failed(held, '{"code":"ANOTHER"}'))).toHaveLength(1);
    expect(await scene.status(held.id)).toBe("failed");
  });
}
