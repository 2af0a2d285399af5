// pg_cron for real: Debian's, on a server of its own whose clock is put shortly before a whole minute, with the two files that
// the guide shows. pg_net is not to be had there: what would be sent is kept, and given to the handler.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../scripts/postgres.mjs";
import { createHandler } from "../../src/http/handler.js";
import { Holdfast } from "../../src/index.js";
import { until } from "../support/until.js";

const BINARIES = "/usr/lib/postgresql/15";
const LIBRARY = fs
  .readdirSync("/usr/lib")
  .map((folder) => `/usr/lib/${folder}/faketime/libfaketime.so.1`)
  .find((file) => fs.existsSync(file));
const MISSING = [
  ...(fs.existsSync(`${BINARIES}/lib/pg_cron.so`) ? [] : ["postgresql-15-cron"]),
  ...(LIBRARY === undefined ? ["faketime"] : []),
];
const SECRET = "the-trigger-secret";

/** As pg_net has it, but nothing leaves: a row for each request. */
const INSTEAD_OF_PG_NET = `
  create schema net;
  create table net.posted (url text, headers jsonb, body jsonb);
  create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}',
    headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds int default 5000)
  returns bigint language sql as 'insert into net.posted values ($1, $4, $2) returning 1::bigint';`;

const title = MISSING.length === 0 ? "pg_cron" : `pg_cron (${MISSING.join(" and ")} not installed)`;

describe.skipIf(MISSING.length > 0)(title, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-pg-cron-"));
  const clock = path.join(folder, "clock");
  let server: PostgresServer;
  let sql: pg.Pool;

  beforeAll(async () => {
    fs.chmodSync(folder, 0o755);
    fs.writeFileSync(clock, "+0\n", { mode: 0o644 });
    server = await startPostgres({
      binaries: BINARIES,
      settings: { shared_preload_libraries: "pg_cron", "cron.host": "127.0.0.1", fsync: "off" },
      environment: { LD_PRELOAD: String(LIBRARY), FAKETIME_TIMESTAMP_FILE: clock },
    });
    sql = new pg.Pool({ connectionString: server.url });
    sql.on("error", () => undefined);
  });

  afterAll(async () => {
    await sql?.end();
    await server?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  /** The next whole minute of the server comes in a moment; what was silent has been so for eleven. */
  async function restartBeforeTheMinute(): Promise<void> {
    const untilNextS = 60 - ((Date.now() / 1_000) % 60);
    fs.writeFileSync(clock, `+${(11 * 60 + untilNextS - 3).toFixed(1)}\n`);
    await server.restart("fast");
  }

  async function runFile(name: string, changed: (text: string) => string = (text) => text) {
    const text = fs.readFileSync(path.join("deploy", name), "utf8");
    await sql.query(changed(text));
  }

  test("the guide's example runs: the enqueued job is executed, the silent worker's run is reclaimed, the requests are right", async () => {
    const before = new Holdfast({ database: server.url, logger: quiet });
    before.job("nightly-report", { run: () => undefined });
    before.job("elsewhere", { lease: "1h" });
    await before.start({ scheduler: false, worker: false });
    const { id: orphan } = await before.enqueue("elsewhere", null);
    const claimed = await before.remote.claim({ instance: "gone", jobs: ["elsewhere"], limit: 1 });
    expect(claimed.map(({ id }) => id)).toEqual([orphan]);
    await before.stop();

    await runFile("pg-cron.sql");
    await sql.query("update cron.job set jobname = jobname || '-sql'");
    await sql.query(INSTEAD_OF_PG_NET);
    await runFile("pg-cron-http.sql", (text) =>
      text
        .replace("create extension if not exists pg_net;", "")
        .replace("alter database app", "alter database postgres")
        .replace("the trigger secret", SECRET),
    );
    await sql.query("update cron.job set schedule = '* * * * *'");
    await restartBeforeTheMinute();

    const holdfast = new Holdfast({ database: server.url, logger: quiet });
    const completed = new Promise<{ run: string; job: string }>((resolve) =>
      holdfast.on("run.completed", resolve),
    );
    holdfast.job("nightly-report", { run: (input) => ({ reported: input }) });
    await holdfast.start();
    const { run, job } = await completed;
    expect(job).toBe("nightly-report");
    // Told when its handler has ended; stored a moment later.
    expect(await holdfast.runs.wait(run, { timeout: "5m" })).toMatchObject({
      status: "completed",
      result: { reported: { market: "eu" } },
    });

    const told = await until("all four have ended", async () => {
      const { rows } = await sql.query(
        "select distinct j.jobname, d.status from cron.job_run_details d join cron.job j using (jobid) order by 1",
      );
      return rows.every(({ status }) => ["succeeded", "failed"].includes(status)) && rows.length > 3
        ? rows
        : null;
    });
    const names = [
      "holdfast-cleanup",
      "holdfast-cleanup-sql",
      "holdfast-tick",
      "nightly-report-sql",
    ];
    expect(told.map(({ jobname, status }) => [jobname, status])).toEqual(
      names.map((name) => [name, "succeeded"]),
    );
    expect(await holdfast.runs.get(orphan)).toMatchObject({ status: "pending", holder: null });

    const handler = createHandler(holdfast, { secrets: { trigger: SECRET } });
    const { rows: posted } = await sql.query("select distinct * from net.posted order by url desc");
    const answers = await Promise.all(
      posted.map(async ({ url, headers, body }) => {
        const request = { method: "POST", headers, body: JSON.stringify(body) };
        const response = await handler(new Request(url, request));
        return [new URL(url).pathname, response.status, await response.json()];
      }),
    );
    expect(answers).toEqual([
      ["/api/tick", 200, expect.objectContaining({ ok: true })],
      ["/api/cleanup", 200, expect.objectContaining({ ok: true })],
    ]);
    await holdfast.stop();
  });
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
