// Runs instances under the role of deploy/postgres-role.sql on a real PostgreSQL server: the main paths work, and the role can do
// nothing to the tables themselves.

import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { ROUTES } from "../../src/http/wire/contract.js";
import { Holdfast, type HoldfastOptions, PermanentError } from "../../src/index.js";
import { until } from "../support/until.js";

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

  test("every noun of the API is read and changed under it", async () => {
    const holdfast = instance({ poll: "50ms", alerts: { failureRate: { atLeast: 1 } } });
    const leaf = holdfast.job("leaf", {
      rate: { limit: 100, per: "1s" },
      run: async (input: { n: number }, ctx) => {
        ctx.progress({ stage: "begun", done: input.n });
        return input.n;
      },
    });
    const report = holdfast.job("report", { run: () => "all" });
    const tree = holdfast.job("tree", {
      run: (_: object, ctx) =>
        ctx.enqueueBatch(
          [1, 2].map((n) => ({ job: leaf, input: { n } })),
          { then: report },
        ),
    });
    holdfast.job("elsewhere", { lease: "60s" });
    const waits = holdfast.job("waits", {
      run: async (input: { fails: boolean }, ctx) => {
        const one = await ctx.step("one", () => 1);
        const two = await ctx.call(leaf, { n: 2 });
        const go = await ctx.waitFor<number>("go");
        await ctx.sleep(1);
        if (input.fails) throw new PermanentError("no");
        return [one, two, go?.value];
      },
    });
    await holdfast.start();
    const ADMIN = "an-admin-secret-of-the-test";
    const handler = createHandler(holdfast, { secrets: { admin: ADMIN }, events: false });
    const send = (method: string, where: string, headers: object, body?: object) =>
      handler(
        new Request(`http://h${where}`, {
          method,
          headers: { "content-type": "application/json", ...headers },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
    const ask = async (method: string, where: string, body?: object, secret = ADMIN) => {
      const response = await send(method, where, { authorization: `Bearer ${secret}` }, body);
      const text = await response.text();
      expect(response.status, `${method} ${where}: ${text}`).toBeLessThan(300);
      // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
      return JSON.parse(text) as any;
    };
    const post = (where: string, body: object = {}, secret?: string) =>
      ask("POST", where, body, secret);

    // Credentials
    const key = (await post("/api/keys", { name: "worker", scopes: ["worker"], expires: "1d" }))
      .secret as string;
    const signedIn = await send("POST", "/api/session", {}, { secret: ADMIN });
    const cookie = String(signedIn.headers.get("set-cookie")).split(";")[0] as string;
    const page = { cookie, origin: "http://h", host: "h" };
    expect((await send("GET", "/api/runs", page)).status).toBe(200);
    expect((await send("DELETE", "/api/session", page)).status).toBe(200);

    // Remote workers
    const { id } = await post("/api/jobs/elsewhere/runs", { input: 1, key: "once", tags: ["eu"] });
    const claim = async () => {
      const body = { instance: "w", jobs: ["elsewhere"], limit: 1 };
      const [run] = (await post("/api/worker/claim", body, key)).runs;
      return { instance: "w", fence: run.fence as number };
    };
    let held = await claim();
    const tell = (verb: string, body: object = {}) =>
      post(`/api/runs/${id}/${verb}`, { ...held, ...body }, key);
    await tell("release");
    held = await claim();
    await post("/api/worker/heartbeat", { instance: "w", runs: [{ id, fence: held.fence }] }, key);
    await tell("heartbeat");
    await tell("progress", { stage: "half", done: 1, total: 2 });
    await tell("items", { items: [{ key: "one", value: 1 }] });
    await tell("logs", { lines: [{ level: "info", message: "hello" }] });
    await tell("fail", { error: { message: "no" }, permanent: true });
    await post(`/api/runs/${id}/retry`);
    held = await claim();
    await tell("complete", { result: 2 });

    // Batches, and runs that others make
    const root = await tree.enqueue({});
    const isDone = async () => (await holdfast.stats()).jobs.some(({ job }) => job === "report");
    await until("the report that follows the batch", isDone);
    await holdfast.runs.delete(root.id);

    // Steps, waits and signals
    const [good, bad] = [
      await waits.enqueue({ fails: false }),
      await waits.enqueue({ fails: true }),
    ];
    await post("/api/signals/go", { key: good.id, value: 3 });
    const client = await app.connect();
    await client.query("begin");
    await holdfast.signal("go", { key: bad.id, value: 3, tx: client });
    await client.query("commit");
    client.release();
    const end = (run: string) => holdfast.runs.wait(run, { timeout: "5m" });
    expect((await end(good.id)).result).toEqual([1, 2, 3]);
    expect((await end(bad.id)).status).toBe("failed");
    await holdfast.runs.retry(bad.id, { fromStep: "one" });
    expect((await end(bad.id)).status).toBe("failed");
    const asleep = await waits.enqueue({ fails: false });
    const sleeps = async () => (await holdfast.runs.list({ waiting: true })).runs.length > 0;
    await until("a run sleeps", sleeps);
    await holdfast.runs.cancel(asleep.id);

    // Schedules, calendars, monitors, backfills
    await holdfast.calendars.upsert("holidays", { dates: ["12-25"] });
    const daily = { job: "leaf", cron: "0 0 * * *", input: { n: 3 }, calendars: ["holidays"] };
    await ask("PUT", "/api/schedules/daily", daily);
    await ask("PUT", "/api/schedules/daily", { ...daily, cron: "5 0 * * *" });
    await post("/api/schedules/daily/pause", { note: "later" });
    await post("/api/schedules/daily/resume");
    const now = Date.now();
    const [from, to] = [3, 1].map((days) => new Date(now - days * DAY_MS).toISOString());
    await post("/api/schedules/daily/backfill", { from, to });
    await ask("PUT", "/api/schedules/watch", { monitor: true, every: "1h" });
    await post("/api/ping/watch/start");
    await post("/api/ping/watch/fail", { reason: "no" });
    await post("/api/tick");

    // What operators do
    await post("/api/queues/default/pause", { note: "later" });
    await post("/api/queues/default/resume");
    await post("/api/pause", { note: "later" });
    await post("/api/resume");
    await post("/api/cleanup", { timeoutSeconds: 60, heartbeatTimeoutSeconds: 60 });
    const place = encodeURIComponent(holdfast.instanceId);
    await post(`/api/instances/${place}/quiet`, { note: "later" });
    await post(`/api/instances/${place}/wake`);
    const opened = async () => (await holdfast.alerts.list()).alerts[0];
    await until("an alert", async () => (await opened()) !== undefined);
    const alert = (await opened())?.id;
    for (const verb of ["mute", "acknowledge", "resolve"])
      await post(`/api/alerts/${alert}/${verb}`, verb === "mute" ? { for: "1h" } : {});
    await holdfast.recover({ apply: true });

    const parts: Record<string, string> = { "{name}": "daily", "{id}": id };
    for (const { method, path } of Object.values(ROUTES)) {
      if (method !== "GET" || path === ROUTES.events.path) continue;
      const where = path.replace(/\{\w+\}/g, (part) => String(parts[part]));
      const response = await send("GET", where, { authorization: `Bearer ${ADMIN}` });
      expect([where, response.status < 500]).toEqual([where, true]);
    }
    await ask("DELETE", "/api/schedules/daily");
    await holdfast.calendars.delete("holidays");
    await ask("DELETE", "/api/keys/worker");
    await holdfast.stop();
    expect(JSON.stringify(told)).not.toContain("permission denied");
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
