// Defines the tables of batches, items, log lines and progress on PostgreSQL.
//
// A batch counts down as its children end. The run that follows has its id from the beginning, so that whichever
// statement ends the last child creates it, and never twice.

export const CREATE_BATCHES = /* sql */ `
create table {batch} (
  id int generated always as identity primary key,
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
create index batch_ended on {batch} (ended_at) where ended_at is not null;

-- Runs without a parent are not in it.
create index run_parent on {run} (parent, id) where parent is not null;
`;

// One row for each item of a run, and a count for each outcome, so that no statement has to count items. An item
// without an error is done and never changes.

export const CREATE_ITEMS = /* sql */ `
create table {item} (
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
create table {item_rest} partition of {item} default;

create table {item_count} (
  run uuid not null,
  outcome text collate "C" not null,
  items int not null,
  primary key (run, outcome)
) partition by range (run);
create table {item_count_rest} partition of {item_count} default;
`;

// Log lines that are kept with runs, by days as all history. Fences grow, so the key gives their order.

export const CREATE_LOG = /* sql */ `
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
) partition by range (run);
create table {log_rest} partition of {log} default;
`;

// Progress: one row for a run that reported any, of its last attempt that did. By days as all history, so that it is
// removed with its runs.

export const CREATE_PROGRESS = /* sql */ `
create table {progress} (
  run uuid primary key,
  fence bigint not null,
  attempt smallint not null,
  at bigint not null,
  stage text,
  done double precision,
  total double precision,
  stages jsonb not null
) partition by range (run);
create table {progress_rest} partition of {progress} default;
`;
