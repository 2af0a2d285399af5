// The statements of alerts on SQLite: the same rules as in postgres-alerts.ts, in smaller steps inside
// of one transaction where several rows are written.

export const KEEP_SKEW = /* sql */ `
update {instance} set skew_ms = :skewMs where no = :holder and skew_ms is not :skewMs`;

export const TAKE_TURN = /* sql */ `
insert into {alert_turn} (id, taken_at, holder) values (1, :now, :holder)
on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
where taken_at <= :now - :everyMs or taken_at > :now + :everyMs`;

export const SCHEDULES = /* sql */ `
select s.name, s.job, s.next_at, s.is_ended, s.broken_at, s.broken_error,
  coalesce(s.paused_at, (select z.at from {pause} z where z.until_at is null)) as paused_at,
  iif(s.definition like '%"alerts":{%', s.definition, null) as definition
from {schedule} s
where s.deleted_at is null and (s.next_at <= :now - 1000 or s.broken_at is not null
  or s.definition like '%"alerts":{%'
  or (s.next_at is null and not s.is_ended and s.paused_at is null))
order by s.definition like '%"alerts":{%' desc, s.next_at nulls first, s.id limit 5000`;

/** A monitor's tick may be recorded before its time, by an early check-in. */
export const LOOKED = /* sql */ `select max(i.polled_at) as polled_at,
  (select max(s.cursor_at) from {schedule} s where s.deleted_at is null and s.definition not like '%"monitor"%') as recorded_until
from {instance} i`;

/** Newest in the ledger of their schedule, without a check-in that came late after all. */
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
  and (t.reason <> 12 or not exists (
    select 1 from {outcome} o where o.id = s.last_run and o.status = 1 and o.finished_at >= t.recorded_at))
order by s.name limit 1000`;

export const HELD_RUNS = /* sql */ `
with late as materialized (
  select k.fence, k.ids, k.lane, k.holder, :now - k.renewed_at as silent_ms, :now - k.claimed_at as ran_ms
  from {lease} k
  where k.renewed_at <= :now - :silentMs or k.claimed_at <= :now - :ranMs
  order by k.fence limit 1000
)
select m.value as id, l.job, s.name as schedule, coalesce(i.id, 'an instance that is gone') as holder, k.silent_ms, k.ran_ms,
  coalesce((select sum(c.items) from {item_count} c where c.run = m.value), 0) as items
from late k, json_each(k.ids) m
join {lane} l on l.id = k.lane
left join {run} r on r.id = m.value
left join {schedule} s on s.id = r.schedule
left join {instance} i on i.no = k.holder
order by k.fence, m.value limit 1000`;

export const RUNNING = /* sql */ `
select null as schedule, coalesce(sum(json_array_length(k.ids)), 0) as runs from {lease} k
union all
select s.name, count(*) from {lease} k, json_each(k.ids) m
join {run} r on r.id = m.value join {schedule} s on s.id = r.schedule
where s.name in (select value from json_each(:schedules)) group by s.name`;

export const UNATTENDED = /* sql */ `
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
order by l.job, l.queue limit 1000`;

export const SKEWED = /* sql */ `
select i.id, i.skew_ms from {instance} i
where i.retired_at is null and i.seen_at > :now - max(60000, 3 * i.poll_ms) and abs(i.skew_ms) > :skewMs
order by i.no limit 1000`;

export const RATES = /* sql */ `
select s.name, count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from {schedule} s
join {tick} t on t.schedule = s.id and t.at > :now - :overMs and t.run is not null
join {outcome} o on o.id = t.run
where s.name = :schedule and t.at >= coalesce((
  select x.at from {tick} x where x.schedule = s.id and x.run is not null order by x.at desc limit 1 offset 499), 0)
group by s.name`;

/** A day more than asked for: a run may end long after its tick. By hours, as the sums of a job are. */
export const APART = /* sql */ `
select s.name, s.job, o.finished_at - o.finished_at % 3600000 as hour_at, count(*) as ticks, min(t.at) as oldest_at,
  count(*) filter (where o.status = 1) as completed, count(*) filter (where o.status = 2) as failed
from {schedule} s
join {tick} t on t.schedule = s.id and t.at > :now - :overMs - 86400000 and t.run is not null
left join {outcome} o on o.id = t.run
where s.name in (select value from json_each(:names)) and t.at >= coalesce((
  select x.at from {tick} x where x.schedule = s.id and x.run is not null order by x.at desc limit 1 offset (:limit - 1)), 0)
group by 1, 2, 3`;

/** A schedule whose newest run was completed has no streak of failures. */
export const FAILING = /* sql */ `
select s.id, s.name from {schedule} s
where s.deleted_at is null and s.last_run is not null
  and (:schedules is null or s.name in (select value from json_each(:schedules)))
  and not exists (select 1 from {outcome} o where o.id = s.last_run and o.status = 1)
order by s.name limit 1000`;

export const ENDS = /* sql */ `
select :name as name, t.at, t.run, o.status, o.error from (
  select x.at, x.run from {tick} x where x.schedule = :id and x.run is not null order by x.at desc limit (:depth + 0)
) t
left join {outcome} o on o.id = t.run
order by t.at desc`;

/** Reasons 4 and 5: a live run was in the way. */
export const SKIPPING = /* sql */ `
select s.id, s.name, exists (
  select 1 from json_each(s.live) l cross join {ready} y on y.id = l.value) as is_waiting
