-- CLAIMS_BY_TOKEN
with now as materialized (select clock() as at),
granted as materialized (select * from lease where holder = :holder::int and token = :token::uuid)
select (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)]
) f;

-- CLAIM_LIMITED_OF_JOBS
with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null and r.open_at <= now.at
),
looked as materialized (
  select x.flow, a.lane, a.concurrency_limit, a.rate_limit, a.rate_per_ms,
    a.concurrency_key is null as shares_hold, a.rate_key is null as shares_rate,
    case when a.concurrency_limit is not null then
      case when a.concurrency_key is null then a.root else x.flow end end as held_by,
    case when a.rate_limit is not null then case when a.rate_key is null then a.root else x.flow end end as rate_by
  from lanes a, lateral (
    select n.flow, n.look_at from flow_line n
    where n.lane = a.lane and n.suspect = :suspect and n.look_at <= (select at from now) 
    order by n.look_at, n.flow limit :limit::int + 50) x
  order by x.look_at, x.flow limit :limit::int + 50
),
seen as materialized (
  select f.id, f.revision from flow f where f.id = any(array(
    select k.flow from looked k union select k.held_by from looked k union select k.rate_by from looked k))
),
mine as materialized (
  select k.id, k.used from seen s, lateral (
    select f.id, f.used from flow f where f.id = s.id and f.revision = s.revision for update skip locked) k
),
open as materialized (
  select k.* from looked k
  where k.flow = any(array(select id from mine))
    and (k.held_by is null or k.held_by = any(array(select id from mine)))
    and (k.rate_by is null or k.rate_by = any(array(select id from mine)))
),
passed as (
  delete from flow_turn where ctid = any(array(
    select t.tid from (select distinct rate_by, rate_per_ms from open where rate_by is not null) o, lateral (
      select y.ctid as tid from flow_turn y
      where y.flow = o.rate_by and y.at <= (select at from now) - o.rate_per_ms offset 0) t))
  returning flow, runs
),
rates as materialized (
  select o.rate_by as flow, o.shares_rate as is_shared, coalesce(p.runs, 0) as passed, o.rate_limit - m.used + coalesce(p.runs, 0) as free,
    coalesce((
      select min(y.at) from flow_turn y
      where y.flow = o.rate_by and y.at > now.at - o.rate_per_ms), now.at) + o.rate_per_ms as free_at
  from (select distinct rate_by, rate_limit, rate_per_ms, shares_rate from open where rate_by is not null) o
  join mine m on m.id = o.rate_by
  left join (select flow, sum(runs)::int as runs from passed group by flow) p on p.flow = o.rate_by
  cross join now
),
holds as materialized (
  select o.held_by as flow, o.shares_hold as is_shared,
    o.concurrency_limit - (select count(*)::int from flow_run h where h.held = o.held_by) as free
  from (select distinct held_by, concurrency_limit, shares_hold from open where held_by is not null) o
),
waiters as materialized (
  select o.flow, o.held_by, o.rate_by, h.free as held_free, t.free as rate_free, w.*,
    row_number() over (partition by o.flow, o.lane order by w.sort_at, w.id) as place
  from open o
  left join holds h on h.flow = o.held_by
  left join rates t on t.flow = o.rate_by,
  lateral (
    select x.ctid as tid, x.id, wake_at - priority * 60000::bigint as sort_at, x.lane, x.policy, x.attempt, x.losses, x.refunds,
      x.laters, x.extra, x.suspect
    from waiting x
    where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow' 
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least(:limit::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit :limit::int
),
gone as (delete from waiting where ctid = any(array(select tid from taken))),
let_through as (insert into flow_run (run, flow, held) select t.id, t.flow, t.held_by from taken t),
turns as (
  insert into flow_turn as t (flow, at, runs)
  select k.rate_by, now.at, count(*) from taken k cross join now where k.rate_by is not null group by 1, 2
  on conflict (flow, at) do update set runs = t.runs + excluded.runs
),
held_left as materialized (
  select h.flow, h.is_shared, h.free - (select count(*) from taken k where k.held_by = h.flow) as free from holds h
),
rate_left as materialized (
  select t.flow, t.is_shared, t.passed, t.free_at, k.runs, t.free - k.runs as free
  from rates t, lateral (select count(*)::int as runs from taken k where k.rate_by = t.flow) k
),
left_open as materialized (
  select o.flow, o.lane, o.held_by, o.rate_by, h.free <= 0 as is_full, t.free <= 0 as is_used_up, t.free_at,
    ((select count(*) from waiters w where w.flow = o.flow and w.lane = o.lane)
      > (select count(*) from taken k where k.flow = o.flow and k.lane = o.lane) or 
exists (select from waiting x
  where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow'
    and x.id not in (select k.id from taken k))) as has_more
  from open o left join held_left h on h.flow = o.held_by left join rate_left t on t.flow = o.rate_by
),
relooked as (
  update flow_line n set look_at = case
    when not o.has_more then null
    when o.is_full and o.held_by = o.flow then now.at + 60000
    when o.is_used_up and o.rate_by = o.flow then o.free_at
    else now.at end
  from left_open o cross join now
  where n.flow = o.flow and n.lane = o.lane and n.suspect = :suspect
),
moved as (
  update flow f set revision = f.revision + 1, used = f.used - coalesce(x.passed, 0) + coalesce(x.runs, 0),
    open_at = case
      when h.is_shared and h.free <= 0 then now.at + 60000
      when x.is_shared and x.free <= 0 then x.free_at
      else 0 end
  from mine m left join rate_left x on x.flow = m.id left join held_left h on h.flow = m.id cross join now
  where f.id = m.id
), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g;

-- CLAIM_LIMITED_RUN
with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null and r.open_at <= now.at
),
looked as materialized (
  select x.flow, a.lane, a.concurrency_limit, a.rate_limit, a.rate_per_ms,
    a.concurrency_key is null as shares_hold, a.rate_key is null as shares_rate,
    case when a.concurrency_limit is not null then
      case when a.concurrency_key is null then a.root else x.flow end end as held_by,
    case when a.rate_limit is not null then case when a.rate_key is null then a.root else x.flow end end as rate_by
  from lanes a, lateral (
    select n.flow, n.look_at from flow_line n
    where n.lane = a.lane and n.suspect = :suspect and n.look_at <= (select at from now) and n.flow = (select y.flow from waiting y where y.id = :run::uuid)
    order by n.look_at, n.flow limit :limit::int + 50) x
  order by x.look_at, x.flow limit :limit::int + 50
),
seen as materialized (
  select f.id, f.revision from flow f where f.id = any(array(
    select k.flow from looked k union select k.held_by from looked k union select k.rate_by from looked k))
),
mine as materialized (
  select k.id, k.used from seen s, lateral (
    select f.id, f.used from flow f where f.id = s.id and f.revision = s.revision for update skip locked) k
),
open as materialized (
  select k.* from looked k
  where k.flow = any(array(select id from mine))
    and (k.held_by is null or k.held_by = any(array(select id from mine)))
    and (k.rate_by is null or k.rate_by = any(array(select id from mine)))
),
passed as (
  delete from flow_turn where ctid = any(array(
    select t.tid from (select distinct rate_by, rate_per_ms from open where rate_by is not null) o, lateral (
      select y.ctid as tid from flow_turn y
      where y.flow = o.rate_by and y.at <= (select at from now) - o.rate_per_ms offset 0) t))
  returning flow, runs
),
rates as materialized (
  select o.rate_by as flow, o.shares_rate as is_shared, coalesce(p.runs, 0) as passed, o.rate_limit - m.used + coalesce(p.runs, 0) as free,
    coalesce((
      select min(y.at) from flow_turn y
      where y.flow = o.rate_by and y.at > now.at - o.rate_per_ms), now.at) + o.rate_per_ms as free_at
  from (select distinct rate_by, rate_limit, rate_per_ms, shares_rate from open where rate_by is not null) o
  join mine m on m.id = o.rate_by
  left join (select flow, sum(runs)::int as runs from passed group by flow) p on p.flow = o.rate_by
  cross join now
),
holds as materialized (
  select o.held_by as flow, o.shares_hold as is_shared,
    o.concurrency_limit - (select count(*)::int from flow_run h where h.held = o.held_by) as free
  from (select distinct held_by, concurrency_limit, shares_hold from open where held_by is not null) o
),
waiters as materialized (
  select o.flow, o.held_by, o.rate_by, h.free as held_free, t.free as rate_free, w.*,
    row_number() over (partition by o.flow, o.lane order by w.sort_at, w.id) as place
  from open o
  left join holds h on h.flow = o.held_by
  left join rates t on t.flow = o.rate_by,
  lateral (
    select x.ctid as tid, x.id, wake_at - priority * 60000::bigint as sort_at, x.lane, x.policy, x.attempt, x.losses, x.refunds,
      x.laters, x.extra, x.suspect
    from waiting x
    where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow' and x.id = :run::uuid
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least(:limit::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit :limit::int
),
gone as (delete from waiting where ctid = any(array(select tid from taken))),
let_through as (insert into flow_run (run, flow, held) select t.id, t.flow, t.held_by from taken t),
turns as (
  insert into flow_turn as t (flow, at, runs)
  select k.rate_by, now.at, count(*) from taken k cross join now where k.rate_by is not null group by 1, 2
  on conflict (flow, at) do update set runs = t.runs + excluded.runs
),
held_left as materialized (
  select h.flow, h.is_shared, h.free - (select count(*) from taken k where k.held_by = h.flow) as free from holds h
),
rate_left as materialized (
  select t.flow, t.is_shared, t.passed, t.free_at, k.runs, t.free - k.runs as free
  from rates t, lateral (select count(*)::int as runs from taken k where k.rate_by = t.flow) k
),
left_open as materialized (
  select o.flow, o.lane, o.held_by, o.rate_by, h.free <= 0 as is_full, t.free <= 0 as is_used_up, t.free_at,
    true as has_more
  from open o left join held_left h on h.flow = o.held_by left join rate_left t on t.flow = o.rate_by
),
relooked as (
  update flow_line n set look_at = case
    when not o.has_more then null
    when o.is_full and o.held_by = o.flow then now.at + 60000
    when o.is_used_up and o.rate_by = o.flow then o.free_at
    else now.at end
  from left_open o cross join now
  where n.flow = o.flow and n.lane = o.lane and n.suspect = :suspect
),
moved as (
  update flow f set revision = f.revision + 1, used = f.used - coalesce(x.passed, 0) + coalesce(x.runs, 0),
    open_at = case
      when h.is_shared and h.free <= 0 then now.at + 60000
      when x.is_shared and x.free <= 0 then x.free_at
      else 0 end
  from mine m left join rate_left x on x.flow = m.id left join held_left h on h.flow = m.id cross join now
  where f.id = m.id
), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g;

-- CLAIM_OF_JOBS
with now as materialized (select clock() as at), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g;

-- CLAIM_RUN
with now as materialized (select clock() as at),
taken as materialized (
  select r.ctid as tid, r.* from ready r where r.id = :run::uuid and not exists (select from pause z where z.until_at is null) for update skip locked
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
)
select g.fence from granted g;

-- ENDINGS
select g.id, g.fence::text, e.ended, e.error, e.result
from json_to_recordset(:grants::json) as g (id uuid, fence bigint),
  lateral (
    (select o.status + 10 as ended, o.error, o.result from outcome o where o.id = g.id and o.fence = g.fence offset 0)
    union all
    (select a.ended, a.error, null from attempt a where a.run = g.id and a.fence = g.fence offset 0)
  ) e;

-- EXCHANGE.claim
with now as materialized (select clock() as at), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid)) as "isHeld", (select min(sort_at)::text from head) as head, (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- EXCHANGE.claimLimited
with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null and r.open_at <= now.at
),
looked as materialized (
  select x.flow, a.lane, a.concurrency_limit, a.rate_limit, a.rate_per_ms,
    a.concurrency_key is null as shares_hold, a.rate_key is null as shares_rate,
    case when a.concurrency_limit is not null then
      case when a.concurrency_key is null then a.root else x.flow end end as held_by,
    case when a.rate_limit is not null then case when a.rate_key is null then a.root else x.flow end end as rate_by
  from lanes a, lateral (
    select n.flow, n.look_at from flow_line n
    where n.lane = a.lane and n.suspect = :suspect and n.look_at <= (select at from now) 
    order by n.look_at, n.flow limit :limit::int + 50) x
  order by x.look_at, x.flow limit :limit::int + 50
),
seen as materialized (
  select f.id, f.revision from flow f where f.id = any(array(
    select k.flow from looked k union select k.held_by from looked k union select k.rate_by from looked k))
),
mine as materialized (
  select k.id, k.used from seen s, lateral (
    select f.id, f.used from flow f where f.id = s.id and f.revision = s.revision for update skip locked) k
),
open as materialized (
  select k.* from looked k
  where k.flow = any(array(select id from mine))
    and (k.held_by is null or k.held_by = any(array(select id from mine)))
    and (k.rate_by is null or k.rate_by = any(array(select id from mine)))
),
passed as (
  delete from flow_turn where ctid = any(array(
    select t.tid from (select distinct rate_by, rate_per_ms from open where rate_by is not null) o, lateral (
      select y.ctid as tid from flow_turn y
      where y.flow = o.rate_by and y.at <= (select at from now) - o.rate_per_ms offset 0) t))
  returning flow, runs
),
rates as materialized (
  select o.rate_by as flow, o.shares_rate as is_shared, coalesce(p.runs, 0) as passed, o.rate_limit - m.used + coalesce(p.runs, 0) as free,
    coalesce((
      select min(y.at) from flow_turn y
      where y.flow = o.rate_by and y.at > now.at - o.rate_per_ms), now.at) + o.rate_per_ms as free_at
  from (select distinct rate_by, rate_limit, rate_per_ms, shares_rate from open where rate_by is not null) o
  join mine m on m.id = o.rate_by
  left join (select flow, sum(runs)::int as runs from passed group by flow) p on p.flow = o.rate_by
  cross join now
),
holds as materialized (
  select o.held_by as flow, o.shares_hold as is_shared,
    o.concurrency_limit - (select count(*)::int from flow_run h where h.held = o.held_by) as free
  from (select distinct held_by, concurrency_limit, shares_hold from open where held_by is not null) o
),
waiters as materialized (
  select o.flow, o.held_by, o.rate_by, h.free as held_free, t.free as rate_free, w.*,
    row_number() over (partition by o.flow, o.lane order by w.sort_at, w.id) as place
  from open o
  left join holds h on h.flow = o.held_by
  left join rates t on t.flow = o.rate_by,
  lateral (
    select x.ctid as tid, x.id, wake_at - priority * 60000::bigint as sort_at, x.lane, x.policy, x.attempt, x.losses, x.refunds,
      x.laters, x.extra, x.suspect
    from waiting x
    where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow' 
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least(:limit::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit :limit::int
),
gone as (delete from waiting where ctid = any(array(select tid from taken))),
let_through as (insert into flow_run (run, flow, held) select t.id, t.flow, t.held_by from taken t),
turns as (
  insert into flow_turn as t (flow, at, runs)
  select k.rate_by, now.at, count(*) from taken k cross join now where k.rate_by is not null group by 1, 2
  on conflict (flow, at) do update set runs = t.runs + excluded.runs
),
held_left as materialized (
  select h.flow, h.is_shared, h.free - (select count(*) from taken k where k.held_by = h.flow) as free from holds h
),
rate_left as materialized (
  select t.flow, t.is_shared, t.passed, t.free_at, k.runs, t.free - k.runs as free
  from rates t, lateral (select count(*)::int as runs from taken k where k.rate_by = t.flow) k
),
left_open as materialized (
  select o.flow, o.lane, o.held_by, o.rate_by, h.free <= 0 as is_full, t.free <= 0 as is_used_up, t.free_at,
    ((select count(*) from waiters w where w.flow = o.flow and w.lane = o.lane)
      > (select count(*) from taken k where k.flow = o.flow and k.lane = o.lane) or 
exists (select from waiting x
  where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow'
    and x.id not in (select k.id from taken k))) as has_more
  from open o left join held_left h on h.flow = o.held_by left join rate_left t on t.flow = o.rate_by
),
relooked as (
  update flow_line n set look_at = case
    when not o.has_more then null
    when o.is_full and o.held_by = o.flow then now.at + 60000
    when o.is_used_up and o.rate_by = o.flow then o.free_at
    else now.at end
  from left_open o cross join now
  where n.flow = o.flow and n.lane = o.lane and n.suspect = :suspect
),
moved as (
  update flow f set revision = f.revision + 1, used = f.used - coalesce(x.passed, 0) + coalesce(x.runs, 0),
    open_at = case
      when h.is_shared and h.free <= 0 then now.at + 60000
      when x.is_shared and x.free <= 0 then x.free_at
      else 0 end
  from mine m left join rate_left x on x.flow = m.id left join held_left h on h.flow = m.id cross join now
  where f.id = m.id
), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority, 
  exists (
  select from waiting w cross join now where w.flow = 0 and w.gate is null and w.wake_at <= now.at) as newcomers,
  (select count(*) from seen)::int - (select count(*) from mine)::int as contended,
  (select min(o.free_at) - min(now.at) from left_open o cross join now
    where o.is_used_up and o.has_more) as "limitedInMs" from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- EXCHANGE.finishAndClaim
with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, :fence::bigint) as fence, coalesce(s.status, :status::smallint) as status, coalesce(s.mode, :mode::smallint) as mode, coalesce(s."ranMs", :ranAllMs::bigint) as "ranMs", coalesce(s.result, :result::text) as result, coalesce(s.error, :error::text) as error
  from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:results::text[]), unnest(:errors::text[]), json_array_elements('[]'))
    as s (id, fence, status, mode, "ranMs", result, error)
),
locked as materialized (
  select *, cardinality(ids) as size from lease where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels
  from locked k, rows from (unnest(k.ids), json_array_elements('[]')) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error
    
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
ended as (delete from lease where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid)) as "isHeld", (select min(sort_at)::text from head) as head, (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- EXCHANGE.finishWholeAndClaim
with now as materialized (select clock() as at), 
whole as (
  delete from lease where fence = :fence::bigint and cardinality(ids) = :size::int
    and ids[1] = :first::uuid and ids[:size::int] = :last::uuid
  returning fence, lane, holder, attempt, extra, ids
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result)
  select u.id, k.fence, (select at from now) - coalesce(u.ran_ms, :ranAllMs::bigint), (select at from now), k.lane, k.holder,
    k.attempt, k.extra, 1, coalesce(u.result, :result::text)
  from whole k, rows from (unnest(k.ids), unnest(:ranMs::bigint[]), unnest(:results::text[])) u (id, ran_ms, result)
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, k.lane, :mode::smallint, 1, :shard::int, :size::int, :ranSumMs::bigint
  from whole k cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select exists (select from whole) as "isSettled", (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid)) as "isHeld", (select min(sort_at)::text from head) as head, (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- EXCHANGE.settleAndClaim
with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, :fence::bigint) as fence, coalesce(s.status, :status::smallint) as status, coalesce(s.mode, :mode::smallint) as mode, coalesce(s."ranMs", :ranAllMs::bigint) as "ranMs", coalesce(s.result, :result::text) as result, coalesce(s.error, :error::text) as error, coalesce(s.ended, :end::smallint) as ended, coalesce(s."delayMs", :delayAllMs::bigint) as "delayMs", coalesce(s.refund, :refund::smallint) as refund, coalesce(s.schedule, :schedule::int) as schedule, coalesce(s.batch, :batch::int) as batch
  from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:results::text[]), unnest(:errors::text[]), unnest(:ends::smallint[]), unnest(:delayMs::bigint[]), unnest(:refunds::smallint[]), unnest(:schedules::int[]), unnest(:batches::int[]), json_array_elements('[]'))
    as s (id, fence, status, mode, "ranMs", result, error, ended, "delayMs", refund, schedule, batch)
),
locked as materialized (
  select *, cardinality(ids) as size from lease where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels, k.policy, k.losses, k.refunds, k.laters, k.limited
  from locked k, rows from (unnest(k.ids), json_array_elements('[]')) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error, m.policy, m.losses, m.refunds, m.laters, m.limited
    , s.ended, s."delayMs", s.refund, m.suspect and s.ended = 4 as suspect, s.schedule, s.batch
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
ended as (delete from lease where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
), 
again as materialized (
  select v.*, r.priority, null::int as flow, false as is_rated from valid v,
    lateral (select x.priority from run x where x.id = v.id offset 0) r
  where v.status < 0
), 
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select v.id, v.fence, v.attempt, v.ended, v.holder, now.at - v."ranMs", now.at, v.error
  from again v cross join now
),
postponed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select v.id, now.at + v."delayMs", v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow
  from again v cross join now where v."delayMs" > 0
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select v.id, now.at - v.priority * 60000, v.lane, v.policy, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow is not null
  from again v cross join now where v."delayMs" = 0 and not v.is_rated
),
ended_runs as materialized (
  select v.schedule, v.id, v.status, row_number() over () - 1 as place
  from valid v where v.status >= 0 and v.schedule is not null
),

