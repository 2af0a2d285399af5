// Lets another role plant functions and operators in `public` of a real PostgreSQL server, under names that our statements
// use and with types that fit them better than the server's own, and shows that nothing of ours executes them.

import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Holdfast, type HoldfastOptions } from "../../src/index.js";

const SERVER = process.env.HOLDFAST_TEST_POSTGRES_URL;
const DATABASE = `path_${crypto.randomUUID().replaceAll("-", "_")}`;
const ATTACKER = `attacker_${crypto.randomUUID().replaceAll("-", "_")}`;
const PASSWORD = "a-password-of-the-test";

const quiet = () => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

const urlOf = (change: (url: URL) => void) => {
  const url = new URL(SERVER as string);
  url.pathname = `/${DATABASE}`;
  change(url);
  return url.href;
};

/** Each counts in a sequence, which no rollback undoes, and then does as the server's own would. */
const TRAPS = `
create sequence public.sprung;
grant usage on sequence public.sprung to public;
create function public.unnest(uuid[]) returns setof uuid language sql as
  $$ select pg_catalog.nextval('public.sprung'); select pg_catalog.unnest($1) $$;
create function public.unnest(text[]) returns setof text language sql as
  $$ select pg_catalog.nextval('public.sprung'); select pg_catalog.unnest($1) $$;
create function public.unnest(bigint[]) returns setof bigint language sql as
  $$ select pg_catalog.nextval('public.sprung'); select pg_catalog.unnest($1) $$;
create function public.cardinality(uuid[]) returns int language sql as
  $$ select pg_catalog.nextval('public.sprung'); select pg_catalog.cardinality($1) $$;
create function public.has(uuid[], uuid[]) returns boolean language sql as
  $$ select pg_catalog.nextval('public.sprung'); select $1 operator(pg_catalog.@>) $2 $$;
create operator public.@> (leftarg = uuid[], rightarg = uuid[], function = public.has);
create function public.coalesced(text, bigint) returns text language sql as
  $$ select pg_catalog.nextval('public.sprung'); select $1 operator(pg_catalog.||) $2 $$;
create operator public.|| (leftarg = text, rightarg = bigint, function = public.coalesced);
create function public.json_array_elements_text(jsonb) returns setof text language sql as
  $$ select pg_catalog.nextval('public.sprung'); select ''::text $$;
`;

