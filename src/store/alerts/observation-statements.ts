// The statements that observe for alerts. They read current state (leases, ready runs, schedules, instances) and the
// few history rows that it refers to. Where a statement has one text per engine, PostgreSQL reads the newest ticks of
// each schedule with a lateral join; SQLite has none and first finds the oldest tick to read.

import type { SqlText } from "../sql/dialect.js";

/**
 * Schedules that are late, without a next tick, broken, or with rules of their own. A pause of everything counts as a
 * pause of each.
 */
export const SCHEDULES = /* sql */ `
with now as materialized (select {now} as at)
select s.name, s.job, s.next_at, s.is_ended, s.broken_at, s.broken_error,
  coalesce(s.paused_at, (select z.at from {pause} z where z.until_at is null)) as paused_at,
  case when s.definition like '%"alerts":{%' then s.definition end as definition
from {schedule} s, now
where s.deleted_at is null and (s.next_at <= now.at - 1000 or s.broken_at is not null
  or s.definition like '%"alerts":{%'
  or (s.next_at is null and not s.is_ended and s.paused_at is null))
order by s.definition like '%"alerts":{%' desc, s.next_at nulls first, s.id limit 5000`;

/** A monitor's tick may be recorded before its time, by an early check-in. */
export const LOOKED = /* sql */ `
select {now} as now, (select max(i.polled_at) from {instance} i) as polled_at,
  (select max(s.cursor_at) from {schedule} s where s.deleted_at is null and s.definition not like '%"monitor"%') as recorded_until`;

/** The newest ledger row of its schedule, unless a late check-in arrived for it. */
export const TROUBLED_TICKS = /* sql */ `
with troubled as materialized (
  select t.schedule, max(t.at) as at from {tick} t where t.reason in (3, 12) group by t.schedule
)
select s.name, t.reason, t.at, t.last_at, t.count, t.recorded_at
from troubled x
join {tick} t on t.schedule = x.schedule and t.at = x.at
join {schedule} s on s.id = x.schedule
where s.deleted_at is null and s.paused_at is null
  and not exists (select 1 from {tick} n where n.schedule = x.schedule and n.at > x.at)
  and (t.reason <> 12 or (
    select 1 from {outcome} o where o.id = s.last_run and o.status = 1 and o.finished_at >= t.recorded_at) is null)
order by s.name limit 1000`;

export const HELD_RUNS = /* sql */ `
with now as materialized (select {now} as at),
late as materialized (
  select k.fence, k.ids, k.lane, k.holder, now.at - k.renewed_at as silent_ms, now.at - k.claimed_at as ran_ms
  from {lease} k, now
  where k.renewed_at <= now.at - :silentMs::bigint or k.claimed_at <= now.at - :ranMs::bigint
  order by k.fence limit 1000
)
select m.value as id, l.job, s.name as schedule, coalesce(i.id, 'an instance that is gone') as holder, k.silent_ms, k.ran_ms,
  coalesce((select sum(c.items) from {item_count} c where c.run = m.value), 0) as items
from late k cross join {each k.ids as m}
join {lane} l on l.id = k.lane
left join {run} r on r.id = m.value
left join {schedule} s on s.id = r.schedule
left join {instance} i on i.no = k.holder
order by k.fence, m.value limit 1000`;

/** Attempts that ended as lost: an index has these alone, and a limit bounds an outage of many workers. */
export const RECLAIMS = /* sql */ `
with now as materialized (select {now} as at),
lost as materialized (
  select a.run, a.holder, a.ended_at, (select at from now) - a.ended_at as ago_ms
  from {attempt} a
  where a.ended = 1 and a.ended_at >= (select at from now) - :reclaimedMs::bigint
  order by a.ended_at desc limit 1000
)
select x.run as id, l.job, s.name as schedule, coalesce(i.id, 'an instance that is gone') as holder, x.ago_ms
from lost x
join {run} r on r.id = x.run
join {lane} l on l.id = r.lane
left join {schedule} s on s.id = r.schedule
left join {instance} i on i.no = x.holder
order by x.ended_at desc, x.run`;

/** The row without a schedule counts all runs. */
export const RUNNING = /* sql */ `
select null as schedule, coalesce(sum({length}(k.ids)), 0) as runs from {lease} k
union all
select s.name, count(*) from {lease} k cross join {each k.ids as m}
join {run} r on r.id = m.value join {schedule} s on s.id = r.schedule
where s.name {any :schedules::text[]} group by s.name`;

/**
 * Ready runs that no instance seen within that time executes. An instance without a list of queues takes all. Each
 * engine reads a JSON list its own way.
 */
