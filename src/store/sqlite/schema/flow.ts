// The tables of limits on SQLite: the same as on PostgreSQL (see flow.ts for what they
// mean), without revisions, as a write transaction has the file to itself.

export const CREATE_FLOW_SCHEMA = /* sql */ `
create table {flow} (
  id integer primary key autoincrement,
  job text not null,
  key text not null,
  used integer not null,
  open_at integer not null,
  unique (job, key)
);

create table {flow_line} (
  flow integer not null,
  lane integer not null,
  suspect integer not null,
  look_at integer,
  primary key (flow, lane, suspect)
) without rowid;
create index {flow_line_look} on {flow_line} (lane, suspect, look_at, flow) where look_at is not null;

create table {flow_run} (run text primary key, flow integer not null, held integer) without rowid;
create index {flow_run_held} on {flow_run} (held) where held is not null;

create table {flow_turn} (
  flow integer not null,
  at integer not null,
  runs integer not null,
  primary key (flow, at)
) without rowid;

create index {waiting_flow} on {waiting} (flow, lane, suspect, wake_at - priority * 60000, id) where gate = 'flow';
create index {waiting_of_flow} on {waiting} (flow) where flow is not null;
`;
