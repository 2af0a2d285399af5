// Tests PostgreSQL alone: plans that stay right when statistics are wrong, the number of statements of a verb, lost
// answers, broken connections, pools, locks and days of history.

import net from "node:net";
import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { PostgresStore } from "../../src/store/postgres/store.js";
import type { RunFilter } from "../../src/store/runs/runs.js";
import { PARTITIONED } from "../../src/store/schema/schema.js";
import type { Store } from "../../src/store/store.js";
import { until } from "../support/until.js";
import { LimitedJob } from "./limited-job.js";
import { IS_POOLED, POSTGRES_URL, postgresPlace, whileLocked } from "./places.js";
import {
  completed,
  failed,
  type Held,
  heldBy,
  idsOf,
  LEASE_MS,
  POLICY,
  retried,
  Scene,
} from "./scene.js";
import { keepVacuumAway, WatchedPool } from "./watched-pool.js";

const DAY_MS = 86_400_000;
const KEEP_MS = 30 * DAY_MS;

type Watched = {
  readonly scene: Scene;
  readonly pool: WatchedPool;
  readonly schema: string;
  sql(text: string): Promise<pg.QueryResult>;
};

/** A scene whose first store talks through a watched pool; counted: what it reads is asked of the server. */
const test = base.extend<{ watched: Watched; counted: Watched }>({
  watched: async ({ task: _ }, use) => watching(new WatchedPool(), use),
  counted: async ({ task: _ }, use) => watching(new WatchedPool({ isCounted: true }), use),
});

async function watching(pool: WatchedPool, use: (watched: Watched) => Promise<void>) {
  const place = await postgresPlace(pool.pool);
  const scene = await Scene.start(place);
  await keepVacuumAway(place);
  await use({ scene, pool, schema: place.schema, sql: place.sql });
  await scene.end();
  await pool.pool.end();
}

describe.skipIf(POSTGRES_URL === undefined)("PostgreSQL alone", () => {
  describe("plans", plans);
  describe("statements", statements);
  describe("lost answers", lostAnswers);
  describe("connections", connections);
  describe("locks", locks);
  describe("days", days);
});

