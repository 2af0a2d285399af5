// The statement of the timeline on PostgreSQL.

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
