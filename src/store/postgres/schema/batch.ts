// The table of batches on PostgreSQL: what a run fanned out into, counted down as its children end.
// The run that comes after has its id from the beginning, so it can be made by whoever ends the last
// child, and never twice.

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