export const UNATTENDED: SqlText = {
  postgres: /* sql */ `
with now as materialized (select {now} as at),
served as materialized (
  select distinct w.job, q.queue
  from {instance} i cross join now
  cross join json_array_elements_text(i.works) w (job)
  left join lateral json_array_elements_text(i.queues) q (queue) on true
  where i.seen_at > now.at - :unattendedMs::bigint
)
select l.job, l.queue, oldest.due_at,
  (select count(*) from (select from {ready} y where y.lane = l.id limit 1000) c) as runs
from now, {lane} l cross join lateral (
  select r.due_at from {ready} y join {run} r on r.id = y.id where y.lane = l.id
  order by y.suspect, y.sort_at, y.id limit 1
) oldest
where oldest.due_at <= now.at - :unattendedMs::bigint
  and not exists (select from served v where v.job = l.job and (v.queue is null or v.queue = l.queue))
  and not exists (select from {queue} q where q.name = l.queue and q.paused_at is not null)
  and not exists (select from {pause} z where z.until_at is null)
order by l.job, l.queue limit 1000`,
  sqlite: /* sql */ `
with served as materialized (
  select distinct w.value as job, q.value as queue
  from {instance} i, json_each(i.works) w left join json_each(coalesce(i.queues, '[null]')) q
  where i.seen_at > :now - :unattendedMs
),
waiting as materialized (
  select l.id, l.job, l.queue, (
    select r.due_at from {ready} y join {run} r on r.id = y.id where y.lane = l.id
    order by y.suspect, y.sort_at, y.id limit 1
  ) as due_at
  from {lane} l
)
select l.job, l.queue, l.due_at,
  (select count(*) from (select 1 from {ready} y where y.lane = l.id limit 1000)) as runs
from waiting l
where l.due_at <= :now - :unattendedMs
  and not exists (select 1 from served v where v.job = l.job and (v.queue is null or v.queue = l.queue))
  and not exists (select 1 from {queue} q where q.name = l.queue and q.paused_at is not null)
  and not exists (select 1 from {pause} z where z.until_at is null)
order by l.job, l.queue limit 1000`,
};

/** Of each suspended run its longest wait for a signal or a called run. What has ended wakes the run by itself. */
export const WAITS = /* sql */ `
with now as materialized (select {now} as at)
select w.run, l.job, w.kind, coalesce(w.signal, w.key) as name, now.at - w.since as waited_ms
from {wait} w cross join now
join {waiting} s on s.id = w.run
join {lane} l on l.id = s.lane
where w.kind in (2, 3) and w.ended_at is null and w.since <= now.at - :waitedMs::bigint and s.asleep_at is not null
  and not exists (
    select 1 from {wait} o where o.run = w.run and o.kind in (2, 3) and o.ended_at is null
      and (o.since < w.since or (o.since = w.since and o.name < w.name)))
order by w.since, w.run limit 1000`;

export const SKEWED = /* sql */ `
select i.id, i.skew_ms from {instance} i cross join (select {now} as at) now
where i.retired_at is null and i.seen_at > now.at - {greatest}(60000, 3 * i.poll_ms)
  and abs(i.skew_ms) > :skewMs::bigint
order by i.no limit 1000`;

/** At most the last five hundred ticks: more would not make the rate better. */
export const RATES: SqlText = {
  postgres: /* sql */ `
with now as materialized (select {now} as at)
select s.name, count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from now, json_to_recordset(:ratesOf::json) x (schedule text, "overMs" bigint)
join {schedule} s on s.name = x.schedule
cross join lateral (
  select t.run from {tick} t
  where t.schedule = s.id and t.at > now.at - x."overMs" and t.run is not null
  order by t.at desc limit 500
) t
join {outcome} o on o.id = t.run
group by s.name`,
  sqlite: /* sql */ `
select s.name, count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from json_each(:ratesOf) x
cross join {schedule} s on s.name = x.value ->> 'schedule'
cross join {tick} t on t.schedule = s.id and t.run is not null and t.at >= max(:now - (x.value ->> 'overMs') + 1, coalesce((
  select n.at from {tick} n where n.schedule = s.id and n.run is not null order by n.at desc limit 1 offset 499), 0))
join {outcome} o on o.id = t.run
group by s.name`,
};

