// Defines the tables of named locks, which differ by engine.
//
// On PostgreSQL a row of `lock` is the last grant of its name, held while its state is 0; it outlives its release for a
// day, since two first grants of a name could else commit in another order than their fences were drawn. Ended grants are
// in `lock_history`, too. No index but the name: every grant and every end would write to it, and its row to a new place;
// a pass that looks for ends by time (once a minute) reads the names of the last day instead.
// On SQLite `lock` has held locks alone: with one writer at a time fences are drawn in the order of their grants.

import { ACQUIRED_FENCE, LOCK_FENCE, RELEASE_LOCK } from "../postgres/locks.js";

/** Functions take the server's own time always: tests that supply theirs do not call them. */
const SERVER_CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

/** The engine's own statement as the body of a function, each parameter as SQL. */
function bodyOf(template: string, parameters: Readonly<Record<string, string>>): string {
  return template
    .replaceAll("{now}", SERVER_CLOCK)
    .replace(/(?<![:\w]):([a-z][A-Za-z]*)/g, (_, name: string) => parameters[name] as string);
}

const POSTGRES = /* sql */ `
create sequence {${LOCK_FENCE}} as bigint;

create table {lock} (
  name text collate "C" primary key,
  fence bigint not null,
  token uuid not null,
  holder text not null,
  acquired_at bigint not null,
  renewed_at bigint not null,
  until bigint not null,
  state smallint not null,
  ended_at bigint,
  execution text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create table {lock_waiter} (
  token uuid primary key,
  no bigint generated always as identity,
  name text collate "C" not null,
  holder text not null,
  priority smallint not null,
  seen_at bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index lock_waiter_name on {lock_waiter} (name);
`;

const FUNCTIONS = /* sql */ `
-- For triggers, pg_cron and other languages. A caller needs the right to execute, nothing else.
create function {acquire_lock} (name text, holder text, lease_seconds double precision default 360)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $function$
${bodyOf(ACQUIRED_FENCE, {
  name: "$1",
  holder: "$2",
  token: "pg_catalog.gen_random_uuid()",
  execution: "null",
  leaseMs: "(greatest($3, 1) * 1000)::bigint",
})}
$function$;

create function {release_lock} (name text, fence bigint)
returns boolean language sql volatile security definer set search_path = pg_catalog, pg_temp as $function$
${bodyOf(RELEASE_LOCK, { name: "$1", fence: "$2" })}
$function$;

revoke all on function {acquire_lock} (text, text, double precision) from public;
revoke all on function {release_lock} (text, bigint) from public;
`;

const SQLITE = /* sql */ `
-- Autoincrement: a fence is never reused, also after the row with the largest one is gone.
create table {lock} (
  fence integer primary key autoincrement,
  name text not null unique,
  token text not null,
  holder text not null,
  acquired_at integer not null,
  renewed_at integer not null,
  until integer not null,
  execution text
);
create index lock_until on {lock} (until);

create table {lock_waiter} (
  no integer primary key autoincrement,
  token text not null unique,
  name text not null,
  holder text not null,
  priority integer not null,
  seen_at integer not null
);
create index lock_waiter_name on {lock_waiter} (name);
`;

const HISTORY = /* sql */ `
create table {lock_history} (
  fence bigint primary key,
  name text collate "C" not null,
  holder text not null,
  state smallint not null,
  acquired_at bigint not null,
  until bigint not null,
  ended_at bigint not null,
  note text,
  execution text
);
create index lock_history_name on {lock_history} (name, fence);
create index lock_history_ended on {lock_history} (ended_at);
`;

export const LOCK_TABLES = `[[postgres ${POSTGRES}]][[sqlite ${SQLITE}]]${HISTORY}[[postgres ${FUNCTIONS}]]`;
