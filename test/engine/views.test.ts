// The public views as an interface: the same names, columns and order on both engines, native types on
// PostgreSQL, and equal rows once times and JSON are read as what they mean.

import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { PermanentError } from "../../src/shared/errors.js";
import { VIEWS, type ViewName } from "../../src/store/schema/views.js";
import { memoryPlace, POSTGRES_URL, postgresPlace } from "./places.js";
import { Door, type EnginePlace, World } from "./world.js";

type Row = Record<string, unknown>;

/** JSON that SQLite has as text. */
const JSON_COLUMNS = new Set([
  ...["tags", "items", "input", "result", "jobs", "definition", "evidence", "fields", "value"],
]);
/** Compared with the database's own clock, which a test cannot supply to a view. */
const BY_REAL_TIME = new Set(["seconds_since_heartbeat", "heartbeat_status", "live", "expired"]);
/** When an instance polls is drawn. */
const DRAWN = new Set(["seen_at", "polled_at"]);

const PLACES: readonly (readonly ["sqlite" | "postgres", () => Promise<EnginePlace>])[] = [
  ["sqlite", memoryPlace],
  ["postgres", postgresPlace],
];
const ENGINES = PLACES.filter(([name]) => name === "sqlite" || POSTGRES_URL !== undefined);

const nameOf = (world: World, view: string) =>
  world.table("").endsWith(".") ? `${world.table("")}${view}` : view;