rescheduled as (
  update schedule s set revision = s.revision + 1,
    next_at = case
      when s.next_at is null or s.range_min is null then s.next_at
      when e.status = 2 and s.fail_min is not null
        then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
    hold_run = case when s.range_min is null then e.id else s.hold_run end
  from ended_runs e, now
  where s.id = any(array(select schedule from ended_runs)) and s.id = e.schedule and s.last_run = e.id
    and (s.range_min is not null or (e.status = 2 and s.fail_min is not null))
  returning s.id
),

child_ends as materialized (select e.* from (select v.batch, v.status, v.id, v.result, v.error from valid v where v.status >= 0) e where e.batch is not null),
child_changes as materialized (
  select e.batch, -1 as unended, (e.status = 1)::int as completed, (e.status = 2)::int as failed,
    (e.status = 3)::int as cancelled
  from child_ends e
),
answered as (
  update wait w set status = e.status, value = e.result, error = e.error, ended_at = now.at
  from child_ends e, now where w.batch = e.batch and w.child = e.id and w.ended_at is null
  returning w.run
),
woken_parents as (
  insert into wake as k (run, at) select distinct a.run, now.at from answered a cross join now order by 1
  on conflict (run) do update set at = excluded.at
),

batch_change as materialized (
  select batch, sum(unended)::int as unended, sum(completed)::int as completed, sum(failed)::int as failed,
    sum(cancelled)::int as cancelled
  from child_changes group by batch
),
batch_locked as materialized (
  select b.* from batch b where b.id = any(array(select batch from batch_change)) order by b.id for update
),
batch_after as materialized (
  select l.id, l.run, l.scheduled, l.refused, l.then_run, l.then_lane, l.then_policy, l.then_version, l.then_priority,
    l.unended + c.unended as unended, l.completed + c.completed as completed, l.failed + c.failed as failed,
    l.cancelled + c.cancelled as cancelled, l.ended_at is null and l.unended + c.unended = 0 as is_over
  from batch_locked l join batch_change c on c.batch = l.id
),
batch_counted as (
  update batch b set unended = a.unended, completed = a.completed, failed = a.failed, cancelled = a.cancelled,
    ended_at = case when a.is_over then now.at else b.ended_at end
  from batch_after a, now where b.id = a.id
),
continued as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
  select a.then_run, now.at, now.at, a.then_lane, a.then_policy, a.then_version, a.then_priority, 0, a.run,
    format('{"scheduled":%s,"errors":%s,"completed":%s,"failed":%s,"cancelled":%s}',
      a.scheduled, a.refused, a.completed, a.failed, a.cancelled)
  from batch_after a cross join now where a.is_over and a.then_run is not null
  returning id, due_at, lane, policy, priority
),
continuation as materialized (select c.*, exists (
  select from lane l join job j on j.name = l.job
  where l.id = c.lane and (j.concurrency_limit is not null or j.rate_limit is not null)) as limited from continued c),
