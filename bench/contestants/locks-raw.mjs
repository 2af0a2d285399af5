// The raw limit of locks on PostgreSQL: a row for each name, a fence from a sequence, a lease by the
// database's clock, a release that checks the fence, a history row for each grant. No waiters, no
// renewal, no statistics, nothing that recognises a repeat.

import pg from "pg";

const TABLES = /* sql */ `
  create sequence if not exists fence;
  create table if not exists lock (
    name text collate "C" primary key, fence bigint not null, holder text not null, acquired_at timestamptz not null,
    until timestamptz not null, is_held boolean not null) with (fillfactor = 50);
  create table if not exists history (
    fence bigint primary key, name text collate "C" not null, holder text not null, acquired_at timestamptz not null,
    until timestamptz not null, ended_at timestamptz not null, state smallint not null);
  create index if not exists history_name on history (name, fence);
  create index if not exists history_ended on history (ended_at);`;

const ACQUIRE = /* sql */ `
  insert into lock as l (name, fence, holder, acquired_at, until, is_held)
  values ($1, nextval('fence'), $2, clock_timestamp(), clock_timestamp() + interval '30 s', true)
  on conflict (name) do update set fence = nextval('fence'), holder = excluded.holder,
    acquired_at = excluded.acquired_at, until = excluded.until, is_held = true
  where not l.is_held or l.until < clock_timestamp()
  returning fence`;

const RELEASE = /* sql */ `
  with gone as (
    update lock set is_held = false where name = $1 and fence = $2 and is_held
    returning fence, name, holder, acquired_at, until)
  insert into history (fence, name, holder, acquired_at, until, ended_at, state)
  select fence, name, holder, acquired_at, until, clock_timestamp(), 1 from gone returning fence`;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const client = new pg.Client({ connectionString: url, pipeline: true });
  await client.connect();
  await client.query(TABLES);
  const holder = `bench:${process.pid}`;
  return {
    async lock(name) {
      const { rows } = await client.query({
        name: "acquire",
        text: ACQUIRE,
        values: [name, holder],
      });
      if (rows.length === 0) throw new Error(`${name} is locked.`);
      const values = [name, rows[0].fence];
      const released = await client.query({ name: "release", text: RELEASE, values });
      if (released.rows.length === 0) throw new Error(`${name} was lost.`);
    },
    close: () => client.end(),
  };
}
