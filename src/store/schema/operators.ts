// Defines the tables of sign-ins and named keys, the audit trail, the pause of everything, and alerts.

export const ACCESS_TABLES = /* sql */ `
create table {session} (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
) [[sqlite without rowid]];
create index session_secret on {session} (secret, until_at);
create table {access_key} (
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
create unique index access_key_digest on {access_key} (digest);
`;

export const AUDIT_TABLES = /* sql */ `
create table {audit} (
  id bigint generated always as identity primary key [[sqlite autoincrement]],
  at bigint not null,
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
create index audit_at on {audit} (at);
`;

export const PAUSE_TABLES = /* sql */ `
create table {pause} (
  id int generated always as identity primary key,
  at bigint not null,
  until_at bigint,
  by text,
  note text
);
create unique index pause_open on {pause} ((until_at is null)) where until_at is null;
`;

// At most one alert of a kind and subject is open; its deliveries are rows beside it. The one row of `alert_turn` says
// when an instance last observed.

export const ALERT_TABLES = /* sql */ `
create table {alert} (
  id uuid primary key,
  kind text collate "C" not null,
  subject_type text collate "C" not null,
  subject text collate "C" not null,
  severity text not null,
  message text not null,
  evidence text not null,
  first_at bigint not null,
  last_at bigint not null,
  -- When deliveries of it were made; a muted one has none yet.
  told_at bigint,
  resolved_at bigint,
  resolved_by text,
  muted_until bigint,
  acknowledged_at bigint,
  acknowledged_by text
);
create unique index alert_open on {alert} (kind, subject_type, subject) where resolved_at is null;
create index alert_subject on {alert} (kind, subject_type, subject, id);

create table {alert_delivery} (
  alert uuid not null,
  event text not null,
  destination text not null,
  state text not null,
  attempts int not null,
  next_at bigint not null,
  tried_at bigint not null,
  error text,
  primary key (alert, event, destination)
);
create index alert_delivery_due on {alert_delivery} (next_at) where state = 'pending';

create table {alert_turn} (
  id int primary key check (id = 1),
  taken_at bigint not null,
  holder int
);

-- Ticks that report a problem are few: this index finds them without reading the ledger.
create index tick_trouble on {tick} (schedule, at) where reason in (3, 12);
`;

/** Lost attempts are few: the alert about reclaimed runs reads this index alone. */
export const RECLAIM_INDEX = /* sql */ `
create index attempt_lost on {attempt} (ended_at) where ended = 1;
`;