function plans(): void {
  test("a claim of 1 takes 1 when statistics were taken with one row in the table", async ({
    watched: { scene, sql },
  }) => {
    await scene.enqueued(1);
    await sql("analyze $schema.ready");
    await scene.enqueued(100);
    for (let times = 0; times < 8; times += 1)
      expect(await scene.claim({ limit: 1 })).toHaveLength(1);
    expect(await scene.store.runs.list({ status: "running", limit: 200 })).toHaveLength(8);
  });

  test("a claim takes its limit when statistics were taken with an empty table", async ({
    watched: { scene, sql },
  }) => {
    await sql("vacuum analyze $schema.ready");
    await sql("vacuum analyze $schema.lease");
    await scene.enqueued(200);
    for (const limit of [1, 50, 7]) expect(await scene.claim({ limit })).toHaveLength(limit);
  });

  test("a run that sorts before the runs just claimed is found, at the latest when the rest runs out", async ({
    watched: { scene },
  }) => {
    await scene.enqueued(250);
    await scene.claim({ limit: 100 });
    const [urgent] = await scene.enqueued(1, { priority: 100 });
    const second = await scene.claim({ limit: 100 });
    const third = await scene.claim({ limit: 100 });
    expect([second.length, third.length]).toEqual([100, 51]);
    expect(idsOf([...second, ...third])).toContain(urgent);
  });

  test("plans that were made and kept while all tables were empty scan no large table later", async ({
    counted: { scene, pool, schema, sql },
  }) => {
    const tables = ["ready", "waiting", "lease", "run", "outcome", "attempt", "key"];
    for (const table of tables) await sql(`vacuum analyze $schema.${table}`);
    const turn = async (limit: number) => {
      const held = await scene.claim({ limit });
      const [first, ...rest] = held;
      await scene.settle(
        ...(first ? [retried(first)] : []),
        ...rest.map((each) => completed(each)),
      );
      await scene.poll();
      await scene.store.work.promote({ limit: 100 });
      await scene.store.leases.reclaim({ limit: 100, random: 0 });
    };
    for (let times = 0; times < 8; times += 1) await turn(10);
    await scene.enqueued(1_500);
    await scene.enqueued(500, { delayMs: 60_000 });
    const scanned = async () => {
      await pool.publishStatistics();
      const { rows } = await sql(
        `select sum(seq_tup_read)::int as rows from pg_stat_user_tables where schemaname = '${schema}'
         and relname ~ '^(ready|waiting|run|outcome|attempt|key)'`,
      );
      return rows[0].rows as number;
    };
    const before = await scanned();
    for (let times = 0; times < 3; times += 1) await turn(500);
    expect((await scanned()) - before).toBe(0);
  });

  test("a claim reads as much with history, backlog and future as without", async ({
    counted: { scene, pool, schema, sql },
  }) => {
    const reads = () => blocksRead({ pool, schema, sql });
    let held: Held[] = [];
    const crowd = async (count: number) => {
      await scene.enqueued(count, { job: "other" });
      await scene.enqueued(count, { delayMs: DAY_MS, priority: 100 });
      await scene.enqueued(count, { job: "done" });
      const done = await scene.claim({ jobs: ["done"], limit: count });
      await scene.settle(...done.map((each) => completed(each)));
    };
    /** Blocks that one exchange reads which settles fifty runs and claims fifty others. */
    const costOfTurn = async () => {
      await scene.enqueued(50);
      const before = await reads();
      const { claims } = await scene.store.claims.exchange({
        holder: scene.holder,
        token: crypto.randomUUID(),
        settlements: held.map((each) => completed(each)),
        limit: 50,
        wantsSuspect: false,
        jobs: ["study"],
        queues: null,
        random: 0,
      });
      held = heldBy(claims);
      expect(held).toHaveLength(50);
      return (await reads()) - before;
    };
    await crowd(500);
    for (let times = 0; times < 8; times += 1) await costOfTurn();
    const before = await costOfTurn();
    for (let times = 0; times < 5; times += 1) await crowd(1_000);
    expect(await costOfTurn()).toBeLessThan(before * 1.5);
  });

  test("a page of a list reads as much of a long history as of a short one", async ({
    counted: { scene, pool, schema, sql },
  }) => {
    const grow = async (count: number) => {
      await scene.enqueued(count);
      const held = await scene.claim({ limit: count });
      await scene.settle(
        ...held.map((each, at) => (at % 2 === 0 ? completed(each) : failed(each))),
      );
    };
    await grow(400);
    const [middle] = await scene.store.runs.list({ limit: 1 });
    await grow(100);
    const pages: Omit<RunFilter, "limit">[] = [
      {},
      { status: "completed" },
      { status: "failed" },
      { status: "running" },
      { status: "pending" },
      { job: "study" },
      { mode: "enqueued" },
      { before: middle?.id as string },
    ];
    const costs = async (store: Store) => {
      const each: number[] = [];
      for (const page of pages) {
        await store.runs.list({ ...page, limit: 20 });
        const before = await blocksRead({ pool, schema, sql });
        await store.runs.list({ ...page, limit: 20 });
        each.push((await blocksRead({ pool, schema, sql })) - before);
      }
      return each;
    };
    const short = await costs(scene.store);
    for (let times = 0; times < 6; times += 1) await grow(3_000);
    await sql("vacuum $schema.ready");
    // With plans that were made for a short history, and with new ones.
    for (const store of [scene.store, await scene.open()]) {
      for (const [at, cost] of (await costs(store)).entries()) {
        expect(cost, JSON.stringify(pages[at])).toBeLessThan(2 * Number(short[at]) + 100);
      }
    }
  });
}

/** Blocks that the connections of this pool have read from our tables so far. */
async function blocksRead({ pool, schema, sql }: Pick<Watched, "pool" | "schema" | "sql">) {
  await pool.publishStatistics();
  const { rows } = await sql(
    `select sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0)
       + coalesce(idx_blks_read, 0) + coalesce(toast_blks_hit, 0))::int as blocks
     from pg_statio_user_tables where schemaname = '${schema}'`,
  );
  return rows[0].blocks as number;
}

