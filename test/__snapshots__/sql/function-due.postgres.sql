-- ACQUIRE_DUE
create function evaluate_every(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint,
  p_hold_until bigint, p_hold_run uuid, p_live jsonb, p_now bigint)
returns jsonb language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_from bigint := (v_when ->> 'fromMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, 253402300800000 - 1);
  v_first bigint := coalesce(v_from, p_anchor_at + v_every);
  v_overlap text := p_definition ->> 'overlap';
  v_missed text := p_definition -> 'missed' ->> 'run';
  v_within bigint := (p_definition -> 'missed' ->> 'withinMs')::bigint;
  v_grace bigint := (p_definition ->> 'graceMs')::bigint;
  v_old bigint := p_now - v_grace - 1;
  v_cursor bigint := p_cursor_at;
  v_next bigint;
  v_count bigint;
  v_last bigint;
  v_wanted bigint;
  v_made_up bigint;
  v_too_old bigint;
  v_ticks jsonb := '[]';
  v_runs jsonb := '[]';
  v_live jsonb := p_live;
  v_caught_up uuid[] := '{}';
  v_fires bigint[] := '{}';
  v_reasons text[] := '{}';
  v_at bigint;
  v_reason text;
  v_is_gated boolean;
  v_in_the_way text;
  v_replaced jsonb;
  v_has_replaced boolean := false;
  v_run uuid;
  v_evidence jsonb;
begin
  if v_when ->> 'kind' = 'range' then
    -- At most one tick is outstanding: the stored one.
    v_next := greatest(p_next_at, p_cursor_at + 1, v_from);
    if v_next > v_until then v_next := null; end if;
    if v_next <= p_now then
      v_at := v_next;
      if p_now - v_at <= v_grace then
        v_fires := array[v_at]; v_reasons := array['on_time'];
      elsif v_missed = 'skip' then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'nobody', 'run', null, 'evidence', jsonb_build_object('lastPolledAt', null)));
      elsif p_now - v_at > v_within then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within)));
      else
        v_fires := array[v_at]; v_reasons := array[case v_missed when 'all' then 'catch_up' else 'late' end];
      end if;
      v_cursor := v_at;
      -- A fallback, until the end of the run draws the next one.
      v_next := greatest(p_now, v_at) + (v_when ->> 'everyMaxMs')::bigint;
    end if;
  else
    -- Ticks past the grace: counted, not visited, except for those that run late.
    v_count := case when v_old > p_cursor_at then (case when least(v_old, v_until) < v_first then 0 else (least(v_old, v_until) - v_first) / v_every + 1 end) - (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) else 0 end;
    if v_count > 0 then
      v_last := v_first + ((case when least(v_old, v_until) < v_first then 0 else (least(v_old, v_until) - v_first) / v_every + 1 end) - 1) * v_every;
      v_wanted := case v_missed when 'skip' then 0 when 'latest' then 1
        else (p_definition -> 'missed' ->> 'limit')::bigint end;
      -- If a tick is on time, "latest" runs no older one.
      if v_missed = 'latest' and (select t.at from (select v_first + (case when v_old < v_first then 0 else (v_old - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until) <= p_now then v_wanted := 0; end if;
      v_made_up := least(v_wanted, v_count);
      if v_count > v_made_up then
        v_ticks := v_ticks || jsonb_build_object('firstAt', (select t.at from (select v_first + (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until),
          'lastAt', v_last - v_made_up * v_every, 'count', v_count - v_made_up,
          'reason', case v_missed when 'all' then 'over_limit' else 'nobody' end, 'run', null,
          'evidence', case v_missed when 'all' then jsonb_build_object('limit', p_definition -> 'missed' -> 'limit')
            else jsonb_build_object('lastPolledAt', null) end);
      end if;
      v_too_old := 0;
      for v_back in reverse v_made_up - 1 .. 0 loop
        v_at := v_last - v_back * v_every;
        if p_now - v_at > v_within then
          v_too_old := v_too_old + 1;
        else
          v_fires := v_fires || v_at;
          v_reasons := v_reasons || case v_missed when 'all' then 'catch_up' else 'late' end;
        end if;
      end loop;
      if v_too_old > 0 then
        v_ticks := v_ticks || jsonb_build_object('firstAt', v_last - (v_made_up - 1) * v_every,
          'lastAt', v_last - (v_made_up - v_too_old) * v_every, 'count', v_too_old,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within));
      end if;
      v_cursor := v_last;
    end if;
    v_next := (select t.at from (select v_first + (case when greatest(v_cursor, v_old) < v_first then 0 else (greatest(v_cursor, v_old) - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    for v_judged in 1 .. 1000 loop
      exit when v_next is null or v_next > p_now;
      v_fires := v_fires || v_next;
      v_reasons := v_reasons || 'on_time'::text;
      v_cursor := v_next;
      v_next := (select t.at from (select v_first + (case when v_cursor < v_first then 0 else (v_cursor - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    end loop;
  end if;

  for v_n in 1 .. cardinality(v_fires) loop
    v_at := v_fires[v_n];
    v_reason := v_reasons[v_n];
    v_run := null;
    v_replaced := '[]';
    v_evidence := case v_reason when 'late' then jsonb_build_object('lastPolledAt', null) end;
    v_is_gated := jsonb_array_length(v_live) > 0;
    if v_at < p_hold_until then
      v_reason := 'after_failure';
      v_evidence := jsonb_strip_nulls(jsonb_build_object('run', p_hold_run, 'until', p_hold_until));
    elsif v_reason <> 'catch_up' and v_overlap = 'allow' then
      v_is_gated := false;
    elsif v_reason <> 'catch_up' then
      v_in_the_way := case v_overlap
        when 'skip' then (select l.run ->> 'id' from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled' order by l.place limit 1)
        when 'queue' then (select l.run ->> 'id' from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled'
          and (l.run ->> 'isGated')::boolean order by l.place limit 1) end;
      if v_in_the_way is not null then
        v_reason := case v_overlap when 'skip' then 'overlap' else 'queue_full' end;
        v_evidence := jsonb_build_object('run', v_in_the_way);
      elsif v_overlap = 'replace' then
        v_replaced := coalesce((select jsonb_agg(l.run ->> 'id' order by l.place) from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled'
          and (l.run ->> 'id')::uuid <> all(v_caught_up)), '[]');
      end if;
    end if;
    if v_reason in ('on_time', 'late', 'catch_up') then
      v_run := new_run_id();
      if v_reason = 'catch_up' then v_caught_up := v_caught_up || v_run; end if;
      if jsonb_array_length(v_replaced) > 0 then
        v_evidence := coalesce(v_evidence, '{}') || jsonb_build_object('replaced', v_replaced);
        v_has_replaced := true;
      end if;
      v_runs := v_runs || jsonb_build_object('id', v_run, 'nominalAt', v_at, 'isGated', v_is_gated);
      v_live := v_live || jsonb_build_object('id', v_run, 'mode', 'scheduled', 'nominalAt', v_at, 'isGated', v_is_gated);
    end if;
    v_ticks := v_ticks || jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
      'reason', v_reason, 'run', v_run, 'evidence', v_evidence);
  end loop;
  return jsonb_build_object('ticks', v_ticks, 'runs', v_runs, 'live', v_live, 'hasReplaced', v_has_replaced,
    'cursorAt', v_cursor, 'nextAt', v_next, 'isEnded', v_next is null,
    'isComplete', v_when ->> 'kind' = 'range' or v_next is null or v_next > p_now);
end
$holdfast$;

create function skip_paused(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint, p_live jsonb, p_resumed bigint, p_now bigint)
returns jsonb language plpgsql stable set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_is_range boolean := v_when ->> 'kind' = 'range';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, 253402300800000 - 1);
  v_first bigint := coalesce((v_when ->> 'fromMs')::bigint, p_anchor_at + v_every);
  v_last bigint := least(p_resumed - 1, p_now, v_until);
  v_count bigint := 1;
  v_at bigint := p_next_at;
  v_next bigint;
begin
  if v_is_range then
    v_last := p_next_at;
    v_next := p_now + (v_when ->> 'everyMaxMs')::bigint;
  else
    v_at := (select t.at from (select v_first + (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    v_count := greatest((case when v_last < v_first then 0 else (v_last - v_first) / v_every + 1 end) - (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end), 0);
    v_last := v_first + ((case when v_last < v_first then 0 else (v_last - v_first) / v_every + 1 end) - 1) * v_every;
    v_next := (select t.at from (select v_first + (case when greatest(v_last, p_cursor_at) < v_first then 0 else (greatest(v_last, p_cursor_at) - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
  end if;
  return jsonb_build_object('ticks', case when v_count = 0 then '[]'::jsonb else jsonb_build_array(jsonb_build_object(
      'firstAt', v_at, 'lastAt', v_last, 'count', v_count, 'reason', 'paused', 'run', null,
      'evidence', jsonb_build_object('isAll', true, 'until', p_resumed))) end,
    'runs', '[]'::jsonb, 'live', p_live, 'hasReplaced', false,
    'cursorAt', case when v_count = 0 then p_cursor_at else v_last end,
    'nextAt', v_next, 'isEnded', v_next is null, 'isComplete', v_count = 0 or v_next is null or v_next > p_now);
end
$holdfast$;

create function acquire_due(schedule text, holder text, lease_seconds double precision)
returns table (run_id uuid, fence bigint, attempt int, nominal_at timestamptz, input jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_name text := acquire_due.schedule;
  v_holder text := checked_text('holder', acquire_due.holder, 200);
  v_lease_ms bigint := (acquire_due.lease_seconds * 1000)::bigint;
  v_schedule record;
  v_definition jsonb;
  v_kind text;
  v_live jsonb;
  v_plan jsonb;
  v_opens uuid;
  v_is_due boolean;
  v_row record;
  v_now bigint;
  v_no int;
  v_fence bigint;
  v_run uuid;
  v_suspect boolean;
  v_stands boolean;
  v_resumed bigint;
begin
  if v_holder is null or v_lease_ms is null or v_lease_ms not between 1000 and 86400000 then
    raise exception 'holder and lease_seconds: give a name, and from 1 to 86400 seconds, such as 300'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  -- While everything is paused nothing fires and no run is handed out; the tick is recorded later.
  if not (not exists (select from pause z where z.until_at is null)) then
    return;
  end if;
  -- First, because it locks leases before schedules, like every settlement.
  select s.live into v_schedule from schedule s where s.name = v_name;
  
with now as materialized (select clock() as at),
expired as materialized (
  select k.* from lease k, now where k.until <= now.at and k.ids && (v_schedule.live)::uuid[]
  order by k.until limit (100) for update of k skip locked
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
      * (1 - jitter * (((random())::float8 + place * 0.618034) - floor((random())::float8 + place * 0.618034))))::bigint as backoff_ms,
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
from judged j join lane l on l.id = j.lane left join instance i on i.no = j.holder order by j.place into v_row;

  select s.* into v_schedule from schedule s where s.name = v_name and s.deleted_at is null for update;
  if not found then
    raise exception 'There is no schedule named "%".', v_name
      using errcode = 'HF004', detail = 'SCHEDULE_NOT_FOUND';
  end if;
  v_definition := v_schedule.definition::jsonb;
  v_kind := v_definition -> 'when' ->> 'kind';
  if (v_definition ->> 'monitor')::boolean then
    raise exception 'The schedule "%" is a monitor: nothing runs here, it is checked in for.', v_name
      using errcode = 'HF004', detail = 'CONFIGURATION_INVALID',
        hint = 'Call schedules.ping(name) or POST /api/ping/:monitor instead.';
  end if;
  if v_kind not in ('grid', 'range') then
    raise exception 'The schedule "%" is no "every" schedule: SQL cannot evaluate %.', v_name,
        case v_kind when 'cron' then 'cron' else 'a single time' end
      using errcode = 'HF004', detail = 'CONFIGURATION_INVALID',
        hint = 'Call schedules.trigger(name, { ifDue: true }) or POST /api/schedules/:name/trigger instead.';
  end if;
  if jsonb_array_length(v_definition -> 'when' -> 'exclude') > 0
      or jsonb_array_length(v_definition -> 'when' -> 'calendars') > 0 then
    raise exception 'The schedule "%" excludes dates or has calendars: SQL cannot evaluate them.', v_name
      using errcode = 'HF004', detail = 'CONFIGURATION_INVALID';
  end if;
  if not exists (select from job j where j.name = v_schedule.job) then
    raise exception 'No instance has announced a job named "%".', v_schedule.job
      using errcode = 'HF001', detail = 'JOB_UNKNOWN';
  end if;

  for v_round in 1 .. 1000 loop
    v_now := clock();
    v_live := (
  select coalesce(jsonb_agg(jsonb_build_object('id', l.id, 'mode', (array['enqueued', 'scheduled', 'manual', 'test', 'backfill'])[r.mode + 1],
    'nominalAt', r.nominal_at,
    'isGated', coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place), '[]')
  from unnest(v_schedule.live) with ordinality l (id, place),
    lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
  where (select 1 from outcome o where o.id = l.id) is null);
    v_is_due := coalesce(v_schedule.next_at <= v_now, false) and v_schedule.paused_at is null
      and v_schedule.broken_at is null and not v_schedule.is_ended;
    v_opens := case when (v_live -> 0 ->> 'isGated')::boolean and (v_definition ->> 'overlap' = 'allow'
        or not exists (select from jsonb_array_elements(v_live) l (run) where not (l.run ->> 'isGated')::boolean))
      then (v_live -> 0 ->> 'id')::uuid end;
    exit when not v_is_due and v_opens is null;
    -- Ticks of an ended pause are skipped, with the unrecorded ones before it.
    select max(z.until_at) into v_resumed from pause z where z.until_at > v_schedule.next_at and z.at <= v_now;
    v_plan := case when v_is_due and v_resumed is not null then skip_paused(v_definition, v_schedule.anchor_at,
        v_schedule.cursor_at, v_schedule.next_at, v_live, v_resumed, v_now)
      when v_is_due then evaluate_every(v_definition, v_schedule.anchor_at, v_schedule.cursor_at,
        v_schedule.next_at, v_schedule.hold_until, v_schedule.hold_run, v_live, v_now)
      else jsonb_build_object('ticks', '[]'::jsonb, 'runs', '[]'::jsonb, 'live', v_live, 'hasReplaced', false,
        'cursorAt', v_schedule.cursor_at, 'nextAt', v_schedule.next_at, 'isEnded', v_schedule.is_ended,
        'isComplete', true) end;
    
with now as materialized (select clock() as at),
sent as materialized (
  select * from unnest((array[v_schedule.id])::int[], (array[v_schedule.revision])::bigint[], (array[(v_plan ->> 'cursorAt')::bigint])::bigint[], (array[(v_plan ->> 'nextAt')::bigint])::bigint[], (array[(v_plan ->> 'isEnded')::boolean])::boolean[],
    (array[v_schedule.hold_until])::bigint[], (array[v_schedule.hold_run])::uuid[], (array[coalesce((v_plan -> 'runs' -> -1 ->> 'id')::uuid, v_schedule.last_run)])::uuid[], (array[coalesce((v_plan -> 'runs' -> -1 ->> 'nominalAt')::bigint, v_schedule.last_tick_at)])::bigint[], (array[array(select (e.value ->> 'id')::uuid from jsonb_array_elements(v_plan -> 'live') with ordinality e (value, place) order by e.place)::text])::text[], (array[exists (select from jsonb_array_elements(v_plan -> 'live') l (run) where (l.run ->> 'isGated')::boolean and (l.run ->> 'id')::uuid is distinct from v_opens)])::boolean[],
    (array[v_schedule.is_replacing or (v_plan ->> 'hasReplaced')::boolean])::boolean[], (array[v_schedule.tzdata])::text[])
    as x (id, revision, cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated,
      is_replacing, tzdata)
),
locked as materialized (
  select k.tid, x.* from sent x, lateral (
    select s.ctid as tid from schedule s where s.id = x.id and s.revision = x.revision
    for update skip locked) k
  -- Nothing fires while everything is paused: such changes are decided again later.
  where not exists (select from pause z where z.until_at is null) or x.id <> all((array(select v_schedule.id from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::int[])
),
-- A join of the applied changes with the sent ones would be a nested loop, because the planner does not
-- know how many there are: both are reached by their keys instead.
won as (
  update schedule s set revision = s.revision + 1, cursor_at = k.cursor_at, next_at = k.next_at,
    is_ended = k.is_ended, hold_until = k.hold_until, hold_run = k.hold_run, last_run = k.last_run,
    last_tick_at = k.last_tick_at, live = k.live::uuid[], is_gated = k.is_gated, is_replacing = k.is_replacing,
    tzdata = k.tzdata
  from locked k where s.ctid = k.tid
  returning s.id
),
ledger as (
  insert into tick (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
  select t.schedule, t.at, t.last_at, t.count, t.outcome, t.reason, now.at, (null)::int, w.version, t.run, t.evidence
  from unnest((array(select v_schedule.id from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::int[], (array(select (e.value ->> 'firstAt')::bigint from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::bigint[], (array(select (e.value ->> 'lastAt')::bigint from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::bigint[], (array(select (e.value ->> 'count')::int from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::int[],
    (array(select (array[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])[array_position(array['on_time', 'late', 'catch_up', 'stuck_reset', 'overlap', 'queue_full', 'after_failure', 'paused', 'nobody', 'too_old', 'over_limit', 'broken', 'no_ping'], e.value ->> 'reason')] from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::smallint[], (array(select array_position(array['on_time', 'late', 'catch_up', 'stuck_reset', 'overlap', 'queue_full', 'after_failure', 'paused', 'nobody', 'too_old', 'over_limit', 'broken', 'no_ping'], e.value ->> 'reason') - 1 from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::smallint[], (array(select (e.value ->> 'run')::uuid from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::uuid[], (array(select e.value ->> 'evidence' from jsonb_array_elements(v_plan -> 'ticks') with ordinality e (value, place) order by e.place))::text[])
    as t (schedule, at, last_at, count, outcome, reason, run, evidence)
  cross join now,
  lateral (select x.version from schedule x where x.id = t.schedule offset 0) w
  where (t.schedule in (select id from won)) is true
),
made as materialized (
  select r.id, r.mode, r.nominal_at, r.gated, coalesce(r.input, w.input) as input, w.id as schedule,
    case when r.trace is null then w.tags else w.tags || r.trace end as tags,
    l.id as lane, j.policy, j.version, coalesce(w.priority, j.priority) as priority, w.job,
    
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(coalesce(r.input, w.input), '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from unnest((array(select v_schedule.id from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::int[], (array(select (e.value ->> 'id')::uuid from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::uuid[], (array(select 1 from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::smallint[], (array(select (e.value ->> 'nominalAt')::bigint from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::bigint[], (array(select (e.value ->> 'isGated')::boolean from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::boolean[],
    (array(select null::text from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::text[], (array(select null::text from jsonb_array_elements(v_plan -> 'runs') with ordinality e (value, place) order by e.place))::text[]) as r (schedule, id, mode, nominal_at, gated, input, trace),
  lateral (
    select x.id, x.job, x.queue, x.priority, x.tags, x.input from schedule x where x.id = r.schedule offset 0) w
  -- Left joins: a run without its job has no lane and is refused; it must not silently be left out.
  left join lateral (
    select x.* from job x where x.name = w.job offset 0) j on true
  left join lateral (
    select x.id from lane x where x.job = w.job and x.queue = coalesce(w.queue, j.queue) offset 0) l on true
  where (r.schedule in (select id from won)) is true
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
  select m.id, now.at, now.at, m.lane, m.policy, m.version, m.priority, m.mode, m.schedule, m.nominal_at, m.tags, m.input
  from made m cross join now
),
opening as materialized (
  select w.id, w.lane, w.flow from waiting w where w.gate = 'schedule' and w.id = any(array(
    select o.run from unnest((case when v_opens is null then '{}' else array[v_schedule.id] end)::int[], (case when v_opens is null then '{}' else array[v_opens] end)::uuid[]) as o (schedule, run)
    where (o.schedule in (select id from won)) is true)) for update
),
newcomers as materialized (
  select m.job, m.flow_key as key, m.lane, not m.gated as lined from made m where m.flow_key is not null
  union all
  select f.job, f.key, o.lane, true from opening o join flow f on f.id = o.flow
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
held as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select m.id, now.at, m.lane, m.policy, m.priority, 0, 0, 0, 0, 0, false,
    case when m.gated then 'schedule' else 'flow' end, f.id
  from made m left join flows f on f.job = m.job and f.key = m.flow_key cross join now
  where m.gated or m.flow_key is not null
),
stood as (
  update waiting set gate = 'flow', wake_at = now.at from now
  where id = any(array(select id from opening where flow is not null))
),
opened as (
  delete from waiting where id = any(array(select id from opening where flow is null)) returning *
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select m.id, now.at - m.priority * 60000, m.lane, m.policy, 0, 0, 0, 0, 0, false
  from made m cross join now where not m.gated and m.flow_key is null
  union all
  select o.id, now.at - o.priority * 60000, o.lane, o.policy, o.attempt, o.losses, o.refunds, o.laters, o.extra, o.suspect
  from opened o cross join now
)
select (select json_agg(w.id) from won w) as won,
  case when (null)::text is not null then pg_notify((null)::text, '') end as told into v_row;
    select s.* into v_schedule from schedule s where s.id = v_schedule.id;
    exit when (v_plan ->> 'isComplete')::boolean;
  end loop;

  -- A run that waits to be tried again may be due by now.
  
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 and w.id = any((v_schedule.live)::uuid[])
  order by w.wake_at limit (1000) for update of w skip locked
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
  select from waiting w cross join now where w.flow = 0 and w.gate is null and w.wake_at <= now.at) as newcomers into v_row;
  select l.id, y.suspect, y.stands into v_run, v_suspect, v_stands
  from unnest(v_schedule.live) with ordinality l (id, place),
    lateral (
      select r.lane, r.suspect, false as stands from ready r where r.id = l.id
      union all
      select w.lane, w.suspect, true from waiting w where w.id = l.id and w.gate = 'flow' offset 0) y,
    lateral (select x.queue from lane x where x.id = y.lane offset 0) x
  where not exists (select from queue q where q.name = x.queue and q.paused_at is not null)
  order by l.place limit 1;
  if not found then
    return;
  end if;
  
insert into instance as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select (v_holder), '[]', '[]', false, ('[]')::json, (null)::json, (0)::bigint, n.at, n.at, ('sql')::text
from (select clock() as at) n where true
on conflict (id) do update set app = null, program = null, release = null, jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = false, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = excluded.remote_by
where i.remote_by = excluded.remote_by or i.retired_at is not null
  or i.seen_at <= excluded.seen_at - greatest(60000, 3 * i.poll_ms)
returning no into v_no;
  if v_no is null then
    raise exception 'holder: a live instance is named "%"; give another name', v_holder
      using errcode = 'HF000', detail = 'INSTANCE_TAKEN';
  end if;
  if v_stands then
    with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any((array[v_schedule.job])::text[]) and ((null)::text[] is null or l.queue = any((null)::text[]))
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
    where n.lane = a.lane and n.suspect = (v_suspect) and n.look_at <= (select at from now) and n.flow = (select y.flow from waiting y where y.id = (v_run)::uuid)
    order by n.look_at, n.flow limit (1)::int + 50) x
  order by x.look_at, x.flow limit (1)::int + 50
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
    where x.flow = o.flow and x.lane = o.lane and x.suspect = (v_suspect) and x.gate = 'flow' and x.id = (v_run)::uuid
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least((1)::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit (1)::int
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
  where n.flow = o.flow and n.lane = o.lane and n.suspect = (v_suspect)
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
    case when lane = any(array(select l.id from lane l where l.job = any(('{}')::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (gen_random_uuid())::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g into v_fence;
  else
    with now as materialized (select clock() as at),
taken as materialized (
  select r.ctid as tid, r.* from ready r where r.id = (v_run)::uuid and not exists (select from pause z where z.until_at is null) for update skip locked
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any(('{}')::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (gen_random_uuid())::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
)
select g.fence from granted g into v_fence;
  end if;
  if v_fence is null then
    return;
  end if;
  -- The caller's lease instead of the job's; the caller begins the run at once.
  update lease k set until = least(k.claimed_at + v_lease_ms, k.deadline_at + 5000), started = k.ids
  where k.fence = v_fence;
  return query select v_run, v_fence, k.attempt::int, to_timestamp(r.nominal_at / 1000.0), r.input::jsonb
    from lease k, run r where k.fence = v_fence and r.id = v_run;
end
$holdfast$;;

-- EVALUATE_EVERY
create function evaluate_every(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint,
  p_hold_until bigint, p_hold_run uuid, p_live jsonb, p_now bigint)
returns jsonb language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_from bigint := (v_when ->> 'fromMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, 253402300800000 - 1);
  v_first bigint := coalesce(v_from, p_anchor_at + v_every);
  v_overlap text := p_definition ->> 'overlap';
  v_missed text := p_definition -> 'missed' ->> 'run';
  v_within bigint := (p_definition -> 'missed' ->> 'withinMs')::bigint;
  v_grace bigint := (p_definition ->> 'graceMs')::bigint;
  v_old bigint := p_now - v_grace - 1;
  v_cursor bigint := p_cursor_at;
  v_next bigint;
  v_count bigint;
  v_last bigint;
  v_wanted bigint;
  v_made_up bigint;
  v_too_old bigint;
  v_ticks jsonb := '[]';
  v_runs jsonb := '[]';
  v_live jsonb := p_live;
  v_caught_up uuid[] := '{}';
  v_fires bigint[] := '{}';
  v_reasons text[] := '{}';
  v_at bigint;
  v_reason text;
  v_is_gated boolean;
  v_in_the_way text;
  v_replaced jsonb;
  v_has_replaced boolean := false;
  v_run uuid;
  v_evidence jsonb;
begin
  if v_when ->> 'kind' = 'range' then
    -- At most one tick is outstanding: the stored one.
    v_next := greatest(p_next_at, p_cursor_at + 1, v_from);
    if v_next > v_until then v_next := null; end if;
    if v_next <= p_now then
      v_at := v_next;
      if p_now - v_at <= v_grace then
        v_fires := array[v_at]; v_reasons := array['on_time'];
      elsif v_missed = 'skip' then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'nobody', 'run', null, 'evidence', jsonb_build_object('lastPolledAt', null)));
      elsif p_now - v_at > v_within then
        v_ticks := jsonb_build_array(jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within)));
      else
        v_fires := array[v_at]; v_reasons := array[case v_missed when 'all' then 'catch_up' else 'late' end];
      end if;
      v_cursor := v_at;
      -- A fallback, until the end of the run draws the next one.
      v_next := greatest(p_now, v_at) + (v_when ->> 'everyMaxMs')::bigint;
    end if;
  else
    -- Ticks past the grace: counted, not visited, except for those that run late.
    v_count := case when v_old > p_cursor_at then (case when least(v_old, v_until) < v_first then 0 else (least(v_old, v_until) - v_first) / v_every + 1 end) - (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) else 0 end;
    if v_count > 0 then
      v_last := v_first + ((case when least(v_old, v_until) < v_first then 0 else (least(v_old, v_until) - v_first) / v_every + 1 end) - 1) * v_every;
      v_wanted := case v_missed when 'skip' then 0 when 'latest' then 1
        else (p_definition -> 'missed' ->> 'limit')::bigint end;
      -- If a tick is on time, "latest" runs no older one.
      if v_missed = 'latest' and (select t.at from (select v_first + (case when v_old < v_first then 0 else (v_old - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until) <= p_now then v_wanted := 0; end if;
      v_made_up := least(v_wanted, v_count);
      if v_count > v_made_up then
        v_ticks := v_ticks || jsonb_build_object('firstAt', (select t.at from (select v_first + (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until),
          'lastAt', v_last - v_made_up * v_every, 'count', v_count - v_made_up,
          'reason', case v_missed when 'all' then 'over_limit' else 'nobody' end, 'run', null,
          'evidence', case v_missed when 'all' then jsonb_build_object('limit', p_definition -> 'missed' -> 'limit')
            else jsonb_build_object('lastPolledAt', null) end);
      end if;
      v_too_old := 0;
      for v_back in reverse v_made_up - 1 .. 0 loop
        v_at := v_last - v_back * v_every;
        if p_now - v_at > v_within then
          v_too_old := v_too_old + 1;
        else
          v_fires := v_fires || v_at;
          v_reasons := v_reasons || case v_missed when 'all' then 'catch_up' else 'late' end;
        end if;
      end loop;
      if v_too_old > 0 then
        v_ticks := v_ticks || jsonb_build_object('firstAt', v_last - (v_made_up - 1) * v_every,
          'lastAt', v_last - (v_made_up - v_too_old) * v_every, 'count', v_too_old,
          'reason', 'too_old', 'run', null, 'evidence', jsonb_build_object('withinMs', v_within));
      end if;
      v_cursor := v_last;
    end if;
    v_next := (select t.at from (select v_first + (case when greatest(v_cursor, v_old) < v_first then 0 else (greatest(v_cursor, v_old) - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    for v_judged in 1 .. 1000 loop
      exit when v_next is null or v_next > p_now;
      v_fires := v_fires || v_next;
      v_reasons := v_reasons || 'on_time'::text;
      v_cursor := v_next;
      v_next := (select t.at from (select v_first + (case when v_cursor < v_first then 0 else (v_cursor - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    end loop;
  end if;

  for v_n in 1 .. cardinality(v_fires) loop
    v_at := v_fires[v_n];
    v_reason := v_reasons[v_n];
    v_run := null;
    v_replaced := '[]';
    v_evidence := case v_reason when 'late' then jsonb_build_object('lastPolledAt', null) end;
    v_is_gated := jsonb_array_length(v_live) > 0;
    if v_at < p_hold_until then
      v_reason := 'after_failure';
      v_evidence := jsonb_strip_nulls(jsonb_build_object('run', p_hold_run, 'until', p_hold_until));
    elsif v_reason <> 'catch_up' and v_overlap = 'allow' then
      v_is_gated := false;
    elsif v_reason <> 'catch_up' then
      v_in_the_way := case v_overlap
        when 'skip' then (select l.run ->> 'id' from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled' order by l.place limit 1)
        when 'queue' then (select l.run ->> 'id' from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled'
          and (l.run ->> 'isGated')::boolean order by l.place limit 1) end;
      if v_in_the_way is not null then
        v_reason := case v_overlap when 'skip' then 'overlap' else 'queue_full' end;
        v_evidence := jsonb_build_object('run', v_in_the_way);
      elsif v_overlap = 'replace' then
        v_replaced := coalesce((select jsonb_agg(l.run ->> 'id' order by l.place) from jsonb_array_elements(v_live) with ordinality l (run, place) where l.run ->> 'mode' = 'scheduled'
          and (l.run ->> 'id')::uuid <> all(v_caught_up)), '[]');
      end if;
    end if;
    if v_reason in ('on_time', 'late', 'catch_up') then
      v_run := new_run_id();
      if v_reason = 'catch_up' then v_caught_up := v_caught_up || v_run; end if;
      if jsonb_array_length(v_replaced) > 0 then
        v_evidence := coalesce(v_evidence, '{}') || jsonb_build_object('replaced', v_replaced);
        v_has_replaced := true;
      end if;
      v_runs := v_runs || jsonb_build_object('id', v_run, 'nominalAt', v_at, 'isGated', v_is_gated);
      v_live := v_live || jsonb_build_object('id', v_run, 'mode', 'scheduled', 'nominalAt', v_at, 'isGated', v_is_gated);
    end if;
    v_ticks := v_ticks || jsonb_build_object('firstAt', v_at, 'lastAt', v_at, 'count', 1,
      'reason', v_reason, 'run', v_run, 'evidence', v_evidence);
  end loop;
  return jsonb_build_object('ticks', v_ticks, 'runs', v_runs, 'live', v_live, 'hasReplaced', v_has_replaced,
    'cursorAt', v_cursor, 'nextAt', v_next, 'isEnded', v_next is null,
    'isComplete', v_when ->> 'kind' = 'range' or v_next is null or v_next > p_now);
end
$holdfast$;;

-- LIVE_RUNS
select coalesce(jsonb_agg(jsonb_build_object('id', l.id, 'mode', (array['enqueued', 'scheduled', 'manual', 'test', 'backfill'])[r.mode + 1],
    'nominalAt', r.nominal_at,
    'isGated', coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place), '[]')
  from unnest(v_schedule.live) with ordinality l (id, place),
    lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
  where (select 1 from outcome o where o.id = l.id) is null;

-- SKIP_PAUSED
create function skip_paused(
  p_definition jsonb, p_anchor_at bigint, p_cursor_at bigint, p_next_at bigint, p_live jsonb, p_resumed bigint, p_now bigint)
returns jsonb language plpgsql stable set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_when jsonb := p_definition -> 'when';
  v_is_range boolean := v_when ->> 'kind' = 'range';
  v_every bigint := (v_when ->> 'everyMs')::bigint;
  v_until bigint := least((v_when ->> 'untilMs')::bigint, 253402300800000 - 1);
  v_first bigint := coalesce((v_when ->> 'fromMs')::bigint, p_anchor_at + v_every);
  v_last bigint := least(p_resumed - 1, p_now, v_until);
  v_count bigint := 1;
  v_at bigint := p_next_at;
  v_next bigint;
begin
  if v_is_range then
    v_last := p_next_at;
    v_next := p_now + (v_when ->> 'everyMaxMs')::bigint;
  else
    v_at := (select t.at from (select v_first + (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
    v_count := greatest((case when v_last < v_first then 0 else (v_last - v_first) / v_every + 1 end) - (case when p_cursor_at < v_first then 0 else (p_cursor_at - v_first) / v_every + 1 end), 0);
    v_last := v_first + ((case when v_last < v_first then 0 else (v_last - v_first) / v_every + 1 end) - 1) * v_every;
    v_next := (select t.at from (select v_first + (case when greatest(v_last, p_cursor_at) < v_first then 0 else (greatest(v_last, p_cursor_at) - v_first) / v_every + 1 end) * v_every as at) t where t.at <= v_until);
  end if;
  return jsonb_build_object('ticks', case when v_count = 0 then '[]'::jsonb else jsonb_build_array(jsonb_build_object(
      'firstAt', v_at, 'lastAt', v_last, 'count', v_count, 'reason', 'paused', 'run', null,
      'evidence', jsonb_build_object('isAll', true, 'until', p_resumed))) end,
    'runs', '[]'::jsonb, 'live', p_live, 'hasReplaced', false,
    'cursorAt', case when v_count = 0 then p_cursor_at else v_last end,
    'nextAt', v_next, 'isEnded', v_next is null, 'isComplete', v_count = 0 or v_next is null or v_next > p_now);
end
$holdfast$;;
