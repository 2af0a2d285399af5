-- ADDED_TABLES
create table if not exists session (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
) [[sqlite without rowid]];
create index if not exists session_secret on session (secret, until_at);
create table if not exists access_key (
  name text collate "C" primary key,
  digest text collate "C" not null,
  scopes text not null,
  jobs text,
  queues text,
  created_at bigint not null,
  created_by text not null,
  expires_at bigint,
  used_at bigint
) [[sqlite without rowid]];
create unique index if not exists access_key_digest on access_key (digest);

-- Steps, sleeps, signals and calls that have ended; a row never changes. Their order is the one of their numbers.
create table if not exists step (
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
create unique index if not exists step_name on step (run, name);

-- Waits that are open. A deadline never changes; a child's end is stored here by the statement that ends it.
create table if not exists wait (
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
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index if not exists wait_signal on wait (signal, key) where signal is not null;
create index if not exists wait_batch on wait (batch) where batch is not null;

-- A signal is new while no pass has searched for the runs that wait for it.
create table if not exists signal (
  name text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  is_new boolean not null,
  value text not null,
  primary key (name, key)
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]];
create index if not exists signal_new on signal (at) where is_new;
create index if not exists signal_at on signal (at);

-- Runs for which something happened. The row stays while the run is held: its holder may be about to suspend it.
create table if not exists wake (
  run uuid primary key,
  at bigint not null
) [[postgres with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)]] [[sqlite without rowid]];

create index if not exists attempt_lost on attempt (ended_at) where ended = 1;;