function statements(): void {
  test("every verb is one statement", async ({ watched: { scene, pool } }) => {
    const { store, holder } = scene;
    await scene.enqueued(5);
    const held = await scene.claim({ limit: 3 });
    const whole = await scene.claim({ limit: 2 });
    const [one, two, three] = held as [Held, Held, Held];
    const grants = held.map(({ id, fence }) => ({ id, fence }));
    const verbs: Record<string, () => Promise<unknown>> = {
      "enqueue one": () => scene.enqueued(1),
      "enqueue many": () => scene.enqueued(100),
      "enqueue with a free key": () =>
        scene.enqueued(1, { key: { key: crypto.randomUUID(), inputHash: "h" } }),
      exchange: () =>
        store.claims.exchange({
          holder,
          token: crypto.randomUUID(),
          settlements: [completed(one), retried(two)],
          limit: 10,
          wantsSuspect: false,
          jobs: ["study"],
          queues: null,
          random: 0,
        }),
      "exchange of a whole lease": () => scene.settleWhole(...whole.map((each) => completed(each))),
      renew: () => store.leases.renew({ holder, fences: [three.fence] }),
      markStarted: () => store.leases.markStarted(grants),
      poll: () => scene.poll(),
      promote: () => store.work.promote({ limit: 100 }),
      reclaim: () => store.leases.reclaim({ limit: 100, random: 0 }),
      enforceCancels: () => store.leases.enforceCancels({ graceMs: 0, random: 0 }),
      "cancel a running run": () => store.runs.cancel({ id: three.id, random: 0 }),
      "cancel a waiting run": () => store.runs.cancel({ id: two.id, random: 0 }),
      retry: () => store.runs.retry({ id: two.id }),
      run: () => store.runs.get(one.id),
      runs: () => store.runs.list({ limit: 10, status: "pending" }),
      attempts: () => store.runs.attempts(two.id),
      terminal: () => store.runs.terminal([one.id]),
      claimsByToken: () => store.claims.byToken({ holder, token: crypto.randomUUID() }),
      pauseQueue: () => store.queues.pause({ queue: "slow", isPaused: true }),
      retire: () => store.instances.retire({ holder }),
    };
    const counts: Record<string, number> = {};
    for (const [verb, ask] of Object.entries(verbs)) {
      counts[verb] = (await pool.statementsOf(ask)).length;
    }
    expect(counts).toEqual(Object.fromEntries(Object.keys(verbs).map((verb) => [verb, 1])));
  });

  test("a lease may be as long as a duration can be", async ({ watched: { scene } }) => {
    const leaseMs = 3_650 * DAY_MS;
    await scene.enqueued(1, { policy: { ...POLICY, leaseMs, timeoutMs: leaseMs } });
    expect((await scene.claimOne()).claim.leaseMs).toBe(leaseMs);
  });

  test("equal policies are one, whatever objects they come in", async ({
    watched: { scene, pool },
  }) => {
    await scene.enqueued(1);
    const runs = Array.from({ length: 50 }, () => scene.run({ policy: { ...POLICY } }));
    expect(await pool.statementsOf(() => scene.enqueue(...runs))).toHaveLength(1);
    expect(await scene.claims({ limit: 100 })).toHaveLength(1);
  });

  test("only a stale settlement and a taken key cost a second statement", async ({
    watched: { scene, pool },
  }) => {
    await scene.enqueued(1, { key: { key: "k", inputHash: "h" } });
    const held = await scene.claimOne();
    await scene.loseAll();
    expect(await pool.statementsOf(() => scene.settle(completed(held)))).toHaveLength(2);
    const again = () => scene.enqueued(1, { key: { key: "k", inputHash: "h" } });
    expect(await pool.statementsOf(again)).toHaveLength(2);
  });
}

function lostAnswers(): void {
  test("runs whose commit was not answered are stored once, with and without keys", async ({
    watched: { scene, pool },
  }) => {
    await scene.enqueued(1);
    for (const isAtomic of [false, true]) {
      const plain = [scene.run(), scene.run()];
      pool.loseAnswerTo(/insert into .*run /);
      const store = scene.store;
      expect(await store.enqueue.runs({ runs: plain, isAtomic, wakesOthers: false })).toHaveLength(
        2,
      );
      const keyed = scene.run({ key: { key: `k-${isAtomic}`, inputHash: "h" } });
      pool.loseAnswerTo(isAtomic ? /^commit/ : /insert into .*key /);
      expect(await store.enqueue.runs({ runs: [keyed], isAtomic, wakesOthers: false })).toEqual([
        { id: keyed.id, deduplicated: false },
      ]);
    }
    expect(await scene.claim({ limit: 100 })).toHaveLength(7);
  });

  test("lanes and policies that a failover lost are stored again, and later runs can be claimed", async ({
    watched: { scene, sql },
  }) => {
    await scene.enqueued(1);
    for (const table of ["ready", "run", "lane", "policy"])
      await sql(`delete from $schema.${table}`);
    const plain = await scene.enqueued(2);
    await sql("delete from $schema.lane");
    const keyed = await scene.enqueued(1, { key: { key: "again", inputHash: "h" } });
    await sql("update $schema.ready set lane = (select id from $schema.lane)");
    expect(idsOf(await scene.claim({ limit: 10 })).sort()).toEqual([...plain, ...keyed].sort());
  });

  test("an exchange without an answer is unknown; its claims are read back, its settlements repeated", async ({
    watched: { scene, pool },
  }) => {
    const { store, holder } = scene;
    await scene.enqueued(6);
    const held = await scene.claim({ limit: 3 });
    const settlements = held.map((each, at) => (at === 0 ? retried(each) : completed(each)));
    const token = crypto.randomUUID();
    const params = { holder, token, settlements, wantsSuspect: false, queues: null, random: 0 };
    pool.loseAnswerTo(/insert into .*lease /);
    await expect(
      store.claims.exchange({ ...params, limit: 10, jobs: ["study"] }),
    ).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
    });
    const claims = await store.claims.byToken({ holder, token });
    expect(claims.flatMap(({ runs }) => runs)).toHaveLength(3);
    const again = await store.claims.exchange({ ...params, limit: 0, jobs: [] });
    expect(again).toMatchObject({ claims: [], stale: [] });
    expect(await store.runs.list({ status: "completed", limit: 10 })).toHaveLength(2);
    expect(await store.runs.attempts((held[0] as Held).id)).toHaveLength(1);
  });

  test("a renewal or poll without an answer is reported as unknown, not as lost", async ({
    watched: { scene, pool },
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    pool.loseAnswerTo(/update .*lease k/);
    const renew = () => scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    await expect(renew()).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect((await renew()).held).toHaveLength(1);
  });

  test("an operator's verbs are repeated until they are answered", async ({
    watched: { scene, pool },
  }) => {
    const [id] = (await scene.enqueued(1)) as [string];
    pool.loseAnswerTo(/delete from .*ready where id/);
    expect(await scene.store.runs.cancel({ id, random: 0 })).toBe("already_terminal");
    pool.loseAnswerTo(/delete from .*outcome where id/);
    expect(await scene.store.runs.retry({ id })).toBe("not_terminal");
    expect(await scene.status(id)).toBe("pending");
  });
}

