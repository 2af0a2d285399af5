-- SCHEDULE_TABLES
-- A schedule with its progress. The revision grows with every change: a decision is written only at the
-- revision from which it was made. A schedule without a next tick (paused, ended, broken, deleted) is in
-- no index that a poll reads. The end of a run draws the next interval from the bounds, without any code
-- of the schedule.
create table schedule (
  id int generated always as identity primary key [[sqlite autoincrement]],
  name text collate "C" not null unique,
  revision bigint not null,
  version int not null,
  job text collate "C" not null,
  queue text collate "C",
  priority smallint,
  tags text[],
  input text not null,
  definition text not null,
  anchor_at bigint not null,
  cursor_at bigint not null,
  next_at bigint,
  is_ended boolean not null,
  hold_until bigint,
  hold_run uuid,
  last_run uuid,
  last_tick_at bigint,
  live uuid[] not null,
  is_gated boolean not null,
  is_replacing boolean not null,
  backfill uuid,
  range_min bigint,
  range_max bigint,
  fail_min bigint,
  fail_max bigint,
  began_at bigint,
  tzdata text,
  paused_at bigint,
  paused_by text,
  pause_note text,
  broken_at bigint,
  broken_error text,
  deleted_at bigint,
  app text collate "C",
  source smallint not null,
  release text,
  code_hash text,
  created_at bigint not null,
  updated_at bigint not null
) [[postgres with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index schedule_next on schedule (next_at) where next_at is not null;
create index schedule_look on schedule (id) where is_gated or is_replacing or backfill is not null;
create index schedule_lost on schedule (id) where next_at is null and not is_ended
  and paused_at is null and broken_at is null and deleted_at is null;

-- The ledger: one row for a tick, or for a stretch of equal ones, by its first.
create table tick (
  schedule int not null,
  at bigint not null,
  last_at bigint not null,
  count int not null,
  outcome smallint not null,
  reason smallint not null,
  recorded_at bigint not null,
  holder int,
  version int not null,
  run uuid,
  evidence text,
  primary key (schedule, at)
) [[postgres partition by range (at)]] [[sqlite without rowid]];
[[postgres create table tick_rest partition of tick default;
create index on tick_rest (last_at);
create index tick_unfired on tick (schedule, at) where outcome <> 0;]]
[[sqlite create index tick_at on tick (at);]]

create table schedule_version (
  schedule int not null,
  version int not null,
  kind smallint not null,
  at bigint not null,
  by text,
  job text not null,
  definition text not null,
  input text not null,
  anchor_at bigint not null,
  primary key (schedule, version)
) [[sqlite without rowid]];

-- Definitions in code: of two definitions, the one that was first seen later is newer.
create table declared (
  schedule int not null,
  hash text collate "C" not null,
  release text,
  first_seen_at bigint not null,
  primary key (schedule, hash)
) [[sqlite without rowid]];

create table delivery (
  schedule int not null,
  id text collate "C" not null,
  run uuid not null,
  input_hash text not null,
  primary key (schedule, id)
) [[sqlite without rowid]];
create index delivery_run on delivery (run);

create table backfill (
  id uuid primary key,
  schedule int not null,
  from_at bigint not null,
  to_at bigint not null,
  cursor_at bigint not null,
  total int not null,
  made int not null,
  passed int not null,
  is_all boolean not null,
  created_at bigint not null,
  created_by text,
  ended_at bigint,
  is_cancelled boolean not null
);
create index backfill_schedule on backfill (schedule);

create table backfill_run (
  schedule int not null,
  at bigint not null,
  backfill uuid not null,
  run uuid not null,
  primary key (schedule, at, backfill)
) [[sqlite without rowid]];

create table calendar (
  name text collate "C" primary key,
  rules text not null,
  version int not null,
  updated_at bigint not null,
  updated_by text
) [[sqlite without rowid]];;
