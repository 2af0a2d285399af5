// Items of one run in hand-written SQL on PostgreSQL, with the guarantees that Holdfast gives: written only
// under the fence of a lease that nobody can end meanwhile, one row for each, counted by outcome with the run.

import pg from "pg";

const TABLES = /* sql */ `
  create table if not exists item_lease (fence bigint generated always as identity primary key, ids bigint[] not null);
  create table if not exists item (
    run bigint not null, key text collate "C" not null, fence bigint not null, outcome text collate "C" not null,
    started_at timestamptz not null, duration_ms bigint not null, value text, primary key (run, key));
  create table if not exists item_count (
    run bigint not null, outcome text collate "C" not null, items int not null, primary key (run, outcome));`;

const STORE = /* sql */ `
  with k as materialized (select ids from item_lease where fence = $1 for key share),
  s as (
    insert into item (run, key, fence, outcome, started_at, duration_ms, value)
    select $2, u.key, $1, 'ok', now(), u.ms, u.value
    from k, unnest($3::text[], $4::bigint[], $5::text[]) u (key, ms, value) where $2 = any(k.ids)
    on conflict (run, key) do nothing returning run),
  c as (
    insert into item_count as t (run, outcome, items) select $2, 'ok', count(*) from s having count(*) > 0
    on conflict (run, outcome) do update set items = t.items + excluded.items)
  select count(*)::int as stored from s`;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const client = new pg.Client({ connectionString: url, pipeline: true });
  client.on("error", () => {});
  await client.connect();
  await client.query("set plan_cache_mode = force_generic_plan; set jit = off");
  await client.query(TABLES);
  const run = 1;
  const { rows } = await client.query("insert into item_lease (ids) values ($1) returning fence", [
    [run],
  ]);
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
      batch.map(() => 0),
      batch.map(({ value }) => JSON.stringify(value)),
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
