-- FUNCTIONS
-- For triggers, pg_cron and other languages. A caller needs the right to execute, nothing else.
create function acquire_lock (name text, holder text, lease_seconds double precision default 360)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $function$

with known as materialized (
  select l.fence, l.holder, l.until, l.until - (extract(epoch from clock_timestamp()) * 1000)::bigint as left_ms, l.token = pg_catalog.gen_random_uuid()::uuid as is_own
  from lock l where l.name = $1::text and l.state = 0 and l.until > (extract(epoch from clock_timestamp()) * 1000)::bigint
),
queue as materialized (
  select exists (
    select from lock_waiter w
    where w.name = $1::text and w.token <> pg_catalog.gen_random_uuid()::uuid and w.seen_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - 3000 
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, l.execution, (extract(epoch from clock_timestamp()) * 1000)::bigint as at from lock l
  where l.name = $1::text and (l.state <> 0 or l.until <= (extract(epoch from clock_timestamp()) * 1000)::bigint) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update lock l set fence = nextval('lock_fence'), token = pg_catalog.gen_random_uuid()::uuid, holder = $2::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + (greatest($3, 1) * 1000)::bigint::bigint, state = 0, ended_at = null, execution = null::text
  from free f where l.name = $1::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into lock (name, fence, token, holder, acquired_at, renewed_at, until, state, execution)
  select $1::text, nextval('lock_fence'), pg_catalog.gen_random_uuid()::uuid, $2::text, now.at, now.at,
    now.at + (greatest($3, 1) * 1000)::bigint::bigint, 0, null::text
  from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at offset 0) now
  where not (select is_behind from queue) and not exists (select from lock l where l.name = $1::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select f.fence, $1::text, f.holder, 2, f.acquired_at, f.until, f.until, f.execution
  from free f where f.state = 0
) select fence from regranted union all select fence from first_granted
$function$;

create function release_lock (name text, fence bigint)
returns boolean language sql volatile security definer set search_path = pg_catalog, pg_temp as $function$

with gone as (
  update lock l set state = 1, ended_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
  where l.name = $1::text and l.fence = $2::bigint and l.state = 0
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at, l.execution
),
kept as (
  insert into lock_history (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select fence, name, holder, 1, acquired_at, until, ended_at, execution from gone
  returning fence
)
select case when exists (select from kept) then true else exists (
  select from lock_history h where h.fence = $2::bigint and h.name = $1::text and h.state = 1) end as released
$function$;

revoke all on function acquire_lock (text, text, double precision) from public;
revoke all on function release_lock (text, bigint) from public;;

-- HISTORY
create table lock_history (
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
create index lock_history_name on lock_history (name, fence);
create index lock_history_ended on lock_history (ended_at);;

-- POSTGRES
create sequence lock_fence as bigint;

create table lock (
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

create table lock_waiter (
  token uuid primary key,
  no bigint generated always as identity,
  name text collate "C" not null,
  holder text not null,
  priority smallint not null,
  seen_at bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index lock_waiter_name on lock_waiter (name);;

-- SQLITE
-- Autoincrement: a fence is never reused, also after the row with the largest one is gone.
create table lock (
  fence integer primary key autoincrement,
  name text not null unique,
  token text not null,
  holder text not null,
  acquired_at integer not null,
  renewed_at integer not null,
  until integer not null,
  execution text
);
create index lock_until on lock (until);

create table lock_waiter (
  no integer primary key autoincrement,
  token text not null unique,
  name text not null,
  holder text not null,
  priority integer not null,
  seen_at integer not null
);
create index lock_waiter_name on lock_waiter (name);;
