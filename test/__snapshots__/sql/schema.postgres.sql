-- CREATE_SCHEMA
create table schema_version (
  version int not null,
  min_compatible int not null,
  migrated_at bigint not null
  , identity uuid not null default gen_random_uuid()
);

create table instance (
  no int generated always as identity primary key ,
  id text not null unique,
  app text,
  -- The file that its process was started with, below the folder of its package; null: unknown.
  program text,
  release text,
  jobs json not null,
  schedules json not null,
  is_scheduler boolean not null,
  -- The jobs that it executes, and from which queues; null: from all.
  works json not null,
  queues json,
  -- How far its clock is ahead of the database's, as it measured it.
  skew_ms bigint,
  poll_ms bigint not null,
  started_at bigint not null,
  seen_at bigint not null,
  polled_at bigint,
  retired_at bigint,
  quiet_at bigint,
  quiet_by text,
  quiet_note text,
  -- The owner of a remote worker's credential; null: an instance of the library.
  remote_by text
);

create table job (
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
) ;

create table queue (
  name text collate "C" primary key,
  paused_at bigint,
  pause_note text
) ;

-- A worker scans only the lanes that it can run.
create table lane (
  id int generated always as identity primary key,
  queue text collate "C" not null,
  job text collate "C" not null,
  unique (job, queue)
);