describe.skipIf(SERVER === undefined)("objects that another role created in public", () => {
  const server = new pg.Client(SERVER);
  const admin = new pg.Pool({ connectionString: urlOf(() => undefined), max: 2 });

  beforeAll(async () => {
    // The database goes while the last connection still says goodbye.
    admin.on("error", () => undefined);
    await server.connect();
    await server.query(`create database "${DATABASE}"`);
    await server.query(`create role "${ATTACKER}" login password '${PASSWORD}'`);
    await admin.query(`grant create, usage on schema public to "${ATTACKER}"`);
    await admin.query("create table public.orders (id text primary key)");
    const attacker = new pg.Client(
      urlOf((url) => {
        url.username = ATTACKER;
        url.password = PASSWORD;
      }),
    );
    await attacker.connect();
    await attacker.query(TRAPS);
    await attacker.end();
  });

  afterAll(async () => {
    await admin.end();
    await server.query(`drop database "${DATABASE}" with (force)`);
    await server.query(`drop role "${ATTACKER}"`);
    await server.end();
  });

  beforeEach(() => admin.query("select pg_catalog.setval('public.sprung', 1, false)"));

  const sprung = async () => {
    const { rows } = await admin.query("select is_called from public.sprung");
    return rows[0].is_called as boolean;
  };

  /** The main paths of an instance: schema, enqueue, claim, retry, items, steps, waits, schedules, locks, checks, prune. */
  async function livesThrough(options: HoldfastOptions): Promise<void> {
    const holdfast = new Holdfast({ schema: "own", retention: "1d", logger, ...options });
    const done: string[] = [];
    const mail = holdfast.job("mail", {
      retry: { attempts: 2, delay: 0 },
      concurrency: { limit: 2, key: "to" },
      run: async (input: { to: string }, ctx) => {
        await ctx.item("one", () => 1);
        if (ctx.attempt === 1) throw new Error("once more");
        done.push(input.to);
      },
    });
    const leaf = holdfast.job("leaf", { run: (input: number) => input });
    const tree = holdfast.job("tree", {
      run: async (_: object, ctx) => {
        const one = await ctx.step("one", () => 1);
        const [two, go] = await Promise.all([
          ctx.call(leaf, 2),
          ctx.waitFor<number>("go", { key: "tree" }),
          ctx.sleep(1),
        ]);
        return [one, two, go?.value];
      },
    });
    await holdfast.start();
    const root = await tree.enqueue({});
    await holdfast.signal("go", { key: "tree", value: 3 });
    expect((await holdfast.runs.wait(root.id, { timeout: "5m" })).result).toEqual([1, 2, 3]);
    expect((await holdfast.runs.steps(root.id)).steps.length).toBe(4);
    await holdfast.runs.list({ waiting: true });
    const runs = await mail.enqueueMany([{ to: "a" }, { to: "b" }], ({ to }) =>
      to === "a" ? { key: "a", tags: ["x", "y"] } : {},
    );
    for (const { id } of runs) await holdfast.runs.wait(id, { timeout: "5m" });
    expect(done.sort()).toEqual(["a", "b"]);
    await holdfast.schedules.upsert("nightly", { job: "mail", cron: "0 2 * * *" });
    await holdfast.schedules.list();
    await holdfast.runs.list({ tag: "x", status: "completed" });
    await holdfast.runs.cancel(runs[0]?.id as string);
    await holdfast.lock("one", {}, async () => undefined);
    expect((await holdfast.check()).checks.filter(({ error }) => error !== null)).toEqual([]);
    await holdfast.prune();
    await holdfast.stop();
    await admin.query("drop schema own cascade");
  }

  test("is not executed by sessions of our own", async () => {
    await livesThrough({ database: urlOf(() => undefined) });
    expect(await sprung()).toBe(false);
  });

  test("is not executed over a pool of the application", async () => {
    const pool = new pg.Pool({ connectionString: urlOf(() => undefined), max: 10 });
    await livesThrough({ database: pool });
    await pool.end();
    expect(await sprung()).toBe(false);
  });

  test("is not executed behind a pooler, where every statement may find another session", async () => {
    const pool = new pg.Pool({ connectionString: urlOf(() => undefined), max: 10 });
    pool.on("connect", (client) => {
      // A pooler makes up this number.
      (client as unknown as { processID: number }).processID = 0x7fff_ffff;
    });
    await livesThrough({ database: pool });
    await pool.end();
    expect(await sprung()).toBe(false);
  });

  test("is not executed in users' transactions, whose own search_path stays as it is", async () => {
    const database = urlOf(() => undefined);
    const holdfast = new Holdfast({ database, schema: "own", logger });
    const pool = new pg.Pool({ connectionString: database, max: 4 });
    const seen: string[] = [];
    const look = async (tx: Pick<pg.PoolClient, "query">) => {
      const { rows } = await tx.query("select pg_catalog.current_setting('search_path') as path");
      seen.push(rows[0].path);
    };
    const mail = holdfast.job("mail", { run: (_: { to: string }) => undefined });
    const limited = holdfast.job("limited", {
      concurrency: { limit: 1, key: "to" },
      run: (_: { to: string }) => undefined,
    });
    const charge = holdfast.job("charge", {
      run: (input: { on: boolean }, ctx) =>
        ctx.commit(
          async (tx: Pick<pg.PoolClient, "query">) => {
            await tx.query(`insert into orders values ('${ctx.runId}')`);
            await mail.enqueue({ to: "c" }, { tx });
            await look(tx);
          },
          input.on ? { on: pool } : {},
        ),
    });
    await holdfast.start();
    const client = await pool.connect();
    await client.query("begin");
    await client.query("set local search_path = public, pg_temp");
    await Promise.all([
      client.query("insert into orders values ('one')"),
      mail.enqueue({ to: "a" }, { tx: client, key: "a" }),
      client.query("insert into orders values ('two')"),
      limited.enqueueMany([{ to: "a" }, { to: "b" }], ({ to }) => ({ tx: client, key: to })),
      client.query("insert into orders values ('three')"),
      holdfast.signal("go", { key: "tx", value: { is: true }, tx: client }),
    ]);
    await holdfast.signal("go", { key: "tx", value: { is: true }, tx: client });
    await look(client);
    await client.query("commit");
    client.release();
    for (const on of [false, true]) {
      const { id } = await charge.enqueue({ on });
      await expect(holdfast.runs.wait(id, { timeout: "5m" })).resolves.toMatchObject({
        status: "completed",
      });
    }
    expect(seen).toEqual(["public, pg_temp", '"$user", public', '"$user", public']);
    expect(await sprung()).toBe(false);
    await holdfast.stop();
    await pool.end();
    await admin.query("drop schema own cascade");
  });

  test("questions of the application's own checks are asked with its own search_path", async () => {
    const database = urlOf(() => undefined);
    const checks = { "no order is called nine": "select id as what from orders where id = 'nine'" };
    const holdfast = new Holdfast({ database, schema: "own", checks });
    const { checks: found } = await holdfast.check();
    expect(found.filter(({ error }) => error !== null)).toEqual([]);
    await holdfast.stop();
    await admin.query("drop schema own cascade");
  });

  test("a schema of another role is named at the start, by check and by health, and one's own is not", async () => {
    const told: object[] = [];
    const hear = (fields: object) => void told.push(fields);
    const loud = { ...logger, error: hear };
    const foreign = () => told.filter((each) => "event" in each && each.event === "schema.foreign");
    const database = urlOf(() => undefined);
    const name = "the schema belongs to no other role";
    const own = new Holdfast({ database, schema: "own", logger: loud });
    await own.start();
    expect(foreign()).toEqual([]);
    expect((await own.check()).checks.find((each) => each.name === name)?.ok).toBe(true);
    expect((await own.health()).ok).toBe(true);
    await own.stop();
    await admin.query(`alter schema own owner to "${ATTACKER}"`);
    const other = new Holdfast({ database, schema: "own", logger: loud });
    await other.start();
    expect(foreign()).toMatchObject([{ owners: [ATTACKER] }]);
    expect((await other.check()).checks.find((each) => each.name === name)).toMatchObject({
      ok: false,
      evidence: [{ what: ATTACKER, first_of_them: "schema own" }],
    });
    const { ok, figures } = await other.health();
    expect(ok).toBe(false);
    expect(figures.find((each) => each.name === "schema owner")?.found).toContain(ATTACKER);
    await other.stop();
    await admin.query("drop schema own cascade");
  });
});
