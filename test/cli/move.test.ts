// Tests `move`: everything in a SQLite file is in PostgreSQL afterwards, also after a kill in the middle, and work
// continues there under new numbers.

import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/index.js";
import { LEFT_TABLES, MOVED_TABLES } from "../../src/store/move/tables.js";
import { until } from "../support/until.js";
import { openTerminal, type Terminal } from "./terminal.js";

const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL ?? "";
const silent = { debug() {}, info() {}, warn() {}, error() {} };

let made = 0;
let admin: pg.Client;
let terminal: Terminal;
let database: string;
let target: string;

beforeAll(async () => {
  if (POSTGRES_URL === "") return;
  admin = new pg.Client({ connectionString: POSTGRES_URL });
  await admin.connect();
});
afterAll(() => admin?.end());

beforeEach(async () => {
  terminal = openTerminal();
  made += 1;
  database = `move_${process.pid}_${made}`;
  if (POSTGRES_URL !== "") await admin.query(`create database ${database}`);
  const url = new URL(POSTGRES_URL === "" ? "postgres://localhost" : POSTGRES_URL);
  url.pathname = `/${database}`;
  target = url.href;
});
afterEach(async () => {
  await terminal.close();
  if (POSTGRES_URL !== "") await admin.query(`drop database ${database} with (force)`);
});

const source = () => `sqlite:${terminal.folder}/app.db`;
const move = (...more: string[]) =>
  terminal.holdfast(["move", "--from", "sqlite:app.db", "--to", target, ...more]);

/** An instance with one of everything. */
function instance(url: string): Holdfast {
  const holdfast = new Holdfast({ database: url, logger: silent, app: "shop" });
  holdfast.job("study", {
    retry: { attempts: 2, delay: "1ms", jitter: 0 },
    concurrency: { limit: 5, key: "market" },
    async run(input: { market: string }, ctx) {
      ctx.log.info({ market: input.market }, "looking");
      ctx.progress({ stage: "look", done: 1, total: 2 });
      await ctx.item("first", () => ({ found: 1 }));
      await ctx.item("second", () => Promise.reject(new Error("no luck")), { onError: "record" });
      if (input.market === "none") throw new Error("no such market");
      await ctx.enqueueBatch([{ job: "part", input: { of: input.market } }], { then: "whole" });
      return { ok: true };
    },
  });
  holdfast.job("part", { run: () => undefined });
  holdfast.job("whole", { run: () => undefined });
  holdfast.job("later", { run: () => "done" });
  return holdfast;
}

async function fill(url: string): Promise<void> {
  const holdfast = instance(url);
  await holdfast.calendars.upsert("workdays", { days: ["mon", "tue"] });
  await holdfast.start();
  const ids = [];
  for (const market of ["eu", "us", "none"]) {
    const { id } = await holdfast.enqueue("study", { market }, { key: market, tags: ["a", 'b"c'] });
    ids.push(id);
  }
  for (const id of ids) await holdfast.runs.wait(id, { timeout: "5m" });
  await until("the continuations ended", async () => {
    const { runs } = await holdfast.runs.list({ job: "whole" });
    return runs.length === 2 && runs.every(({ status }) => status === "completed");
  });
  await holdfast.enqueue("later", {}, { delay: "1h", priority: 7 });
  await holdfast.schedules.upsert("nightly", { job: "later", cron: "0 2 * * *", input: { n: 1 } });
  await holdfast.schedules.upsert("nightly", { job: "later", cron: "0 3 * * *", input: { n: 2 } });
  await holdfast.schedules.upsert("weekly", { job: "later", cron: "0 4 * * 1" });
  await holdfast.schedules.pause("weekly", "holidays");
  await holdfast.schedules.trigger("nightly", { deliveryId: "d-1" });
  await holdfast.queues.pause("default");
  for (const name of ["import", "export"]) await holdfast.lock(name, {}, () => undefined);
  await holdfast.stop();
}

/** All that users see of a database, in an order of its own. */
async function seen(url: string): Promise<unknown> {
  const holdfast = new Holdfast({ database: url, logger: silent });
  const { runs } = await holdfast.runs.list({ limit: 500 });
  const parts = [];
  for (const { id } of [...runs].sort((a, b) => a.id.localeCompare(b.id))) {
    const { items } = await holdfast.runs.items(id);
    const { lines } = await holdfast.runs.logs(id);
    parts.push({ run: await holdfast.runs.get(id), items, lines });
  }
  const { schedules } = await holdfast.schedules.list();
  const versions = [];
  for (const { name } of schedules) versions.push(await holdfast.schedules.versions(name));
  const answer = {
    parts,
    schedules,
    versions,
    calendars: await holdfast.calendars.list(),
    queues: await holdfast.queues.list(),
    locks: await holdfast.locks.history(),
    stats: await holdfast.locks.stats(),
  };
  await holdfast.stop();
  return answer;
}