-- Policies are few, equal ones are one row, and a row never changes: a run's copy is its number.
create table policy (
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

-- History is partitioned by day of creation: the id begins with it. Rows outside of the existing days
-- (a caller's clock far off, a run that outlived its day) are in the rest partition.
create table run (
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
create table run_rest partition of run default;

-- On SQLite the primary key is the claim index itself.
create table ready (
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
create index ready_claim on ready (lane, suspect, sort_at, id);


-- A gate holds a run back for another reason than time; the promoter of that gate opens it.
create table waiting (
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
  flow int,
  -- When it was suspended, as long as it sleeps: only such a run may be woken before its time.
  asleep_at bigint
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;
create index waiting_wake on waiting (wake_at) where gate is null;


-- A fence is never reused, also after the row with the largest one is gone. The deadline caps the lease: until = least(now + lease, deadline + grace).
create table lease (
  fence bigint generated always as identity primary key ,
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
alter table lease alter ids set storage external;
create index lease_until on lease (until);
create index lease_cancels on lease (holder) where cancels is not null;

create table outcome (
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
create table outcome_rest partition of outcome default;
create index on outcome_rest (finished_at);
create index on outcome (status, id) where status <> 1;


-- Attempts that did not end their run; the last one is the outcome itself.
create table attempt (
  run uuid not null,
  fence bigint not null,
  attempt smallint not null,
  ended smallint not null,
  holder int not null,
  started_at bigint not null,
  ended_at bigint not null,
  error text,
  primary key (run, fence)
) partition by range (run) ;
create table attempt_rest partition of attempt default;

create table key (
  job text collate "C" not null,
  key text collate "C" not null,
  run uuid not null,
  input_hash text collate "C" not null,
  expires_at bigint,
  -- Only for as long as its run is live.
  is_live boolean not null default false,
  primary key (job, key)
) ;
create index key_run on key (run);
create index key_expiry on key (expires_at) where expires_at is not null;

-- One shard for each writer, so that two settles never wait for one another here.
create table rollup (
  hour_at bigint not null,
  lane int not null,
  mode smallint not null,
  status smallint not null,
  shard int not null,
  runs bigint not null,
  ran_ms bigint not null,
  primary key (hour_at, lane, mode, status, shard)
) with (fillfactor = 50) ;


-- A schedule with its progress. The revision grows with every change: a decision is written only at the
-- revision from which it was made. A schedule without a next tick (paused, ended, broken, deleted) is in
-- no index that a poll reads. The end of a run draws the next interval from the bounds, without any code
-- of the schedule.
create table schedule (
  id int generated always as identity primary key ,
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
) partition by range (at) ;
create table tick_rest partition of tick default;
create index on tick_rest (last_at);
create index tick_unfired on tick (schedule, at) where outcome <> 0;


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
) ;

-- Definitions in code: of two definitions, the one that was first seen later is newer.
create table declared (
  schedule int not null,
  hash text collate "C" not null,
  release text,
  first_seen_at bigint not null,
  primary key (schedule, hash)
) ;

create table delivery (
  schedule int not null,
  id text collate "C" not null,
  run uuid not null,
  input_hash text not null,
  primary key (schedule, id)
) ;
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
) ;

create table calendar (
  name text collate "C" primary key,
  rules text not null,
  version int not null,
  updated_at bigint not null,
  updated_by text
) ;


create table item (
  run uuid not null,
  key text collate "C" not null,
  fence bigint not null,
  attempt smallint not null,
  tries int not null,
  outcome text collate "C" not null,
  started_at bigint not null,
  duration_ms bigint not null,
  value text,
  error text,
  primary key (run, key)
) partition by range (run);
create table item_rest partition of item default;

create table item_count (
  run uuid not null,
  outcome text collate "C" not null,
  items int not null,
  primary key (run, outcome)
) partition by range (run) ;
create table item_count_rest partition of item_count default;


create view run_state as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(nullif(w.wake_at, 253402300799999), r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at)
   as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, a.error
    ) as error,
  (h.cancels ->> r.id::text)::bigint
   as cancel_requested_at,
  array_to_json(r.tags)::text as tags, 
  (select json_object_agg(c.outcome, c.items)
    from item_count c where c.run = r.id and c.items > 0)::text as items,
  r.input
from run r
join lane l on l.id = r.lane
join policy p on p.id = r.policy
left join schedule s on s.id = r.schedule
left join outcome o on o.id = r.id
left join ready y on y.id = r.id
left join waiting w on w.id = r.id
left join (
  select m.value as run, x.* from lease x, unnest(x.ids) m (value)
) h on h.run = r.id
left join instance i on i.no = coalesce(o.holder, h.holder)
left join lateral (
  select x.ended_at, x.error from attempt x where x.run = r.id order by x.fence desc limit 1
) a on true;

create table pause (
  id int generated always as identity primary key,
  at bigint not null,
  until_at bigint,
  by text,
  note text
);
create unique index pause_open on pause ((until_at is null)) where until_at is null;


create table audit (
  id bigint generated always as identity primary key ,
  at bigint not null,
  via text not null,
  who text not null,
  scope text,
  address text,
  request_id text,
  verb text not null,
  noun text not null,
  name text,
  note text,
  change text
);
create index audit_at on audit (at);


create table session (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
) ;
create index session_secret on session (secret, until_at);
create table access_key (
  name text collate "C" primary key,
  digest text collate "C" not null,
  scopes text not null,
  jobs text,
  queues text,
  created_at bigint not null,
  created_by text not null,
  expires_at bigint,
  used_at bigint
) ;
create unique index access_key_digest on access_key (digest);


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
create index lock_waiter_name on lock_waiter (name);

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
create index lock_history_ended on lock_history (ended_at);

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
revoke all on function release_lock (text, bigint) from public;


create table progress (
  run uuid primary key,
  fence bigint not null,
  attempt smallint not null,
  at bigint not null,
  stage text,
  done double precision,
  total double precision,
  stages jsonb not null
) partition by range (run) ;
create table progress_rest partition of progress default;


create table log (
  run uuid not null,
  fence bigint not null,
  no int not null,
  attempt smallint not null,
  at bigint not null,
  level smallint not null,
  message text not null,
  fields text,
  primary key (run, fence, no)
) partition by range (run) ;
create table log_rest partition of log default;


-- As a whole job it may be closed to all of its flows: nothing begins before open_at.
create table flow (
  id int generated always as identity primary key ,
  job text collate "C" not null,
  key text collate "C" not null,
  revision bigint not null,
  -- Runs that began within the window of the rate, and older ones that were not removed yet.
  used int not null,
  open_at bigint not null,
  unique (job, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The lines of due runs of a flow. No claim reads a line before look_at; null: no run waits.
create table flow_line (
  flow int not null,
  lane int not null,
  suspect boolean not null,
  look_at bigint,
  primary key (flow, lane, suspect)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;
create index flow_line_look on flow_line (lane, suspect, look_at, flow) where look_at is not null;

-- Runs that were let through, and the limit that they count in, if any.
create table flow_run (
  run uuid primary key,
  flow int not null,
  held int
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;
create index flow_run_held on flow_run (held) where held is not null;

-- How many runs began at which time, for the window of a rate.
create table flow_turn (
  flow int not null,
  at bigint not null,
  runs int not null,
  primary key (flow, at)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;

create index waiting_flow on waiting (flow, lane, suspect, (wake_at - priority * 60000::bigint), id)
  where gate = 'flow';
-- Runs whose flow was not looked up yet.
create index waiting_newcomer on waiting (wake_at) where flow = 0;
create index waiting_of_flow on waiting (flow) where flow is not null;


create table alert (
  id uuid primary key,
  kind text collate "C" not null,
  subject_type text collate "C" not null,
  subject text collate "C" not null,
  severity text not null,
  message text not null,
  evidence text not null,
  first_at bigint not null,
  last_at bigint not null,
  -- When deliveries of it were made; a muted one has none yet.
  told_at bigint,
  resolved_at bigint,
  resolved_by text,
  muted_until bigint,
  acknowledged_at bigint,
  acknowledged_by text
);
create unique index alert_open on alert (kind, subject_type, subject) where resolved_at is null;
create index alert_subject on alert (kind, subject_type, subject, id);

create table alert_delivery (
  alert uuid not null,
  event text not null,
  destination text not null,
  state text not null,
  attempts int not null,
  next_at bigint not null,
  tried_at bigint not null,
  error text,
  primary key (alert, event, destination)
);
create index alert_delivery_due on alert_delivery (next_at) where state = 'pending';

create table alert_turn (
  id int primary key check (id = 1),
  taken_at bigint not null,
  holder int
);

-- Ticks that report a problem are few: this index finds them without reading the ledger.
create index tick_trouble on tick (schedule, at) where reason in (3, 12);


create index attempt_lost on attempt (ended_at) where ended = 1;


create table batch (
  id int generated always as identity primary key ,
  run uuid not null,
  name text collate "C" not null,
  created_at bigint not null,
  ended_at bigint,
  scheduled int not null,
  refused int not null,
  errors text not null,
  unended int not null,
  completed int not null,
  failed int not null,
  cancelled int not null,
  then_run uuid,
  then_lane int,
  then_policy int,
  then_version int,
  then_priority smallint,
  unique (run, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index batch_ended on batch (ended_at) where ended_at is not null;

-- Runs without a parent are not in it.
create index run_parent on run (parent, id) where parent is not null;


-- Steps, sleeps, signals and calls that have ended; a row never changes. Their order is the one of their numbers.
create table step (
  run uuid not null,
  no int not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  tries int not null,
  started_at bigint not null,
  ended_at bigint not null,
  signal text collate "C",
  key text collate "C",
  child uuid,
  value text,
  error text,
  primary key (run, no)
);
create unique index step_name on step (run, name);

-- Waits that are open. A deadline never changes; a child's end is stored here by the statement that ends it.
create table wait (
  run uuid not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  since bigint not null,
  until bigint,
  signal text collate "C",
  key text collate "C",
  signal_since bigint,
  child uuid,
  batch int,
  is_left boolean not null default false,
  tries int not null default 0,
  status smallint,
  ended_at bigint,
  value text,
  error text,
  primary key (run, name)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index wait_signal on wait (signal, key) where signal is not null;
create index wait_batch on wait (batch) where batch is not null;

-- A signal is new while no pass has searched for the runs that wait for it.
create table signal (
  name text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  is_new boolean not null,
  value text not null,
  primary key (name, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index signal_new on signal (at) where is_new;
create index signal_at on signal (at);

-- Runs for which something happened. The row stays while the run is held: its holder may be about to suspend it.
create table wake (
  run uuid primary key,
  at bigint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;;

-- RUN_STATE
create view run_state as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(nullif(w.wake_at, 253402300799999), r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  [[postgres greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at)]]
  [[sqlite max(r.created_at, coalesce(o.finished_at, 0), coalesce(h.renewed_at, 0), coalesce(
    (select a.ended_at from attempt a where a.run = r.id order by a.fence desc limit 1), 0))]] as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, [[postgres a.error]]
    [[sqlite (select a.error from attempt a where a.run = r.id order by a.fence desc limit 1)]]) as error,
  [[postgres (h.cancels ->> r.id::text)::bigint]]
  [[sqlite json_extract(h.cancels, '$."' || r.id || '"')]] as cancel_requested_at,
  [[postgres array_to_json(r.tags)::text as tags,]] [[sqlite r.tags,]]
  (select [[postgres json_object_agg]][[sqlite json_group_object]](c.outcome, c.items)
    from item_count c where c.run = r.id and c.items > 0)::text as items,
  r.input
from run r
join lane l on l.id = r.lane
join policy p on p.id = r.policy
left join schedule s on s.id = r.schedule
left join outcome o on o.id = r.id
left join ready y on y.id = r.id
left join waiting w on w.id = r.id
left join (
  select m.value as run, x.* from lease x, [[postgres unnest(x.ids) m (value)]][[sqlite json_each(x.ids) m]]
) h on h.run = r.id
left join instance i on i.no = coalesce(o.holder, h.holder)
[[postgres left join lateral (
  select x.ended_at, x.error from attempt x where x.run = r.id order by x.fence desc limit 1
) a on true]];;

-- TABLES
create table schema_version (
  version int not null,
  min_compatible int not null,
  migrated_at bigint not null
  [[postgres , identity uuid not null default gen_random_uuid()]]
);

create table instance (
  no int generated always as identity primary key [[sqlite autoincrement]],
  id text not null unique,
  app text,
  -- The file that its process was started with, below the folder of its package; null: unknown.
  program text,
  release text,
  jobs json not null,
  schedules json not null,
  is_scheduler boolean not null,
  -- The jobs that it executes, and from which queues; null: from all.
  works json not null,
  queues json,
  -- How far its clock is ahead of the database's, as it measured it.
  skew_ms bigint,
  poll_ms bigint not null,
  started_at bigint not null,
  seen_at bigint not null,
  polled_at bigint,
  retired_at bigint,
  quiet_at bigint,
  quiet_by text,
  quiet_note text,
  -- The owner of a remote worker's credential; null: an instance of the library.
  remote_by text
);

create table job (
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
) [[sqlite without rowid]];

create table queue (
  name text collate "C" primary key,
  paused_at bigint,
  pause_note text
) [[sqlite without rowid]];

-- A worker scans only the lanes that it can run.
create table lane (
  id int generated always as identity primary key,
  queue text collate "C" not null,
  job text collate "C" not null,
  unique (job, queue)
);

-- Policies are few, equal ones are one row, and a row never changes: a run's copy is its number.
create table policy (
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

-- History is partitioned by day of creation: the id begins with it. Rows outside of the existing days
-- (a caller's clock far off, a run that outlived its day) are in the rest partition.
create table run (
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
) [[postgres partition by range (id)]];
[[postgres create table run_rest partition of run default;]]

-- On SQLite the primary key is the claim index itself.
[[postgres create table ready (
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
create index ready_claim on ready (lane, suspect, sort_at, id);]]
[[sqlite create table ready (
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
  limited integer not null default false,
  primary key (lane, suspect, sort_at, id)
) without rowid;
create unique index ready_id on ready (id);]]

-- A gate holds a run back for another reason than time; the promoter of that gate opens it.
create table waiting (
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
  flow int,
  -- When it was suspended, as long as it sleeps: only such a run may be woken before its time.
  asleep_at bigint
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];
create index waiting_wake on waiting (wake_at) where gate is null;
[[sqlite create index waiting_gate on waiting (id) where gate = 'schedule';]]

-- A fence is never reused, also after the row with the largest one is gone. The deadline caps the lease: until = least(now + lease, deadline + grace).
create table lease (
  fence bigint generated always as identity primary key [[sqlite autoincrement]],
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
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
[[postgres alter table lease alter ids set storage external;]]
create index lease_until on lease (until);
create index lease_cancels on lease (holder) where cancels is not null;

create table outcome (
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
) [[postgres partition by range (id)]];
[[postgres create table outcome_rest partition of outcome default;
create index on outcome_rest (finished_at);
create index on outcome (status, id) where status <> 1;]]
[[sqlite create index outcome_status on outcome (status, id) where status <> 1;]]

-- Attempts that did not end their run; the last one is the outcome itself.
create table attempt (
  run uuid not null,
  fence bigint not null,
  attempt smallint not null,
  ended smallint not null,
  holder int not null,
  started_at bigint not null,
  ended_at bigint not null,
  error text,
  primary key (run, fence)
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table attempt_rest partition of attempt default;]]

create table key (
  job text collate "C" not null,
  key text collate "C" not null,
  run uuid not null,
  input_hash text collate "C" not null,
  expires_at bigint,
  -- Only for as long as its run is live.
  is_live boolean not null default false,
  primary key (job, key)
) [[sqlite without rowid]];
create index key_run on key (run);
create index key_expiry on key (expires_at) where expires_at is not null;

-- One shard for each writer, so that two settles never wait for one another here.
create table rollup (
  hour_at bigint not null,
  lane int not null,
  mode smallint not null,
  status smallint not null,
  shard int not null,
  runs bigint not null,
  ran_ms bigint not null,
  primary key (hour_at, lane, mode, status, shard)
) [[postgres with (fillfactor = 50)]] [[sqlite without rowid]];


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
) [[sqlite without rowid]];


create table item (
  run uuid not null,
  key text collate "C" not null,
  fence bigint not null,
  attempt smallint not null,
  [[postgres tries int not null,]]
  outcome text collate "C" not null,
  started_at bigint not null,
  duration_ms bigint not null,
  value text,
  error text,
  primary key (run, key)
) [[postgres partition by range (run)]];
[[postgres create table item_rest partition of item default;]]

create table item_count (
  run uuid not null,
  outcome text collate "C" not null,
  items int not null,
  primary key (run, outcome)
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table item_count_rest partition of item_count default;]]


create view run_state as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(nullif(w.wake_at, 253402300799999), r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  [[postgres greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at)]]
  [[sqlite max(r.created_at, coalesce(o.finished_at, 0), coalesce(h.renewed_at, 0), coalesce(
    (select a.ended_at from attempt a where a.run = r.id order by a.fence desc limit 1), 0))]] as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, [[postgres a.error]]
    [[sqlite (select a.error from attempt a where a.run = r.id order by a.fence desc limit 1)]]) as error,
  [[postgres (h.cancels ->> r.id::text)::bigint]]
  [[sqlite json_extract(h.cancels, '$."' || r.id || '"')]] as cancel_requested_at,
  [[postgres array_to_json(r.tags)::text as tags,]] [[sqlite r.tags,]]
  (select [[postgres json_object_agg]][[sqlite json_group_object]](c.outcome, c.items)
    from item_count c where c.run = r.id and c.items > 0)::text as items,
  r.input
from run r
join lane l on l.id = r.lane
join policy p on p.id = r.policy
left join schedule s on s.id = r.schedule
left join outcome o on o.id = r.id
left join ready y on y.id = r.id
left join waiting w on w.id = r.id
left join (
  select m.value as run, x.* from lease x, [[postgres unnest(x.ids) m (value)]][[sqlite json_each(x.ids) m]]
) h on h.run = r.id
left join instance i on i.no = coalesce(o.holder, h.holder)
[[postgres left join lateral (
  select x.ended_at, x.error from attempt x where x.run = r.id order by x.fence desc limit 1
) a on true]];

create table pause (
  id int generated always as identity primary key,
  at bigint not null,
  until_at bigint,
  by text,
  note text
);
create unique index pause_open on pause ((until_at is null)) where until_at is null;


create table audit (
  id bigint generated always as identity primary key [[sqlite autoincrement]],
  at bigint not null,
  via text not null,
  who text not null,
  scope text,
  address text,
  request_id text,
  verb text not null,
  noun text not null,
  name text,
  note text,
  change text
);
create index audit_at on audit (at);


create table session (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
) [[sqlite without rowid]];
create index session_secret on session (secret, until_at);
create table access_key (
  name text collate "C" primary key,
  digest text collate "C" not null,
  scopes text not null,
  jobs text,
  queues text,
  created_at bigint not null,
  created_by text not null,
  expires_at bigint,
  used_at bigint
) [[sqlite without rowid]];
create unique index access_key_digest on access_key (digest);

[[postgres 
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
create index lock_waiter_name on lock_waiter (name);
]][[sqlite 
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
create index lock_waiter_name on lock_waiter (name);
]]
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
create index lock_history_ended on lock_history (ended_at);
[[postgres 
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
revoke all on function release_lock (text, bigint) from public;
]]

create table progress (
  run uuid primary key,
  fence bigint not null,
  attempt smallint not null,
  at bigint not null,
  stage text,
  done double precision,
  total double precision,
  stages jsonb not null
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table progress_rest partition of progress default;]]


create table log (
  run uuid not null,
  fence bigint not null,
  no int not null,
  attempt smallint not null,
  at bigint not null,
  level smallint not null,
  message text not null,
  fields text,
  primary key (run, fence, no)
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table log_rest partition of log default;]]


-- As a whole job it may be closed to all of its flows: nothing begins before open_at.
create table flow (
  id int generated always as identity primary key [[sqlite autoincrement]],
  job text collate "C" not null,
  key text collate "C" not null,
  [[postgres revision bigint not null,]]
  -- Runs that began within the window of the rate, and older ones that were not removed yet.
  used int not null,
  open_at bigint not null,
  unique (job, key)
) [[postgres with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];

-- The lines of due runs of a flow. No claim reads a line before look_at; null: no run waits.
create table flow_line (
  flow int not null,
  lane int not null,
  suspect boolean not null,
  look_at bigint,
  primary key (flow, lane, suspect)
) [[postgres with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];
create index flow_line_look on flow_line (lane, suspect, look_at, flow) where look_at is not null;

-- Runs that were let through, and the limit that they count in, if any.
create table flow_run (
  run uuid primary key,
  flow int not null,
  held int
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];
create index flow_run_held on flow_run (held) where held is not null;

-- How many runs began at which time, for the window of a rate.
create table flow_turn (
  flow int not null,
  at bigint not null,
  runs int not null,
  primary key (flow, at)
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];

create index waiting_flow on waiting (flow, lane, suspect, (wake_at - priority * 60000::bigint), id)
  where gate = 'flow';
-- Runs whose flow was not looked up yet.
[[postgres create index waiting_newcomer on waiting (wake_at) where flow = 0;]]
create index waiting_of_flow on waiting (flow) where flow is not null;


create table alert (
  id uuid primary key,
  kind text collate "C" not null,
  subject_type text collate "C" not null,
  subject text collate "C" not null,
  severity text not null,
  message text not null,
  evidence text not null,
  first_at bigint not null,
  last_at bigint not null,
  -- When deliveries of it were made; a muted one has none yet.
  told_at bigint,
  resolved_at bigint,
  resolved_by text,
  muted_until bigint,
  acknowledged_at bigint,
  acknowledged_by text
);
create unique index alert_open on alert (kind, subject_type, subject) where resolved_at is null;
create index alert_subject on alert (kind, subject_type, subject, id);

create table alert_delivery (
  alert uuid not null,
  event text not null,
  destination text not null,
  state text not null,
  attempts int not null,
  next_at bigint not null,
  tried_at bigint not null,
  error text,
  primary key (alert, event, destination)
);
create index alert_delivery_due on alert_delivery (next_at) where state = 'pending';

create table alert_turn (
  id int primary key check (id = 1),
  taken_at bigint not null,
  holder int
);

-- Ticks that report a problem are few: this index finds them without reading the ledger.
create index tick_trouble on tick (schedule, at) where reason in (3, 12);


create index attempt_lost on attempt (ended_at) where ended = 1;


create table batch (
  id int generated always as identity primary key [[sqlite autoincrement]],
  run uuid not null,
  name text collate "C" not null,
  created_at bigint not null,
  ended_at bigint,
  scheduled int not null,
  refused int not null,
  errors text not null,
  unended int not null,
  completed int not null,
  failed int not null,
  cancelled int not null,
  then_run uuid,
  then_lane int,
  then_policy int,
  then_version int,
  then_priority smallint,
  unique (run, name)
) [[postgres with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index batch_ended on batch (ended_at) where ended_at is not null;

-- Runs without a parent are not in it.
create index run_parent on run (parent, id) where parent is not null;


-- Steps, sleeps, signals and calls that have ended; a row never changes. Their order is the one of their numbers.
create table step (
  run uuid not null,
  no int not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  tries int not null,
  started_at bigint not null,
  ended_at bigint not null,
  signal text collate "C",
  key text collate "C",
  child uuid,
  value text,
  error text,
  primary key (run, no)
);
create unique index step_name on step (run, name);

-- Waits that are open. A deadline never changes; a child's end is stored here by the statement that ends it.
create table wait (
  run uuid not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  since bigint not null,
  until bigint,
  signal text collate "C",
  key text collate "C",
  signal_since bigint,
  child uuid,
  batch int,
  is_left boolean not null default false,
  tries int not null default 0,
  status smallint,
  ended_at bigint,
  value text,
  error text,
  primary key (run, name)
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index wait_signal on wait (signal, key) where signal is not null;
create index wait_batch on wait (batch) where batch is not null;

-- A signal is new while no pass has searched for the runs that wait for it.
create table signal (
  name text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  is_new boolean not null,
  value text not null,
  primary key (name, key)
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index signal_new on signal (at) where is_new;
create index signal_at on signal (at);

-- Runs for which something happened. The row stays while the run is held: its holder may be about to suspend it.
create table wake (
  run uuid primary key,
  at bigint not null
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];;

-- UPGRADE_SCHEMA
create table if not exists session (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
) ;
create index if not exists session_secret on session (secret, until_at);
create table if not exists access_key (
  name text collate "C" primary key,
  digest text collate "C" not null,
  scopes text not null,
  jobs text,
  queues text,
  created_at bigint not null,
  created_by text not null,
  expires_at bigint,
  used_at bigint
) ;
create unique index if not exists access_key_digest on access_key (digest);

-- Steps, sleeps, signals and calls that have ended; a row never changes. Their order is the one of their numbers.
create table if not exists step (
  run uuid not null,
  no int not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  tries int not null,
  started_at bigint not null,
  ended_at bigint not null,
  signal text collate "C",
  key text collate "C",
  child uuid,
  value text,
  error text,
  primary key (run, no)
);
create unique index if not exists step_name on step (run, name);

-- Waits that are open. A deadline never changes; a child's end is stored here by the statement that ends it.
create table if not exists wait (
  run uuid not null,
  name text collate "C" not null,
  kind smallint not null,
  generation smallint not null,
  fence bigint not null,
  since bigint not null,
  until bigint,
  signal text collate "C",
  key text collate "C",
  signal_since bigint,
  child uuid,
  batch int,
  is_left boolean not null default false,
  tries int not null default 0,
  status smallint,
  ended_at bigint,
  value text,
  error text,
  primary key (run, name)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index if not exists wait_signal on wait (signal, key) where signal is not null;
create index if not exists wait_batch on wait (batch) where batch is not null;

-- A signal is new while no pass has searched for the runs that wait for it.
create table if not exists signal (
  name text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  is_new boolean not null,
  value text not null,
  primary key (name, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index if not exists signal_new on signal (at) where is_new;
create index if not exists signal_at on signal (at);

-- Runs for which something happened. The row stays while the run is held: its holder may be about to suspend it.
create table if not exists wake (
  run uuid primary key,
  at bigint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000) ;

create index if not exists attempt_lost on attempt (ended_at) where ended = 1;

create or replace view run_state as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(nullif(w.wake_at, 253402300799999), r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at)
   as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, a.error
    ) as error,
  (h.cancels ->> r.id::text)::bigint
   as cancel_requested_at,
  array_to_json(r.tags)::text as tags, 
  (select json_object_agg(c.outcome, c.items)
    from item_count c where c.run = r.id and c.items > 0)::text as items,
  r.input
from run r
join lane l on l.id = r.lane
join policy p on p.id = r.policy
left join schedule s on s.id = r.schedule
left join outcome o on o.id = r.id
left join ready y on y.id = r.id
left join waiting w on w.id = r.id
left join (
  select m.value as run, x.* from lease x, unnest(x.ids) m (value)
) h on h.run = r.id
left join instance i on i.no = coalesce(o.holder, h.holder)
left join lateral (
  select x.ended_at, x.error from attempt x where x.run = r.id order by x.fence desc limit 1
) a on true;;
