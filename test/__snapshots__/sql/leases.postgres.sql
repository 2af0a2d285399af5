-- ENFORCE_CANCELS
with now as materialized (select clock() as at),
locked as materialized (
  select k.* from lease k where k.cancels is not null for update skip locked
),
overdue as materialized (
  select k.fence, u.id, k.claimed_at, k.lane, k.holder, k.attempt, k.extra, r.mode, r.schedule, r.batch
  from locked k cross join now cross join unnest(k.ids) u (id),
    lateral (select x.mode, x.schedule, x.batch from run x where x.id = u.id offset 0) r
  where (k.cancels ->> u.id::text)::bigint + :graceMs::bigint <= now.at
),
emptied as (
  delete from lease where fence = any(array(
    select k.fence from locked k join (select fence, count(*) as n from overdue group by fence) o on o.fence = k.fence
    where o.n = cardinality(k.ids)))
  returning fence
),
shrunk as (
  update lease k set ids = array(select unnest(k.ids) except select o.id from overdue o)
  where k.fence = any(array(select fence from overdue except select fence from emptied))
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, 3, '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}' from overdue cross join now
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, 3, 0, count(*), sum(now.at - claimed_at)
  from overdue cross join now group by 1, 2, 3 order by 1, 2, 3
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
ended_runs as materialized (
  select schedule, id, 3 as status, row_number() over () - 1 as place from overdue where schedule is not null
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

child_ends as materialized (select e.* from (select batch, 3 as status, id, null::text as result, '{"code":"CANCEL_ENFORCED","name":"CancelEnforced","message":"The run was cancelled and its holder did not end it in time."}' as error from overdue) e where e.batch is not null),
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
  select distinct w.run, now.at from (select id from overdue) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
),
leaving as materialized (select id as run from overdue),

lined as materialized (select null::int as flow, null::int as lane, false as suspect where false),

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
select id, fence::text, (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled from overdue;

-- EXPIRE_STALE
with now as materialized (select clock() as at),
stale as materialized (
  select k.fence, k.renewed_at <= now.at - o.silent_ms as is_silent
  from lease k cross join now join policy p on p.id = k.policy
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
  update lease set until = now.at, deadline_at = greatest(deadline_at, now.at + 1)
  from now where fence = any(array(select fence from stale where is_silent))
),
over as (
  update lease set until = now.at, deadline_at = least(deadline_at, now.at)
  from now where fence = any(array(select fence from stale where not is_silent))
)
select count(*)::int as expired from stale;

-- GRANT_STATE
with locked as materialized (
  select ids from lease where fence = :fence::bigint for update skip locked
)
select
  exists (select from locked k where :id::uuid = any(k.ids)) as held,
  exists (select from lease k where k.fence = :fence::bigint and :id::uuid = any(k.ids)) as there,
  exists (select from outcome o where o.id = :id::uuid and o.fence = :fence::bigint and o.status = 1) as completed;

-- MARK_STARTED
with given as materialized (
  select * from json_to_recordset(:grants::json) as g (id uuid, fence bigint)
),
locked as materialized (
  select fence, ids from lease where fence = any(array(select distinct fence from given)) for update
),
valid as materialized (
  select g.id, g.fence from given g join locked k on k.fence = g.fence where g.id = any(k.ids)
),
marked as (
  update lease k set started = k.started || array(select v.id from valid v where v.fence = k.fence)
  where k.fence = any(array(select distinct fence from valid))
)
select id, fence from valid;

-- RECLAIM
with now as materialized (select clock() as at),
expired as materialized (
  select k.* from lease k, now where k.until <= now.at 
  order by k.until limit :limit for update of k skip locked
),
gone as (delete from lease where fence = any(array(select fence from expired))),
lost as materialized (
  select x.fence, u.id, x.lane, x.policy, x.attempt, x.losses, x.refunds, x.laters, x.extra, x.holder,
    x.claimed_at, r.priority, r.mode, r.schedule, r.batch, f.flow, f.is_rated, p.delay_ms, p.factor, p.max_ms, p.jitter,
    x.deadline_at <= x.until as over_time,
    coalesce(x.cancels ? u.id::text, false) as cancelled,
    x.attempt >= p.attempts + x.extra or (p.on_lost = 1 and x.deadline_at > x.until) as is_final,
    u.id = any(x.started) as has_begun,
    row_number() over (order by x.until, u.id) as place
  from expired x cross join now
  join policy p on p.id = x.policy
  cross join unnest(x.ids) u (id)
  left join lateral (
    select y.flow, exists (
      select from lane l join job j on j.name = l.job where l.id = x.lane and j.rate_limit is not null) as is_rated
    from flow_run y where x.limited and y.run = u.id offset 0) f on true,
  lateral (select y.priority, y.mode, y.schedule, y.batch from run y where y.id = u.id offset 0) r
),
judged as materialized (
  select l.*,
    case
      when cancelled then 3
      when is_final and not over_time and not has_begun and refunds < 100 then -2
      when is_final then 2
      else -1
    end as verdict,
    case when over_time then 2 else 1 end as ended,
    coalesce(is_rated, false) as stands,
    floor(least(max_ms, delay_ms * exp(least((attempt - 1) * ln(factor), 50)))
      * (1 - jitter * ((:chance::float8 + place * 0.618034) - floor(:chance::float8 + place * 0.618034))))::bigint as backoff_ms,
    case when over_time then '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}' else '{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}' end as error
  from lost l
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, verdict, error
  from judged cross join now where verdict > 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, verdict, 0, count(*), sum(now.at - claimed_at)
  from judged cross join now where verdict > 0 group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, ended, holder, claimed_at, now.at, error from judged cross join now where verdict < 0
),
-- Runs that are ready again at once; under a rate every attempt joins the line.
back as materialized (
  select id, lane, policy, priority, flow, stands, laters, extra, verdict = -1 as suspect,
    case when verdict = -2 then attempt - 1 else attempt end as attempt,
    case when verdict = -2 then losses else losses + 1 end as losses,
    case when verdict = -2 then refunds + 1 else refunds end as refunds
  from judged where verdict = -2 or (verdict = -1 and not over_time and losses = 0)
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select id, now.at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect, flow is not null
  from back cross join now where not stands
),
stood as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select id, now.at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, 'flow', flow
  from back cross join now where stands
),
postponed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select id, now.at + backoff_ms, lane, policy, priority, attempt,
    case when over_time then losses else losses + 1 end, refunds, laters, extra, not over_time, flow
  from judged cross join now where verdict = -1 and (over_time or losses > 0)
),
ended_runs as materialized (
  select schedule, id, verdict as status, row_number() over (order by place) - 1 as place
  from judged where verdict > 0 and schedule is not null
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

child_ends as materialized (select e.* from (select batch, verdict as status, id, null::text as result, error from judged where verdict > 0) e where e.batch is not null),
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
  select distinct w.run, now.at from (select id from judged where verdict > 0) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
),
leaving as materialized (
  select j.id as run from judged j
  where j.flow is not null and j.id <> all(array(select b.id from back b where not b.stands))
),
lined as materialized (select distinct flow, lane, suspect from back where stands),

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
select j.id, j.fence::text, l.job, j.attempt, i.id as holder, j.ended, j.verdict, (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled
from judged j join lane l on l.id = j.lane left join instance i on i.no = j.holder order by j.place;

-- RECLAIM_RUNS
with now as materialized (select clock() as at),
expired as materialized (
  select k.* from lease k, now where k.until <= now.at and k.ids && :ids::uuid[]
  order by k.until limit :limit for update of k skip locked
),
gone as (delete from lease where fence = any(array(select fence from expired))),
lost as materialized (
  select x.fence, u.id, x.lane, x.policy, x.attempt, x.losses, x.refunds, x.laters, x.extra, x.holder,
    x.claimed_at, r.priority, r.mode, r.schedule, r.batch, f.flow, f.is_rated, p.delay_ms, p.factor, p.max_ms, p.jitter,
    x.deadline_at <= x.until as over_time,
    coalesce(x.cancels ? u.id::text, false) as cancelled,
    x.attempt >= p.attempts + x.extra or (p.on_lost = 1 and x.deadline_at > x.until) as is_final,
    u.id = any(x.started) as has_begun,
    row_number() over (order by x.until, u.id) as place
  from expired x cross join now
  join policy p on p.id = x.policy
  cross join unnest(x.ids) u (id)
  left join lateral (
    select y.flow, exists (
      select from lane l join job j on j.name = l.job where l.id = x.lane and j.rate_limit is not null) as is_rated
    from flow_run y where x.limited and y.run = u.id offset 0) f on true,
  lateral (select y.priority, y.mode, y.schedule, y.batch from run y where y.id = u.id offset 0) r
),
judged as materialized (
  select l.*,
    case
      when cancelled then 3
      when is_final and not over_time and not has_begun and refunds < 100 then -2
      when is_final then 2
      else -1
    end as verdict,
    case when over_time then 2 else 1 end as ended,
    coalesce(is_rated, false) as stands,
    floor(least(max_ms, delay_ms * exp(least((attempt - 1) * ln(factor), 50)))
      * (1 - jitter * ((:chance::float8 + place * 0.618034) - floor(:chance::float8 + place * 0.618034))))::bigint as backoff_ms,
    case when over_time then '{"code":"TIMEOUT","name":"TimeoutError","message":"The attempt ran for longer than its timeout."}' else '{"code":"LEASE_EXPIRED","name":"LeaseExpired","message":"The holder fell silent and its lease expired."}' end as error
  from lost l
),
finished as (
  insert into outcome (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, error)
  select id, fence, claimed_at, now.at, lane, holder, attempt, extra, verdict, error
  from judged cross join now where verdict > 0
),
counted as (
  insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
  select now.at - now.at % 3600000, lane, mode, verdict, 0, count(*), sum(now.at - claimed_at)
  from judged cross join now where verdict > 0 group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour_at, lane, mode, status, shard)
  do update set runs = t.runs + excluded.runs, ran_ms = t.ran_ms + excluded.ran_ms
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, ended, holder, claimed_at, now.at, error from judged cross join now where verdict < 0
),
-- Runs that are ready again at once; under a rate every attempt joins the line.
back as materialized (
  select id, lane, policy, priority, flow, stands, laters, extra, verdict = -1 as suspect,
    case when verdict = -2 then attempt - 1 else attempt end as attempt,
    case when verdict = -2 then losses else losses + 1 end as losses,
    case when verdict = -2 then refunds + 1 else refunds end as refunds
  from judged where verdict = -2 or (verdict = -1 and not over_time and losses = 0)
),
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect, limited)
  select id, now.at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect, flow is not null
  from back cross join now where not stands
),
stood as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select id, now.at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, 'flow', flow
  from back cross join now where stands
),
postponed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select id, now.at + backoff_ms, lane, policy, priority, attempt,
    case when over_time then losses else losses + 1 end, refunds, laters, extra, not over_time, flow
  from judged cross join now where verdict = -1 and (over_time or losses > 0)
),
ended_runs as materialized (
  select schedule, id, verdict as status, row_number() over (order by place) - 1 as place
  from judged where verdict > 0 and schedule is not null
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

child_ends as materialized (select e.* from (select batch, verdict as status, id, null::text as result, error from judged where verdict > 0) e where e.batch is not null),
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
  select distinct w.run, now.at from (select id from judged where verdict > 0) e join wait w on w.run = e.id cross join now order by 1
  on conflict (run) do update set at = excluded.at
),
leaving as materialized (
  select j.id as run from judged j
  where j.flow is not null and j.id <> all(array(select b.id from back b where not b.stands))
),
lined as materialized (select distinct flow, lane, suspect from back where stands),

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
select j.id, j.fence::text, l.job, j.attempt, i.id as holder, j.ended, j.verdict, (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled
from judged j join lane l on l.id = j.lane left join instance i on i.no = j.holder order by j.place;

-- RENEW
with now as materialized (select clock() as at),
mine as materialized (
  select fence from lease where fence = any(:fences::bigint[]) and holder = :holder::int
  for no key update skip locked
),
renewed as (
  update lease k
  set renewed_at = now.at, until = least(now.at + p.lease_ms, k.deadline_at + 5000)
  from now, policy p
  where k.fence = any(array(select fence from mine)) and p.id = k.policy
  returning k.fence, greatest(k.until - now.at, 0) as lease_ms, k.ids
)
select
  (select json_agg(json_build_array(r.fence, r.lease_ms, r.ids)) from renewed r) as held,
  (select json_agg(k.fence) from lease k where k.fence = any(:fences::bigint[]) and k.holder = :holder::int
    and k.fence <> all(array(select fence from mine))) as unknown;