continuing as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select c.id, c.due_at - c.priority * 60000, c.lane, c.policy, 0, 0, 0, 0, 0, false from continuation c where not c.limited
),
continuing_limited as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select c.id, c.due_at, c.lane, c.policy, c.priority, 0, 0, 0, 0, 0, false, 0 from continuation c where c.limited
), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
)
select (select count(*)::int from continued) as continued, case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid)) as "isHeld", (select min(sort_at)::text from head) as head, (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- EXCHANGE.settleLimitedAndClaim
with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, :fence::bigint) as fence, coalesce(s.status, :status::smallint) as status, coalesce(s.mode, :mode::smallint) as mode, coalesce(s."ranMs", :ranAllMs::bigint) as "ranMs", coalesce(s.result, :result::text) as result, coalesce(s.error, :error::text) as error, coalesce(s.ended, :end::smallint) as ended, coalesce(s."delayMs", :delayAllMs::bigint) as "delayMs", coalesce(s.refund, :refund::smallint) as refund, coalesce(s.schedule, :schedule::int) as schedule, coalesce(s.batch, :batch::int) as batch
  from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:results::text[]), unnest(:errors::text[]), unnest(:ends::smallint[]), unnest(:delayMs::bigint[]), unnest(:refunds::smallint[]), unnest(:schedules::int[]), unnest(:batches::int[]), json_array_elements('[]'))
    as s (id, fence, status, mode, "ranMs", result, error, ended, "delayMs", refund, schedule, batch)
),
locked as materialized (
  select *, cardinality(ids) as size from lease where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels, k.policy, k.losses, k.refunds, k.laters, k.limited
  from locked k, rows from (unnest(k.ids), json_array_elements('[]')) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error, m.policy, m.losses, m.refunds, m.laters, m.limited
    , s.ended, s."delayMs", s.refund, m.suspect and s.ended = 4 as suspect, s.schedule, s.batch
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
ended as (delete from lease where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
), 
again as materialized (
  select v.*, r.priority, p.flow, p.flow is not null and j.rate_limit is not null as is_rated
  from valid v
  left join lateral (select x.flow from flow_run x where v.limited and x.run = v.id offset 0) p on true
  left join lateral (
    select y.rate_limit from lane l join job y on y.name = l.job where v.limited and l.id = v.lane offset 0) j on true,
    lateral (select x.priority from run x where x.id = v.id offset 0) r
  where v.status < 0
),
stood as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select v.id, now.at, v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, 'flow', v.flow
  from again v cross join now where v."delayMs" = 0 and v.is_rated
), 
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select v.id, v.fence, v.attempt, v.ended, v.holder, now.at - v."ranMs", now.at, v.error
  from again v cross join now
),
postponed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select v.id, now.at + v."delayMs", v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow
  from again v cross join now where v."delayMs" > 0
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select v.id, now.at - v.priority * 60000, v.lane, v.policy, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow is not null
  from again v cross join now where v."delayMs" = 0 and not v.is_rated
),
ended_runs as materialized (
  select v.schedule, v.id, v.status, row_number() over () - 1 as place
  from valid v where v.status >= 0 and v.schedule is not null
),

