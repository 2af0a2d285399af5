// The statements of alerts on PostgreSQL. What is looked at is the present (leases, ready runs,
// schedules, instances) and single rows of the past that the present points to.

/** A turn that lies far in the future was taken by a clock that has been put back since. */
export const TAKE_TURN = /* sql */ `
with now as materialized (select {now} as at),
seen as (
  update {instance} set skew_ms = :skewMs::bigint where no = :holder::int and skew_ms is distinct from :skewMs::bigint
),
taken as (
  insert into {alert_turn} as turn (id, taken_at, holder) select 1, now.at, :holder::int from now
  on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
  where turn.taken_at <= excluded.taken_at - :everyMs::bigint or turn.taken_at > excluded.taken_at + :everyMs::bigint
  returning id
)
select now.at as now, exists (select from taken) as is_mine from now`;

/** Late ones, those without a next tick, broken ones, and those with rules of their own. A pause of everything is one of each. */
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
  and not exists (select from {tick} n where n.schedule = x.schedule and n.at > x.at)
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
select m.run as id, l.job, s.name as schedule, coalesce(i.id, 'an instance that is gone') as holder, k.silent_ms, k.ran_ms,
  coalesce((select sum(c.items) from {item_count} c where c.run = m.run), 0) as items
from late k cross join unnest(k.ids) m (run)
join {lane} l on l.id = k.lane
left join {run} r on r.id = m.run
left join {schedule} s on s.id = r.schedule
left join {instance} i on i.no = k.holder
order by k.fence, m.run limit 1000`;

export const RUNNING = /* sql */ `
select null as schedule, coalesce(sum(cardinality(k.ids)), 0) as runs from {lease} k
union all
select s.name, count(*) from {lease} k cross join unnest(k.ids) m (run)
join {run} r on r.id = m.run join {schedule} s on s.id = r.schedule
where s.name = any(:schedules::text[]) group by s.name`;

/** What no instance that was seen within that time executes. Instances without a list of queues take all. */
export const UNATTENDED = /* sql */ `
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
order by l.job, l.queue limit 1000`;

export const SKEWED = /* sql */ `
select i.id, i.skew_ms from {instance} i cross join (select {now} as at) now
where i.retired_at is null and i.seen_at > now.at - greatest(60000, 3 * i.poll_ms)
  and abs(i.skew_ms) > :skewMs::bigint
