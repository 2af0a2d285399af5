// The raw limit on SQLite: hand-written SQL through the library Holdfast uses, with the guarantees it gives:
// a fence per claim, a lease, the fence checked at settle, a history row per run.
// One transaction settles the last batch and claims the next, then the event loop gets its turn.

import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";

const QUEUE = "default";
const JOB = "noop";
const BATCH = 1000;
const LEASE_MS = 30_000;

const TABLES = /* sql */ `
  create table if not exists run (
    id integer primary key, queue text not null, job text not null, priority integer not null, created_at integer not null,
    max_attempts integer not null, key text, input text not null);
  create unique index if not exists run_key on run (job, key) where key is not null;
  create table if not exists ready (
    queue text not null, priority integer not null, due_at integer not null, id integer not null,
    attempt integer not null default 0, primary key (queue, priority, due_at, id)) without rowid;
  create table if not exists lease (
    fence integer primary key autoincrement, until integer not null, started_at integer not null, holder text not null,
    ids text not null);
  create index if not exists lease_until on lease (until);
  create table if not exists outcome (
    id integer primary key, status integer not null, fence integer not null, attempt integer not null, started_at integer,
    finished_at integer not null, job text not null, holder text, result text);
  create index if not exists outcome_hist on outcome (job, finished_at);`;

/** @param {{ url: string, synchronous: "full" | "normal" }} params */
export async function open({ url, synchronous }) {
  const database = new DatabaseSync(url.replace(/^sqlite:/, ""));
  database.exec(
    `pragma journal_mode = wal; pragma synchronous = ${synchronous}; pragma busy_timeout = 0; ${TABLES}`,
  );
  const holder = `bench:${process.pid}`;

  const insertRun = database.prepare(
    `insert into run (queue, job, priority, created_at, max_attempts, input) values ('${QUEUE}', '${JOB}', 0, ?, 3, ?)`,
  );
  const insertReady = database.prepare(
    `insert into ready (queue, priority, due_at, id) values ('${QUEUE}', 0, ?, ?)`,
  );
  const insertRuns = database.prepare(`
    insert into run (queue, job, priority, created_at, max_attempts, input)
    select '${QUEUE}', '${JOB}', 0, ?, 3, value from json_each(?)`);
  const insertReadies = database.prepare(`
    insert into ready (queue, priority, due_at, id) select '${QUEUE}', 0, ?, id from run where id > ?`);
  const lastRun = database.prepare("select coalesce(max(id), 0) as id from run");

  const leaseOf = database.prepare("select started_at, holder, ids from lease where fence = ?");
  const insertOutcome = database.prepare(`
    insert into outcome (id, status, fence, attempt, started_at, finished_at, job, holder, result) values (?, 2, ?, ?, ?, ?, ?, ?, null)`);
  const endLease = database.prepare("delete from lease where fence = ?");
  const due = database.prepare(`
    select r.id, r.attempt + 1 as attempt, r.due_at, j.job, j.input from ready r cross join run j on j.id = r.id
    where r.queue = '${QUEUE}' and r.priority = 0 and r.due_at <= ? order by r.due_at, r.id limit ${BATCH}`);
  const take = database.prepare(`
    delete from ready where queue = '${QUEUE}' and priority = 0 and (due_at, id) <= (?, ?)`);
  const insertLease = database.prepare(
    "insert into lease (until, started_at, holder, ids) values (?, ?, ?, ?)",
  );
  const live = database.prepare(`
    select exists (select 1 from ready where queue = '${QUEUE}' and priority = 0 and due_at <= ?) or exists (select 1 from lease) as live`);

  const transaction = (body) => {
    database.exec("begin immediate");
    try {
      const answer = body();
      database.exec("commit");
      return answer;
    } catch (error) {
      database.exec("rollback");
      throw error;
    }
  };

  const settle = ({ fence, runs }, now) => {
    const lease = leaseOf.get(fence);
    if (!lease) throw new Error(`Fence ${fence} was lost.`);
    const held = JSON.parse(lease.ids);
    for (const run of runs) {
      if (held[run.id] === undefined)
        throw new Error(`Run ${run.id} is not held under fence ${fence}.`);
      insertOutcome.run(run.id, fence, run.attempt, lease.started_at, now, run.job, lease.holder);
    }
    endLease.run(fence);
  };

  const claim = (now) => {
    const runs = due.all(now);
    const last = runs.at(-1);
    if (!last) return null;
    take.run(last.due_at, last.id);
    const ids = JSON.stringify(Object.fromEntries(runs.map((run) => [run.id, run.attempt])));
    const { lastInsertRowid } = insertLease.run(now + LEASE_MS, now, holder, ids);
    return { fence: Number(lastInsertRowid), runs };
  };

  let isStopping = false;
  let running;
  const loop = async (onRun) => {
    let held = null;
    for (;;) {
      held = transaction(() => {
        const now = Date.now();
        if (held) settle(held, now);
        return isStopping ? null : claim(now);
      });
      if (held) {
        for (const run of held.runs) await onRun(JSON.parse(run.input));
        await turn();
      } else {
        if (isStopping) return;
        await pause(2);
      }
    }
  };

  return {
    async enqueue(input) {
      transaction(() => {
        const now = Date.now();
        insertReady.run(now, Number(insertRun.run(now, JSON.stringify(input)).lastInsertRowid));
      });
    },

    async enqueueMany(inputs, delayMs = 0) {
      transaction(() => {
        const now = Date.now();
        const before = lastRun.get().id;
        insertRuns.run(now, JSON.stringify(inputs));
        insertReadies.run(now + delayMs, before);
      });
    },

    async start(onRun) {
      isStopping = false;
      running = loop(async (input) => onRun(input));
    },

    async stop() {
      isStopping = true;
      await running;
    },

    async isDone() {
      return live.get(Date.now()).live === 0;
    },

    async close() {
      database.close();
    },
  };
}
