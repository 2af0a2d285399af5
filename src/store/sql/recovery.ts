// After a restored backup, and how an instance is: what both engines ask in the same words.

/** Not seen lately, or gone in good order, or never known: by its number. */
const IS_LIVE_HOLDER = (number: string) => /* sql */ `exists (
  select 1 from {instance} i where i.no = ${number} and i.retired_at is null
    and (i.seen_at > {now} - 60000 or i.seen_at > {now} - 3 * i.poll_ms))`;
/** A lock names its holder by text. */
const IS_LIVE_LOCKER = (id: string) => /* sql */ `exists (
  select 1 from {instance} i where i.id = ${id} and i.retired_at is null
    and (i.seen_at > {now} - 60000 or i.seen_at > {now} - 3 * i.poll_ms))`;

/** Leases and locks of holders that are gone: the first is taken back, the second expires; and what is to be told. */
export const GONE = /* sql */ `
select
  (select count(*) from {lease} k where not ${IS_LIVE_HOLDER("k.holder")}) as leases,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence where not ${IS_LIVE_HOLDER("k.holder")}) as runs,
  (select count(*) from {held_lock} l where not ${IS_LIVE_LOCKER("l.holder")}) as locks,
  (select count(*) from {instance} i where i.retired_at is null
    and (i.seen_at > {now} - 60000 or i.seen_at > {now} - 3 * i.poll_ms)) as live_instances,
  (select count(*) from {alert_delivery} d where d.state = 'pending') as deliveries,
  (select count(*) from {access_key}) as keys`;

/** What begins as soon as a worker is there, by job. */
export const WAITING_BY_JOB = /* sql */ `
select l.job, sum(case when p.place = 'ready' then 1 else 0 end) as ready,
  sum(case when p.place = 'waiting' then 1 else 0 end) as waiting,
  sum(case when p.place = 'lease' then 1 else 0 end) as held
from {live_run} p join {lane} l on l.id = p.lane group by l.job order by l.job`;

/** The lease ends now, as one of a silent holder does. */
export const FREE_LEASES = /* sql */ `
update {lease} set until = {now}, deadline_at = case when deadline_at <= {now} then {now} + 1 else deadline_at end
where until > {now} and not ${IS_LIVE_HOLDER("{lease}.holder")}`;
export const FREE_LOCKS = {
  postgres: /* sql */ `
update {lock} set until = {now} where state = 0 and until > {now} and not ${IS_LIVE_LOCKER("{lock}.holder")}`,
  sqlite: /* sql */ `
update {lock} set until = {now} where until > {now} and not ${IS_LIVE_LOCKER("{lock}.holder")}`,
} as const;

/** Sessions that were ended since the backup would count again: people sign in anew. */
export const END_SESSIONS = "delete from {session}";

export const RAISE_FENCES = {
  postgres: [
    "select setval('{lease_fence_seq}', (select s.last_value from {lease_fence_seq} s) + :jump::bigint)",
    "select setval('{lock_fence}', (select s.last_value from {lock_fence} s) + :jump::bigint)",
  ],
  sqlite: [
    `insert into sqlite_sequence (name, seq) select '{lease}', 0
     where not exists (select 1 from sqlite_sequence s where s.name = '{lease}')`,
    `insert into sqlite_sequence (name, seq) select '{lock}', 0
     where not exists (select 1 from sqlite_sequence s where s.name = '{lock}')`,
    "update sqlite_sequence set seq = seq + :jump where name in ('{lease}', '{lock}')",
  ],
} as const;

// A monitor's tick may be recorded before its time, by an early check-in.
const IS_SKEWED =
  "i.retired_at is null and i.seen_at > {now} - 60000 and i.skew_ms is not null and i.skew_ms <> 0";
export const VITALS = /* sql */ `
select {now} as now,
  (select count(*) from {live_run} p where p.place = 'lease') as running,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence where k.until <= {now}) as silent,
  (select count(*) from {live_run} p join {lease} k on k.fence = p.fence
    where k.renewed_at <= {now} - :silentMs or k.claimed_at <= {now} - :ranMs) as stale,
  (select max(i.polled_at) from {instance} i where i.retired_at is null) as polled_at,
  (select count(*) from {schedule} s where s.next_at is not null) as schedules,
  (select max(s.cursor_at) from {schedule} s where s.deleted_at is null and s.definition not like '%"monitor"%') as recorded_until,
  (select i.id from {instance} i where ${IS_SKEWED} order by abs(i.skew_ms) desc, i.no limit 1) as skewed,
  (select i.skew_ms from {instance} i where ${IS_SKEWED} order by abs(i.skew_ms) desc, i.no limit 1) as skew_ms`;