order by i.no limit 1000`;

/** The last five hundred ticks at most: a rate of more is no better. */
export const RATES = /* sql */ `
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
group by s.name`;

/** A day more than asked for: a run may end long after its tick. By hours, as the sums of a job are. */
export const APART = /* sql */ `
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
group by 1, 2, 3`;

/** A schedule whose newest run was completed has no streak of failures. */
export const ENDS = /* sql */ `
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
order by s.name, t.at desc`;

/** Reasons 4 and 5: a live run was in the way. Of schedules whose newest tick was skipped, the newest rows. */
export const SKIPS = /* sql */ `
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
order by s.name, t.at desc`;

export const PAUSED_TICKS = /* sql */ `
select distinct on (a.subject) a.subject, a.evidence from {alert} a
where a.kind = 'consecutiveFailures' and a.subject_type = 'schedule' and a.subject = any(:schedules::text[])
order by a.subject, a.id desc`;

/**
 * By the server's own clock: these times are its own. What holds no snapshot and has written nothing
 * keeps no row from being removed.
 */
export const CULPRITS = /* sql */ `
select 'transaction' as what, a.pid, a.application_name as name, coalesce(a.usename, '') as by, coalesce(a.state, '') as state,
  (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::bigint as age_ms, 0::bigint as dead, 0::bigint as live
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and (a.backend_xmin is not null or a.backend_xid is not null)
  and a.xact_start < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'prepared', 0, p.gid, p.owner, '', (extract(epoch from clock_timestamp() - p.prepared) * 1000)::bigint, 0, 0
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'replication', 0, r.slot_name, '', '', 0, 0, 0 from pg_replication_slots r
where not r.active and (r.xmin is not null or r.catalog_xmin is not null) and age(coalesce(r.xmin, r.catalog_xmin)) > 1000000
union all
select 'bloat', 0, t.relname, '', '', 0, t.n_dead_tup, t.n_live_tup from pg_stat_user_tables t
where t.relid in ('{ready}'::regclass, '{lease}'::regclass, '{waiting}'::regclass)
  and t.n_dead_tup > 100000 and t.n_dead_tup > 5 * t.n_live_tup
order by age_ms desc limit 100`;

export const OPEN_ALERTS = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.message, a.evidence, a.last_at from {alert} a
where a.resolved_at is null order by a.id`;

/** A mute holds for the next one of the same kind and subject, too. */
export const OPEN_NEW = /* sql */ `
with now as materialized (select {now} as at),
asked as materialized (
  select x.*, (select max(m.muted_until) from {alert} m
    where m.kind = x.kind and m.subject_type = x.subject_type and m.subject = x.subject and m.muted_until > now.at) as muted_until
  from now, json_to_recordset(:opens::json)
    x (id uuid, kind text, subject_type text, subject text, severity text, message text, evidence text)
),
opened as (
  insert into {alert} (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, told_at, muted_until)
  select x.id, x.kind, x.subject_type, x.subject, x.severity, x.message, x.evidence, now.at, now.at,
    case when x.muted_until is null then now.at end, x.muted_until
  from asked x, now
  on conflict (kind, subject_type, subject) where resolved_at is null do nothing
  returning id, told_at
)
select o.id from opened o where o.told_at is not null`;

/** What was muted is told of by the first look after it. */
export const HOLD = /* sql */ `
with now as materialized (select {now} as at),
held as (
  update {alert} a set last_at = now.at, message = x.message, evidence = x.evidence,
    told_at = case when a.told_at is null and coalesce(a.muted_until, 0) <= now.at then now.at else a.told_at end
  from now, json_to_recordset(:holds::json) x (id uuid, message text, evidence text)
  where a.id = x.id and a.resolved_at is null
  returning a.id, a.told_at
)
select h.id from held h, now where h.told_at = now.at`;

/** From here on nobody is told any more that it began; who was, is looked for by the next statement. */
export const RESOLVE = /* sql */ `
with now as materialized (select {now} as at)
update {alert} a set resolved_at = now.at, message = x.message
from now, json_to_recordset(:resolves::json) x (id uuid, message text)
where a.id = x.id and a.resolved_at is null
returning a.id, a.told_at is not null and coalesce(a.muted_until, 0) <= now.at as is_told`;

/**
 * Whoever was told that it began is told that it is over. A statement of its own, in the same transaction: who was
 * told while the other one waited for an alert is not in what that one sees.
 */
export const TELL_RESOLVED = /* sql */ `
insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
select d.alert, 'resolved', d.destination, 'pending', 0, now.at, now.at
from (select {now} as at) now, {alert_delivery} d where d.alert = any(:ids::uuid[]) and d.event = 'opened'
on conflict (alert, event, destination) do nothing`;

/**
 * Whoever opened an alert may know of other destinations than the caller: what is open and was not yet
 * delivered to the caller's own is taken along. One that somebody is changing, who may be resolving it, is
 * left to the next call.
 */
export const CLAIM_DELIVERIES = /* sql */ `
with now as materialized (select {now} as at),
fresh as (
  insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
  select a.id, 'opened', w.name, 'pending', 1, now.at + :leaseMs::bigint, now.at
  from now, {alert} a, unnest(:destinations::text[]) w (name)
  where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= now.at
    and not exists (select from {alert_delivery} x where x.alert = a.id and x.event = 'opened' and x.destination = w.name)
  for share of a skip locked
  on conflict (alert, event, destination) do nothing
  returning alert, event, destination, attempts
),
due as materialized (
  select d.alert, d.event, d.destination from {alert_delivery} d, now
  where d.state = 'pending' and d.next_at <= now.at and d.destination = any(:destinations::text[])
  order by d.next_at, d.alert limit :limit::int for no key update of d skip locked
),
taken as (
  update {alert_delivery} d set attempts = d.attempts + 1, next_at = now.at + :leaseMs::bigint, tried_at = now.at
  from due x, now
  where d.alert = x.alert and d.event = x.event and d.destination = x.destination
  returning d.alert, d.event, d.destination, d.attempts
)
select * from fresh union all select * from taken`;

export const END_DELIVERY = /* sql */ `
update {alert_delivery} set state = :state, next_at = {now} + :delayMs::bigint, tried_at = {now}, error = :error::text
where alert = :alert::uuid and event = :event and destination = :destination and attempts = :attempt::int
  and state = 'pending'`;

export const LIST_ALERTS = /* sql */ `
select a.id, a.kind, a.subject_type, a.subject, a.severity, a.message, a.evidence, a.first_at, a.last_at, a.resolved_at,
  a.resolved_by, a.muted_until, a.acknowledged_at, a.acknowledged_by,
  (select json_agg(json_build_array(d.destination, d.event, d.state, d.attempts, d.tried_at, d.error)
    order by d.tried_at, d.event, d.destination) from {alert_delivery} d where d.alert = a.id)::text as deliveries
from {alert} a
where (:ids::uuid[] is null or a.id = any(:ids::uuid[]))
  and (:isOpen::boolean is null or (a.resolved_at is null) = :isOpen::boolean)
  and (:kind::text is null or a.kind = :kind::text)
  and (:subject::text is null or a.subject = :subject::text)
  and (:before::uuid is null or a.id < :before::uuid)
order by a.id desc limit :limit::int`;

export const MUTE = /* sql */ `
update {alert} set muted_until = {now} + :forMs::bigint where id = :id::uuid returning id`;

/** Twice is once: the first one stays. */
export const ACKNOWLEDGE = /* sql */ `
update {alert} set acknowledged_at = coalesce(acknowledged_at, {now}),
  acknowledged_by = case when acknowledged_at is null then :by::text else acknowledged_by end
where id = :id::uuid and resolved_at is null returning id`;

export const RESOLVE_BY_HAND = /* sql */ `
update {alert} set resolved_at = {now}, resolved_by = coalesce(:by::text, 'somebody')
where id = :id::uuid and resolved_at is null returning id`;

export const PRUNE_ALERTS = /* sql */ `
with old as materialized (
  select a.id from {alert} a where a.resolved_at <= {now} - :keepMs::bigint order by a.id limit :limit
),
deliveries as (delete from {alert_delivery} where alert = any(array(select id from old))),
alerts as (delete from {alert} where id = any(array(select id from old)) returning id)
select count(*)::int as pruned from alerts`;
