// The tables on SQLite: the same as on PostgreSQL (see postgres-schema.ts for what they mean), with
// the engine's own forms: a lease keeps its run ids as a JSON array, `ready` is its own claim index,
// and history is removed by bounded deletes instead of partitions.

export const SCHEMA_VERSION = 1;

export const CREATE_SCHEMA = /* sql */ `
create table {schema_version} (version integer not null, min_compatible integer not null, migrated_at integer not null);

create table {instance} (
  no integer primary key autoincrement,
  id text not null unique,
  app text,
  release text,
  jobs text not null,
  started_at integer not null,
  seen_at integer not null,
  retired_at integer
);

create table {job} (
  name text primary key,
  queue text not null,
  priority integer not null,
  version integer not null,
  policy integer not null,
  announced_at integer not null
) without rowid;

create table {queue} (name text primary key, paused_at integer) without rowid;

create table {lane} (id integer primary key, queue text not null, job text not null, unique (job, queue));

create table {policy} (
  id integer primary key,
  digest text not null unique,
  lease_ms integer not null,
  timeout_ms integer not null,
  attempts integer not null,
  delay_ms integer not null,
  factor real not null,
  max_ms integer not null,
  jitter real not null,
  on_lost integer not null
);

create table {run} (
  id text primary key,
  created_at integer not null,
  due_at integer not null,
  lane integer not null,
  policy integer not null,
  version integer not null,
  priority integer not null,
  mode integer not null,
  schedule integer,
  nominal_at integer,
  parent text,
  key text,
  tags text,
  input text not null
);

create table {ready} (
  lane integer not null,
  suspect integer not null,
  sort_at integer not null,
  id text not null,
  policy integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  primary key (lane, suspect, sort_at, id)
) without rowid;
create unique index {ready_id} on {ready} (id);

create table {waiting} (
  id text primary key,
  wake_at integer not null,
  lane integer not null,
  policy integer not null,
  priority integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  suspect integer not null,
  gate text
) without rowid;
create index {waiting_wake} on {waiting} (wake_at) where gate is null;

-- Autoincrement: a fence is never reused, also after the row with the largest one is gone.
create table {lease} (
  fence integer primary key autoincrement,
  until integer not null,
  deadline_at integer not null,
  claimed_at integer not null,
  renewed_at integer not null,
  holder integer not null,
  lane integer not null,
  policy integer not null,
  attempt integer not null,
  losses integer not null,
  refunds integer not null,
  laters integer not null,
  extra integer not null,
  suspect integer not null,
  token text not null,
  ids text not null,
  started text not null,
  cancels text
);
create index {lease_until} on {lease} (until);
create index {lease_cancels} on {lease} (holder) where cancels is not null;

create table {outcome} (
  id text primary key,
  fence integer,
  started_at integer,
  finished_at integer not null,
  lane integer not null,
  holder integer,
  attempt integer not null,
  extra integer not null,
  status integer not null,
  result text,
  error text
);
create index {outcome_status} on {outcome} (status, id) where status <> 1;

create table {attempt} (
  run text not null,
  fence integer not null,
  attempt integer not null,
  ended integer not null,
  holder integer not null,
  started_at integer not null,
  ended_at integer not null,
  error text,
  primary key (run, fence)
) without rowid;

create table {key} (
  job text not null,
  key text not null,
  run text not null,
  input_hash text not null,
  expires_at integer,
  primary key (job, key)
) without rowid;
create index {key_run} on {key} (run);
create index {key_expiry} on {key} (expires_at) where expires_at is not null;

create table {rollup} (
  hour_at integer not null,
  lane integer not null,
  mode integer not null,
  status integer not null,
  shard integer not null,
  runs integer not null,
  ran_ms integer not null,
  primary key (hour_at, lane, mode, status, shard)
) without rowid;

create view {run_state} as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, r.schedule, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(w.wake_at, r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  max(r.created_at, coalesce(o.finished_at, 0), coalesce(h.renewed_at, 0), coalesce(
    (select a.ended_at from {attempt} a where a.run = r.id order by a.fence desc limit 1), 0)) as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, (select a.error from {attempt} a where a.run = r.id order by a.fence desc limit 1)) as error,
  json_extract(h.cancels, '$."' || r.id || '"') as cancel_requested_at,
  r.tags,
  r.input
from {run} r
join {lane} l on l.id = r.lane
join {policy} p on p.id = r.policy
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
left join (select m.value as run, x.* from {lease} x, json_each(x.ids) m) h on h.run = r.id
left join {instance} i on i.no = coalesce(o.holder, h.holder);
`;
