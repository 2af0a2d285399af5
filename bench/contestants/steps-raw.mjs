// Durable steps and sleeps in hand-written SQL on PostgreSQL, with the guarantees that Holdfast gives: a step is written only
// under the fence of a lease that nobody can end meanwhile; a wait is committed before its run is suspended; its end is recorded
// under the next fence. Without signals, calls, attempts, limits and statistics.

import { randomUUID } from "node:crypto";
import pg from "pg";

const TABLES = /* sql */ `
  create table if not exists step_lease (fence bigint generated always as identity primary key, run uuid not null);
  create table if not exists step_ready (run uuid primary key);
  create table if not exists step_asleep (run uuid primary key, wake_at timestamptz not null);
  create index if not exists step_asleep_at on step_asleep (wake_at);
  create table if not exists step_wait (
    run uuid not null, name text collate "C" not null, until timestamptz not null, primary key (run, name));
  create table if not exists step (
    run uuid not null, no int not null, name text collate "C" not null, fence bigint not null, ended_at timestamptz not null,
    value text, primary key (run, no), unique (run, name));`;

const STORE = /* sql */ `
  with k as materialized (select run from step_lease where fence = $1 for no key update)
  insert into step (run, no, name, fence, ended_at, value)
  select k.run, coalesce((select max(s.no) from step s where s.run = k.run), 0) + 1, $2, $1, clock_timestamp(), $3 from k
  returning no`;
const RECORD = /* sql */ `
  with k as materialized (select run from step_lease where fence = $1 for no key update),
  w as (delete from step_wait w using k where w.run = k.run and w.until <= clock_timestamp() returning w.run, w.name)
  insert into step (run, no, name, fence, ended_at)
  select w.run, coalesce((select max(s.no) from step s where s.run = w.run), 0) + 1, w.name, $1, clock_timestamp() from w`;
const WAIT = /* sql */ `
  insert into step_wait (run, name, until) select k.run, $2, clock_timestamp() + interval '1 ms' from step_lease k
  where k.fence = $1 for no key update`;
const SUSPEND = /* sql */ `
  with k as (delete from step_lease where fence = $1 returning run)
  insert into step_asleep (run, wake_at) select k.run, (select min(w.until) from step_wait w where w.run = k.run) from k`;
const WAKE = /* sql */ `
  with d as (delete from step_asleep where run = any(array(
    select run from step_asleep where wake_at <= clock_timestamp() order by wake_at limit 1000 for update skip locked)) returning run)
  insert into step_ready select run from d`;
const CLAIM = /* sql */ `
  with d as (delete from step_ready where run = any(array(select run from step_ready limit $1 for update skip locked)) returning run),
  k as (insert into step_lease (run) select run from d returning fence, run)
  select k.fence, k.run, (select count(*)::int from step s where s.run = k.run)
    + (select count(*)::int from step_wait w where w.run = k.run) as rounds from k`;
const END = /* sql */ `delete from step_lease where fence = $1`;

const RUNS = 16;
const SLOTS = 32;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const client = new pg.Client({ connectionString: url, pipeline: true });
  client.on("error", () => {});
  await client.connect();
  await client.query("set plan_cache_mode = force_generic_plan; set jit = off");
  await client.query(TABLES);
  const ask = (name, text, values = []) => client.query({ name, text, values });
  const fences = [];
  return {
    async ready() {
      for (let run = 0; run < RUNS; run++) {
        const lease = "insert into step_lease (run) values ($1) returning fence";
        fences.push((await client.query(lease, [randomUUID()])).rows[0].fence);
      }
    },
    async step(number, value) {
      const values = [fences[number % RUNS], `step-${number}`, JSON.stringify(value)];
      if ((await ask("store", STORE, values)).rows.length === 0)
        throw new Error("The lease was lost.");
    },
    async resume({ runs, rounds }) {
      const ids = Array.from({ length: runs }, () => randomUUID());
      await client.query("insert into step_ready select unnest($1::uuid[])", [ids]);
      let left = runs;
      let busy = 0;
      const execute = async ({ fence, rounds: done }) => {
        if (done > 0) await ask("record", RECORD, [fence]);
        if (done === rounds) {
          await ask("end", END, [fence]);
          left--;
        } else {
          await ask("wait", WAIT, [fence, `nap-${done}`]);
          await ask("suspend", SUSPEND, [fence]);
        }
        busy--;
      };
      while (left > 0) {
        await ask("wake", WAKE);
        const { rows } = busy < SLOTS ? await ask("claim", CLAIM, [SLOTS - busy]) : { rows: [] };
        busy += rows.length;
        for (const row of rows) execute(row);
        if (rows.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
    },
    close: () => client.end(),
  };
}
