// Databases with many runs in them, laid out as Holdfast lays them out: ids by time, history in its days, everything
// vacuumed and analysed. A few thousand runs are made through the public interface; the others are copies of one.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { Holdfast } from "../../build/index.js";
import { dayOf } from "../../build/store/postgres/days.js";
import { makeFirstDay } from "../../build/store/postgres/sql/days.js";
import { PARTITIONED } from "../../build/store/schema/schema.js";
import { fillIn } from "../../build/store/sql/template.js";

export const JOB = "noop";
/** The runs that the measurement itself claims and settles. */
const OWN = 3000;
const A_DAY_MS = 86_400_000;
export const HISTORY_DAYS = 30;
const PART = 500_000;
const SCHEMA = "holdfast";
export const logger = { debug() {}, info() {}, warn() {}, error() {} };

/** A few runs through the interface, so that lanes, policies and numbers are real. */
async function seeded(url) {
  const holdfast = new Holdfast({ database: url, logger });
  const job = holdfast.job(JOB, { run: async () => {} });
  const input = { number: 1, address: "someone@example.org" };
  await job.enqueueMany(Array.from({ length: OWN }, () => input));
  await holdfast.stop();
}

/** When copies were made: evenly over thirty days for history, over the last hour for a backlog; oldest first. */
function momentsOf(kind, count) {
  const spanMs = kind === "history" ? HISTORY_DAYS * A_DAY_MS : 3_600_000;
  const fromMs = Date.now() - spanMs - 60_000;
  return { fromMs, spanMs, stepMs: spanMs / count };
}

/** @param {{ url: string, kind: "history" | "backlog", count: number }} params */
export async function fillPostgres({ url, kind, count }) {
  await seeded(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { fromMs, stepMs } = momentsOf(kind, count);
  if (kind === "history") await makePastDays(client);
  for (let from = 0; from < count; from += PART) {
    const to = Math.min(count, from + PART) - 1;
    await client.query(`
      with template as materialized (select * from ${SCHEMA}.run limit 1),
      made as materialized (
        select (lpad(to_hex(t.ms), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid as id, t.ms
        from generate_series(${from}, ${to}) i, lateral (select (${fromMs} + i * ${stepMs}::float8)::bigint as ms) t
      ),
      runs as (
        insert into ${SCHEMA}.run (id, created_at, due_at, lane, policy, version, priority, mode, input)
        select m.id, m.ms, m.ms, t.lane, t.policy, t.version, t.priority, t.mode, t.input from made m, template t
      )
      ${
        kind === "history"
          ? `insert into ${SCHEMA}.outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status)
             select m.id, 1, m.ms + 5, m.ms + 9, t.lane, 1, 1, 0, 1 from made m, template t`
          : `insert into ${SCHEMA}.ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
             select m.id, m.ms, t.lane, t.policy, 0, 0, 0, 0, 0, false from made m, template t`
      }`);
  }
  await client.query("vacuum analyze");
  await client.query("checkpoint");
  await client.end();
}

async function makePastDays(client) {
  const today = Math.floor(Date.now() / A_DAY_MS);
  const dialect = { name: (plain) => `${SCHEMA}.${plain}`, now: "" };
  for (let back = 1; back <= HISTORY_DAYS + 1; back += 1)
    for (const table of PARTITIONED)
      await client.query(fillIn(makeFirstDay(dayOf(table, today - back)), dialect));
}

/** @param {{ file: string, kind: "history" | "backlog", count: number }} params */
export async function fillSqlite({ file, kind, count }) {
  await seeded(`sqlite:${file}`);
  const database = new DatabaseSync(file);
  const { fromMs, stepMs } = momentsOf(kind, count);
  const template = database.prepare("select * from holdfast_run limit 1").get();
  const run = database.prepare(
    "insert into holdfast_run (id, created_at, due_at, lane, policy, version, priority, mode, input) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const other = database.prepare(
    kind === "history"
      ? "insert into holdfast_outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status) values (?, 1, ?, ?, ?, 1, 1, 0, 1)"
      : "insert into holdfast_ready (lane, suspect, sort_at, id, policy, attempt, losses, refunds, laters, extra) values (?, 0, ?, ?, ?, 0, 0, 0, 0, 0)",
  );
  const { lane, policy, version, priority, mode, input } = template;
  for (let from = 0; from < count; from += PART) {
    database.exec("begin");
    for (let at = from; at < Math.min(count, from + PART); at += 1) {
      const ms = Math.floor(fromMs + at * stepMs);
      const id = idOf(ms, at);
      run.run(id, ms, ms, lane, policy, version, priority, mode, input);
      if (kind === "history") other.run(id, ms + 5, ms + 9, lane);
      else other.run(lane, ms, id, policy);
    }
    database.exec("commit");
  }
  database.exec("pragma wal_checkpoint(truncate)");
  database.close();
}

/** A UUIDv7 whose tail counts: ids of one millisecond in the order of their making, as the interface makes them. */
function idOf(ms, at) {
  const hex = ms.toString(16).padStart(12, "0");
  const tail = at.toString(16).padStart(15, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8${tail.slice(0, 3)}-${tail.slice(3)}`;
}
