-- SETTLING_FUNCTIONS
create function settle_run(
  p_run uuid, p_fence bigint, p_status int, p_delay_ms bigint, p_result text, p_error text)
returns text language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_lease record;
  v_run record;
  v_ran_ms bigint;
  v_unapplied json;
  v_ended record;
begin
  select k.claimed_at into v_lease from lease k where k.fence = p_fence and p_run = any(k.ids) for update;
  if found then
    select r.mode, r.schedule, r.batch into v_run from run r where r.id = p_run;
    v_ran_ms := greatest(clock() - v_lease.claimed_at, 0);
    with now as materialized (select clock() as at), 
sent as materialized (
  select s.id, coalesce(s.fence, (p_fence)::bigint) as fence, coalesce(s.status, (p_status)::smallint) as status, coalesce(s.mode, (v_run.mode)::smallint) as mode, coalesce(s."ranMs", (v_ran_ms)::bigint) as "ranMs", coalesce(s.result, (p_result)::text) as result, coalesce(s.error, (p_error)::text) as error, coalesce(s.ended, (0)::smallint) as ended, coalesce(s."delayMs", (p_delay_ms)::bigint) as "delayMs", coalesce(s.refund, (0)::smallint) as refund, coalesce(s.schedule, (v_run.schedule)::int) as schedule, coalesce(s.batch, (v_run.batch)::int) as batch
  from rows from (unnest((array[p_run])::uuid[]), unnest(('{}')::bigint[]), unnest(('{}')::smallint[]), unnest(('{}')::smallint[]), unnest(('{}')::bigint[]), unnest(('{}')::text[]), unnest(('{}')::text[]), unnest(('{}')::smallint[]), unnest(('{}')::bigint[]), unnest(('{}')::smallint[]), unnest(('{}')::int[]), unnest(('{}')::int[]), json_array_elements('[]'))
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
  select now.at - now.at % 3600000, v.lane, v.mode, v.status, (-2000000000 - pg_backend_pid() % 256)::int, v.runs, v.ran_ms
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
        then now.at + s.fail_min + floor((((random())::float8 + e.place * 0.618034) - floor((random())::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint
      else now.at + s.range_min + floor((((random())::float8 + e.place * 0.618034) - floor((random())::float8 + e.place * 0.618034)) * (s.range_max - s.range_min + 1))::bigint end,
    hold_until = case when s.range_min is null
      then now.at + s.fail_min + floor((((random())::float8 + e.place * 0.618034) - floor((random())::float8 + e.place * 0.618034)) * (s.fail_max - s.fail_min + 1))::bigint else s.hold_until end,
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
select case when coalesce((select sum(runs) from summed), 0) < cardinality((array[p_run])::uuid[]) then (
  select json_agg(json_build_array(s.id, s.fence)) from sent s
  where ((s.id, s.fence) in (select v.id, v.fence from valid v)) is not true) end as unapplied, (select count(*)::int from continued) as continued, (select count(*)::int from rescheduled) as rescheduled,
  case when (false)::boolean then set_config('idle_in_transaction_session_timeout', '5000', true) end as patience into v_unapplied;
  end if;
  select e.status, e.result into v_ended from (
    select case o.status when 1 then 'completed' when 2 then 'failed' else 'cancelled' end as status,
      o.status = 1 as is_complete, o.error, o.result
    from outcome o where o.id = p_run and o.fence = p_fence
    union all
    select 'pending', false, a.error, null from attempt a where a.run = p_run and a.fence = p_fence
  ) e where e.is_complete = (p_status = 1) and e.error is not distinct from p_error;
  if not found then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', p_run, p_fence
      using errcode = 'HF003', detail = 'LEASE_LOST';
  end if;
  if p_status = 1 and coalesce(v_ended.result, 'null')::jsonb <> coalesce(p_result, 'null')::jsonb then
    raise exception 'Run % was completed under fence % with another result; nothing was changed.', p_run, p_fence
      using errcode = 'HF005', detail = 'RESULT_CONFLICT';
  end if;
  return v_ended.status;
end
$holdfast$;

create function complete(run_id uuid, fence bigint, result jsonb default 'null')
returns text language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
declare
  v_result text := coalesce(complete.result, 'null')::text;
begin
  if octet_length(v_result) > 1048576 or json_depth(v_result) > 100 then
    v_result := json_build_object('$truncated', true, 'bytes', octet_length(v_result),
      'preview', left(v_result, 1024) || '…');
  end if;
  return settle_run(complete.run_id, complete.fence, 1, 0, v_result, null);
end
$holdfast$;

create function fail(run_id uuid, fence bigint, message text default null)
returns text language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
declare
  v_error text := json_build_object('code', 'ERROR', 'name', 'Error',
    'message', left(coalesce(nullif(fail.message, ''), 'Error'), 8192));
  v_policy record;
  v_delay_ms bigint := 0;
  v_status int := 2;
begin
  select k.attempt, p.attempts + k.extra as attempts, p.delay_ms, p.factor, p.max_ms, p.jitter into v_policy
  from lease k join policy p on p.id = k.policy where k.fence = fail.fence for update of k;
  if found and v_policy.attempt < v_policy.attempts then
    v_status := -1;
    v_delay_ms := round(least(v_policy.max_ms,
        v_policy.delay_ms * exp(least((v_policy.attempt - 1) * ln(v_policy.factor), 50)))
      * (1 - v_policy.jitter * random()));
  end if;
  return settle_run(fail.run_id, fail.fence, v_status, v_delay_ms, null, v_error);
end
$holdfast$;;