rescheduled as (
  update schedule s set revision = s.revision + 1,
    next_at = case
      when s.next_at is null or s.range_min is null then s.next_at
      when e.status = 2 and s.fail_min is not null
        then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
    hold_run = case when s.range_min is null then e.id else s.hold_run end
  from ended_runs e, now
  where s.id = any(array(select schedule from ended_runs)) and s.id = e.schedule and s.last_run = e.id
    and (s.range_min is not null or (e.status = 2 and s.fail_min is not null))
  returning s.id
),

child_ends as materialized (select e.* from (select v.batch, v.status, v.id, v.result, v.error from valid v where v.status >= 0) e where e.batch is not null),
child_changes as materialized (
  select e.batch, -1 as unended, (e.status = 1)::int as completed, (e.status = 2)::int as failed,
    (e.status = 3)::int as cancelled
  from child_ends e
),
answered as (
  update wait w set status = e.status, value = e.result, error = e.error, ended_at = now.at
  from child_ends e, now where w.batch = e.batch and w.child = e.id and w.ended_at is null
  returning w.run
),
woken_parents as (
  insert into wake as k (run, at) select distinct a.run, now.at from answered a cross join now order by 1
  on conflict (run) do update set at = excluded.at
),

batch_change as materialized (
  select batch, sum(unended)::int as unended, sum(completed)::int as completed, sum(failed)::int as failed,
    sum(cancelled)::int as cancelled
  from child_changes group by batch
),
batch_locked as materialized (
  select b.* from batch b where b.id = any(array(select batch from batch_change)) order by b.id for update
),
batch_after as materialized (
  select l.id, l.run, l.scheduled, l.refused, l.then_run, l.then_lane, l.then_policy, l.then_version, l.then_priority,
    l.unended + c.unended as unended, l.completed + c.completed as completed, l.failed + c.failed as failed,
    l.cancelled + c.cancelled as cancelled, l.ended_at is null and l.unended + c.unended = 0 as is_over
  from batch_locked l join batch_change c on c.batch = l.id
),
batch_counted as (
  update batch b set unended = a.unended, completed = a.completed, failed = a.failed, cancelled = a.cancelled,
    ended_at = case when a.is_over then now.at else b.ended_at end
  from batch_after a, now where b.id = a.id
),
continued as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
  select a.then_run, now.at, now.at, a.then_lane, a.then_policy, a.then_version, a.then_priority, 0, a.run,
    format('{"scheduled":%s,"errors":%s,"completed":%s,"failed":%s,"cancelled":%s}',
      a.scheduled, a.refused, a.completed, a.failed, a.cancelled)
  from batch_after a cross join now where a.is_over and a.then_run is not null
  returning id, due_at, lane, policy, priority
),
continuation as materialized (select c.*, exists (
  select from lane l join job j on j.name = l.job
  where l.id = c.lane and (j.concurrency_limit is not null or j.rate_limit is not null)) as limited from continued c),
