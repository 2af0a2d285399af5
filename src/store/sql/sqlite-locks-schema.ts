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

create view {v_locks} as
select l.name, l.holder, l.fence,
  strftime('%Y-%m-%dT%H:%M:%fZ', l.acquired_at / 1000.0, 'unixepoch') as acquired_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', l.renewed_at / 1000.0, 'unixepoch') as renewed_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', l.until / 1000.0, 'unixepoch') as lease_until,
  l.until <= unixepoch('subsec') * 1000 as expired,
  (select count(*) from {lock_waiter} w where w.name = l.name and w.seen_at > unixepoch('subsec') * 1000 - 3000) as waiting
from {lock} l;

create view {v_lock_history} as
select h.name, h.fence, h.holder,
  case h.state when 0 then 'acquired' when 1 then 'released' when 2 then 'expired' else 'revoked' end as status,
  strftime('%Y-%m-%dT%H:%M:%fZ', h.acquired_at / 1000.0, 'unixepoch') as acquired_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', h.until / 1000.0, 'unixepoch') as lease_until,
  strftime('%Y-%m-%dT%H:%M:%fZ', h.ended_at / 1000.0, 'unixepoch') as ended_at,
  h.ended_at - h.acquired_at as held_ms, h.note
from (
  select fence, name, holder, state, acquired_at, until, ended_at, note from {lock_history}
  union all
  select fence, name, holder, 0, acquired_at, until, null, null from {lock}
) h;
`;
