// Defines the tables of durable waits: finished steps, open waits, signals, and the runs that should be woken. None of them
// has days: rows of a run that sleeps for months would have to move each time a day is dropped, under an exclusive lock.
// Tables with long values have rowids on SQLite: it would read whole values to find a row by its key in a table without.
// See docs/decisions/0015-durable-waits.md.

/**
 * The wake-up time of a run that waits for a signal or a run without a deadline: the last millisecond of the year 9999.
 */
export const NEVER_MS = 253_402_300_799_999;

/** Rows that come and go all the time. */
const CHURN =
  "[[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]]";

export const WAIT_TABLES = /* sql */ `
-- Steps, sleeps, signals and calls that have ended; a row never changes. Their order is the one of their numbers.
create table {step} (
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
create unique index step_name on {step} (run, name);

-- Waits that are open. A deadline never changes; a child's end is stored here by the statement that ends it.
create table {wait} (
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
) ${CHURN};
create index wait_signal on {wait} (signal, key) where signal is not null;
create index wait_batch on {wait} (batch) where batch is not null;

-- A signal is new while no pass has searched for the runs that wait for it.
create table {signal} (
  name text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  is_new boolean not null,
  value text not null,
  primary key (name, key)
) ${CHURN};
create index signal_new on {signal} (at) where is_new;
create index signal_at on {signal} (at);

-- Runs for which something happened. The row stays while the run is held: its holder may be about to suspend it.
create table {wake} (
  run uuid primary key,
  at bigint not null
) ${CHURN} [[sqlite without rowid]];
`;