continuing as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select c.id, c.due_at - c.priority * 60000, c.lane, c.policy, 0, 0, 0, 0, 0, false from continuation c where not c.limited
),
continuing_limited as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select c.id, c.due_at, c.lane, c.policy, c.priority, 0, 0, 0, 0, 0, false, 0 from continuation c where c.limited
), 
ended_waits as (
  insert into wake as k (run, at)
  select distinct w.run, now.at from (select v.id from valid v where v.status >= 0) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = :suspect and r.sort_at >= :low::bigint
      order by r.sort_at, r.id limit 1) h
  where :limit::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any(:jobs::text[])
    and (:queues::text[] is null or l.queue = any(:queues::text[])) and q.paused_at is null and not (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = :suspect and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit :limit for update skip locked) x
  limit :limit
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(:apart::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    :holder::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    :token::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
), 
leaving as materialized (
  select v.id as run from valid v where v.limited and v.status >= 0
  union all
  select a.id from again a where a.limited and (a."delayMs" > 0 or a.is_rated)
),
lined as materialized (select distinct flow, lane, suspect from again where "delayMs" = 0 and is_rated),

left_flow as (delete from flow_run where run = any(array(select run from leaving)) returning held),
freed as materialized (select distinct held as flow from left_flow where held is not null),
touched as materialized (
  select f.id from flow f
  where f.id = any(array(select e.flow from freed e union all select e.flow from lined e))
  order by f.job, f.key for update
),
bumped as (
  update flow set revision = revision + 1,
    open_at = case when id = any(array(select flow from freed)) then 0 else open_at end
  where id = any(array(select id from touched))
),
-- If runs wait already, a new one changes nothing; a run that leaves lets the line be read again.
relined as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select x.flow, x.lane, x.suspect, x.look_at
  from (
    select e.flow, e.lane, e.suspect, now.at as look_at from lined e cross join now
    union
    select y.flow, y.lane, y.suspect, null from flow_line y
    where y.flow = any(array(select flow from freed))
      and not exists (select from lined e where e.flow = y.flow and e.lane = y.lane and e.suspect = y.suspect)
  ) x
  where x.flow = any(array(select id from touched))
  on conflict (flow, lane, suspect) do update set look_at = case
    when n.look_at is not null and n.flow = any(array(select flow from freed)) then (select at from now)
    else coalesce(n.look_at, excluded.look_at) end
)
select (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled, case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, (:isNamed::boolean and exists (
    select from lease k where k.holder = :holder::int and k.token = :token::uuid)) as "isHeld", (select min(sort_at)::text from head) as head, (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority from (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)] and r.id >= :idsFrom::uuid and r.id < :idsUntil::uuid
) f;