function connections(): void {
  const terminate = "select pg_terminate_backend(pid) from pg_stat_activity where application_name";

  test("connections that the server ends while idle are replaced without anybody noticing", async () => {
    const place = await postgresPlace();
    const name = `holdfast-${crypto.randomUUID()}`;
    const url = `${POSTGRES_URL}?application_name=${name}`;
    const store = new PostgresStore({
      source: url,
      schema: place.schema,
      clock: systemClock,
      migrate: "auto",
    });
    await store.open();
    const holder = await store.instances.announce({
      instanceId: "a",
      app: null,
      release: null,
      jobs: [],
      schedules: [],
      isScheduler: false,
      pollMs: 1_000,
    });
    for (let times = 0; times < 3; times += 1) {
      await place.sql(`${terminate} in ('${name}', 'holdfast') and query like '%${place.schema}%'`);
      expect(await store.runs.list({ limit: 1 })).toEqual([]);
      await store.work
        .poll({ holder, jobs: [], queues: null, isScheduler: false })
        .catch(() => undefined);
      expect(
        await store.work.poll({ holder, jobs: [], queues: null, isScheduler: false }),
      ).toMatchObject({
        hasReady: false,
      });
    }
    await store.close();
    await place.clear();
  });

  test("statements that broke together do not break the connection after theirs", async ({
    watched: { scene, pool },
  }) => {
    await scene.enqueued(1);
    pool.loseAnswerTo(/pg_catalog|instance/);
    const polls = Array.from({ length: 6 }, () => scene.poll().then(Boolean, () => false));
    expect((await Promise.all(polls)).some((isAnswered) => !isAnswered)).toBe(true);
    const after = Array.from({ length: 6 }, () => scene.poll().then(Boolean, () => false));
    expect(await Promise.all(after)).toEqual(Array.from({ length: 6 }, () => true));
  });

  test("a store on a pool gives all its connections back when it closes", async () => {
    const pool = new WatchedPool({ max: 3 });
    const place = await postgresPlace(pool.pool);
    const scene = await Scene.start(place);
    await scene.enqueued(3);
    await scene.store.enqueue.runs({
      runs: [scene.run({ key: { key: "k", inputHash: "h" } })],
      isAtomic: true,
      wakesOthers: true,
    });
    expect(await scene.claim()).toHaveLength(4);
    expect(pool.pool.totalCount).toBe(2);
    await scene.end();
    expect(pool.pool.totalCount).toBe(0);
    const next = await pool.pool.connect();
    const { rows } = await next.query(
      "select setting = reset_val as is_untouched from pg_settings where name = 'enable_seqscan'",
    );
    expect(rows).toEqual([{ is_untouched: true }]);
    next.release();
    await pool.pool.end();
  });

  test("a pool that is too small is refused with what to do", async () => {
    const pool = new pg.Pool({ connectionString: POSTGRES_URL, max: 2 });
    const place = await postgresPlace(pool);
    const store = place.newStore({ now: () => 0 });
    await expect(store.open()).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    await pool.end();
  });

  test("behind a pooler nothing is left in a session: no settings, names or channels", async () => {
    const pool = new WatchedPool({ isBehindPooler: true });
    const scene = await Scene.start(await postgresPlace(pool.pool));
    await scene.enqueued(2);
    await scene.settle(completed(await scene.claimOne()));
    await scene.poll();
    expect(pool.sent.filter(({ name }) => name !== undefined)).toEqual([]);
    expect(pool.sent.filter(({ text }) => /^(listen|set (?!local))/i.test(text))).toEqual([]);
    await scene.end();
    await pool.pool.end();
  });

  // PgBouncer passes a server on between two statements, though the second one was begun already.
  test("statements are sent together in a session of one's own, and one by one behind a pooler", async () => {
    const atOnceMax = async (isBehindPooler: boolean) => {
      const pool = new WatchedPool({ isBehindPooler, isPipelined: true });
      const scene = await Scene.start(await postgresPlace(pool.pool));
      const stored = await Promise.all(Array.from({ length: 5 }, () => scene.enqueued(1)));
      expect(stored.flat()).toHaveLength(5);
      await scene.end();
      await pool.pool.end();
      return pool.atOnceMax;
    };
    // Where the whole suite goes through a pooler, there is no session of one's own.
    if (!IS_POOLED) expect(await atOnceMax(false)).toBeGreaterThan(1);
    expect(await atOnceMax(true)).toBe(1);
  });

  test("closing waits for the sent statements", async ({ watched: { scene } }) => {
    const store = await scene.open();
    await store.enqueue.runs({ runs: [scene.run()], isAtomic: false, wakesOthers: false });
    const runs = Array.from({ length: 500 }, () => scene.run());
    const storing = store.enqueue.runs({ runs, isAtomic: false, wakesOthers: false });
    await Promise.all([storing, closeSoon(store)]);
    expect(await scene.store.runs.list({ limit: 1_000 })).toHaveLength(501);
  });

  test("an unreachable server is named without its password", async () => {
    const store = new PostgresStore({
      source: "postgres://user:secret@127.0.0.1:1/none",
      schema: "holdfast",
      clock: systemClock,
      migrate: "auto",
    });
    const error = await store.open().then(
      () => undefined,
      (reason: unknown) => reason as Error & { code: string },
    );
    expect(error?.code).toBe("STORE_UNAVAILABLE");
    expect(error?.message).toContain("127.0.0.1:1");
    expect(error?.message).not.toContain("secret");
    await store.close();
  });

  test("a server that freezes keeps neither a connection from failing nor a store from closing", async () => {
    const cable = await Cable.lay();
    const store = new PostgresStore({
      source: cable.url,
      schema: "frozen",
      clock: systemClock,
      migrate: "off",
    });
    // The server lets us in and then falls silent, before it was asked anything.
    cable.cutAt = "pg_backend_pid";
    const opening = await store.open().catch((error: { code: string }) => error.code);
    expect(opening).toBe("STORE_UNAVAILABLE");
    cable.cutAt = null;
    expect(await store.open().catch((error: { code: string }) => error.code)).toBe(
      "MIGRATION_REFUSED",
    );
    cable.cutAt = "";
    await store.close();
    await cable.remove();
  });

  test("tables of a newer release that this one cannot use are refused", async ({
    watched: { scene, sql },
  }) => {
    await sql("update $schema.schema_version set version = 99, min_compatible = 99");
    await expect(scene.open()).rejects.toMatchObject({ code: "MIGRATION_REFUSED" });
  });
}

