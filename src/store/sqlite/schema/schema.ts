// The tables on SQLite: the same as on PostgreSQL (see schema.ts for what they mean), with
// the engine's own forms: a lease keeps its run ids as a JSON array, `ready` is its own claim index,
// and history is removed by bounded deletes instead of partitions.

import { CREATE_FLOW_SCHEMA } from "./flow.js";
import { CREATE_LOCKS } from "./locks.js";
import { CREATE_ACCESS, CREATE_ALERTS, CREATE_AUDIT, CREATE_PAUSE } from "./operators.js";
import { CREATE_ITEMS, CREATE_LOG, CREATE_PROGRESS } from "./runs.js";

export const SCHEMA_VERSION = 1;

export const CREATE_SCHEMA = /* sql */ `
create table {schema_version} (version integer not null, min_compatible integer not null, migrated_at integer not null);

create table {instance} (
  no integer primary key autoincrement,
  id text not null unique,
  app text,
  release text,
  jobs text not null,
  schedules text not null,
  is_scheduler integer not null,
  works text not null,
  queues text,
  skew_ms integer,
  poll_ms integer not null,
  started_at integer not null,
  seen_at integer not null,
  polled_at integer,
  retired_at integer,
  quiet_at integer,
  quiet_by text,
  quiet_note text,
  -- Whose credential a remote worker came with; null: an instance of the library.
  remote_by text
);

create table {job} (
  name text primary key,
  queue text not null,
  priority integer not null,
  version integer not null,
  policy integer not null,
  concurrency_limit integer,
  concurrency_key text,
  rate_limit integer,
  rate_per_ms integer,
  rate_key text,
  input_schema text,
  announced_at integer not null
) without rowid;

create table {queue} (name text primary key, paused_at integer, pause_note text) without rowid;

create table {lane} (id integer primary key, queue text not null, job text not null, unique (job, queue));

create table {policy} (
  id integer primary key,
  digest text not null unique,
  lease_ms integer not null,
  timeout_ms integer not null,
  attempts integer not null,
  delay_ms integer not null,
  factor real not null,
  max_ms integer not null,
  jitter real not null,
  on_lost integer not null
);

create table {run} (
  id text primary key,
  created_at integer not null,
  due_at integer not null,
  lane integer not null,
  policy integer not null,
  version integer not null,
  priority integer not null,
  mode integer not null,
  schedule integer,
  nominal_at integer,
  parent text,
  batch integer,
  key text,
  tags text,
  input text not null
);

create table {ready} (
  lane integer not null,
  suspect integer not null,
  sort_at integer not null,
  id text not null,
  policy integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  limited integer not null default 0,
  primary key (lane, suspect, sort_at, id)
) without rowid;
create unique index {ready_id} on {ready} (id);

create table {waiting} (
  id text primary key,
  wake_at integer not null,
  lane integer not null,
  policy integer not null,
  priority integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  suspect integer not null,
  gate text,
  flow integer
) without rowid;
create index {waiting_wake} on {waiting} (wake_at) where gate is null;
create index {waiting_gate} on {waiting} (id) where gate = 'schedule';

-- Autoincrement: a fence is never reused, also after the row with the largest one is gone.
create table {lease} (
  fence integer primary key autoincrement,
  until integer not null,
  deadline_at integer not null,
  claimed_at integer not null,
  renewed_at integer not null,
  holder integer not null,
  lane integer not null,
  policy integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  suspect integer not null,
  limited integer not null default 0,
  token text not null,
  ids text not null,
  started text not null,
  cancels text
);
create index {lease_until} on {lease} (until);
create index {lease_cancels} on {lease} (holder) where cancels is not null;

create table {outcome} (
  id text primary key,
  fence integer,
  started_at integer,
  finished_at integer not null,
  lane integer not null,
  holder integer,
  attempt integer not null,
  extra integer not null,
  status integer not null,
  result text,
  error text
);
create index {outcome_status} on {outcome} (status, id) where status <> 1;

create table {attempt} (
  run text not null,
  fence integer not null,
  attempt integer not null,
  ended integer not null,
  holder integer not null,
  started_at integer not null,
  ended_at integer not null,
  error text,
  primary key (run, fence)
) without rowid;

create table {key} (
  job text not null,
  key text not null,
  run text not null,
  input_hash text not null,
  expires_at integer,
  is_live integer not null default 0,
  primary key (job, key)
) without rowid;
create index {key_run} on {key} (run);
create index {key_expiry} on {key} (expires_at) where expires_at is not null;

create table {rollup} (
  hour_at integer not null,
  lane integer not null,
  mode integer not null,
  status integer not null,
  shard integer not null,
  runs integer not null,
  ran_ms integer not null,
  primary key (hour_at, lane, mode, status, shard)
) without rowid;

create table {schedule} (
  id integer primary key autoincrement,
  name text not null unique,
  revision integer not null,
  version integer not null,
  job text not null,
  queue text,
  priority integer,
  tags text,
  input text not null,
  definition text not null,
  anchor_at integer not null,
  cursor_at integer not null,
  next_at integer,
  is_ended integer not null,
  hold_until integer,
  hold_run text,
  last_run text,
  last_tick_at integer,
  live text not null,
  is_gated integer not null,
  is_replacing integer not null,
  backfill text,
  range_min integer,
  range_max integer,
  fail_min integer,
  fail_max integer,
  began_at integer,
  tzdata text,
  paused_at integer,
  paused_by text,
  pause_note text,
  broken_at integer,
  broken_error text,
  deleted_at integer,
  app text,
  source integer not null,
  release text,
  code_hash text,
  created_at integer not null,
  updated_at integer not null
);
create index {schedule_next} on {schedule} (next_at) where next_at is not null;
create index {schedule_look} on {schedule} (id) where is_gated or is_replacing or backfill is not null;
create index {schedule_lost} on {schedule} (id) where next_at is null and not is_ended
  and paused_at is null and broken_at is null and deleted_at is null;

create table {tick} (
  schedule integer not null,
  at integer not null,
  last_at integer not null,
  count integer not null,
  outcome integer not null,
  reason integer not null,
  recorded_at integer not null,
  holder integer,
  version integer not null,
  run text,
  evidence text,
  primary key (schedule, at)
) without rowid;
create index {tick_at} on {tick} (at);

create table {schedule_version} (
  schedule integer not null,
  version integer not null,
  kind integer not null,
  at integer not null,
  by text,
  job text not null,
  definition text not null,
  input text not null,
  anchor_at integer not null,
  primary key (schedule, version)
) without rowid;

create table {declared} (
  schedule integer not null,
  hash text not null,
  release text,
  first_seen_at integer not null,
  primary key (schedule, hash)
) without rowid;

create table {delivery} (
  schedule integer not null,
  id text not null,
  run text not null,
  input_hash text not null,
  primary key (schedule, id)
) without rowid;
create index {delivery_run} on {delivery} (run);

create table {backfill} (
  id text primary key,
  schedule integer not null,
  from_at integer not null,
  to_at integer not null,
  cursor_at integer not null,
  total integer not null,
  made integer not null,
  passed integer not null,
  is_all integer not null,
  created_at integer not null,
  created_by text,
  ended_at integer,
  is_cancelled integer not null
);
create index {backfill_schedule} on {backfill} (schedule);

create table {backfill_run} (
  schedule integer not null,
  at integer not null,
  backfill text not null,
  run text not null,
  primary key (schedule, at, backfill)
) without rowid;

create table {calendar} (
  name text primary key,
  rules text not null,
  version integer not null,
  updated_at integer not null,
  updated_by text
) without rowid;

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
  max(r.created_at, coalesce(o.finished_at, 0), coalesce(h.renewed_at, 0), coalesce(
    (select a.ended_at from {attempt} a where a.run = r.id order by a.fence desc limit 1), 0)) as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, (select a.error from {attempt} a where a.run = r.id order by a.fence desc limit 1)) as error,
  json_extract(h.cancels, '$."' || r.id || '"') as cancel_requested_at,
  r.tags,
  (select json_group_object(c.outcome, c.items) from {item_count} c where c.run = r.id and c.items > 0) as items,
  r.input
from {run} r
join {lane} l on l.id = r.lane
join {policy} p on p.id = r.policy
left join {schedule} s on s.id = r.schedule
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
left join (select m.value as run, x.* from {lease} x, json_each(x.ids) m) h on h.run = r.id
left join {instance} i on i.no = coalesce(o.holder, h.holder);
${CREATE_PAUSE}${CREATE_AUDIT}${CREATE_ACCESS}${CREATE_LOCKS}${CREATE_PROGRESS}${CREATE_LOG}${CREATE_FLOW_SCHEMA}${CREATE_ALERTS}`;