-- FINISH
with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, :fence::bigint) as fence, coalesce(s.status, :status::smallint) as status, coalesce(s.mode, :mode::smallint) as mode, coalesce(s."ranMs", :ranAllMs::bigint) as "ranMs", coalesce(s.result, :result::text) as result, coalesce(s.error, :error::text) as error
  from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:results::text[]), unnest(:errors::text[]), json_array_elements('[]'))
    as s (id, fence, status, mode, "ranMs", result, error)
),
locked as materialized (
  select *, cardinality(ids) as size from lease where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels
  from locked k, rows from (unnest(k.ids), json_array_elements('[]')) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error
    
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
ended as (delete from lease where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
) select case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, set_config('idle_in_transaction_session_timeout', '5000', true) as patience;

-- HELD
with now as materialized (select clock() as at),
granted as materialized (select * from lease where fence = :fence::bigint and ids @> array[:id::uuid])
select (
  select json_agg(json_build_object(
    'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'isSuspect', c.suspect,
    'isLimited', c.limited,
    'leaseMs', greatest(c.until - now.at, 0), 'losses', c.losses, 'refunds', c.refunds, 'laters', c.laters,
    'extraAttempts', c.extra,
    'policy', json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
    'ids', case when (c.ids = f.ids) is not true then c.ids end
  ))
  from granted c join lane l on l.id = c.lane join policy p on p.id = c.policy cross join now
) as claims, array_to_json(f.ids) as ids, f.inputs, array_to_json(f.due_ats) as "dueAts",
array_to_json(nullif(f.created_ats, f.due_ats)) as "createdAts", f.others, w.version, w.priority, g.holder, (now.at - g.claimed_at)::float8 as held_ms,
  coalesce(g.cancels ? :id::text, false) as is_cancel_requested,
  (select i.id from instance i where i.no = g.holder) as instance,
  (select i.remote_by from instance i where i.no = g.holder) as remote_by
from granted g cross join now, (
  select array(select m.id from granted c, unnest(c.ids) m (id) order by m.id) as ids, u.version, u.priority
  from (values (true)) one left join (
    select j.version, j.priority from granted c join lane l on l.id = c.lane join job j on j.name = l.job limit 1
  ) u on true offset 0
) w, lateral (
  select array_agg(r.id) as ids, json_agg(r.input) as inputs, array_agg(r.due_at) as due_ats,
    array_agg(r.created_at) as created_ats,
    json_agg(json_build_array(r.id, r.mode, r.version, r.priority, r.nominal_at, r.schedule, r.batch, r.tags))
      filter (where (r.mode = 0 and r.version = w.version and r.priority = w.priority and r.nominal_at is null
        and r.schedule is null and r.batch is null and r.tags is null) is not true) as others
  from run r where r.id = any(w.ids) and r.id >= w.ids[1] and r.id <= w.ids[cardinality(w.ids)]
) f;

-- NOW
with now as materialized (select clock() as at);

-- SETTLE
with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, :fence::bigint) as fence, coalesce(s.status, :status::smallint) as status, coalesce(s.mode, :mode::smallint) as mode, coalesce(s."ranMs", :ranAllMs::bigint) as "ranMs", coalesce(s.result, :result::text) as result, coalesce(s.error, :error::text) as error, coalesce(s.ended, :end::smallint) as ended, coalesce(s."delayMs", :delayAllMs::bigint) as "delayMs", coalesce(s.refund, :refund::smallint) as refund, coalesce(s.schedule, :schedule::int) as schedule, coalesce(s.batch, :batch::int) as batch
  from rows from (unnest(:ids::uuid[]), unnest(:fences::bigint[]), unnest(:statuses::smallint[]), unnest(:modes::smallint[]), unnest(:ranMs::bigint[]), unnest(:results::text[]), unnest(:errors::text[]), unnest(:ends::smallint[]), unnest(:delayMs::bigint[]), unnest(:refunds::smallint[]), unnest(:schedules::int[]), unnest(:batches::int[]), json_array_elements('[]'))
    as s (id, fence, status, mode, "ranMs", result, error, ended, "delayMs", refund, schedule, batch)
),
locked as materialized (
  select *, cardinality(ids) as size from lease where fence = any(array(select distinct fence from sent)) for update
),
member as not materialized (
  select m.id, k.fence, k.size, k.lane, k.attempt, k.extra, k.holder, k.suspect, k.cancels, k.policy, k.losses, k.refunds, k.laters, k.limited
  from locked k, rows from (unnest(k.ids), json_array_elements('[]')) m (id) offset 0
),
valid as materialized (
  select s.fence, m.size, m.lane, s.mode,
    case when s.status <> 1 and m.cancels ? s.id::text then 3 else s.status end as status, s."ranMs",
    s.id, m.holder, m.attempt, m.extra, s.result, s.error, m.policy, m.losses, m.refunds, m.laters, m.limited
    , s.ended, s."delayMs", s.refund, m.suspect and s.ended = 4 as suspect, s.schedule, s.batch
  from sent s join member m on m.id = s.id and m.fence = s.fence
),
summed as materialized (
  select fence, size, lane, mode, status, count(*) as runs, sum("ranMs") as ran_ms from valid group by 1, 2, 3, 4, 5
),
tally as materialized (select fence, sum(runs) = size as is_whole from summed group by fence, size),
ended as (delete from lease where fence = any(array(select fence from tally where is_whole))),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select fence from tally where not is_whole))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
  select v.id, v.fence, (select at from now) - v."ranMs", (select at from now), v.lane, v.holder, v.attempt, v.extra,
    v.status, v.result, v.error
  from valid v where v.status >= 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, :shard::int, v.runs, v.ran_ms
  from (
    select lane, mode, status, sum(runs) as runs, sum(ran_ms) as ran_ms from summed where status >= 0 group by 1, 2, 3
  ) v cross join now
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
), 
again as materialized (
  select v.*, r.priority, p.flow, p.flow is not null and j.rate_limit is not null as is_rated
  from valid v
  left join lateral (select x.flow from flow_run x where v.limited and x.run = v.id offset 0) p on true
  left join lateral (
    select y.rate_limit from lane l join job y on y.name = l.job where v.limited and l.id = v.lane offset 0) j on true,
    lateral (select x.priority from run x where x.id = v.id offset 0) r
  where v.status < 0
),
stood as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select v.id, now.at, v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, 'flow', v.flow
  from again v cross join now where v."delayMs" = 0 and v.is_rated
), 
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select v.id, v.fence, v.attempt, v.ended, v.holder, now.at - v."ranMs", now.at, v.error
  from again v cross join now
),
postponed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select v.id, now.at + v."delayMs", v.lane, v.policy, v.priority, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow
  from again v cross join now where v."delayMs" > 0
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select v.id, now.at - v.priority * 60000, v.lane, v.policy, v.attempt - v.refund, v.losses,
    v.refunds + case when v.ended = 4 then v.refund else 0 end,
    v.laters + case when v.ended = 3 then 1 else 0 end, v.extra, v.suspect, v.flow is not null
  from again v cross join now where v."delayMs" = 0 and not v.is_rated
),
ended_runs as materialized (
  select v.schedule, v.id, v.status, row_number() over () - 1 as place
  from valid v where v.status >= 0 and v.schedule is not null
),

