-- PENDING_REASON
with now as materialized (select clock() as at),
pending as materialized (
  select r.id, r.lane, null::bigint as wake_at, null::text as gate, null::int as flow, 0 as priority,
    null::bigint as asleep_at
  from ready r where r.id = :id::uuid
  union all
  select w.id, w.lane, w.wake_at, w.gate, w.flow, w.priority, w.asleep_at from waiting w where w.id = :id::uuid
)
select now.at as now, p.wake_at, p.gate, p.asleep_at, f.key,
  case when p.asleep_at is not null then (
    select jsonb_build_array(x.kind, x.since, x.until, x.signal, x.key, x.child) from wait x where x.run = p.id
    order by coalesce(x.until, 253402300799999), x.since, x.name limit 1) end as first_wait, l.queue, q.paused_at, q.pause_note,
  (select jsonb_build_array(z.at, z.note) from pause z where z.until_at is null) as paused,
  j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms,
  (select count(*) from flow_run h where h.held = case when j.concurrency_key is null then root.id else f.id end) as held,
  (select coalesce(sum(y.runs), 0) from flow_turn y
    where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) as used,
  (select min(y.at) from flow_turn y
    where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) as first_at,
  (select count(*) from (
    select 1 from waiting w where w.flow = p.flow and w.gate = 'flow' and p.gate = 'flow'
      and (w.wake_at - w.priority * 60000::bigint, w.id) < (p.wake_at - p.priority * 60000::bigint, p.id)
    limit 1001) x) as ahead,
  p.gate = 'schedule' and exists (
    select 1 from run own join schedule s on s.id = own.schedule cross join unnest(s.live) with ordinality m (value, place)
    where own.id = p.id and m.value <> p.id
      and (select 1 from outcome o where o.id = m.value) is null and (select 1 from run r where r.id = m.value) is not null
      and (m.place < coalesce(array_position(s.live, p.id), 2147483647)
        or (not exists (select 1 from waiting w where w.id = m.value and w.gate = 'schedule')
          and s.definition::json ->> 'overlap' <> 'allow'))) as is_kept,
  (select count(*) from instance i
    where i.retired_at is null and i.seen_at > now.at - greatest(5 * i.poll_ms, 60000)
      and l.job in (select w.value from json_array_elements_text(i.jobs) as w (value))) as instances
from pending p
join lane l on l.id = p.lane
cross join now
left join queue q on q.name = l.queue
left join job j on j.name = l.job
left join flow f on f.id = p.flow
left join flow root on root.job = l.job and root.key = '';
