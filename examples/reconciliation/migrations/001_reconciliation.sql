-- Addresses that are watched, and what a reconciliation found: one row for a run.
create table if not exists monitored_addresses (
  address text primary key,
  balance integer not null default 0
);

create table if not exists reconciliations (
  run_id text primary key,
  address text not null,
  balance integer not null
);