rescheduled as (
  update schedule s set revision = s.revision + 1,
    next_at = case
      when s.next_at is null or s.range_min is null then s.next_at
      when e.status = 2 and s.fail_min is not null
        then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor(((:chance::float8 + e.place * 0.618034) - floor(:chance::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
    hold_run = case when s.range_min is null then e.id else s.hold_run end
  from ended_runs e, now
  where s.id = any(array(select schedule from ended_runs)) and s.id = e.schedule and s.last_run = e.id
    and (s.range_min is not null or (e.status = 2 and s.fail_min is not null))
  returning s.id
),

child_ends as materialized (select e.* from (select v.batch, v.status, v.id, v.result, v.error from valid v where v.status >= 0) e where e.batch is not null),
child_changes as materialized (
  select e.batch, -1 as unended, (e.status = 1)::int as completed, (e.status = 2)::int as failed,
    (e.status = 3)::int as cancelled
  from child_ends e
),
answered as (
  update wait w set status = e.status, value = e.result, error = e.error, ended_at = now.at
  from child_ends e, now where w.batch = e.batch and w.child = e.id and w.ended_at is null
  returning w.run
),
woken_parents as (
  insert into wake as k (run, at) select distinct a.run, now.at from answered a cross join now order by 1
  on conflict (run) do update set at = excluded.at
),

batch_change as materialized (
  select batch, sum(unended)::int as unended, sum(completed)::int as completed, sum(failed)::int as failed,
    sum(cancelled)::int as cancelled
  from child_changes group by batch
),
batch_locked as materialized (
  select b.* from batch b where b.id = any(array(select batch from batch_change)) order by b.id for update
),
batch_after as materialized (
  select l.id, l.run, l.scheduled, l.refused, l.then_run, l.then_lane, l.then_policy, l.then_version, l.then_priority,
    l.unended + c.unended as unended, l.completed + c.completed as completed, l.failed + c.failed as failed,
    l.cancelled + c.cancelled as cancelled, l.ended_at is null and l.unended + c.unended = 0 as is_over
  from batch_locked l join batch_change c on c.batch = l.id
),
batch_counted as (
  update batch b set unended = a.unended, completed = a.completed, failed = a.failed, cancelled = a.cancelled,
    ended_at = case when a.is_over then now.at else b.ended_at end
  from batch_after a, now where b.id = a.id
),
continued as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
  select a.then_run, now.at, now.at, a.then_lane, a.then_policy, a.then_version, a.then_priority, 0, a.run,
    format('{"scheduled":%s,"errors":%s,"completed":%s,"failed":%s,"cancelled":%s}',
      a.scheduled, a.refused, a.completed, a.failed, a.cancelled)
  from batch_after a cross join now where a.is_over and a.then_run is not null
  returning id, due_at, lane, policy, priority
),
continuation as materialized (select c.*, exists (
  select from lane l join job j on j.name = l.job
  where l.id = c.lane and (j.concurrency_limit is not null or j.rate_limit is not null)) as limited from continued c),
continuing as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select c.id, c.due_at - c.priority * 60000, c.lane, c.policy, 0, 0, 0, 0, 0, false from continuation c where not c.limited
),
continuing_limited as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select c.id, c.due_at, c.lane, c.policy, c.priority, 0, 0, 0, 0, 0, false, 0 from continuation c where c.limited
), 
ended_waits as (
  insert into wake as k (run, at)
  select distinct w.run, now.at from (select v.id from valid v where v.status >= 0) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
), 
leaving as materialized (
  select v.id as run from valid v where v.limited and v.status >= 0
  union all
  select a.id from again a where a.limited and (a."delayMs" > 0 or a.is_rated)
),
lined as materialized (select distinct flow, lane, suspect from again where "delayMs" = 0 and is_rated),

