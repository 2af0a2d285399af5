// The tables of named locks on SQLite. `lock` holds what is held and nothing else: with one writer at
// a time fences are drawn in the order of their grants, so that no name has to be remembered.

export const CREATE_LOCKS = /* sql */ `
-- Autoincrement: a fence is never reused, also after the row with the largest one is gone.
create table {lock} (
  fence integer primary key autoincrement,
  name text not null unique,
  token text not null,
  holder text not null,
  acquired_at integer not null,
  renewed_at integer not null,
  until integer not null
);
create index {lock_until} on {lock} (until);

create table {lock_waiter} (
  no integer primary key autoincrement,
  token text not null unique,
  name text not null,
  holder text not null,
  priority integer not null,
  seen_at integer not null
);
create index {lock_waiter_name} on {lock_waiter} (name);

create table {lock_history} (
  fence integer primary key,
  name text not null,
  holder text not null,
  state integer not null,
  acquired_at integer not null,
  until integer not null,
  ended_at integer not null,
  note text
);
create index {lock_history_name} on {lock_history} (name, fence);
create index {lock_history_ended} on {lock_history} (ended_at);
`;
