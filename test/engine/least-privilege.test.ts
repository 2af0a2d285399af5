// Runs instances under the role of deploy/postgres-role.sql on a real PostgreSQL server: the main paths work, and the role can do
// nothing to the tables themselves.

import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast, type HoldfastOptions, PermanentError } from "../../src/index.js";

const SERVER = process.env.HOLDFAST_TEST_POSTGRES_URL;
const TAIL = crypto.randomUUID().replaceAll("-", "_");
const DATABASE = `least_${TAIL}`;
const OWNER = `owner_${TAIL}`;
const APP = `app_${TAIL}`;
const PASSWORD = "a-password-of-the-test";
const DAY_MS = 86_400_000;
const SCRIPT = readFileSync(new URL("../../deploy/postgres-role.sql", import.meta.url), "utf8");

const urlOf = (user: string) => {
  const url = new URL(SERVER as string);
  url.pathname = `/${DATABASE}`;
  url.username = user;
  url.password = PASSWORD;
  return url.href;
};

const told: { readonly event?: string }[] = [];
const hear = (fields: object) => void told.push(fields);
const logger = { debug: hear, info: hear, warn: hear, error: hear };

describe.skipIf(SERVER === undefined)("a role of few rights", () => {
  const server = new pg.Client(SERVER);
  const owner = new pg.Pool({ connectionString: urlOf(OWNER), max: 2 });
  const app = new pg.Pool({ connectionString: urlOf(APP), max: 2 });

  beforeAll(async () => {
    for (const pool of [owner, app]) pool.on("error", () => undefined);
    await server.connect();
    for (const role of [OWNER, APP])
      await server.query(`create role "${role}" login password '${PASSWORD}'`);
    await server.query(`create database "${DATABASE}" owner "${OWNER}"`);
    const first = new Holdfast({ database: urlOf(OWNER), logger });
    await first.runs.list();
    await first.stop();
    await owner.query(SCRIPT.replaceAll("holdfast_app", `"${APP}"`));
    await owner.query("create table public.orders (id text primary key)");
    await owner.query(`grant insert, select on public.orders to "${APP}"`);
  });

  afterAll(async () => {
    await Promise.all([owner.end(), app.end()]);
    await server.query(`drop database "${DATABASE}" with (force)`);
    for (const role of [APP, OWNER]) await server.query(`drop role "${role}"`);
    await server.end();
  });

  const instance = (options: HoldfastOptions = {}) =>
    new Holdfast({ database: urlOf(APP), migrate: "check", logger, ...options });

  test("instances enqueue, run, retry, commit, schedule, lock, check, repair and prune under it", async () => {
    const holdfast = instance();
    const study = holdfast.job("study", {
      retry: { attempts: 2, delay: 0 },
      concurrency: { limit: 2, key: "to" },
      run: async (input: { to: string }, ctx) => {
        ctx.log.info("looked");
        await ctx.item("one", () => 1);
        if (ctx.attempt === 1) throw new Error("once more");
        return input.to;
      },
    });
    const charge = holdfast.job("charge", {
      run: (_: object, ctx) =>
        ctx.commit(async (tx: Pick<pg.PoolClient, "query">) => {
          await tx.query(`insert into public.orders values ('${ctx.runId}')`);
        }),
    });
    const wrong = holdfast.job("wrong", {
      run: () => {
        throw new PermanentError("never");
      },
    });
    await holdfast.start();
    const ended = async (id: string) => (await holdfast.runs.wait(id, { timeout: "30s" })).status;
    expect(await ended((await study.enqueue({ to: "a" }, { key: "a" })).id)).toBe("completed");
    expect(await ended((await charge.enqueue({})).id)).toBe("completed");
    const failed = await wrong.enqueue(null as never);
    expect(await ended(failed.id)).toBe("failed");
    await holdfast.runs.retry(failed.id);
    expect(await ended(failed.id)).toBe("failed");
    const client = await app.connect();
    await client.query("begin");
    const within = await study.enqueue({ to: "b" }, { tx: client, delay: "1h" });
    await client.query("commit");
    client.release();
    expect(await holdfast.runs.cancel(within.id)).toBe("cancelled");
    await holdfast.schedules.upsert("often", { job: "study", every: "1h", input: { to: "c" } });
    const { runId } = (await holdfast.schedules.trigger("often")) as { runId: string };
    expect(await ended(runId)).toBe("completed");
    await holdfast.lock("one", {}, async () => undefined);
    await holdfast.pause({ note: "for a moment" });
    await holdfast.resume();
    expect((await holdfast.runs.logs(runId)).lines.length).toBeGreaterThan(0);
    const { checks } = await holdfast.check();
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect((await holdfast.health({ successRate: 0 })).ok).toBe(true);
    await holdfast.repair({ apply: true });
    await holdfast.prune();
    await holdfast.stop();
    const noise = told.filter(({ event = "" }) => /^(store\.|schema\.)/.test(event));
    expect(noise).toEqual([]);
  });

  test("days of history are made ahead and dropped under it", async () => {
    const today = Math.floor(Date.now() / DAY_MS);
    await owner.query(`drop table holdfast.run_day_${today + 2}`);
    await owner.query("select holdfast.make_day('run', $1)", [today - 60]);
    const holdfast = instance();
    await holdfast.prune();
    await holdfast.stop();
    const { rows } = await owner.query(
      "select c.relname from pg_class c where c.relname = any($1) order by 1",
      [[`run_day_${today + 2}`, `run_day_${today - 60}`]],
    );
    expect(rows).toEqual([{ relname: `run_day_${today + 2}` }]);
  });

  test("the role can make, alter and drop nothing, and does not say which version the tables have", async () => {
    const today = Math.floor(Date.now() / DAY_MS);
    for (const statement of [
      "create table holdfast.mine (id int)",
      "create function holdfast.mine() returns int language sql as 'select 1'",
      "create table public.mine (id int)",
      "drop table holdfast.run",
      "alter table holdfast.run add column mine int",
      `drop table holdfast.run_day_${today}`,
      "truncate holdfast.run",
      "update holdfast.schema_version set version = 9",
      "update holdfast.audit set verb = 'nothing'",
      "select holdfast.make_day('schema_version', 1)",
      "select holdfast.drop_day('schema_version', 1, 0, null, false)",
    ])
      await expect(app.query(statement), statement).rejects.toThrow();
  });
});
