// Work that stays in its transaction for three leases, beside twenty runs of the same claim.

import { test as base, describe, expect } from "vitest";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { Effects } from "./effects.js";
import { memoryPlace, POSTGRES_URL, postgresPlace } from "./places.js";
import { Door, type EnginePlace, heard, World } from "./world.js";

const LEASE_MS = 10_000;
const SIBLINGS = Array.from({ length: 20 }, () => "sibling");

function testOn(makePlace: () => Promise<EnginePlace>) {
  return base.extend<{ world: World }>({
    world: async ({ task: _ }, use) => {
      const world = new World(await makePlace());
      await use(world);
      await world.end();
    },
  });
}

const onPostgres = testOn(postgresPlace);
const onSqlite = testOn(memoryPlace);

describe.skipIf(POSTGRES_URL === undefined)("a long commit on PostgreSQL", () => {
  onPostgres("costs no sibling its lease", async ({ world }) => {
    const effects = await Effects.open(world);
    const member = world.member({}, { free: ["commits.run"] });
    const isIn = new Door();
    const mayGo = new Door();
    const hasCommitted = new Door();
    const fences = new Set<number>();
    const { holdfast } = member;
    const study = holdfast.job<string>("study", {
      lease: LEASE_MS,
      run: async (who, ctx) => {
        fences.add(ctx.fence);
        if (who === "sibling") {
          await hasCommitted.opened;
          return who;
        }
        const write = effects.write(ctx.runId, who);
        const committing = ctx.commit(async (tx) => {
          await write(tx);
          isIn.open();
          await mayGo.opened;
          return who;
        });
        committing.then(() => hasCommitted.open());
        return committing;
      },
    });
    const enqueued = await study.enqueueMany(["long", ...SIBLINGS]);
    const other = world.member();
    other.holdfast.job("study", { lease: LEASE_MS, run: () => "taken over" });
    await holdfast.start({ worker: { concurrency: 30 } });
    await world.clock.until(isIn.opened);
    await other.holdfast.start();
    await world.clock.advance(3 * LEASE_MS);
    expect(fences.size).toBe(1);
    mayGo.open();
    await world.clock.io(hasCommitted.opened);
    await world.clock.advance(2_000);
    for (const { id } of enqueued)
      expect(await world.record(id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(heard(member, "run.lost")).toEqual([]);
    expect(await effects.all()).toEqual([enqueued[0]?.id]);
  });
});

describe("a long commit on SQLite", () => {
  for (const isTakenOver of [false, true]) {
    const what = isTakenOver ? "are tried again by another" : "are renewed";

    onSqlite(
      `is named in a warning, its siblings ${what}, nothing is stored twice`,
      async ({ world }) => {
        const effects = await Effects.open(world);
        const member = world.member();
        const { holdfast, clock } = member;
        let heldMs = 0;
        const monotonicMs = clock.monotonicMs.bind(clock);
        clock.monotonicMs = () => monotonicMs() + heldMs;
        const handler = (own: typeof clock, isBlocking: boolean) => ({
          lease: LEASE_MS,
          run: async (who: string, ctx: { runId: string; commit: typeof commitOf }) => {
            if (who === "sibling") await own.sleep(5_000);
            return ctx.commit((tx: SqliteHandle) => {
              effects.write(ctx.runId, who)(tx);
              if (who !== "long" || !isBlocking) return who;
              // Nothing else of this process happens meanwhile, and nobody gets to the file.
              heldMs += 3 * LEASE_MS;
              world.databaseAheadMs += 3 * LEASE_MS;
              return who;
            });
          },
        });
        const study = holdfast.job<string>("study", handler(clock, true) as never);
        const enqueued = await study.enqueueMany(["long", ...SIBLINGS]);
        const other = world.member({ poll: "100ms" });
        other.holdfast.job("study", handler(other.clock, false) as never);
        await holdfast.start({ worker: { concurrency: 30 } });
        await world.reached(enqueued[0]?.id as string, ({ status }) => status === "completed");
        if (isTakenOver) {
          // The first process after the file is free reclaims the expired runs.
          clock.pause();
          await other.holdfast.start({ worker: { concurrency: 30 } });
          await world.clock.advance(1_000);
          clock.resume();
        }
        for (const { id } of enqueued) await world.ended(id);
        expect(heard(member, "run.held_up")).toEqual([
          expect.objectContaining({
            run: enqueued[0]?.id,
            verb: "ctx.commit",
            heldMs: 3 * LEASE_MS,
            leaseMs: LEASE_MS,
          }),
        ]);
        const attempts = await Promise.all(
          enqueued.map(async ({ id }) => (await world.record(id)).attempt),
        );
        expect(attempts).toEqual([1, ...SIBLINGS.map(() => (isTakenOver ? 2 : 1))]);
        await world.clock.advance(60_000);
        expect(await effects.all()).toEqual(enqueued.map(({ id }) => id).sort());
      },
    );
  }
});

declare function commitOf(fn: (tx: SqliteHandle) => string): Promise<string>;