function locks(): void {
  test("a lease that another transaction has locked is unknown: neither renewed nor lost", async ({
    watched: { scene, schema },
  }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const renew = () => scene.store.leases.renew({ holder: scene.holder, fences: [held.fence] });
    await whileLocked(`select 1 from "${schema}".lease for update`, async () => {
      expect(await renew()).toEqual({ held: [], unknown: [held.fence] });
      scene.advance(LEASE_MS);
      expect(await scene.store.leases.reclaim({ limit: 10, random: 0 })).toEqual([]);
    });
    expect((await renew()).held).toHaveLength(1);
  });

  test("an old run that an operator retries while it is being pruned goes on whole", async ({
    watched: { scene, schema, sql },
  }) => {
    // Outside of all days, so that it is removed row by row.
    const id = "01900000-0000-7000-8000-000000000001";
    await scene.enqueue(scene.run({ id }));
    await scene.settle(failed(await scene.claimOne()));
    scene.advance(KEEP_MS + DAY_MS);
    const operator = new pg.Client(POSTGRES_URL);
    await operator.connect();
    await operator.query(`begin; delete from "${schema}".outcome`);
    await operator.query(
      `insert into "${schema}".ready select id, 0, lane, policy, 1, 0, 0, 0, 1, false from "${schema}".run`,
    );
    const pruning = scene.store.retention.prune({
      keepMs: KEEP_MS,
      keepTicksMs: KEEP_MS,
      limit: 10,
    });
    const waiting = `select from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.query like '%delete from "${schema}".outcome%'`;
    await until("prune waits for the operator", async () => (await sql(waiting)).rowCount);
    await operator.query("commit");
    await operator.end();
    await pruning;
    expect(idsOf(await scene.claim())).toEqual([id]);
  });

  test("a claim skips locked runs and does not wait for them", async ({
    watched: { scene, schema },
  }) => {
    const [first, second] = await scene.enqueued(2);
    await whileLocked(
      `select 1 from "${schema}".ready where id = '${first}' for update`,
      async () => {
        expect(idsOf(await scene.claim())).toEqual([second]);
      },
    );
    expect(idsOf(await scene.claim())).toEqual([first]);
  });

  test("a run that was retried and ended anew since its job's history was looked at is kept", async ({
    watched: { scene, schema, sql },
  }) => {
    const [id] = (await scene.enqueued(1)) as [string];
    await scene.settle(failed(await scene.claimOne()));
    scene.advance(KEEP_MS + DAY_MS);
    const operator = new pg.Client(POSTGRES_URL);
    await operator.connect();
    // As a retry and its end leave the row; the look before them has seen the old one.
    await operator.query(
      `begin; update "${schema}".outcome set finished_at = ${scene.now}, status = 1`,
    );
    const keep = { keepMs: KEEP_MS, keepCount: null, after: null, limit: 100 };
    const pruning = scene.store.retention.pruneJob({ job: "study", ...keep });
    const waiting = `select from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.query like '%delete from "${schema}".outcome%'`;
    await until("the removal waits", async () => (await sql(waiting)).rowCount);
    await operator.query("commit");
    await operator.end();
    expect(await pruning).toMatchObject({ removed: 0 });
    expect(await scene.status(id)).toBe("completed");
  });

  test("a limited run that was locked keeps its place in line", async ({
    watched: { scene, schema },
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 5, key: "account" } });
    const [first, second] = (await job.enqueued(2)).map(({ id }) => id);
    await whileLocked(
      `select 1 from "${schema}".waiting where id = '${first}' for update`,
      async () => {
        expect(idsOf(await job.claim())).toEqual([second]);
      },
    );
    expect(idsOf(await job.claim())).toEqual([first]);
  });

  test("the end of a limited run that waits for its schedule does not block the limit", async ({
    watched: { scene, schema, sql },
  }) => {
    await scene.schedules.make("drawn", { range: { minMs: 60_000, maxMs: 60_000 } });
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 5 } });
    await scene.schedules.fire("drawn");
    const [held] = (await job.claim()) as [Held];
    const waiting = `select from pg_locks l join pg_locks x using (pid)
      where not l.granted and x.relation = '"${schema}".schedule'::regclass`;
    let settling: Promise<unknown> = Promise.resolve();
    // As a scheduler does that is about to fire more runs under the same limit.
    await whileLocked(`select from "${schema}".schedule for update`, async () => {
      settling = scene.settle(completed(held));
      await until("the end waits for the schedule", async () => (await sql(waiting)).rowCount);
      expect((await sql("select from $schema.flow for update nowait")).rowCount).toBe(1);
    });
    await settling;
    expect(await scene.status(held.id)).toBe("completed");
  });

  test("a destination that is notified of an alert during its resolution is notified of the resolution too", async ({
    watched: { scene, schema, sql },
  }) => {
    const id = scene.id();
    const subject = { type: "schedule", name: "prices" } as const;
    const open = { id, kind: "broken", subject, message: "It broke.", evidence: {} } as const;
    const nothing = { opens: [], holds: [], resolves: [] };
    await scene.store.alerts.write({ ...nothing, opens: [open] });
    const other = await scene.open("off");
    const claim = () =>
      other.alerts.claimDeliveries({ destinations: ["hook"], leaseMs: 60_000, limit: 10 });
    const waiting = `select from pg_locks l join pg_locks x using (pid)
      where not l.granted and x.relation = '"${schema}".alert'::regclass`;
    const told: string[] = [];
    let resolving: Promise<unknown> = Promise.resolve();
    // As an operator does who acknowledges it.
    await whileLocked(`select from "${schema}".alert for no key update`, async () => {
      resolving = scene.store.alerts.write({ ...nothing, resolves: [{ id, message: "Over." }] });
      await until("the resolution waits", async () => (await sql(waiting)).rowCount);
      told.push(...(await claim()).map(({ event }) => event));
    });
    await resolving;
    told.push(...(await claim()).map(({ event }) => event));
    // Nobody at all is well, too.
    expect(told.filter((event) => event === "resolved")).toHaveLength(told.length / 2);
  });

  test("a limit that another transaction has locked keeps no lease from being renewed", async ({
    watched: { scene, schema, sql },
  }) => {
    const job = await LimitedJob.announce(scene, { concurrency: { limit: 5 } });
    await job.enqueued(2);
    const [first, second] = (await job.claim()) as [Held, Held];
    await job.enqueued(1, "a", { delayMs: 10 });
    scene.advance(10);
    let waiting: Promise<unknown>[] = [];
    await whileLocked(`select 1 from "${schema}".flow for update`, async () => {
      waiting = [
        scene.store.work.promote({ limit: 10 }),
        scene.settle({ ...completed(first), isLimited: true }),
        scene.settle({ ...completed(second), isLimited: true }),
      ];
      const locked = `select from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and a.query like '%${schema}%'`;
      await until("the limit is waited for", async () => (await sql(locked)).rowCount);
      const fences = [...new Set([first.fence, second.fence])];
      const { held } = await scene.store.leases.renew({ holder: scene.holder, fences });
      expect(held.map(({ fence }) => fence)).toEqual(fences);
    });
    await Promise.all(waiting);
  });

  test("batches of keys in opposite orders do not deadlock", async ({
    watched: { scene, pool, schema, sql },
  }) => {
    const [one, two] = [await scene.open(), await scene.open()];
    const enqueue = (store: Store, keys: readonly string[]) =>
      store.enqueue.runs({
        runs: keys.map((key) => scene.run({ key: { key, inputHash: "h" } })),
        isAtomic: false,
        wakesOthers: false,
      });
    await Promise.all([enqueue(one, ["warm"]), enqueue(two, ["up"])]);
    const waiting = async () => {
      const { rows } = await sql(
        `select count(*)::int as count from pg_locks l join pg_stat_activity a on a.pid = l.pid
         where not l.granted and a.query like '%${schema}%'`,
      );
      return rows[0].count as number;
    };
    let batches: Promise<unknown> = Promise.resolve();
    // A stranger holds the key in the middle, until both batches are stuck.
    const stranger = `insert into "${schema}".key (job, key, run, input_hash)
      values ('study', 'm', '${scene.id()}', 'h')`;
    await whileLocked(stranger, async () => {
      batches = Promise.all([enqueue(one, ["a", "m", "z"]), enqueue(two, ["z", "m", "a"])]);
      while ((await waiting()) < 2);
    });
    await batches;
    expect(pool.refusals).toEqual([]);
    expect(await scene.store.runs.list({ limit: 10 })).toHaveLength(5);
  });

  test("neither a new day nor an old one waits long for a reader of history, nor stops the claims", async ({
    watched: { scene, schema, pool },
  }) => {
    await scene.enqueued(2);
    await scene.settle(completed(await scene.claimOne()));
    scene.advance(KEEP_MS + 5 * DAY_MS);
    const prune = () =>
      scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    const other = await scene.open("off");
    await whileLocked(`select count(*) from "${schema}".run_state`, async () => {
      const pruning = prune();
      await other.enqueue.runs({ runs: [scene.run()], isAtomic: false, wakesOthers: false });
      expect(await scene.claim({ store: other })).toHaveLength(2);
      await pruning;
    });
    // Giving up on a lock is the only refusal there may be.
    expect(pool.refusals.filter((code) => code !== "55P03")).toEqual([]);
    expect(await prune()).toBeGreaterThan(0);
  });
}

