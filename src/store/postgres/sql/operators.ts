// Defines the statements of operators and of the timeline on PostgreSQL.

/**
 * Whoever is silent is taken for dead, also if its time is over: the deadline then stays after the end
 * of the lease. A living holder may renew in between, but not beyond the deadline that is set here.
 * A lease that somebody has locked is being renewed or settled: it is not stale.
 */
export const EXPIRE_STALE = /* sql */ `
with now as materialized (select {now} as at),
stale as materialized (
  select k.fence, k.renewed_at <= now.at - o.silent_ms as is_silent
  from {lease} k cross join now join {policy} p on p.id = k.policy
  cross join lateral (
    -- A lease that was never renewed may be longer than its policy says: acquire_due grants such leases.
    select greatest(:silentMs::bigint, case when :respectsLeases::boolean then greatest(p.lease_ms,
        case when k.renewed_at = k.claimed_at then k.until - k.claimed_at end) end) as silent_ms,
      greatest(:ranMs::bigint, case when :respectsLeases::boolean then p.timeout_ms end) as ran_ms
  ) o
  where k.until > now.at
    and (k.renewed_at <= now.at - o.silent_ms or k.claimed_at <= now.at - o.ran_ms)
  order by k.fence for no key update of k skip locked
),
silent as (
  update {lease} set until = now.at, deadline_at = greatest(deadline_at, now.at + 1)
  from now where fence = any(array(select fence from stale where is_silent))
),
over as (
  update {lease} set until = now.at, deadline_at = least(deadline_at, now.at)
  from now where fence = any(array(select fence from stale where not is_silent))
)
select count(*)::int as expired from stale`;

/** Leases are summed up once, not for each instance. */
export const INSTANCES = /* sql */ `
with now as materialized (select {now} as at),
known as materialized (
  select i.*, i.retired_at is null and i.seen_at > now.at - greatest(60000, 3 * i.poll_ms) as is_live
  from {instance} i cross join now
),
page as materialized (
  select * from known
  where :isLive::boolean is null or (is_live = :isLive::boolean and no < :no::int) or (:isLive::boolean and not is_live)
  order by is_live desc, no desc limit :limit
),
holding as materialized (
  select k.holder, sum(cardinality(k.ids)) as runs from {lease} k
  where k.holder = any(array(select no from page)) group by k.holder
)
select p.no, p.id, p.app, p.release, p.jobs::text as jobs, p.is_scheduler, p.is_live, p.started_at, p.seen_at,
  p.retired_at, p.quiet_at, p.quiet_by, p.quiet_note, p.skew_ms, coalesce((select h.runs from holding h where h.holder = p.no), 0) as held
from page p order by p.is_live desc, p.no desc`;

/** Modes 0 and 1: enqueued and scheduled. */
export const STATISTICS = /* sql */ `
with now as materialized (select {now} as at),
ended as materialized (
  select r.hour_at - r.hour_at % :bucketMs::bigint as at, r.lane, r.status, sum(r.runs) as runs,
    coalesce(sum(r.runs) filter (where r.mode in (0, 1)), 0) as regular, sum(r.ran_ms) as ran_ms
  from {rollup} r
  where r.hour_at > coalesce(:at::bigint, (select now.at from now) - :agoMs::bigint) - 3600000
    and (:job::text is null or r.lane = any(array(select l.id from {lane} l where l.job = :job::text)))
  group by 1, 2, 3
)
select e.at, null as job, e.status, sum(e.runs) as runs, sum(e.regular) as regular, sum(e.ran_ms) as ran_ms
from ended e group by 1, 3
union all
select null, l.job, e.status, sum(e.runs), sum(e.regular), sum(e.ran_ms)
from ended e, lateral (select x.job from {lane} x where x.id = e.lane offset 0) l group by 2, 3`;

export const FAILURES = /* sql */ `
with newest as materialized (
  select o.id, o.lane, o.finished_at, o.error from {outcome} o where o.status = 2
  order by o.id desc limit :limit
)
select o.id, l.job, o.finished_at, o.error
from newest o, lateral (select x.job from {lane} x where x.id = o.lane offset 0) l
where o.finished_at >= coalesce(:at::bigint, {now} - :agoMs::bigint)
order by o.finished_at desc, o.id desc`;

export const GLANCE = /* sql */ `
select (select r.id from {run} r order by r.id desc limit 1) as newest,
  (select concat_ws(' ', count(*), max(k.fence), sum(cardinality(k.ids))) from {lease} k) as held,
  (select sum(t.runs) from {rollup} t where t.hour_at > {now} - 3600000) as ended,
  (select a.id from {audit} a order by a.id desc limit 1) as audited,
  (select count(*) from {alert} a where a.resolved_at is null) as alerts`;

/** Few ticks have a run that has not ended, so that looking for those among the leases costs little. */
export const TIMELINE = /* sql */ `
with ticks as materialized (
  select s.name as schedule, (greatest(t.at, :fromAt::bigint) - :fromAt::bigint) / :cellMs::bigint as cell,
    t.at, t.last_at, t.count, t.reason, greatest(0, t.recorded_at - t.at) as late_ms, t.run,
    case when t.run is null then null
      when o.id is not null then o.status
      when exists (select from {lease} k where t.run = any(k.ids)) then 0
      when exists (select from {run} r where r.id = t.run) then -1 end as status
  from {schedule} s join {tick} t on t.schedule = s.id left join {outcome} o on o.id = t.run
  where s.name = any(:names::text[]) and t.at <= :toAt::bigint and t.last_at >= :fromAt::bigint
)
select schedule, min(at) as first_at, max(last_at) as last_at, sum(count) as count, reason, status,
  max(late_ms) as late_ms, max(run::text) as run
from ticks group by schedule, cell, reason, status order by schedule, first_at, reason, status`;
