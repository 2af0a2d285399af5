// Defines the tables of runs: who takes part, the runs in their places, batches, items, log lines and progress.
//
// A run's state is the table it is in: `ready` or `waiting` (pending), `lease` (running), `outcome` (terminal); `run` itself
// is written once and never changed. One lease row stands for one claim: all its runs share lane, policy, attempt and
// fence, so a claim of a thousand runs costs one row, and so does its heartbeat. See docs/decisions/0001-table-layout.md.

/** Rows that come and go all the time. */
const CHURN =
  "[[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]]";

export const RUN_TABLES = /* sql */ `
create table {schema_version} (
  version int not null,
  min_compatible int not null,
  migrated_at bigint not null
  [[postgres , identity uuid not null default gen_random_uuid()]]
);

create table {instance} (
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
) [[sqlite without rowid]];

create table {queue} (
  name text collate "C" primary key,
  paused_at bigint,
  pause_note text
) [[sqlite without rowid]];

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

-- History is partitioned by day of creation: the id begins with it. Rows outside of the existing days
-- (a caller's clock far off, a run that outlived its day) are in the rest partition.
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
) [[postgres partition by range (id)]];
[[postgres create table {run_rest} partition of {run} default;]]

-- On SQLite the primary key is the claim index itself.
[[postgres create table {ready} (
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
create index ready_claim on {ready} (lane, suspect, sort_at, id);]]
[[sqlite create table {ready} (
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
create unique index ready_id on {ready} (id);]]

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
  flow int,
  -- When it was suspended, as long as it sleeps: only such a run may be woken before its time.
  asleep_at bigint
) ${CHURN} [[sqlite without rowid]];
create index waiting_wake on {waiting} (wake_at) where gate is null;
[[sqlite create index waiting_gate on {waiting} (id) where gate = 'schedule';]]

-- A fence is never reused, also after the row with the largest one is gone. The deadline caps the lease: until = least(now + lease, deadline + grace).
create table {lease} (
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
) ${CHURN};
[[postgres alter table {lease} alter ids set storage external;]]
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
) [[postgres partition by range (id)]];
[[postgres create table {outcome_rest} partition of {outcome} default;
create index on {outcome_rest} (finished_at);
create index on {outcome} (status, id) where status <> 1;]]
[[sqlite create index outcome_status on {outcome} (status, id) where status <> 1;]]

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
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table {attempt_rest} partition of {attempt} default;]]

create table {key} (
  job text collate "C" not null,
  key text collate "C" not null,
  run uuid not null,
  input_hash text collate "C" not null,
  expires_at bigint,
  -- Only for as long as its run is live.
  is_live boolean not null default false,
  primary key (job, key)
) [[sqlite without rowid]];
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
) [[postgres with (fillfactor = 50)]] [[sqlite without rowid]];
`;

// A batch counts down as its children end. The run that follows has its id from the beginning, so that whichever
// statement ends the last child creates it, and never twice.

export const BATCH_TABLES = /* sql */ `
create table {batch} (
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
create index batch_ended on {batch} (ended_at) where ended_at is not null;

-- Runs without a parent are not in it.
create index run_parent on {run} (parent, id) where parent is not null;
`;

// One row for each item of a run, and a count for each outcome, so that no statement has to count items. An item
// without an error is done and never changes.

export const ITEM_TABLES = /* sql */ `
create table {item} (
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
[[postgres create table {item_rest} partition of {item} default;]]

create table {item_count} (
  run uuid not null,
  outcome text collate "C" not null,
  items int not null,
  primary key (run, outcome)
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table {item_count_rest} partition of {item_count} default;]]
`;

// Fences grow, so the key also orders the lines.

export const LOG_TABLES = /* sql */ `
create table {log} (
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
[[postgres create table {log_rest} partition of {log} default;]]
`;

// One row for each run that reported progress, from its last attempt that did.

export const PROGRESS_TABLES = /* sql */ `
create table {progress} (
  run uuid primary key,
  fence bigint not null,
  attempt smallint not null,
  at bigint not null,
  stage text,
  done double precision,
  total double precision,
  stages jsonb not null
) [[postgres partition by range (run)]] [[sqlite without rowid]];
[[postgres create table {progress_rest} partition of {progress} default;]]
`;

export const LIMIT_TABLES = /* sql */ `
-- As a whole job it may be closed to all of its flows: nothing begins before open_at.
create table {flow} (
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
create table {flow_line} (
  flow int not null,
  lane int not null,
  suspect boolean not null,
  look_at bigint,
  primary key (flow, lane, suspect)
) [[postgres with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];
create index flow_line_look on {flow_line} (lane, suspect, look_at, flow) where look_at is not null;

-- Runs that were let through, and the limit that they count in, if any.
create table {flow_run} (
  run uuid primary key,
  flow int not null,
  held int
) ${CHURN} [[sqlite without rowid]];
create index flow_run_held on {flow_run} (held) where held is not null;

-- How many runs began at which time, for the window of a rate.
create table {flow_turn} (
  flow int not null,
  at bigint not null,
  runs int not null,
  primary key (flow, at)
) ${CHURN} [[sqlite without rowid]];

create index waiting_flow on {waiting} (flow, lane, suspect, (wake_at - priority * 60000::bigint), id)
  where gate = 'flow';
-- Runs whose flow was not looked up yet.
[[postgres create index waiting_newcomer on {waiting} (wake_at) where flow = 0;]]
create index waiting_of_flow on {waiting} (flow) where flow is not null;
`;
