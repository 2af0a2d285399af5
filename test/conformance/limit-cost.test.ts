// Measures the cost of a limit on PostgreSQL in blocks that its statements read: no more with a hundred thousand runs
// in line than with a hundred, and nothing for jobs without limits.

import { test as base, describe, expect } from "vitest";
import { LimitedJob } from "./limited-job.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { completed, idsOf, Scene } from "./scene.js";
import { keepVacuumAway, WatchedPool } from "./watched-pool.js";

const LINE = 100_000;

const test = base.extend<{
  watched: {
    readonly scene: Scene;
    readonly pool: WatchedPool;
    blocksOf(work: () => Promise<unknown>): Promise<number>;
    sql(text: string): Promise<unknown>;
  };
}>({
  watched: async ({ task: _ }, use) => {
    const pool = new WatchedPool();
    const place = await postgresPlace(pool.pool);
    const scene = await Scene.start(place);
    await keepVacuumAway(place);
    const blocks = async () => {
      await pool.publishStatistics();
      const { rows } = await place.sql(
        `select sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0)
           + coalesce(idx_blks_read, 0))::int as blocks
         from pg_statio_user_tables where schemaname = '${place.schema}'`,
      );
      return Number(rows[0].blocks);
    };
    // The least of some: rows that are dead, but that a transaction of another test may still see, cost blocks too.
    const blocksOf = async (work: () => Promise<unknown>) => {
      await work();
      let least = Number.POSITIVE_INFINITY;
      for (let time = 0; time < 5; time += 1) {
        const before = await blocks();
        await work();
        least = Math.min(least, (await blocks()) - before);
      }
      return least;
    };
    await use({ scene, pool, blocksOf, sql: place.sql });
    await scene.end();
    await pool.pool.end();
  },
});

describe.skipIf(POSTGRES_URL === undefined)("the cost of a limit", () => {
  test("a full key with a hundred thousand in line costs a claim, a settle and a poll as much as one with few", async ({
    watched: { scene, blocksOf, sql },
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 2, key: "account" } });
    await job.enqueued(100, "busy");
    await job.enqueued(100, "other");
    const turn = async () => {
      const held = await job.claim(4);
      await scene.poll();
      await scene.settle(...held.map((each) => completed(each)));
      return held;
    };
    const few = await blocksOf(turn);
    await sql(`insert into $schema.run (id, created_at, due_at, lane, policy, version, priority, mode, input)
      select gen_random_uuid(), 0, r.due_at + 1, r.lane, r.policy, 1, 0, 0, r.input
      from (select * from $schema.run limit 1) r, generate_series(1, ${LINE})`);
    await sql(`insert into $schema.waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters,
        extra, suspect, gate, flow)
      select r.id, r.due_at, r.lane, r.policy, 0, 0, 0, 0, 0, 0, false, 'flow',
        (select f.id from $schema.flow f where f.key = '"busy"')
      from $schema.run r where r.created_at = 0`);
    expect(await turn()).toHaveLength(4);
    expect(await blocksOf(turn)).toBeLessThan(few * 1.5 + 50);
    // While it is full, nobody looks at it; a newcomer under another key is found at once.
    await job.claim(4);
    const idle = await blocksOf(async () => {
      expect(await job.claim(10)).toEqual([]);
    });
    expect(idle).toBeLessThan(50);
    const [newcomer] = await job.enqueued(1, "newcomer");
    expect(idsOf(await job.claim(10))).toEqual([newcomer?.id]);
  }, 120_000);

  test("jobs without limits send the statements that they sent before", async ({
    watched: { scene, pool },
  }) => {
    const sent = await pool.statementsOf(async () => {
      await scene.enqueued(3);
      const held = await scene.claim({ limit: 3 });
      await scene.settle(...held.map((each) => completed(each)));
    });
    expect(sent.filter(({ text }) => /flow_(run|line|turn)/.test(text))).toEqual([]);
  });
});