/** A day more than requested, since a run may end long after its tick. By hours, like the sums of a job. */
export const APART: SqlText = {
  postgres: /* sql */ `
with now as materialized (select {now} as at)
select s.name, s.job, o.finished_at - o.finished_at % 3600000 as hour_at, count(*) as ticks, min(t.at) as oldest_at,
  count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from now, {schedule} s
cross join lateral (
  select x.at, x.run from {tick} x
  where x.schedule = s.id and x.at > now.at - :overMs::bigint - 86400000 and x.run is not null
  order by x.at desc limit :limit::int
) t
left join lateral (select x.status, x.finished_at from {outcome} x where x.id = t.run offset 0) o on true
where s.name = any(:schedules::text[])
group by 1, 2, 3`,
  sqlite: /* sql */ `
select s.name, s.job, o.finished_at - o.finished_at % 3600000 as hour_at, count(*) as ticks, min(t.at) as oldest_at,
  count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from {schedule} s
join {tick} t on t.schedule = s.id and t.at > :now - :overMs - 86400000 and t.run is not null
left join {outcome} o on o.id = t.run
where s.name in (select value from json_each(:schedules)) and t.at >= coalesce((
  select x.at from {tick} x where x.schedule = s.id and x.run is not null order by x.at desc limit 1 offset (:limit - 1)), 0)
group by 1, 2, 3`,
};

/** A schedule whose newest run was completed has no streak of failures. */
export const ENDS: SqlText = {
  postgres: /* sql */ `
with late as materialized (
  select s.id, s.name from {schedule} s
  where s.deleted_at is null and s.last_run is not null
    and (:schedules::text[] is null or s.name = any(:schedules::text[]))
    and not exists (select from {outcome} o where o.id = s.last_run and o.status = 1)
  order by s.id limit 1000
)
select s.name, t.at, t.run, o.status, o.error from late s
cross join lateral (
  select x.at, x.run from {tick} x where x.schedule = s.id and x.run is not null order by x.at desc limit :depth::int
) t
left join {outcome} o on o.id = t.run
order by s.name, t.at desc`,
  sqlite: /* sql */ `
with late as materialized (
  select s.id, s.name from {schedule} s
  where s.deleted_at is null and s.last_run is not null
    and (:schedules is null or s.name in (select value from json_each(:schedules)))
    and not exists (select 1 from {outcome} o where o.id = s.last_run and o.status = 1)
  order by s.id limit 1000
)
select s.name, t.at, t.run, o.status, o.error from late s
cross join {tick} t on t.schedule = s.id and t.run is not null and t.at >= coalesce((
  select x.at from {tick} x where x.schedule = s.id and x.run is not null order by x.at desc limit 1 offset (:depth - 1)), 0)
left join {outcome} o on o.id = t.run
order by s.name, t.at desc`,
};

/** Reasons 4 and 5: a live run blocked the tick. Reads the newest rows of schedules whose newest tick was skipped. */
export const SKIPS: SqlText = {
  postgres: /* sql */ `
with skipping as materialized (
  select s.id, s.name, s.live from {schedule} s
  cross join lateral (select x.reason from {tick} x where x.schedule = s.id order by x.at desc limit 1) t
  where s.deleted_at is null and s.paused_at is null and cardinality(s.live) > 0 and t.reason in (4, 5)
  order by s.id limit 1000
)
select s.name, t.last_at, t.count, t.reason in (4, 5) as is_skip,
  exists (select from {ready} y where y.id = any(s.live)) as is_waiting
from skipping s
cross join lateral (
  select x.at, x.last_at, x.count, x.reason from {tick} x where x.schedule = s.id order by x.at desc limit :skips::int
) t
order by s.name, t.at desc`,
  sqlite: /* sql */ `
with skipping as materialized (
  select s.id, s.name, exists (
    select 1 from json_each(s.live) l cross join {ready} y on y.id = l.value) as is_waiting
  from {schedule} s
  where s.deleted_at is null and s.paused_at is null and s.live <> '[]' and (
    select t.reason in (4, 5) from {tick} t where t.schedule = s.id order by t.at desc limit 1)
  order by s.id limit 1000
)
select s.name, t.last_at, t.count, t.reason in (4, 5) as is_skip, s.is_waiting
from skipping s
cross join {tick} t on t.schedule = s.id and t.at >= coalesce((
  select x.at from {tick} x where x.schedule = s.id order by x.at desc limit 1 offset (:skips - 1)), 0)
order by s.name, t.at desc`,
};

/** The newest alert about the failures of each of these schedules. */
export const PAUSED_TICKS = /* sql */ `
select a.subject, a.evidence from {alert} a
where a.kind = 'consecutiveFailures' and a.subject_type = 'schedule' and a.subject {any :schedules::text[]}
  and not exists (
    select 1 from {alert} n
    where n.kind = 'consecutiveFailures' and n.subject_type = 'schedule' and n.subject = a.subject and n.id > a.id)`;
