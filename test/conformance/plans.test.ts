// How much statements about many rows look at on PostgreSQL, whatever statistics were taken from. The table of leases
// has a row or two most of the time, so the server expects as few when there are more, and a plan made for few compares
// each settlement with each run.

import { test as base, describe, expect } from "vitest";
import type { Settlement } from "../../src/store/claims.js";
import { EXCHANGE, FINISH, SETTLE } from "../../src/store/postgres/sql/exchange.js";
import { numbered } from "../../src/store/sql/template.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { completed, type Held, heldBy, retried, Scene } from "./scene.js";
import { keepVacuumAway, type Plan, WatchedPool } from "./watched-pool.js";

const RUNS = 400;
const PAST = 3_000;
const SLEEPERS = 10_000;
const HISTORY_DAYS = 12;
const DAY_MS = 86_400_000;
/** Each part of the statement that sees the settlements may look at every one of them a few times. */
const ROWS_EACH_MAX = 60;

type Watched = {
  readonly scene: Scene;
  readonly pool: WatchedPool;
  sql(text: string): Promise<unknown>;
};

const test = base.extend<{ watched: Watched }>({
  watched: async ({ task: _ }, use) => {
    const pool = new WatchedPool();
    const place = await postgresPlace(pool.pool);
    const scene = await Scene.start(place);
    await keepVacuumAway(place);
    await use({ scene, pool, sql: place.sql });
    await scene.end();
    await pool.pool.end();
  },
});

