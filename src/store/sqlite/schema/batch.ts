// The table of batches on SQLite: the same as on PostgreSQL (see batch.ts).

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
