// Defines the tables of batches, items, log lines and progress on SQLite, as postgres/schema/runs.ts does.

export const CREATE_BATCHES = /* sql */ `
create table {batch} (
  id integer primary key autoincrement,
  run text not null,
  name text not null,
  created_at integer not null,
  ended_at integer,
  scheduled integer not null,
  refused integer not null,
  errors text not null,
  unended integer not null,
  completed integer not null,
  failed integer not null,
  cancelled integer not null,
  then_run text,
  then_lane integer,
  then_policy integer,
  then_version integer,
  then_priority integer,
  unique (run, name)
);
create index {batch_ended} on {batch} (ended_at) where ended_at is not null;
create index {run_parent} on {run} (parent, id) where parent is not null;
`;

export const CREATE_ITEMS = /* sql */ `
create table {item} (
  run text not null,
  key text not null,
  fence integer not null,
  attempt integer not null,
  outcome text not null,
  started_at integer not null,
  duration_ms integer not null,
  value text,
  error text,
  primary key (run, key)
);

create table {item_count} (
  run text not null,
  outcome text not null,
  items integer not null,
  primary key (run, outcome)
) without rowid;
`;

// Fences grow, so the key gives the order of the lines.

export const CREATE_LOG = /* sql */ `
create table {log} (
  run text not null,
  fence integer not null,
  no integer not null,
  attempt integer not null,
  at integer not null,
  level integer not null,
  message text not null,
  fields text,
  primary key (run, fence, no)
) without rowid;
`;

// One row for a run that reported progress, of its last attempt that did.

export const CREATE_PROGRESS = /* sql */ `
create table {progress} (
  run text primary key,
  fence integer not null,
  attempt integer not null,
  at integer not null,
  stage text,
  done real,
  total real,
  stages text not null
) without rowid;
`;
