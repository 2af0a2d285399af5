// The tables of limits on PostgreSQL. A `flow` is one job with one value of its key, or the whole job
// (empty key). Whatever decides who may begin changes only together with the revision of its flow's
// row, and is decided only at the revision that it was read at: so no count is ever out of date.
// A run that was let through has a row in `flow_run` until it ends or waits again: nothing is counted
// up and down that could be wrong after a crash.

export const CREATE_FLOW_SCHEMA = /* sql */ `
-- As a whole job it may be closed to all of its flows: nothing begins before open_at.
create table {flow} (
  id int generated always as identity primary key,
  job text collate "C" not null,
  key text collate "C" not null,
  revision bigint not null,
  -- Runs that began within the window of the rate, those of before that nobody removed yet included.
  used int not null,
  open_at bigint not null,
  unique (job, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Where the due runs of a flow stand in line. Nobody looks at it before look_at; null: nobody waits.
create table {flow_line} (
  flow int not null,
  lane int not null,
  suspect boolean not null,
  look_at bigint,
  primary key (flow, lane, suspect)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index flow_line_look on {flow_line} (lane, suspect, look_at, flow) where look_at is not null;

-- Runs that were let through, and whose limit they count in, if in any.
create table {flow_run} (
  run uuid primary key,
  flow int not null,
  held int
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index flow_run_held on {flow_run} (held) where held is not null;

-- How many began when, for the window of a rate.
create table {flow_turn} (
  flow int not null,
  at bigint not null,
  runs int not null,
  primary key (flow, at)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create index waiting_flow on {waiting} (flow, lane, suspect, (wake_at - priority * 60000::bigint), id)
  where gate = 'flow';
-- Of which nobody knows the flow yet.
create index waiting_newcomer on {waiting} (wake_at) where flow = 0;
create index waiting_of_flow on {waiting} (flow) where flow is not null;
`;
