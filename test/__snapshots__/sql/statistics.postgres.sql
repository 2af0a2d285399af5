-- FAILURES
with newest as materialized (
  select o.id, o.lane, o.finished_at, o.error from outcome o where o.status = 2 and o.status <> 1
  order by o.id desc limit :limit
)
select o.id, (select l.job from lane l where l.id = o.lane) as job, o.finished_at, o.error from newest o
where o.finished_at >= coalesce(:at::bigint, clock() - :agoMs::bigint)
order by o.finished_at desc, o.id desc;

-- FIGURES
with now as materialized (select clock() as at),
depth as materialized (
  select l.queue, 'ready' as state,
    (select count(*) from (select 1 from ready r where r.lane = l.id limit :limit) y) as runs
  from lane l
  union all
  select l.queue, 'waiting', w.runs
  from (select y.lane, count(*) as runs from (select x.lane from waiting x limit :limit) y group by 1) w
  join lane l on l.id = w.lane
  union all
  select l.queue, 'running', k.runs
  from (select x.lane, sum(cardinality(x.ids)) as runs from lease x group by 1) k
  join lane l on l.id = k.lane
),
live as materialized (
  select i.is_scheduler from instance i cross join now
  where i.retired_at is null and i.seen_at > now.at - greatest(60000, 3 * i.poll_ms)
)
select 'queue' as kind, d.queue as name, d.state, least(sum(d.runs), :limit) as value from depth d group by 2, 3
union all
select 'instance', '', 'any', count(*) from live
union all
select 'instance', '', 'scheduler', count(*) from live where is_scheduler
union all
select 'schedule', '', case when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end, count(*)
from schedule s where s.deleted_at is null group by 3
union all
select 'overdue', '', '', count(*) from schedule s cross join now
where s.next_at is not null and s.next_at < now.at - 300000
union all
select 'wait', '', case w.kind when 2 then 'signal' when 3 then 'run' else 'sleep' end, count(*)
from (select x.kind from wait x where x.ended_at is null limit :limit) w group by 3
union all
select 'lock', '', 'held', count(*) from lock l cross join now where l.state = 0 and l.until > now.at
union all
select 'lock', '', 'waiting', count(*) from lock_waiter w cross join now where w.seen_at > now.at - 3000;

-- GLANCE
select (select r.id from run r order by r.id desc limit 1) as newest,
  (select count(*) || ' ' || coalesce(max(k.fence), 0) || ' ' || coalesce(sum(cardinality(k.ids)), 0) from lease k) as held,
  (select sum(t.runs) from rollup t where t.hour_at > clock() - 3600000) as ended,
  (select a.id from audit a order by a.id desc limit 1) as audited,
  (select count(*) from alert a where a.resolved_at is null) as alerts;

-- SUMMARY
with now as materialized (select clock() as at),
ended as materialized (
  select r.hour_at - r.hour_at % :bucketMs::bigint as at, r.lane, r.status, sum(r.runs) as runs,
    coalesce(sum(r.runs) filter (where r.mode in (0, 1)), 0) as regular, sum(r.ran_ms) as ran_ms
  from rollup r
  where r.hour_at > coalesce(:at::bigint, (select now.at from now) - :agoMs::bigint) - 3600000
    and (:job::text is null or r.lane = any(array(select l.id from lane l where l.job = :job::text)))
  group by 1, 2, 3
)
select e.at, null as job, e.status, sum(e.runs) as runs, sum(e.regular) as regular, sum(e.ran_ms) as ran_ms
from ended e group by 1, 3
union all
select null, (select l.job from lane l where l.id = e.lane), e.status, sum(e.runs), sum(e.regular), sum(e.ran_ms)
from ended e group by 2, 3;

-- TIMELINE
with ticks as materialized (
  select s.name as schedule, (greatest(t.at, :fromAt::bigint) - :fromAt::bigint) / :cellMs::bigint as cell,
    t.at, t.last_at, t.count, t.reason, greatest(0, t.recorded_at - t.at) as late_ms, t.run,
    case when t.run is null then null
      when o.id is not null then o.status
      when exists (select 1 from lease k where t.run = any(k.ids)) then 0
      when exists (select 1 from run r where r.id = t.run) then -1 end as status
  from schedule s cross join tick t left join outcome o on o.id = t.run
  where s.name = any(:names::text[]) and t.schedule = s.id and t.at <= :toAt::bigint and t.last_at >= :fromAt::bigint
)
select schedule, min(at) as first_at, max(last_at) as last_at, sum(count) as count, reason, status,
  max(late_ms) as late_ms, max(run::text) as run
from ticks group by schedule, cell, reason, status order by schedule, first_at, reason, status;
