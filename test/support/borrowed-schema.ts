// Schemas on the test server that tests of one file use one after the other: making one takes most of a
// second, emptying it a few hundredths. One that a test has altered, filled or analysed is dropped.

import pg from "pg";
import { afterAll } from "vitest";

const URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
/** The largest size of a schema that still counts as new. */
const WEIGHT_MAX = 8_000_000;

/** Emptied ones, that nobody uses now. */
const free: string[] = [];
/** How a schema looks that nobody has altered: the first one that was given back is the measure. */
let asNew: string | undefined;

export type BorrowedSchema = {
  readonly name: string;
  /** Once everything that used it is closed. */
  giveBack(): Promise<void>;
};

/** A schema in which nothing has happened yet. One that is `isUnmade` does not even exist. */
export function borrowSchema(prefix: string, { isUnmade = false } = {}): BorrowedSchema {
  const found = isUnmade ? undefined : free.pop();
  const name = found ?? `${prefix}_${crypto.randomUUID().replaceAll("-", "_")}`;
  return { name, giveBack: () => withClient((client) => clear(client, name)) };
}

afterAll(async () => {
  if (free.length === 0) return;
  await withClient(async (client) => {
    for (const name of free.splice(0)) await drop(client, name);
  });
});

async function clear(client: pg.Client, name: string): Promise<void> {
  try {
    const look = await lookOf(client, name);
    asNew ??= look ?? undefined;
    if (look !== null && look === asNew) {
      await client.query(emptying(name));
      free.push(name);
      return;
    }
  } catch {
    // Somebody still holds a lock, or half of it is gone.
  }
  await drop(client, name);
}

async function drop(client: pg.Client, name: string): Promise<void> {
  await client.query(`drop schema if exists "${name}" cascade`);
}

/** Everything about a schema but its rows; null where it does not exist, or is not as light as a new one. */
async function lookOf(client: pg.Client, name: string): Promise<string | null> {
  const { rows } = await client.query(LOOK, [name]);
  const { look, weight } = rows[0];
  if (look === null || Number(weight) > WEIGHT_MAX) return null;
  const { rows: versions } = await client.query(
    `select version, min_compatible from "${name}".schema_version`,
  );
  return JSON.stringify([look, versions]);
}

const LOOK = /* sql */ `
with here as (select oid from pg_namespace where nspname = $1),
relations as (
  select c.oid, c.relname, c.relkind, c.reltuples
  from pg_class c where c.relnamespace = (select oid from here)
),
parts as (
  select format('%s %s %s', r.relname, r.relkind, r.reltuples >= 0) as part from relations r
  union all
  select format('%s.%s %s %s %s', r.relname, a.attname, a.atttypid, a.attnotnull, a.atthasdef)
  from relations r join pg_attribute a on a.attrelid = r.oid where a.attnum > 0
  union all
  select format('%s %s %s', k.conrelid::regclass, k.conname, k.convalidated)
  from pg_constraint k where k.connamespace = (select oid from here)
  union all
  select format('%s %s %s', r.relname, t.tgname, t.tgenabled)
  from relations r join pg_trigger t on t.tgrelid = r.oid where not t.tgisinternal
  union all
  select format('%s %s', p.proname, md5(replace(p.prosrc, $1, ''))) from pg_proc p where p.pronamespace = (select oid from here)
)
select md5((select string_agg(replace(part, $1, ''), ',' order by replace(part, $1, '')) from parts)) as look,
  (select sum(pg_relation_size(r.oid)) from relations r where r.relkind in ('r', 'i')) as weight`;

/** Rows go without their triggers; numbers begin again at one. */
function emptying(name: string): string {
  return /* sql */ `
set session_replication_role = replica;
set lock_timeout = '2s';
do $$
declare each record;
begin
  for each in
    select c.oid::regclass as name from pg_class c
    where c.relnamespace = '"${name}"'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> 'schema_version'
  loop
    execute format('delete from %s', each.name);
  end loop;
  for each in
    select c.oid::regclass as name from pg_class c
    where c.relnamespace = '"${name}"'::regnamespace and c.relkind = 'S'
  loop
    perform setval(each.name, 1, false);
  end loop;
end $$`;
}

async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(URL);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