function days(): void {
  const dayNames = async (sql: Watched["sql"], schema: string) => {
    const { rows } = await sql(
      `select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = '${schema}' and c.relispartition and c.relkind = 'r'
         and relname like '%\\_day\\_%' order by relname`,
    );
    return rows.map(({ relname }) => String(relname));
  };

  test("days are made ahead and dropped as a whole, in all tables of history", async ({
    watched: { scene, schema, sql },
  }) => {
    const today = () => Math.floor(scene.now / DAY_MS);
    const expected = (numbers: number[]) =>
      [...PARTITIONED, "tick"]
        .flatMap((table) => numbers.map((number) => `${table}_day_${number}`))
        .sort();
    const first = today();
    expect(await dayNames(sql, schema)).toEqual(expected([first, first + 1, first + 2]));
    scene.advance(KEEP_MS + 2 * DAY_MS);
    await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    const now = today();
    expect(await dayNames(sql, schema)).toEqual(expected([first + 2, now, now + 1, now + 2]));
  });

  test("runs of a caller whose clock is ahead find their day when it is made", async ({
    watched: { scene, schema, sql },
  }) => {
    const ahead = 5 * DAY_MS;
    scene.advance(ahead);
    const early = scene.run();
    scene.advance(-ahead);
    await scene.enqueue(early, scene.run());
    scene.advance(ahead);
    expect(
      await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 }),
    ).toBe(0);
    const { rows } = await sql("select count(*)::int as rows from $schema.run_rest");
    expect(rows).toEqual([{ rows: 0 }]);
    expect((await dayNames(sql, schema)).length).toBeGreaterThan(9);
    expect(await scene.claim()).toHaveLength(2);
    await scene.open();
  });

  /** Prunes while somebody reads history, so that the pass has to give up in the middle of a day. */
  const pruneHalf = (scene: Scene, schema: string, table = "log") =>
    whileLocked(`select count(*) from "${schema}".${table}`, async () => {
      await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    });

  test("a key that lasts as long as its run is free while the day of that run is being dropped", async ({
    watched: { scene, schema },
  }) => {
    const key = { key: "k", inputHash: "h", lastsMs: "live" } as const;
    await scene.enqueue(scene.run({ key }));
    await scene.settle(completed(await scene.claimOne()));
    scene.advance(KEEP_MS + 2 * DAY_MS);
    await pruneHalf(scene, schema);
    const next = scene.run({ key });
    expect(await scene.enqueue(next)).toEqual([{ id: next.id, deduplicated: false }]);
    expect(idsOf(await scene.claim())).toEqual([next.id]);
  });

  test("a run that has ended is not live again while its day is being dropped", async ({
    watched: { scene, schema },
  }) => {
    await scene.schedules.make("monthly");
    const id = await scene.schedules.fire("monthly");
    await scene.settle(completed(await scene.claimOne()));
    scene.advance(KEEP_MS + 2 * DAY_MS);
    await pruneHalf(scene, schema);
    expect((await scene.schedules.state("monthly")).live).toEqual([]);
    expect(await scene.store.runs.get(id)).toBeNull();
  });

  test("a run whose day is being dropped cannot be retried any more", async ({
    watched: { scene, schema },
  }) => {
    const [id] = (await scene.enqueued(1)) as [string];
    await scene.settle(failed(await scene.claimOne()));
    scene.advance(KEEP_MS + 2 * DAY_MS);
    await pruneHalf(scene, schema, "outcome");
    expect(await scene.store.runs.terminal([id])).toEqual([id]);
    expect(await scene.store.runs.retry({ id })).toBe("not_found");
    const findings = await scene.store.checks.run({ own: [], timeLimitMs: 60_000 });
    expect(findings.filter(({ violations }) => violations > 0)).toEqual([]);
  });

  test("the remaining rows of a day that is being dropped break no promise, and the next pass removes them", async ({
    watched: { scene, schema, sql },
  }) => {
    await scene.enqueued(1);
    await scene.settle(retried(await scene.claimOne(), 0));
    await scene.settle(completed(await scene.claimOne()));
    scene.advance(KEEP_MS + 2 * DAY_MS);
    await pruneHalf(scene, schema, "attempt");
    const left = async () => (await sql("select from $schema.attempt")).rowCount;
    expect(await left()).toBe(1);
    const findings = await scene.store.checks.run({ own: [], timeLimitMs: 60_000 });
    expect(findings.filter(({ violations }) => violations > 0)).toEqual([]);
    await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    expect(await left()).toBe(0);
  });

  test("a day of which too much lives stays whole", async ({ watched: { scene, schema, sql } }) => {
    const before = await dayNames(sql, schema);
    for (let times = 0; times < 6; times += 1) {
      await scene.enqueued(2_000, { delayMs: 90 * DAY_MS });
    }
    scene.advance(KEEP_MS + 5 * DAY_MS);
    await scene.store.retention.prune({ keepMs: KEEP_MS, keepTicksMs: KEEP_MS, limit: 100 });
    const kept = (await dayNames(sql, schema)).filter((name) => before.includes(name));
    expect(kept).toHaveLength(PARTITIONED.length);
    expect(await scene.store.runs.list({ status: "pending", limit: 1 })).toHaveLength(1);
  });
}

