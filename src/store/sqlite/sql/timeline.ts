// The statement of the timeline on SQLite.

/** Few ticks have a run that has not ended, so that looking for those among the leases costs little. */
export const TIMELINE = /* sql */ `
with ticks as materialized (
  select s.name as schedule, (max(t.at, :fromAt) - :fromAt) / :cellMs as cell,
    t.at, t.last_at, t.count, t.reason, max(0, t.recorded_at - t.at) as late_ms, t.run,
    case when t.run is null then null
      when o.id is not null then o.status
      when exists (select 1 from {lease} k, json_each(k.ids) m where m.value = t.run) then 0
      when exists (select 1 from {run} r where r.id = t.run) then -1 end as status
  from json_each(:names) n cross join {schedule} s on s.name = n.value cross join {tick} t on t.schedule = s.id
    left join {outcome} o on o.id = t.run
  where t.at <= :toAt and t.last_at >= :fromAt
)
select schedule, min(at) as first_at, max(last_at) as last_at, sum(count) as count, reason, status,
  max(late_ms) as late_ms, max(run) as run
from ticks group by schedule, cell, reason, status order by schedule, first_at, reason, status`;
