// The tables of alerts on PostgreSQL. At most one of a kind and subject is open; what was delivered to
// whom is beside it. The one row of `alert_turn` says when somebody last looked.

export const CREATE_ALERTS = /* sql */ `
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

-- Ticks that tell of trouble are few: they are found without reading the ledger.
create index tick_trouble on {tick} (schedule, at) where reason in (3, 12);
`;