async function rowsOf(world: World, view: ViewName): Promise<Row[]> {
  const rows = await world.rows(`select * from ${nameOf(world, view)}`);
  return rows
    .map((row) =>
      Object.fromEntries(
        Object.entries(row)
          .filter(([column]) => !BY_REAL_TIME.has(column) && !DRAWN.has(column))
          .map(([column, value]) => [column, meaningOf(column, value)]),
      ),
    )
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function meaningOf(column: string, value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return value;
  if (JSON_COLUMNS.has(column)) return JSON.parse(value);
  return /^\d+$/.test(value) ? Number(value) : value;
}

/** Rows with the ids of runs by their order, and without the two characters that jsonb cannot hold. */
function steady(all: Partial<Record<ViewName, Row[]>> | undefined, view: ViewName): Row[] {
  const ids = (all?.v_runs ?? []).map((row) => String(row.id)).sort();
  let text = JSON.stringify(all?.[view]).replaceAll(/\\u0000|\\ud800/g, "\ufffd");
  for (const [at, id] of ids.entries()) text = text.replaceAll(id, `run ${at}`);
  const rows = JSON.parse(text) as Row[];
  return rows.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** Something of everything that a view shows. */
async function scenario(world: World): Promise<void> {
  const { holdfast } = world.member({ app: "shop", release: "7" });
  const doors = [new Door(), new Door()];
  const study = holdfast.job<{ market: string }>("study", {
    run: async (input, ctx) => {
      ctx.log.info({ market: input.market }, "looking");
      await ctx.item("a", () => ({ price: 3 }));
      await ctx.item("b", () => Promise.reject(new Error("no price")), { onError: "record" });
      return { ok: true, text: "\u0000 and \ud800" };
    },
  });
  const broken = holdfast.job("broken", {
    retry: { attempts: 2, delay: "1s", jitter: 0 },
    run: (_, ctx) => {
      throw ctx.attempt === 1 ? new Error("at first") : new PermanentError("for good");
    },
  });
  const slow = holdfast.job("slow", { queue: "slow", lease: "5m", run: () => doors[0]?.opened });
  holdfast.schedule("each-minute", study, { cron: "* * * * *", input: { market: "eu" } });
  holdfast.schedule("watch", slow, { every: "1m", overlap: "skip", tags: ["night"] });
  await holdfast.start();
  await holdfast.schedules.pause("each-minute", "moving house").catch(() => undefined);
  await world.clock.advance(61_000);
  await holdfast.schedules.resume("each-minute");
  await world.clock.advance(185_000);
  const { id } = await study.enqueue(
    { market: "us" },
    { key: "us", tags: ["x", "y"], priority: 3 },
  );
  await study.enqueue({ market: "asia" }, { delay: "5d" });
  const failing = await broken.enqueue({});
  await world.ended(id);
  await world.ended(failing.id);
  await slow.enqueue({});
  await holdfast.queues.pause("idle", "for the audit");
  await world.clock.until(holdfast.lock("import", {}, () => "done"));
  void holdfast.lock("export", { lease: "10m" }, () => doors[1]?.opened);
  await world.clock.advance(5_000);
}

async function within<T>(make: () => Promise<EnginePlace>, use: (world: World) => Promise<T>) {
  const world = new World(await make());
  try {
    return await use(world);
  } finally {
    await world.end();
  }
}

describe("the public views", () => {
  base.runIf(POSTGRES_URL)(
    "show the same rows on both engines after the same things happened",
    async () => {
      const [sqlite, postgres] = await Promise.all(
        PLACES.map(([, make]) =>
          within(make, async (world) => {
            await scenario(world);
            const all: Partial<Record<ViewName, Row[]>> = {};
            for (const view of VIEWS) all[view] = await rowsOf(world, view);
            return all;
          }),
        ),
      );
      for (const view of VIEWS) {
        // Sums of the last 30 days by the real clock: the scenario's days are others.
        if (view !== "v_run_stats") expect(sqlite?.[view]?.length, view).toBeGreaterThan(0);
        expect(steady(postgres, view), view).toEqual(steady(sqlite, view));
      }
    },
  );

  base("have these columns, in this order", async () => {
    const columns = await within(memoryPlace, async (world) => {
      await (await world.store()).jobs.list();
      const found: Record<string, string> = {};
      for (const view of VIEWS) {
        const rows = await world.rows(`select name from pragma_table_info('${view}')`);
        found[view] = rows.map((row) => row.name).join(" ");
      }
      return found;
    });
    expect(columns).toMatchSnapshot();
  });

  base.runIf(POSTGRES_URL)("have the same columns on PostgreSQL, with native types", async () => {
    const types = await within(postgresPlace, async (world) => {
      await (await world.store()).jobs.list();
      const [schema] = world.table("").replaceAll('"', "").split(".");
      const rows = await world.rows(
        `select table_name, column_name, data_type from information_schema.columns
         where table_schema = '${schema}' and table_name like 'v\\_%' order by table_name, ordinal_position`,
      );
      const found: Record<string, string[]> = {};
      for (const { table_name, column_name, data_type } of rows) {
        found[String(table_name)] ??= [];
        found[String(table_name)]?.push(`${column_name} ${data_type}`);
      }
      return found;
    });
    expect(Object.keys(types).sort()).toEqual([...VIEWS].sort());
    expect(types).toMatchSnapshot();
  });

  for (const [engine, make] of ENGINES) {
    base(`are made again when the tables are of an older version, on ${engine}`, async () => {
      await within(make, async (world) => {
        await (await world.store()).jobs.list();
        const view = nameOf(world, "v_queues");
        await world.execute(`drop view ${view}`);
        await world.execute(`create view ${view} as select 'old' as name`);
        if (engine === "postgres") await world.execute(`drop view ${view}`);
        await world.execute("update {schema_version} set version = 0");
        const { holdfast } = world.member();
        await holdfast.queues.pause("idle", "a note");
        expect(await rowsOf(world, "v_queues")).toMatchObject([{ name: "idle", paused: 1 }]);
        const [row] = await world.rows(`select version from ${world.table("schema_version")}`);
        expect(row).toEqual({ version: 2 });
      });
    });

    base(`find one run by its id and the running ones by their leases, on ${engine}`, async () => {
      await within(make, async (world) => {
        const { holdfast } = world.member();
        const study = holdfast.job("study", { run: () => 1 });
        await study.enqueueMany(Array.from({ length: 400 }, () => ({})));
        await holdfast.start();
        const last = await study.enqueue({});
        await world.ended(last.id);
        const one = `select * from ${nameOf(world, "v_runs")} where id = '${last.id}'`;
        const running = `select id from ${nameOf(world, "v_running_runs")}`;
        if (engine === "sqlite") {
          const plan = async (sql: string) =>
            (await world.rows(`explain query plan ${sql}`)).map((row) => row.detail).join("\n");
          expect(await plan(one)).not.toMatch(/SCAN (r|o|holdfast_run|holdfast_outcome)\b/);
          expect(await plan(running)).not.toMatch(/SCAN (r|o|holdfast_run|holdfast_outcome)\b/);
        } else {
          for (const [name, id] of [
            ["run", "id, created_at, due_at, lane, policy, version, priority, mode, input"],
            ["outcome", "id, finished_at, lane, attempt, extra, status"],
          ] as const) {
            const rest = id.slice("id".length);
            await world.execute(
              `insert into {${name}} (${id})
               select ('019bc100-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid${rest}
               from generate_series(1, 20000) n, (select * from {${name}} limit 1) x`,
            );
            await world.execute(`analyze {${name}}`);
          }
          await world.execute("analyze {lease}");
          const plan = async (sql: string) =>
            JSON.stringify(await world.rows(`explain (analyze, format json) ${sql}`));
          const seen = (text: string) =>
            [...text.matchAll(/"Relation Name":"(?:run|outcome)_\w+".*?"Actual Rows":([\d.]+)/g)]
              .map(([, rows]) => Number(rows))
              .reduce((sum, rows) => sum + rows, 0);
          expect(seen(await plan(one))).toBeLessThan(5);
          expect(seen(await plan(running))).toBeLessThan(5);
        }
      });
    });
  }
});

for (const [engine, make] of ENGINES) {
  base(
    `an ended run keeps its last heartbeat, and its whole duration beside that of its last attempt, on ${engine}`,
    async () => {
      await within(make, async (world) => {
        const { holdfast, clock } = world.member();
        const study = holdfast.job("study", {
          retry: { attempts: 2, delay: "10s", jitter: 0 },
          run: async (_, ctx) => {
            await clock.sleep(1_000);
            if (ctx.attempt === 1) throw new Error("at first");
          },
        });
        await holdfast.start();
        const { id } = await study.enqueue({});
        await world.ended(id);
        const cancelled = await study.enqueue({}, { delay: "1h" });
        await holdfast.runs.cancel(cancelled.id);
        const view = nameOf(world, "v_runs");
        const [row = {}, other = {}] = await world.rows(
          `select id, heartbeat_at, finished_at, duration_ms, whole_duration_ms from ${view} order by created_at`,
        );
        expect(row.heartbeat_at).toEqual(row.finished_at);
        expect(row.heartbeat_at).not.toBeNull();
        expect(Number(row.duration_ms)).toBeLessThan(5_000);
        expect(Number(row.whole_duration_ms)).toBeGreaterThanOrEqual(12_000);
        expect(other.heartbeat_at).toBeNull();
      });
    },
  );

  base(`v_run_stats sums up thirty days from the roll-ups, on ${engine}`, async () => {
    await within(make, async (world) => {
      await (await world.store()).jobs.list();
      const today = Math.floor(Date.now() / 86_400_000) * 86_400_000;
      const rows = [
        // hour, mode (0 enqueued, 2 manual), status (1 completed, 2 failed, 3 cancelled), runs, ms
        [today, 0, 1, 6, 600],
        [today, 0, 2, 2, 10],
        [today, 2, 2, 5, 50],
        [today, 0, 3, 1, 5],
        [today - 86_400_000, 1, 1, 1, 7],
        [today - 29 * 86_400_000, 1, 2, 1, 7],
        [today - 30 * 86_400_000, 1, 1, 1, 7],
      ];
      for (const [at, [hour, mode, status, runs, ms]] of rows.entries())
        await world.execute(
          `insert into {rollup} (hour_at, lane, mode, status, shard, runs, ran_ms)
           values (${hour}, ${at + 1}, ${mode}, ${status}, 0, ${runs}, ${ms})`,
        );
      const view = nameOf(world, "v_run_stats");
      const found = await world.rows(
        `select cast(day as text) as day, total, completed, failed, cancelled, success_rate, mean_duration_ms,
           total_duration_ms from ${view} order by day desc`,
      );
      const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
      const seen = found.map(({ day, ...rest }) => [
        day,
        ...Object.values(rest).map((v) => (v === null ? null : Number(v))),
      ]);
      expect(seen).toEqual([
        [dayOf(today), 14, 6, 7, 1, 0.75, 100, 665],
        [dayOf(today - 86_400_000), 1, 1, 0, 0, 1, 7, 7],
        [dayOf(today - 29 * 86_400_000), 1, 0, 1, 0, 0, null, 7],
      ]);
    });
  });
}

describe.runIf(POSTGRES_URL)("stale runs by the real clock", () => {
  base("a silent run and one over its time are told apart, and cleaned up from SQL", async () => {
    await within(postgresPlace, async (world) => {
      const { holdfast } = world.member();
      const slow = holdfast.job("slow", { lease: "5m", run: () => new Door().opened });
      const silent = await slow.enqueue({});
      await holdfast.start();
      await world.reached(silent.id, (run) => run.status === "running");
      const age = (silentMs: number, ranMs: number) =>
        world.execute(
          `update {lease} set renewed_at = now.at - ${silentMs}, claimed_at = now.at - ${ranMs},
             until = now.at + 60000, deadline_at = now.at + 60000
           from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at) now`,
        );
      const view = nameOf(world, "v_stale_runs");
      const stale = async () =>
        (await world.rows(`select id, stale_reason, heartbeat_status from ${view}`)).map((row) => [
          row.stale_reason,
          row.heartbeat_status,
        ]);
      await age(1_000, 1_000);
      expect(await stale()).toEqual([]);
      await age(1_000, 7_300_000);
      expect(await stale()).toEqual([["timeout", "active"]]);
      await age(700_000, 7_300_000);
      expect(await stale()).toEqual([["silent", "active"]]);
      const cleanup = `${world.table("")}cleanup_stale_runs`;
      expect(
        await world.rows(`select * from ${cleanup}(7200, 900) where reason = 'silent'`),
      ).toEqual([]);
      const client = new pg.Client(POSTGRES_URL);
      await client.connect();
      const refused = client.query(`select * from ${cleanup}(-1)`);
      await expect(refused).rejects.toMatchObject({ code: "HF000" });
      await client.end();
      expect(await world.rows(`select status from ${nameOf(world, "v_runs")}`)).toEqual([
        { status: "pending" },
      ]);
    });
  });
});
