-- The users' instances, under our own id, with the id by which the marketing API knows them; and what a
-- report answered, one row for a run.
create table if not exists instances (
  id text primary key,
  -- The user that it belongs to.
  name text not null,
  api_instance_id text
);

create table if not exists report_executions (
  run_id text primary key,
  schedule text,
  execution_id text not null,
  rows_found integer not null,
  is_test integer not null
);
