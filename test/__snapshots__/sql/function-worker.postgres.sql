-- CLAIM
create function claim(jobs text[], holder text, max_runs int default 1)
returns table (run_id uuid, job text, fence bigint, attempt int, nominal_at timestamptz, input jsonb, lease_until timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_holder text := checked_text('holder', claim.holder, 200);
  v_token uuid := gen_random_uuid();
  v_unknown text;
  v_local text;
  v_limited boolean;
  v_row record;
  v_no int;
  v_left int := claim.max_runs;
  v_jobs text[] := array(select distinct n.name from unnest(claim.jobs) n (name));
begin
  if v_holder is null or v_left is null or v_left not between 1 and 1000
      or cardinality(v_jobs) not between 1 and 1000 or array_position(v_jobs, null) is not null then
    raise exception 'jobs, holder and max_runs: give names of up to 1000 jobs, a name, and from 1 to 1000 runs'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  select n.name into v_unknown from unnest(v_jobs) n (name)
  where not exists (select from job j where j.name = n.name) limit 1;
  if found then
    raise exception 'No instance has announced a job named "%".', v_unknown
      using errcode = 'HF001', detail = 'JOB_UNKNOWN';
  end if;
  select n.name into v_local from unnest(v_jobs) n (name)
  where n.name in ('shell', 'http')
    or n.name in (
select distinct w.value as job from instance i cross join (select clock() as at) n cross join json_array_elements_text(i.works) as w (value)
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - greatest(60000, 3 * i.poll_ms)
  and w.value = any((v_jobs)::text[])) limit 1;
  if found then
    raise exception 'The job "%" is executed, or sent to a target, by an instance: its runs cannot be claimed.', v_local
      using errcode = 'HF007', detail = 'JOB_NOT_REMOTE', hint = 'Declare the job without run and worker.';
  end if;
  
insert into instance as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select (v_holder), '[]', '[]', false, (array_to_json(v_jobs)::text)::json, (null)::json, (300000)::bigint, n.at, n.at, ('sql')::text
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
  select exists (select from job j where j.name = any(v_jobs)
    and (j.concurrency_limit is not null or j.rate_limit is not null)) into v_limited;
  
with now as materialized (select clock() as at),
expired as materialized (
  select k.* from lease k, now where k.until <= now.at 
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
  
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 and w.lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[])))
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
  if v_limited then
    
