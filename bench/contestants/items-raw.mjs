// Items of one run in hand-written SQL on PostgreSQL, with Holdfast's guarantees: written only under the fence of a
// lease that cannot end meanwhile, one complete row for each item, a failed one replaced by a later try, counted by
// outcome with the run. No partitions.

import { randomUUID } from "node:crypto";
import pg from "pg";

const TABLES = /* sql */ `
  create table if not exists item_lease (
    fence bigint generated always as identity primary key, attempt smallint not null, ids uuid[] not null);
  create table if not exists item (
    run uuid not null, key text collate "C" not null, fence bigint not null, attempt smallint not null, tries int not null,
    outcome text collate "C" not null, started_at timestamptz not null, duration_ms bigint not null, value text, error text,
    primary key (run, key));
  create table if not exists item_count (
    run uuid not null, outcome text collate "C" not null, items int not null, primary key (run, outcome));`;

const STORE = /* sql */ `
  with k as materialized (select attempt, ids from item_lease where fence = $1 for key share),
  s as (
    insert into item as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
    select $2, u.key, $1, k.attempt, 1, u.outcome, clock_timestamp() - u.ms * interval '1 ms', u.ms, u.value, u.error
    from k, unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[]) u (key, outcome, ms, value, error)
    where $2 = any(k.ids)
    on conflict (run, key) do update set fence = excluded.fence, attempt = excluded.attempt, tries = t.tries + 1,
      outcome = excluded.outcome, started_at = excluded.started_at, duration_ms = excluded.duration_ms,
      value = excluded.value, error = excluded.error where t.error is not null
    returning t.outcome, t.tries),
  c as (
    insert into item_count as t (run, outcome, items)
    select $2, d.outcome, sum(d.change) from (
      select outcome, 1 as change from s union all select 'failed', -1 from s where tries > 1) d
    group by d.outcome having sum(d.change) <> 0
    on conflict (run, outcome) do update set items = t.items + excluded.items)
  select count(*)::int as stored from s`;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const client = new pg.Client({ connectionString: url, pipeline: true });
  client.on("error", () => {});
  await client.connect();
  await client.query("set plan_cache_mode = force_generic_plan; set jit = off");
  await client.query(TABLES);
  const run = randomUUID();
  const lease = "insert into item_lease (attempt, ids) values (1, $1) returning fence";
  const { rows } = await client.query(lease, [[run]]);
  const { fence } = rows[0];

  let waiting = [];
  let inFlight = 0;
  const flush = async () => {
    if (waiting.length === 0 || inFlight === 2) return;
    const batch = waiting;
    waiting = [];
    inFlight++;
    const values = [
      fence,
      run,
      batch.map(({ key }) => key),
      batch.map(() => "ok"),
      batch.map(() => 0),
      batch.map(({ value }) => JSON.stringify(value)),
      batch.map(() => null),
    ];
    try {
      const answer = await client.query({ name: "store", text: STORE, values });
      if (answer.rows[0].stored !== batch.length) throw new Error("The lease was lost.");
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    inFlight--;
    flush();
  };

  return {
    item: (key, value) =>
      new Promise((resolve, reject) => {
        waiting.push({ key, value, resolve, reject });
        if (waiting.length === 1) queueMicrotask(flush);
      }),
    close: () => client.end(),
  };
}