describe.skipIf(POSTGRES_URL === undefined)("plans for many rows on PostgreSQL", () => {
  for (const [name, isApart] of [
    ["one lease", false],
    ["a lease each", true],
  ] as const) {
    test(`a settle of many runs under ${name} looks at each a few times, whatever was analysed`, async ({
      watched: { scene, pool, sql },
    }) => {
      const claim = (limit: number) => claimed(scene, limit, isApart);
      const turn = async (settlements: readonly Settlement[]) => {
        const plans = await pool.plansOf(/insert into "[^"]+"\.outcome/, () =>
          scene.settle(...settlements),
        );
        expect(plans).toHaveLength(1);
        const [plan] = plans as [Plan];
        expect(rowsOf(plan) / settlements.length).toBeLessThan(ROWS_EACH_MAX);
      };
      await sql("analyze $schema.lease");
      await scene.enqueued(4 * RUNS);
      await turn((await claim(RUNS)).map((each) => completed(each)));
      const [alone, ...others] = await claim(RUNS);
      await scene.settle(...others.map((each) => completed(each)));
      await sql("analyze $schema.lease");
      await turn([...(await claim(RUNS)), alone as Held].map((each) => completed(each)));
      const held = await claim(RUNS);
      await sql("analyze $schema.lease");
      await turn(held.map((each, at) => (at % 2 === 0 ? retried(each) : completed(each))));
    });
  }

  test("each form of an exchange has fewer steps than the one that could stand in for it", async ({
    watched: { scene, pool },
  }) => {
    const { schema } = scene.place as unknown as { readonly schema: string };
    const stepsOf = async (template: string) => {
      const name = (plain: string) => `"${schema}".${plain}`;
      const { text, parameters } = numbered(template, { name, now: ":now::bigint" });
      const client = await pool.pool.connect();
      await client.query("set plan_cache_mode = force_generic_plan");
      await client.query(`prepare form as ${text}`);
      const { rows } = await client.query(
        `explain (format json) execute form (${parameters.map(() => "null")})`,
      );
      client.release(true);
      return countOf(rows[0]["QUERY PLAN"][0].Plan);
    };
    for (const [form, other] of [
      [EXCHANGE.claim, EXCHANGE.finishAndClaim],
      [EXCHANGE.finishWholeAndClaim, EXCHANGE.finishAndClaim],
      [EXCHANGE.finishAndClaim, EXCHANGE.settleAndClaim],
      [EXCHANGE.settleAndClaim, EXCHANGE.settleLimitedAndClaim],
      [FINISH, SETTLE],
    ] as const)
      expect((await stepsOf(form)) / (await stepsOf(other))).toBeLessThan(0.8);
  });

  test("stale settlements among many are found without comparing each with each", async ({
    watched: { scene, pool, sql },
  }) => {
    await scene.enqueued(RUNS);
    const held = await claimed(scene, RUNS, false);
    await sql("analyze $schema.lease");
    await scene.settle(...held.slice(0, RUNS / 2).map((each) => completed(each)));
    const plans = await pool.plansOf(/insert into "[^"]+"\.outcome/, () =>
      scene.settle(...held.map((each) => completed(each))),
    );
    expect(rowsOf(plans[0] as Plan) / RUNS).toBeLessThan(ROWS_EACH_MAX);
  });

  test("a poll that finds nothing due looks at as few rows after thousands of instances as after one", async ({
    watched: { scene, pool, sql },
  }) => {
    await sql(`insert into $schema.instance
        (id, jobs, schedules, is_scheduler, works, poll_ms, started_at, seen_at, polled_at, retired_at)
      select 'past-' || n, '[]', '[]', true, '{}', 1000, 0, n, n, n from generate_series(1, ${PAST}) n`);
    const rows = async () => {
      const plans = await pool.plansOf(/"lastPolledAt"/, () => scene.poll({ isScheduler: true }));
      return rowsOf(plans[0] as Plan);
    };
    expect(await rows()).toBeLessThan(100);
    await scene.schedules.make("due", { nextAt: scene.now });
    expect(await rows()).toBeGreaterThan(PAST);
  });

  test("recent reclaims are found among many attempts and old reclaims without looking at those", async ({
    watched: { scene, pool, sql },
  }) => {
    await sql(`insert into $schema.attempt (run, fence, attempt, ended, holder, started_at, ended_at)
      select gen_random_uuid(), n, 1, n % 2, 1, 0, case when n % 2 = 0 then ${scene.now} else 0 end
      from generate_series(1, ${SLEEPERS}) n`);
    const none = { silentMs: null, ranMs: null, waitedMs: null, unattendedMs: null, skewMs: null };
    const params = { ...none, transactionMs: null, skips: null, ends: null, ratesOf: [] };
    for (const analysed of [false, true]) {
      if (analysed) await sql("analyze $schema.attempt");
      const plans = await pool.plansOf(/ago_ms/, () =>
        scene.store.alerts.observeRest({
          ...{ ...params, isRunningCounted: false, runningOf: [], reclaimedMs: 3_600_000 },
        }),
      );
      expect(plans).toHaveLength(1);
      expect(rowsOf(plans[0] as Plan)).toBeLessThan(20);
    }
  });

  test("a poll looks at as few rows with ten thousand sleeping runs as with none, and so does a claim", async ({
    watched: { scene, pool, sql },
  }) => {
    await scene.enqueued(1);
    await claimed(scene, 1, false);
    const pollRows = async () => {
      const plans = await pool.plansOf(/"hasWakes"/, () => scene.poll({ isScheduler: true }));
      expect(plans).toHaveLength(1);
      return rowsOf(plans[0] as Plan);
    };
    const claimRows = async () => {
      const plans = await pool.plansOf(/insert into "[^"]+"\.lease/, () =>
        claimed(scene, 1, false),
      );
      return rowsOf(plans[0] as Plan);
    };
    const before = [await pollRows(), await claimRows()] as const;
    await sql(`insert into $schema.waiting
        (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, asleep_at)
      select gen_random_uuid(), case when n % 2 = 0 then 253402300799999 else ${scene.now} + 86400000 + n end,
        1, 1, 0, 0, 0, 0, 1, 0, false, ${scene.now} from generate_series(1, ${SLEEPERS}) n`);
    await sql(`insert into $schema.wait (run, name, kind, generation, fence, since, signal, key, signal_since)
      select id, 'go', 2, 0, 1, 0, 'go', id::text, 0 from $schema.waiting`);
    await sql(`insert into $schema.signal (name, key, value, at, is_new)
      select 'past', n::text, 'null', 0, false from generate_series(1, ${SLEEPERS}) n`);
    for (const analysed of [false, true]) {
      if (analysed) await sql("analyze $schema.waiting, $schema.wait, $schema.signal");
      expect(await pollRows()).toBeLessThan(before[0] + 20);
      expect(await claimRows()).toBeLessThan(before[1] + 20);
    }
    await scene.store.signals.send({ name: "go", key: "nobody", value: "1", keepMs: 1_000 });
    const wakePlans = await pool.plansOf(/insert into "[^"]+"\.wake/, () =>
      scene.store.signals.wake({ limit: 100 }),
    );
    expect(rowsOf(wakePlans[0] as Plan)).toBeLessThan(ROWS_EACH_MAX);
  });

  test("a claim opens the last days of history alone, and still finds runs of every day", async ({
    watched: { scene, pool },
  }) => {
    scene.advance(Date.now() - HISTORY_DAYS * DAY_MS - scene.now);
    const old = scene.run({ input: '"old"' });
    const keep = { keepMs: 2 * HISTORY_DAYS * DAY_MS, keepTicksMs: DAY_MS, limit: 1 };
    for (let day = 0; day < HISTORY_DAYS; day += 1) {
      await scene.store.retention.prune(keep);
      scene.advance(DAY_MS);
    }
    await scene.enqueue(scene.run({ input: '"new"' }));
    const plans = await pool.plansOf(/insert into "[^"]+"\.lease/, () => claimed(scene, 10, false));
    expect(plans).toHaveLength(1);
    expect(
      tablesOf(plans[0] as Plan).filter((name) => name.startsWith("run_")).length,
    ).toBeLessThan(5);

    await scene.enqueue(old, scene.run({ input: '"newer"' }));
    const both = await claimed(scene, 10, false);
    const inputs = both.map(({ id, claim }) => claim.runs.find((run) => run.id === id)?.input);
    expect(inputs.sort()).toEqual(['"newer"', '"old"']);
  });

  test("which of many schedules were won is looked up, and not searched for from the beginning of a list", async ({
    watched: { scene, pool },
  }) => {
    await scene.schedules.make("nightly", { nextAt: scene.now });
    const plans = await pool.plansOf(/insert into "[^"]+"\.tick/, () =>
      scene.schedules.fire("nightly"),
    );
    const filters = filtersOf(plans[0] as Plan);
    expect(filters.filter((each) => each.includes("hashed SubPlan"))).toHaveLength(3);
    expect(filters.filter((each) => each.startsWith("(schedule = ANY"))).toEqual([]);
  });
});

