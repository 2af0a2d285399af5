-- LINE_UP
with now as materialized (select clock() as at),
gone as (
  delete from waiting where ctid = any(array(
    select w.ctid from waiting w, now where w.flow = 0 and w.gate is null and w.wake_at <= now.at
    order by w.wake_at limit :limit for update of w skip locked))
  returning id, wake_at, lane, policy, priority
),
due as materialized (
  select g.*, l.job, 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from gone g,
    lateral (select x.input from run x where x.id = g.id offset 0) r,
    lateral (select x.job from lane x where x.id = g.lane offset 0) l
    left join job j on j.name = l.job
),
newcomers as materialized (
  select d.job, d.flow_key as key, d.lane, true as lined from due d where d.flow_key is not null
),

roots as (
  insert into flow (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from flow f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into flow as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select d.id, d.wake_at - d.priority * 60000, d.lane, d.policy, 0, 0, 0, 0, 0, false from due d where d.flow_key is null
),
stood as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select d.id, d.wake_at, d.lane, d.policy, d.priority, 0, 0, 0, 0, 0, false, 'flow', f.id
  from due d join flows f on f.job = d.job and f.key = d.flow_key
)
select count(*)::int as promoted from due;

-- POLL
with now as materialized (select clock() as at),
seen as (
  update instance set seen_at = now.at,
    polled_at = case when :isScheduler::boolean then now.at else polled_at end
  from now where no = :holder::int
    and (seen_at < now.at - 100 or :isScheduler::boolean and coalesce(polled_at, 0) < now.at - 100)
),
lanes as materialized (
  select l.id, l.job from lane l left join queue q on q.name = l.queue
  where l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null
)
select now.at as now,
  exists (select from lanes l, lateral (
    select 1 from ready r where r.lane = l.id and r.suspect = false limit 1) x) as "hasReady",
  exists (select from lanes l, lateral (
    select 1 from ready r where r.lane = l.id and r.suspect = true limit 1) x)
    or 
exists (
  select from lanes l, lateral (
    select 1 from flow_line n where n.lane = l.id and n.suspect = true and n.look_at <= now.at limit 1) x,
  lateral (select 1 from flow r where r.job = l.job and r.key = '' and r.open_at <= now.at limit 1) y) as "hasSuspect",
  
exists (
  select from lanes l, lateral (
    select 1 from flow_line n where n.lane = l.id and n.suspect = false and n.look_at <= now.at limit 1) x,
  lateral (select 1 from flow r where r.job = l.job and r.key = '' and r.open_at <= now.at limit 1) y) as "hasLimited",
  exists (select from waiting w where w.gate is null and w.wake_at <= now.at) as "hasDue",
  exists (select from lease k where k.until <= now.at) as "hasExpired",
  exists (select from signal s where s.is_new) or exists (select from wake) as "hasWakes",
  schedules.are_due as "hasDueSchedule",
  not :isScheduler::boolean and exists (select from schedule s where (s.is_gated or s.is_replacing or s.backfill is not null) and (s.is_replacing or s.backfill is not null or coalesce((
  select coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false) from unnest(s.live) with ordinality l (id, place)
  where (select 1 from outcome o where o.id = l.id) is null
  and (select 1 from run r where r.id = l.id) is not null order by l.place limit 1), true))) as "hasFreeGate",
  exists (select from schedule s where (s.is_gated or s.is_replacing or s.backfill is not null)) as "hasGated",
  case when schedules.are_due or :wantsLastPoll::boolean
    then (select max(i.polled_at) from instance i) end as "lastPolledAt",
  (select json_agg(c.id) from lease k, jsonb_object_keys(k.cancels) c (id)
    where k.holder = :holder::int and k.cancels is not null and c.id::uuid = any(k.ids)) as "cancelRequested",
  exists (select from lease k, jsonb_each_text(k.cancels) c (id, at)
    where k.cancels is not null and c.at::bigint + :cancelGraceMs::bigint <= now.at
      and c.id::uuid = any(k.ids)) as "hasOverdueCancel",
  least(
    (select min(w.wake_at) from waiting w where w.gate is null and w.wake_at > now.at),
    (select min(s.next_at) from schedule s where s.next_at > now.at and :isScheduler::boolean)) as "nextWakeAt",
  (select json_build_array(z.at, z.note) from pause z where z.until_at is null) as paused,
  (select json_build_array(i.quiet_at, i.quiet_note) from instance i
    where i.no = :holder::int and i.quiet_at is not null) as quiet
from now, lateral (select :isScheduler::boolean and (
  coalesce((select min(s.next_at) from schedule s where s.next_at is not null) <= now.at, false)
  or exists (select from schedule s where (s.is_gated or s.is_replacing or s.backfill is not null) and (s.is_replacing or s.backfill is not null or coalesce((
  select coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false) from unnest(s.live) with ordinality l (id, place)
  where (select 1 from outcome o where o.id = l.id) is null
  and (select 1 from run r where r.id = l.id) is not null order by l.place limit 1), true)))
  or exists (select from schedule s where s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null)) as are_due offset 0) schedules;

-- PROMOTE
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 
  order by w.wake_at limit :limit for update of w skip locked
),
gone as (delete from waiting where ctid = any(array(select tid from due where flow is null))),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect
  from due where flow is null
),
stood as (
  update waiting set gate = 'flow', asleep_at = null where ctid = any(array(select tid from due where flow is not null))
),
leaving as materialized (select null::uuid as run where false),
lined as materialized (select distinct flow, lane, suspect from due where flow is not null),

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
select (select count(*) from due)::int as promoted, exists (
  select from waiting w cross join now where w.flow = 0 and w.gate is null and w.wake_at <= now.at) as newcomers;

-- PROMOTE_OF_JOBS
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 and w.lane = any(array(select l.id from lane l where l.job = any(:jobs::text[])))
  order by w.wake_at limit :limit for update of w skip locked
),
gone as (delete from waiting where ctid = any(array(select tid from due where flow is null))),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect
  from due where flow is null
),
stood as (
  update waiting set gate = 'flow', asleep_at = null where ctid = any(array(select tid from due where flow is not null))
),
leaving as materialized (select null::uuid as run where false),
lined as materialized (select distinct flow, lane, suspect from due where flow is not null),

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
select (select count(*) from due)::int as promoted, exists (
  select from waiting w cross join now where w.flow = 0 and w.gate is null and w.wake_at <= now.at) as newcomers;

-- PROMOTE_RUNS
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 and w.id = any(:ids::uuid[])
  order by w.wake_at limit :limit for update of w skip locked
),
gone as (delete from waiting where ctid = any(array(select tid from due where flow is null))),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect
  from due where flow is null
),
stood as (
  update waiting set gate = 'flow', asleep_at = null where ctid = any(array(select tid from due where flow is not null))
),
leaving as materialized (select null::uuid as run where false),
lined as materialized (select distinct flow, lane, suspect from due where flow is not null),

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
select (select count(*) from due)::int as promoted, exists (
  select from waiting w cross join now where w.flow = 0 and w.gate is null and w.wake_at <= now.at) as newcomers;