from {schedule} s
where s.deleted_at is null and s.paused_at is null and s.live <> '[]' and (
  select t.reason in (4, 5) from {tick} t where t.schedule = s.id order by t.at desc limit 1)
order by s.name limit 1000`;

export const SKIPS = /* sql */ `
select :name as name, t.last_at, t.count, t.reason in (4, 5) as is_skip, :isWaiting as is_waiting
from {tick} t where t.schedule = :id order by t.at desc limit (:skips + 0)`;

export const PAUSED_TICK = /* sql */ `
select a.subject, a.evidence from {alert} a
where a.kind = 'consecutiveFailures' and a.subject_type = 'schedule' and a.subject = :schedule
order by a.id desc limit 1`;

/** Moves what can be moved, without waiting for anybody; what is left waits for a reader. */
export const CHECKPOINT = /* sql */ `pragma wal_checkpoint(passive)`;

export const OPEN_ALERTS = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.message, a.evidence, a.last_at from {alert} a
where a.resolved_at is null order by a.id`;

/** A mute holds for the next one of the same kind and subject, too. */
export const OPEN_NEW = /* sql */ `
insert into {alert} (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, told_at, muted_until)
select :id, :kind, :subjectType, :subject, :severity, :message, :evidence, :now, :now, iif(m.until is null, :now, null), m.until
from (select max(a.muted_until) as until from {alert} a
  where a.kind = :kind and a.subject_type = :subjectType and a.subject = :subject and a.muted_until > :now) m
where true
on conflict (kind, subject_type, subject) where resolved_at is null do nothing
returning id, told_at`;

export const HOLD = /* sql */ `
update {alert} set last_at = :now, message = :message, evidence = :evidence,
  told_at = iif(told_at is null and coalesce(muted_until, 0) <= :now, :now, told_at)
where id = :id and resolved_at is null
returning id, told_at = :now as is_told`;

export const RESOLVE = /* sql */ `
update {alert} set resolved_at = :now, message = :message where id = :id and resolved_at is null
returning id, told_at is not null and coalesce(muted_until, 0) <= :now as is_told`;

/** To whoever was told that it began. */
export const TELL_RESOLVED = /* sql */ `
insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
select d.alert, 'resolved', d.destination, 'pending', 0, :now, :now from {alert_delivery} d
where d.alert = :id and d.event = 'opened'
on conflict (alert, event, destination) do nothing`;

/** Whoever opened an alert may know of other destinations than the caller: those are added here. */
export const TELL_OPENED = /* sql */ `
insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
select a.id, 'opened', w.value, 'pending', 0, :now, :now
from {alert} a, json_each(:destinations) w
where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= :now
on conflict (alert, event, destination) do nothing`;

export const CLAIM_DELIVERIES = /* sql */ `
update {alert_delivery} set attempts = attempts + 1, next_at = :now + :leaseMs, tried_at = :now
where (alert, event, destination) in (
  select d.alert, d.event, d.destination from {alert_delivery} d
  where d.state = 'pending' and d.next_at <= :now and d.destination in (select value from json_each(:destinations))
  order by d.next_at, d.alert limit (:limit + 0)
)
returning alert, event, destination, attempts`;

export const END_DELIVERY = /* sql */ `
update {alert_delivery} set state = :state, next_at = :now + :delayMs, tried_at = :now, error = :error
where alert = :alert and event = :event and destination = :destination and attempts = :attempt and state = 'pending'`;

export const LIST_ALERTS = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.severity, a.message, a.evidence, a.first_at, a.last_at, a.resolved_at,
  a.resolved_by, a.muted_until, a.acknowledged_at, a.acknowledged_by,
  (select json_group_array(json_array(d.destination, d.event, d.state, d.attempts, d.tried_at, d.error)
    order by d.tried_at, d.event, d.destination) from {alert_delivery} d where d.alert = a.id) as deliveries
from {alert} a
where (:ids is null or a.id in (select value from json_each(:ids)))
  and (:isOpen is null or (a.resolved_at is null) = :isOpen)
  and (:kind is null or a.kind = :kind)
  and (:subject is null or a.subject = :subject)
  and (:before is null or a.id < :before)
order by a.id desc limit (:limit + 0)`;

export const MUTE = /* sql */ `
update {alert} set muted_until = :now + :forMs where id = :id`;

export const ACKNOWLEDGE = /* sql */ `
update {alert} set acknowledged_by = iif(acknowledged_at is null, :by, acknowledged_by),
  acknowledged_at = coalesce(acknowledged_at, :now)
where id = :id and resolved_at is null`;

export const RESOLVE_BY_HAND = /* sql */ `
update {alert} set resolved_at = :now, resolved_by = coalesce(:by, 'somebody') where id = :id and resolved_at is null`;

export const OLD_ALERTS = /* sql */ `
select a.id from {alert} a where a.resolved_at <= :now - :keepMs order by a.id limit (:limit + 0)`;
export const PRUNE_DELIVERIES = /* sql */ `
delete from {alert_delivery} where alert in (select value from json_each(:ids))`;
export const PRUNE_ALERTS = /* sql */ `delete from {alert} where id in (select value from json_each(:ids))`;