left_flow as (delete from flow_run where run = any(array(select run from leaving)) returning held),
freed as materialized (select distinct held as flow from left_flow where held is not null),
touched as materialized (
  select f.id from flow f
  where f.id = any(array(select e.flow from freed e union all select e.flow from lined e))
  order by f.job, f.key for update
),
bumped as (
  update flow set revision = revision + 1,
    open_at = case when id = any(array(select flow from freed)) then 0 else open_at end
  where id = any(array(select id from touched))
),
-- If runs wait already, a new one changes nothing; a run that leaves lets the line be read again.
relined as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select x.flow, x.lane, x.suspect, x.look_at
  from (
    select e.flow, e.lane, e.suspect, now.at as look_at from lined e cross join now
    union
    select y.flow, y.lane, y.suspect, null from flow_line y
    where y.flow = any(array(select flow from freed))
      and not exists (select from lined e where e.flow = y.flow and e.lane = y.lane and e.suspect = y.suspect)
  ) x
  where x.flow = any(array(select id from touched))
  on conflict (flow, lane, suspect) do update set look_at = case
    when n.look_at is not null and n.flow = any(array(select flow from freed)) then (select at from now)
    else coalesce(n.look_at, excluded.look_at) end
)
select case when coalesce((select sum(runs) from summed), 0) < cardinality(:ids::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled,
  case when :isLastBeforeCommit::boolean then set_config('idle_in_transaction_session_timeout', '5000', true) end as patience;