/** How many steps a plan has. */
function countOf({ Plans = [] }: Plan): number {
  return Plans.reduce((sum, part) => sum + countOf(part), 1);
}

/** The tables and partitions that a plan opens. */
function tablesOf({ Plans = [], ...step }: Plan): string[] {
  const name = step["Relation Name"];
  return [...(name === undefined ? [] : [name]), ...Plans.flatMap(tablesOf)];
}

/** The columns that choose the rows of lists. */
function filtersOf(plan: Plan): string[] {
  const own = plan["Node Type"] === "Function Scan" && plan.Filter ? [plan.Filter] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(filtersOf)];
}

async function claimed(scene: Scene, limit: number, isApart: boolean): Promise<Held[]> {
  const { claims } = await scene.store.claims.exchange({
    holder: scene.holder,
    token: crypto.randomUUID(),
    settlements: [],
    limit,
    wantsSuspect: false,
    jobs: ["study"],
    queues: null,
    random: 0,
    apart: isApart ? ["study"] : [],
  });
  return heldBy(claims);
}

/** Rows that all steps of a plan brought or threw away. */
function rowsOf(plan: Plan): number {
  const thrownAway =
    (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Join Filter"] ?? 0);
  const own = (plan["Actual Rows"] + thrownAway) * plan["Actual Loops"];
  return (plan.Plans ?? []).reduce((sum, part) => sum + rowsOf(part), own);
}
