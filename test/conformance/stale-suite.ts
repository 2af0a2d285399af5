// S3: a write of a holder takes effect only under the current fence; otherwise nothing changes, and the holder gets an
// error. Tests every write of a holder against every way of losing a fence.

import { expect } from "vitest";
import type { Settlement } from "../../src/store/claims.js";
import {
  cancelled,
  completed,
  failed,
  type Held,
  handedBack,
  LEASE_MS,
  policyWith,
  postponed,
  retried,
  type Scene,
  type SceneTest,
  timedOut,
} from "./scene.js";

const WRITES: Readonly<Record<string, (held: Held) => Settlement>> = {
  complete: (held) => completed(held),
  fail: (held) => failed(held),
  cancel: (held) => cancelled(held),
  retry: (held) => retried(held),
  "time out": (held) => timedOut(held),
  postpone: (held) => postponed(held),
  "hand back": (held) => handedBack(held),
};

type Loss = {
  readonly name: string;
  /** Claims a run and takes it away again; answers what its former holder still believes in. */
  readonly lose: (scene: Scene) => Promise<Held>;
};

const LOSSES: readonly Loss[] = [
  {
    name: "the lease expired and the run waits for a new holder",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.loseAll();
      return held;
    },
  },
  {
    name: "the lease expired and another holder has the run",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.loseAll();
      await scene.claimOne({ holder: await scene.announce("second"), wantsSuspect: true });
      return held;
    },
  },
  {
    name: "the lease expired and the same holder has the run again",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.loseAll();
      await scene.claimOne({ wantsSuspect: true });
      return held;
    },
  },
  {
    name: "the loss was the end of the run",
    lose: async (scene) => {
      await scene.enqueued(1, { policy: policyWith({ onLost: "fail" }) });
      const held = await scene.claimOne();
      await scene.store.leases.markStarted([held]);
      await scene.loseAll();
      return held;
    },
  },
  {
    name: "the time limit was the end of the attempt",
    lose: async (scene) => {
      await scene.enqueued(1, { policy: policyWith({ timeoutMs: 1_000 }) });
      const held = await scene.claimOne();
      await scene.loseAll(6_000);
      return held;
    },
  },
  {
    name: "a cancel was enforced",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.store.runs.cancel({ id: held.id, random: 0 });
      scene.advance(1);
      await scene.store.leases.enforceCancels({ graceMs: 0, random: 0 });
      return held;
    },
  },
  {
    name: "a cancel was asked for and the lease expired",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.store.runs.cancel({ id: held.id, random: 0 });
      await scene.loseAll();
      return held;
    },
  },
  {
    name: "another holder has completed the run",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      await scene.loseAll();
      await scene.settle(completed(await scene.claimOne({ wantsSuspect: true }), '"theirs"'));
      return held;
    },
  },
  {
    name: "the fence is that of a neighbour's claim",
    lose: async (scene) => {
      await scene.enqueued(2);
      const held = await scene.claimOne();
      const neighbour = await scene.claimOne();
      return { ...held, fence: neighbour.fence };
    },
  },
  {
    name: "the fence was never given to anybody",
    lose: async (scene) => {
      await scene.enqueued(1);
      const held = await scene.claimOne();
      return { ...held, fence: held.fence + 1_000 };
    },
  },
];

export function staleSuite(test: SceneTest): void {
  for (const { name, lose } of LOSSES) {
    test(`no write takes effect when ${name}`, async ({ scene }) => {
      const lost = await lose(scene);
      const before = await scene.portrait(lost.id);
      for (const [write, settlement] of Object.entries(WRITES)) {
        const stale = [{ id: lost.id, fence: lost.fence }];
        expect([write, await scene.settle(settlement(lost))]).toEqual([write, stale]);
        expect([write, await scene.portrait(lost.id)]).toEqual([write, before]);
      }
      expect(await scene.settleWhole(completed(lost))).toEqual([
        { id: lost.id, fence: lost.fence },
      ]);
      expect(await scene.portrait(lost.id)).toEqual(before);
      expect(await scene.store.leases.markStarted([lost])).toEqual([]);
      const renewal = await scene.store.leases.renew({
        holder: scene.holder,
        fences: [lost.fence],
      });
      const renewed = renewal.held.flatMap(({ ids }) => ids);
      expect(renewed).not.toContain(lost.id);
      expect(renewal.unknown).toEqual([]);
    });
  }

  test("a stale settlement does not keep its neighbours from being applied", async ({ scene }) => {
    await scene.enqueued(1, { policy: policyWith({ leaseMs: 5_000 }) });
    const lost = await scene.claimOne();
    await scene.loseAll(5_000);
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    expect(await scene.settle(completed(one), completed(lost), retried(two))).toEqual([
      { id: lost.id, fence: lost.fence },
    ]);
    expect(await scene.status(one.id)).toBe("completed");
    expect(await scene.status(two.id)).toBe("pending");
    expect(await scene.status(lost.id)).toBe("pending");
  });

  test("a settlement under an expired lease that no instance reclaimed still counts", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(LEASE_MS * 10);
    expect(await scene.settle(completed(held))).toEqual([]);
    expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toEqual([]);
    expect(await scene.status(held.id)).toBe("completed");
  });

  test("a settlement of a run that was removed is stale", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held));
    await scene.store.runs.remove({ id: held.id });
    expect(await scene.settle(failed(held))).toEqual([{ id: held.id, fence: held.fence }]);
    expect(await scene.store.runs.get(held.id)).toBeNull();
  });
}