with now as materialized (select clock() as at),
gone as (
  delete from waiting where ctid = any(array(
    select w.ctid from waiting w, now where w.flow = 0 and w.gate is null and w.wake_at <= now.at
    order by w.wake_at limit (1000) for update of w skip locked))
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
select count(*)::int as promoted from due into v_row;
  end if;
  -- Suspects, which ended their processes before, come one at a time and last.
  for v_suspect in 0 .. 1 loop
    exit when v_suspect = 1 and v_left < claim.max_runs;
    if v_suspect = 1 then v_left := 1; end if;
    for v_row in with now as materialized (select clock() as at), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = (v_suspect = 1) and r.sort_at >= (-9223372036854775808)::bigint
      order by r.sort_at, r.id limit 1) h
  where (v_left)::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any((v_jobs)::text[])
    and ((null)::text[] is null or l.queue = any((null)::text[])) and q.paused_at is null and not ((false)::boolean and exists (
    select from lease k where k.holder = (v_no)::int and k.token = (v_token)::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = (v_suspect = 1) and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit (v_left) for update skip locked) x
  limit (v_left)
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (v_token)::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g loop
      v_left := v_left - 1;
    end loop;
    if v_limited and v_left > 0 then
      for v_row in with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any((v_jobs)::text[]) and ((null)::text[] is null or l.queue = any((null)::text[]))
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
    where n.lane = a.lane and n.suspect = (v_suspect = 1) and n.look_at <= (select at from now) 
    order by n.look_at, n.flow limit (v_left)::int + 50) x
  order by x.look_at, x.flow limit (v_left)::int + 50
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
    where x.flow = o.flow and x.lane = o.lane and x.suspect = (v_suspect = 1) and x.gate = 'flow' 
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least((v_left)::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit (v_left)::int
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
  where x.flow = o.flow and x.lane = o.lane and x.suspect = (v_suspect = 1) and x.gate = 'flow'
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
  where n.flow = o.flow and n.lane = o.lane and n.suspect = (v_suspect = 1)
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
    case when lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (v_token)::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g loop
        v_left := v_left - 1;
      end loop;
    end if;
  end loop;
  -- The caller begins these runs at once.
  update lease k set started = k.ids where k.holder = v_no and k.token = v_token;
  return query
    select k.ids[1], l.job, k.fence, k.attempt::int, to_timestamp(r.nominal_at / 1000.0), r.input::jsonb,
      to_timestamp(k.until / 1000.0)
    from lease k join lane l on l.id = k.lane,
      lateral (select x.nominal_at, x.input from run x where x.id = k.ids[1] offset 0) r
    where k.holder = v_no and k.token = v_token order by k.fence;
end
$holdfast$;;

-- EXPOSE
create function expose_functions(into_schema text)
returns setof text language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_function record;
  v_role record;
  v_name text;
  v_is_new boolean;
begin
  for v_function in
    select p.proname, p.pronargs, n.nspname, pg_get_function_arguments(p.oid) as arguments,
      pg_get_function_identity_arguments(p.oid) as identity,
      oidvectortypes(p.proargtypes) as types, pg_get_function_result(p.oid) as result
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.oid = any(array['enqueue', 'acquire_due', 'claim', 'heartbeat', 'record_item',
      'complete', 'fail', 'send_signal', 'cleanup_stale_runs']::regproc[]::oid[])
    order by p.proname
  loop
    v_name := format('%I.%I', into_schema, 'holdfast_' || v_function.proname);
    v_is_new := to_regprocedure(format('%s(%s)', v_name, v_function.types)) is null;
    execute format(
      'create or replace function %s(%s) returns %s language sql volatile security definer
       set search_path = pg_catalog, pg_temp as %L',
      v_name, v_function.arguments, v_function.result,
      format('select * from %I.%I(%s)', v_function.nspname, v_function.proname,
        (select string_agg('$' || n, ', ') from generate_series(1, v_function.pronargs) n)));
    execute format('revoke all on function %s(%s) from public', v_name, v_function.identity);
    -- Default privileges of a schema may grant new functions to roles, as Supabase does to anon: later grants stay.
    for v_role in
      select distinct a.grantee::regrole::text as name
      from pg_proc p, aclexplode(p.proacl) a
      where v_is_new and p.oid = to_regprocedure(format('%s(%s)', v_name, v_function.types))
        and a.grantee not in (0, p.proowner)
    loop
      execute format('revoke all on function %s(%s) from %s', v_name, v_function.identity, v_role.name);
    end loop;
    return next v_name;
  end loop;
end
$holdfast$;;

-- HEARTBEAT
create function heartbeat(run_id uuid, fence bigint)
returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_goes_on boolean;
begin
  -- Never shorter than it is: acquire_due gives a lease of the caller's own length.
  update lease k
  set renewed_at = n.at, until = greatest(k.until, least(n.at + p.lease_ms, k.deadline_at + 5000))
  from policy p, (select clock() as at offset 0) n
  where k.fence = heartbeat.fence and heartbeat.run_id = any(k.ids) and p.id = k.policy
  returning not coalesce(k.cancels ? heartbeat.run_id::text, false) into v_goes_on;
  if not found then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', heartbeat.run_id, heartbeat.fence
      using errcode = 'HF003', detail = 'LEASE_LOST';
  end if;
  return v_goes_on;
end
$holdfast$;;

-- RECORD_ITEM
create function record_item(
  run_id uuid, fence bigint, key text, value jsonb default 'null', outcome text default 'ok',
  duration_ms bigint default 0, error text default null)
returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_key text := checked_text('key', record_item.key, 500);
  v_outcome text := checked_text('outcome', record_item.outcome, 200);
  v_value text := coalesce(record_item.value, 'null')::text;
  v_error text;
  v_row record;
  v_stored record;
begin
  if v_key is null or v_outcome is null or record_item.duration_ms is null or record_item.duration_ms < 0 then
    raise exception 'key, outcome and duration_ms: give two texts, and a number from 0'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  if record_item.error is not null then
    v_outcome := 'failed';
    v_error := json_build_object('code', 'ERROR', 'name', 'Error', 'message', left(record_item.error, 8192))::text;
    v_value := null;
  elsif v_outcome = 'failed' then
    raise exception 'outcome: "failed" counts items with an error; give the parameter error as well'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  if octet_length(v_value) > 1048576 or json_depth(coalesce(v_value, '')) > 100 then
    raise exception 'value: has more than 1048576 bytes of JSON or more than 100 levels'
      using errcode = 'HF000', detail = 'ITEM_TOO_LARGE';
  end if;
  if v_outcome not in ('ok', 'failed') and (select count(*) from item_count c
      where c.run = record_item.run_id and c.outcome not in ('ok', 'failed', v_outcome)) >= 100 then
    raise exception 'outcome: the items of run % have 100 outcomes already', record_item.run_id
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  
with locked as materialized (
  select fence, attempt, ids from lease where fence = any((array[record_item.fence])::bigint[]) for key share
),
stored as (
  insert into item as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, clock() - s."durationMs", s."durationMs", s.value, s.error
  from locked k join unnest((array[record_item.run_id])::uuid[], (array[record_item.fence])::bigint[], (array[v_key])::text[], (array[v_outcome])::text[],
    (array[record_item.duration_ms])::bigint[], (array[v_value])::text[], (array[v_error])::text[])
    as s (id, fence, key, outcome, "durationMs", value, error) on s.fence = k.fence
  where s.id = any(k.ids)
  on conflict (run, key) do update set fence = excluded.fence, attempt = excluded.attempt, tries = t.tries + 1,
    outcome = excluded.outcome, started_at = excluded.started_at, duration_ms = excluded.duration_ms,
    value = excluded.value, error = excluded.error
    where t.error is not null
  returning t.run, t.outcome, t.tries
),
counted as (
  insert into item_count as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && (array[record_item.run_id])::uuid[]) as is_held, (select count(*)::int from stored) as stored into v_row;
  if not v_row.is_held then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', record_item.run_id, record_item.fence
      using errcode = 'HF003', detail = 'LEASE_LOST';
  end if;
  if v_row.stored = 1 then
    return true;
  end if;
  -- It was done before, maybe by this very call, whose answer was lost: the first value stays.
  select i.value into v_stored from item i where i.run = record_item.run_id and i.key = v_key;
  if v_error is null and v_stored.value::jsonb is distinct from v_value::jsonb then
    raise exception 'The item "%" of run % was done before, with another value; nothing was changed.', v_key, record_item.run_id
      using errcode = 'HF005', detail = 'ITEM_CONFLICT';
  end if;
  return false;
end
$holdfast$;;

-- WORKER_FUNCTIONS
create function claim(jobs text[], holder text, max_runs int default 1)
returns table (run_id uuid, job text, fence bigint, attempt int, nominal_at timestamptz, input jsonb, lease_until timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_holder text := checked_text('holder', claim.holder, 200);
  v_token uuid := gen_random_uuid();
  v_unknown text;
  v_local text;
  v_limited boolean;
  v_row record;
  v_no int;
  v_left int := claim.max_runs;
  v_jobs text[] := array(select distinct n.name from unnest(claim.jobs) n (name));
begin
  if v_holder is null or v_left is null or v_left not between 1 and 1000
      or cardinality(v_jobs) not between 1 and 1000 or array_position(v_jobs, null) is not null then
    raise exception 'jobs, holder and max_runs: give names of up to 1000 jobs, a name, and from 1 to 1000 runs'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  select n.name into v_unknown from unnest(v_jobs) n (name)
  where not exists (select from job j where j.name = n.name) limit 1;
  if found then
    raise exception 'No instance has announced a job named "%".', v_unknown
      using errcode = 'HF001', detail = 'JOB_UNKNOWN';
  end if;
  select n.name into v_local from unnest(v_jobs) n (name)
  where n.name in ('shell', 'http')
    or n.name in (
select distinct w.value as job from instance i cross join (select clock() as at) n cross join json_array_elements_text(i.works) as w (value)
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - greatest(60000, 3 * i.poll_ms)
  and w.value = any((v_jobs)::text[])) limit 1;
  if found then
    raise exception 'The job "%" is executed, or sent to a target, by an instance: its runs cannot be claimed.', v_local
      using errcode = 'HF007', detail = 'JOB_NOT_REMOTE', hint = 'Declare the job without run and worker.';
  end if;
  
insert into instance as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select (v_holder), '[]', '[]', false, (array_to_json(v_jobs)::text)::json, (null)::json, (300000)::bigint, n.at, n.at, ('sql')::text
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
  select exists (select from job j where j.name = any(v_jobs)
    and (j.concurrency_limit is not null or j.rate_limit is not null)) into v_limited;
  
with now as materialized (select clock() as at),
expired as materialized (
  select k.* from lease k, now where k.until <= now.at 
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
  
with now as materialized (select clock() as at),
due as materialized (
  select w.ctid as tid, w.* from waiting w, now
  where w.gate is null and w.wake_at <= now.at and w.flow is distinct from 0 and w.lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[])))
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
  if v_limited then
    
with now as materialized (select clock() as at),
gone as (
  delete from waiting where ctid = any(array(
    select w.ctid from waiting w, now where w.flow = 0 and w.gate is null and w.wake_at <= now.at
    order by w.wake_at limit (1000) for update of w skip locked))
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
select count(*)::int as promoted from due into v_row;
  end if;
  -- Suspects, which ended their processes before, come one at a time and last.
  for v_suspect in 0 .. 1 loop
    exit when v_suspect = 1 and v_left < claim.max_runs;
    if v_suspect = 1 then v_left := 1; end if;
    for v_row in with now as materialized (select clock() as at), 
head as materialized (
  select l.id as lane, h.sort_at
  from lane l
  left join queue q on q.name = l.queue,
    lateral (
      select r.sort_at from ready r
      where r.lane = l.id and r.suspect = (v_suspect = 1) and r.sort_at >= (-9223372036854775808)::bigint
      order by r.sort_at, r.id limit 1) h
  where (v_left)::int > 0 and not exists (select from pause z where z.until_at is null) and l.job = any((v_jobs)::text[])
    and ((null)::text[] is null or l.queue = any((null)::text[])) and q.paused_at is null and not ((false)::boolean and exists (
    select from lease k where k.holder = (v_no)::int and k.token = (v_token)::uuid))
),
taken as materialized (
  select x.* from (select lane, sort_at from head order by sort_at) l,
    lateral (
      select r.ctid as tid, r.* from ready r
      where r.lane = l.lane and r.suspect = (v_suspect = 1) and r.sort_at >= l.sort_at
      order by r.sort_at, r.id limit (v_left) for update skip locked) x
  limit (v_left)
),

gone as (delete from ready where ctid = any(array(select tid from taken))), 
grouped as materialized (
  select lane, policy, attempt, losses, refunds, laters, extra, suspect, limited,
    array_agg(id order by sort_at, id) as ids
  from taken group by 1, 2, 3, 4, 5, 6, 7, 8, 9,
    case when lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (v_token)::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g loop
      v_left := v_left - 1;
    end loop;
    if v_limited and v_left > 0 then
      for v_row in with now as materialized (select clock() as at), 
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from lane l
  left join queue q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from flow x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from job x where x.name = l.job offset 0) j
  where not exists (select from pause z where z.until_at is null) and l.job = any((v_jobs)::text[]) and ((null)::text[] is null or l.queue = any((null)::text[]))
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
    where n.lane = a.lane and n.suspect = (v_suspect = 1) and n.look_at <= (select at from now) 
    order by n.look_at, n.flow limit (v_left)::int + 50) x
  order by x.look_at, x.flow limit (v_left)::int + 50
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
    where x.flow = o.flow and x.lane = o.lane and x.suspect = (v_suspect = 1) and x.gate = 'flow' 
    order by wake_at - priority * 60000::bigint, x.id
    limit greatest(least((v_left)::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit (v_left)::int
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
  where x.flow = o.flow and x.lane = o.lane and x.suspect = (v_suspect = 1) and x.gate = 'flow'
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
  where n.flow = o.flow and n.lane = o.lane and n.suspect = (v_suspect = 1)
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
    case when lane = any(array(select l.id from lane l where l.job = any((v_jobs)::text[]))) then id end
),
granted as (
  insert into lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy,
    attempt, losses, refunds, laters, extra, suspect, limited, token, ids, started)
  select least(now.at + p.lease_ms, now.at + p.timeout_ms + 5000), now.at + p.timeout_ms, now.at, now.at,
    (v_no)::int, g.lane, g.policy, g.attempt + 1, g.losses, g.refunds, g.laters, g.extra, g.suspect, g.limited,
    (v_token)::uuid, g.ids, '{}'
  from grouped g join policy p on p.id = g.policy cross join now
  returning *
) select g.fence from granted g loop
        v_left := v_left - 1;
      end loop;
    end if;
  end loop;
  -- The caller begins these runs at once.
  update lease k set started = k.ids where k.holder = v_no and k.token = v_token;
  return query
    select k.ids[1], l.job, k.fence, k.attempt::int, to_timestamp(r.nominal_at / 1000.0), r.input::jsonb,
      to_timestamp(k.until / 1000.0)
    from lease k join lane l on l.id = k.lane,
      lateral (select x.nominal_at, x.input from run x where x.id = k.ids[1] offset 0) r
    where k.holder = v_no and k.token = v_token order by k.fence;
end
$holdfast$;

create function heartbeat(run_id uuid, fence bigint)
returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_goes_on boolean;
begin
  -- Never shorter than it is: acquire_due gives a lease of the caller's own length.
  update lease k
  set renewed_at = n.at, until = greatest(k.until, least(n.at + p.lease_ms, k.deadline_at + 5000))
  from policy p, (select clock() as at offset 0) n
  where k.fence = heartbeat.fence and heartbeat.run_id = any(k.ids) and p.id = k.policy
  returning not coalesce(k.cancels ? heartbeat.run_id::text, false) into v_goes_on;
  if not found then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', heartbeat.run_id, heartbeat.fence
      using errcode = 'HF003', detail = 'LEASE_LOST';
  end if;
  return v_goes_on;
end
$holdfast$;

create function record_item(
  run_id uuid, fence bigint, key text, value jsonb default 'null', outcome text default 'ok',
  duration_ms bigint default 0, error text default null)
returns boolean language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off as $holdfast$
#variable_conflict use_column
declare
  v_key text := checked_text('key', record_item.key, 500);
  v_outcome text := checked_text('outcome', record_item.outcome, 200);
  v_value text := coalesce(record_item.value, 'null')::text;
  v_error text;
  v_row record;
  v_stored record;
begin
  if v_key is null or v_outcome is null or record_item.duration_ms is null or record_item.duration_ms < 0 then
    raise exception 'key, outcome and duration_ms: give two texts, and a number from 0'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  if record_item.error is not null then
    v_outcome := 'failed';
    v_error := json_build_object('code', 'ERROR', 'name', 'Error', 'message', left(record_item.error, 8192))::text;
    v_value := null;
  elsif v_outcome = 'failed' then
    raise exception 'outcome: "failed" counts items with an error; give the parameter error as well'
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  if octet_length(v_value) > 1048576 or json_depth(coalesce(v_value, '')) > 100 then
    raise exception 'value: has more than 1048576 bytes of JSON or more than 100 levels'
      using errcode = 'HF000', detail = 'ITEM_TOO_LARGE';
  end if;
  if v_outcome not in ('ok', 'failed') and (select count(*) from item_count c
      where c.run = record_item.run_id and c.outcome not in ('ok', 'failed', v_outcome)) >= 100 then
    raise exception 'outcome: the items of run % have 100 outcomes already', record_item.run_id
      using errcode = 'HF000', detail = 'CONFIGURATION_INVALID';
  end if;
  
with locked as materialized (
  select fence, attempt, ids from lease where fence = any((array[record_item.fence])::bigint[]) for key share
),
stored as (
  insert into item as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, clock() - s."durationMs", s."durationMs", s.value, s.error
  from locked k join unnest((array[record_item.run_id])::uuid[], (array[record_item.fence])::bigint[], (array[v_key])::text[], (array[v_outcome])::text[],
    (array[record_item.duration_ms])::bigint[], (array[v_value])::text[], (array[v_error])::text[])
    as s (id, fence, key, outcome, "durationMs", value, error) on s.fence = k.fence
  where s.id = any(k.ids)
  on conflict (run, key) do update set fence = excluded.fence, attempt = excluded.attempt, tries = t.tries + 1,
    outcome = excluded.outcome, started_at = excluded.started_at, duration_ms = excluded.duration_ms,
    value = excluded.value, error = excluded.error
    where t.error is not null
  returning t.run, t.outcome, t.tries
),
counted as (
  insert into item_count as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && (array[record_item.run_id])::uuid[]) as is_held, (select count(*)::int from stored) as stored into v_row;
  if not v_row.is_held then
    raise exception 'Run % is no longer held under fence %; nothing was changed.', record_item.run_id, record_item.fence
      using errcode = 'HF003', detail = 'LEASE_LOST';
  end if;
  if v_row.stored = 1 then
    return true;
  end if;
  -- It was done before, maybe by this very call, whose answer was lost: the first value stays.
  select i.value into v_stored from item i where i.run = record_item.run_id and i.key = v_key;
  if v_error is null and v_stored.value::jsonb is distinct from v_value::jsonb then
    raise exception 'The item "%" of run % was done before, with another value; nothing was changed.', v_key, record_item.run_id
      using errcode = 'HF005', detail = 'ITEM_CONFLICT';
  end if;
  return false;
end
$holdfast$;

create function expose_functions(into_schema text)
returns setof text language plpgsql volatile set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_function record;
  v_role record;
  v_name text;
  v_is_new boolean;
begin
  for v_function in
    select p.proname, p.pronargs, n.nspname, pg_get_function_arguments(p.oid) as arguments,
      pg_get_function_identity_arguments(p.oid) as identity,
      oidvectortypes(p.proargtypes) as types, pg_get_function_result(p.oid) as result
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.oid = any(array['enqueue', 'acquire_due', 'claim', 'heartbeat', 'record_item',
      'complete', 'fail', 'send_signal', 'cleanup_stale_runs']::regproc[]::oid[])
    order by p.proname
  loop
    v_name := format('%I.%I', into_schema, 'holdfast_' || v_function.proname);
    v_is_new := to_regprocedure(format('%s(%s)', v_name, v_function.types)) is null;
    execute format(
      'create or replace function %s(%s) returns %s language sql volatile security definer
       set search_path = pg_catalog, pg_temp as %L',
      v_name, v_function.arguments, v_function.result,
      format('select * from %I.%I(%s)', v_function.nspname, v_function.proname,
        (select string_agg('$' || n, ', ') from generate_series(1, v_function.pronargs) n)));
    execute format('revoke all on function %s(%s) from public', v_name, v_function.identity);
    -- Default privileges of a schema may grant new functions to roles, as Supabase does to anon: later grants stay.
    for v_role in
      select distinct a.grantee::regrole::text as name
      from pg_proc p, aclexplode(p.proacl) a
      where v_is_new and p.oid = to_regprocedure(format('%s(%s)', v_name, v_function.types))
        and a.grantee not in (0, p.proowner)
    loop
      execute format('revoke all on function %s(%s) from %s', v_name, v_function.identity, v_role.name);
    end loop;
    return next v_name;
  end loop;
end
$holdfast$;;