describe.skipIf(POSTGRES_URL === "")("with a server", () => {
  test("everything that users see is there afterwards, and work goes on under numbers that were never given", async () => {
    await fill(source());
    const before = await seen(source());
    const moved = await move();
    expect(moved).toMatchObject({ code: 0, stderr: "" });
    expect(moved.stdout).toMatch(
      /^Moved \d+ rows; both sides count the same in all \d+ tables\.\nStart your instances/,
    );
    expect(await seen(target)).toEqual(before);
    expect(await seen(source())).toEqual(before);

    const holdfast = instance(target);
    await holdfast.start();
    const again = await holdfast.enqueue("study", { market: "eu" }, { key: "eu" });
    expect(again.deduplicated).toBe(true);
    const { fence: lockFence } = (await holdfast.lock("import", {}, () => 1)) as { fence: number };
    expect(lockFence).toBe(3);
    await holdfast.queues.resume("default");
    const { id } = await holdfast.enqueue("later", {});
    const run = await holdfast.runs.wait(id, { timeout: "5m" });
    const { rows } = await ask("select max(fence) as max from holdfast.attempt");
    expect(run.status).toBe("completed");
    expect(run.fence).toBeGreaterThan(Number(rows[0]?.max));
    expect(await holdfast.schedules.trigger("nightly", { deliveryId: "d-1" })).toMatchObject({
      runId: expect.any(String),
    });
    await holdfast.stop();
  });

  test("killed in the middle, the same command goes on behind the last batch", async () => {
    const holdfast = new Holdfast({ database: source(), logger: silent });
    const job = holdfast.job("letter", { run: () => undefined });
    const inputs = Array.from({ length: 30_000 }, (_, number) => ({ number }));
    for (let at = 0; at < inputs.length; at += 5_000)
      await job.enqueueMany(inputs.slice(at, at + 5_000));
    await holdfast.stop();

    const first = terminal.begin(["move", "--from", "sqlite:app.db", "--to", target]);
    const stateOf = async (): Promise<Record<string, { moved: number }>> => {
      const { rows } = await ask("select state from holdfast.move").catch(() => ({ rows: [] }));
      return JSON.parse(String(rows[0]?.state ?? "{}"));
    };
    await until("some runs are there", async () => ((await stateOf()).run?.moved ?? 0) >= 4_000);
    first.child.kill("SIGKILL");
    await first.ended;
    await until("its session ended", async () => {
      const text =
        "select 1 from pg_stat_activity where application_name = 'holdfast' and datname = $1";
      return (await admin.query(text, [database])).rows.length === 0;
    });
    const there = Object.values(await stateOf()).reduce((sum, { moved }) => sum + moved, 0);
    expect(there).toBeLessThan(60_000);

    const second = await move("--json");
    expect(second).toMatchObject({ code: 0, stderr: "" });
    const answer = JSON.parse(second.stdout);
    expect(answer).toMatchObject({ moved: true, resumedAt: there });
    expect(answer.tables).toMatchObject({ run: 30_000, ready: 30_000 });
    const { rows } = await ask(
      "select count(*)::int as runs, count(distinct id)::int as ids from holdfast.run",
    );
    expect(rows).toEqual([{ runs: 30_000, ids: 30_000 }]);

    const third = await move();
    expect(third.code).toBe(1);
    expect(third.stdout).toMatch(/^Nothing to do: .*app\.db has already been moved there\.\n$/);
  });

  test("while an instance is live nothing is moved without the flag, and a held lock is copied", async () => {
    const holdfast = new Holdfast({ database: source(), logger: silent });
    holdfast.job("letter", { run: () => undefined });
    await holdfast.start();
    const refused = await move("--json");
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toEqual({
      moved: false,
      reason: "live",
      instances: [holdfast.instanceId],
    });
    await holdfast.lock("import", { lease: "1h" }, async ({ fence }) => {
      const moved = await move("--yes");
      expect(moved.code).toBe(0);
      expect(moved.stdout).toContain("0 leases of runs and 1 locks were held");
      const { rows } = await ask("select name, fence::int as fence, holder from holdfast.v_locks");
      expect(rows).toEqual([{ name: "import", fence, holder: holdfast.instanceId }]);
    });
    await holdfast.stop();
  });

  test("a database with rows of its own, or of another file, is left as it is", async () => {
    for (const url of [source(), target]) {
      const holdfast = new Holdfast({ database: url, logger: silent });
      holdfast.job("letter", { run: () => undefined });
      await holdfast.enqueue("letter", {});
      await holdfast.stop();
    }
    const refused = await move();
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(/^Nothing was moved: the new database has rows in .*run/);
    const moved = await move("--schema", "other");
    expect(moved.code).toBe(0);
    const copy = new Holdfast({ database: `sqlite:${terminal.folder}/second.db`, logger: silent });
    await copy.lock("x", {}, () => undefined);
    await copy.stop();
    const args = ["move", "--from", "sqlite:second.db", "--to", target, "--schema", "other"];
    const other = await terminal.holdfast(args);
    expect(other.code).toBe(1);
    expect(other.stdout).toMatch(/holds a move from .*app\.db\.\n$/);
  });

  async function ask(text: string): Promise<{ rows: Record<string, unknown>[] }> {
    const client = new pg.Client({ connectionString: target });
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  }
});

test("every table of the schema is moved, or named as one that stays behind", async () => {
  const holdfast = new Holdfast({ database: source(), logger: silent });
  await holdfast.runs.list();
  await holdfast.stop();
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const file = new DatabaseSync(`${terminal.folder}/app.db`);
  const rows = file.prepare("select name from sqlite_master where type = 'table'").all();
  file.close();
  const tables = rows
    .map((row) => String((row as { name: unknown }).name))
    .filter((name) => name.startsWith("holdfast_"))
    .map((name) => name.slice("holdfast_".length));
  expect(tables.sort()).toEqual([...MOVED_TABLES, ...Object.keys(LEFT_TABLES)].sort());
});
