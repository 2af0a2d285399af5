// The tables on PostgreSQL. A run's state is the table it is in: `ready` or `waiting` (pending),
// `lease` (running), `outcome` (terminal); `run` itself is written once and never changed.
// One lease row stands for one claim: all its runs share lane, policy, attempt and fence, so a claim
// of a thousand runs costs one row, and so does its heartbeat. See docs/decisions/0001-table-layout.md.

import { CREATE_FLOW_SCHEMA } from "./flow.js";
import { CREATE_LOCKS } from "./locks.js";
import { CREATE_ACCESS, CREATE_ALERTS, CREATE_AUDIT, CREATE_PAUSE } from "./operators.js";
import { CREATE_ITEMS, CREATE_LOG, CREATE_PROGRESS } from "./runs.js";

export const SCHEMA_VERSION = 1;

export const CREATE_SCHEMA = /* sql */ `
create table {schema_version} (
  version int not null,
  min_compatible int not null,
  migrated_at bigint not null,
  identity uuid not null default gen_random_uuid()
);

create table {instance} (
  no int generated always as identity primary key,
  id text not null unique,
  app text,
  release text,
  jobs json not null,
  schedules json not null,
  is_scheduler boolean not null,
  -- The jobs that it executes, and from which queues; null: from all.
  works json not null,
  queues json,
  -- How far its clock is ahead of the database's, as it found itself.
  skew_ms bigint,
  poll_ms bigint not null,
  started_at bigint not null,
  seen_at bigint not null,
  polled_at bigint,
  retired_at bigint,
  quiet_at bigint,
  quiet_by text,
  quiet_note text,
  -- Whose credential a remote worker came with; null: an instance of the library.
  remote_by text
);

create table {job} (
  name text collate "C" primary key,
  queue text collate "C" not null,
  priority smallint not null,
  version int not null,
  policy int not null,
  concurrency_limit int,
  concurrency_key text,
  rate_limit int,
  rate_per_ms bigint,
  rate_key text,
  input_schema text,
  announced_at bigint not null
);

create table {queue} (
  name text collate "C" primary key,
  paused_at bigint,
  pause_note text
);

-- A worker scans only the lanes that it can run.
create table {lane} (
  id int generated always as identity primary key,
  queue text collate "C" not null,
  job text collate "C" not null,
  unique (job, queue)
);

-- Policies are few, equal ones are one row, and a row never changes: a run's copy is its number.
create table {policy} (
  id int generated always as identity primary key,
  digest text collate "C" not null unique,
  lease_ms bigint not null,
  timeout_ms bigint not null,
  attempts int not null,
  delay_ms bigint not null,
  factor double precision not null,
  max_ms bigint not null,
  jitter double precision not null,
  on_lost smallint not null
);

-- History is partitioned by day of creation: the id begins with it. What lies outside of the days
-- that were made (a caller's clock far off, a run that outlived its day) is kept in the rest.
create table {run} (
  id uuid primary key,
  created_at bigint not null,
  due_at bigint not null,
  lane int not null,
  policy int not null,
  version int not null,
  priority smallint not null,
  mode smallint not null,
  schedule int,
  nominal_at bigint,
  parent uuid,
  batch int,
  key text collate "C",
  tags text[],
  input text not null
) partition by range (id);
create table {run_rest} partition of {run} default;

create table {ready} (
  id uuid primary key,
  sort_at bigint not null,
  lane int not null,
  policy int not null,
  attempt smallint not null,
  losses smallint not null,
  refunds smallint not null,
  laters smallint not null,
  extra smallint not null,
  suspect boolean not null,
  -- It was let through by a limit and still counts there.
  limited boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index ready_claim on {ready} (lane, suspect, sort_at, id);

-- A gate holds a run back for another reason than time; the promoter of that gate opens it.
create table {waiting} (
  id uuid primary key,
  wake_at bigint not null,
  lane int not null,
  policy int not null,
  priority smallint not null,
  attempt smallint not null,
  losses smallint not null,
  refunds smallint not null,
  laters smallint not null,
  extra smallint not null,
  suspect boolean not null,
  gate text collate "C",
  flow int
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index waiting_wake on {waiting} (wake_at) where gate is null;

-- The deadline caps the lease: until = least(now + lease, deadline + grace).
create table {lease} (
  fence bigint generated always as identity primary key,
  until bigint not null,
  deadline_at bigint not null,
  claimed_at bigint not null,
  renewed_at bigint not null,
  holder int not null,
  lane int not null,
  policy int not null,
  attempt smallint not null,
  losses smallint not null,
  refunds smallint not null,
  laters smallint not null,
  extra smallint not null,
  suspect boolean not null,
  limited boolean not null default false,
  token uuid not null,
  ids uuid[] not null,
  started uuid[] not null,
  cancels jsonb
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
alter table {lease} alter ids set storage external;
create index lease_until on {lease} (until);
create index lease_cancels on {lease} (holder) where cancels is not null;

create table {outcome} (
  id uuid primary key,
  fence bigint,
  started_at bigint,
  finished_at bigint not null,
  lane int not null,
  holder int,
  attempt smallint not null,
  extra smallint not null,
  status smallint not null,
  result text,
  error text
) partition by range (id);
create table {outcome_rest} partition of {outcome} default;
create index on {outcome_rest} (finished_at);
create index on {outcome} (status, id) where status <> 1;

-- Attempts that did not end their run; the last one is the outcome itself.
create table {attempt} (
  run uuid not null,
  fence bigint not null,
  attempt smallint not null,
  ended smallint not null,
  holder int not null,
  started_at bigint not null,
  ended_at bigint not null,
  error text,
  primary key (run, fence)
) partition by range (run);
create table {attempt_rest} partition of {attempt} default;

create table {key} (
  job text collate "C" not null,
  key text collate "C" not null,
  run uuid not null,
  input_hash text collate "C" not null,
  expires_at bigint,
  -- Only for as long as its run is live.
  is_live boolean not null default false,
  primary key (job, key)
);
create index key_run on {key} (run);
create index key_expiry on {key} (expires_at) where expires_at is not null;

-- One shard for each writer, so that two settles never wait for one another here.
create table {rollup} (
  hour_at bigint not null,
  lane int not null,
  mode smallint not null,
  status smallint not null,
  shard int not null,
  runs bigint not null,
  ran_ms bigint not null,
  primary key (hour_at, lane, mode, status, shard)
) with (fillfactor = 50);

-- A schedule with where it stands. The revision grows with every change: whoever decides something
-- writes it only at the revision that it was decided from. A schedule without a next tick (paused,
-- ended, broken, deleted) is in no index that a poll looks at. The bounds are what the end of a run
-- draws from, without any code of the schedule.
create table {schedule} (
  id int generated always as identity primary key,
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
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index schedule_next on {schedule} (next_at) where next_at is not null;
create index schedule_look on {schedule} (id) where is_gated or is_replacing or backfill is not null;
create index schedule_lost on {schedule} (id) where next_at is null and not is_ended
  and paused_at is null and broken_at is null and deleted_at is null;

-- The ledger: one row for a tick, or for a stretch of equal ones, by its first.
create table {tick} (
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
) partition by range (at);
create table {tick_rest} partition of {tick} default;
create index on {tick_rest} (last_at);
create index tick_unfired on {tick} (schedule, at) where outcome <> 0;

create table {schedule_version} (
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
);

-- Definitions in code: of two the one that was first seen later is the newer one.
create table {declared} (
  schedule int not null,
  hash text collate "C" not null,
  release text,
  first_seen_at bigint not null,
  primary key (schedule, hash)
);

create table {delivery} (
  schedule int not null,
  id text collate "C" not null,
  run uuid not null,
  input_hash text not null,
  primary key (schedule, id)
);
create index delivery_run on {delivery} (run);

create table {backfill} (
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
create index backfill_schedule on {backfill} (schedule);

create table {backfill_run} (
  schedule int not null,
  at bigint not null,
  backfill uuid not null,
  run uuid not null,
  primary key (schedule, at, backfill)
);

create table {calendar} (
  name text collate "C" primary key,
  rules text not null,
  version int not null,
  updated_at bigint not null,
  updated_by text
);

${CREATE_ITEMS}
create view {run_state} as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(w.wake_at, r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at) as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, a.error) as error,
  (h.cancels ->> r.id::text)::bigint as cancel_requested_at,
  array_to_json(r.tags)::text as tags,
  (select json_object_agg(c.outcome, c.items) from {item_count} c where c.run = r.id and c.items > 0)::text as items,
  r.input
from {run} r
join {lane} l on l.id = r.lane
join {policy} p on p.id = r.policy
left join {schedule} s on s.id = r.schedule
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
left join (select m.run, x.* from {lease} x, unnest(x.ids) m (run)) h on h.run = r.id
left join {instance} i on i.no = coalesce(o.holder, h.holder)
left join lateral (
  select x.ended_at, x.error from {attempt} x where x.run = r.id order by x.fence desc limit 1
) a on true;
${CREATE_PAUSE}${CREATE_AUDIT}${CREATE_ACCESS}${CREATE_LOCKS}${CREATE_PROGRESS}${CREATE_LOG}${CREATE_FLOW_SCHEMA}${CREATE_ALERTS}`;

/** Tables that hold history, all keyed by run id and partitioned by the same days, in the order in
 * which a day of them is removed: runs first, as one without its outcome would be taken for a live one, by its
 * schedule and by its key; then what belongs to them, which nobody asks for any more. */
export const PARTITIONED = [
  "run",
  "outcome",
  "attempt",
  "item",
  "item_count",
  "progress",
  "log",
] as const;
