// Defines the tables of sessions, the audit trail, the pause of everything, and alerts on SQLite.

export const CREATE_ACCESS = /* sql */ `
create table {session} (
  digest text primary key,
  secret text not null,
  until_at integer not null
) without rowid;
create index {session_secret} on {session} (secret, until_at);
create table {access_key} (
  name text primary key,
  digest text not null,
  scopes text not null,
  jobs text,
  queues text,
  created_at integer not null,
  created_by text not null,
  expires_at integer,
  used_at integer
) without rowid;
create unique index {access_key_digest} on {access_key} (digest);
`;

export const CREATE_AUDIT = /* sql */ `
create table {audit} (
  id integer primary key autoincrement,
  at integer not null,
  via text not null,
  who text not null,
  scope text,
  address text,
  request_id text,
  verb text not null,
  noun text not null,
  name text,
  note text,
  change text
);
create index {audit_at} on {audit} (at);
`;

export const CREATE_PAUSE = /* sql */ `
create table {pause} (
  id integer primary key,
  at integer not null,
  until_at integer,
  by text,
  note text
);
create unique index {pause_open} on {pause} (until_at is null) where until_at is null;
`;

// At most one alert of a kind and subject is open; its deliveries are rows beside it. The one row of `alert_turn` says
// when an instance last observed.

export const CREATE_ALERTS = /* sql */ `
create table {alert} (
  id text primary key,
  kind text not null,
  subject_type text not null,
  subject text not null,
  severity text not null,
  message text not null,
  evidence text not null,
  first_at integer not null,
  last_at integer not null,
  -- When deliveries of it were made; a muted one has none yet.
  told_at integer,
  resolved_at integer,
  resolved_by text,
  muted_until integer,
  acknowledged_at integer,
  acknowledged_by text
);
create unique index {alert_open} on {alert} (kind, subject_type, subject) where resolved_at is null;
create index {alert_subject} on {alert} (kind, subject_type, subject, id);

create table {alert_delivery} (
  alert text not null,
  event text not null,
  destination text not null,
  state text not null,
  attempts integer not null,
  next_at integer not null,
  tried_at integer not null,
  error text,
  primary key (alert, event, destination)
);
create index {alert_delivery_due} on {alert_delivery} (next_at) where state = 'pending';

create table {alert_turn} (
  id integer primary key check (id = 1),
  taken_at integer not null,
  holder integer
);

-- Ticks that tell of trouble are few: they are found without reading the ledger.
create index {tick_trouble} on {tick} (schedule, at) where reason in (3, 12);
`;