/** A way to the server on which it can fall silent without hanging up. */
class Cable {
  /** Nothing gets through any more once this was sent. */
  cutAt: string | null = null;
  readonly #sockets = new Set<net.Socket>();
  readonly #entry = net.createServer({ allowHalfOpen: true }, (near) => this.#join(near));

  static async lay(): Promise<Cable> {
    const cable = new Cable();
    await new Promise<void>((resolve) => cable.#entry.listen(0, "127.0.0.1", resolve));
    return cable;
  }

  get url(): string {
    const url = new URL(POSTGRES_URL as string);
    url.host = `127.0.0.1:${(this.#entry.address() as net.AddressInfo).port}`;
    return url.href;
  }

  async remove(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#entry.close(resolve));
  }

  #join(near: net.Socket): void {
    const { hostname, port } = new URL(POSTGRES_URL as string);
    const far = net.connect(Number(port), hostname);
    for (const socket of [near, far]) this.#sockets.add(socket.on("error", () => undefined));
    let isCut = false;
    near.on("data", (data) => {
      isCut ||= this.cutAt !== null && data.includes(this.cutAt);
      if (!isCut) far.write(data);
    });
    far.on("data", (data) => {
      if (!isCut) near.write(data);
    });
  }
}

/** Once the statements of this turn are under way. */
async function closeSoon(store: Store): Promise<void> {
  await new Promise<void>((resolve) => systemClock.soon(resolve));
  await store.close();
}
