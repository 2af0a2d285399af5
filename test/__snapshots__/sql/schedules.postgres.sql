-- ADVANCE_SCHEDULES
with now as materialized (select clock() as at),
sent as materialized (
  select * from unnest(:ids::int[], :revisions::bigint[], :cursors::bigint[], :nexts::bigint[], :ends::boolean[],
    :holds::bigint[], :holdRuns::uuid[], :lastRuns::uuid[], :lastTicks::bigint[], :lives::text[], :gates::boolean[],
    :replacings::boolean[], :tzdatas::text[])
    as x (id, revision, cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated,
      is_replacing, tzdata)
),
locked as materialized (
  select k.tid, x.* from sent x, lateral (
    select s.ctid as tid from schedule s where s.id = x.id and s.revision = x.revision
    for update skip locked) k
  -- Nothing fires while everything is paused: such changes are decided again later.
  where not exists (select from pause z where z.until_at is null) or x.id <> all(:cadenced::int[])
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
  select t.schedule, t.at, t.last_at, t.count, t.outcome, t.reason, now.at, :holder::int, w.version, t.run, t.evidence
  from unnest(:tickSchedules::int[], :tickFirsts::bigint[], :tickLasts::bigint[], :tickCounts::int[],
    :tickOutcomes::smallint[], :tickReasons::smallint[], :tickRuns::uuid[], :tickEvidence::text[])
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
  from unnest(:runSchedules::int[], :runIds::uuid[], :runModes::smallint[], :runNominals::bigint[], :runGates::boolean[],
    :runInputs::text[], :runTraces::text[]) as r (schedule, id, mode, nominal_at, gated, input, trace),
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
    select o.run from unnest(:openSchedules::int[], :openRuns::uuid[]) as o (schedule, run)
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
  case when :channel::text is not null then pg_notify(:channel::text, '') end as told;

-- BACKFILLS
select b.id, b.from_at, b.to_at, b.cursor_at, b.total, b.made, b.passed, b.is_all, b.created_at, b.created_by, b.ended_at,
  b.is_cancelled
from backfill b where b.schedule = (select s.id from schedule s where s.name = :name)
order by b.created_at desc, b.id desc;

-- BY_TZDATA
select s.name from schedule s where s.next_at is not null and s.tzdata <> :not order by s.name limit :limit;

-- DECLARED_NAMES
select distinct n.value collate "C" as name, null::text as paused_by, null::boolean as is_paused
from instance i, json_array_elements_text(i.schedules) as n (value)
where i.app is not distinct from :app::text and i.retired_at is null
  and i.seen_at > clock() - greatest(60000, 3 * i.poll_ms)
union all
select s.name, s.paused_by, s.paused_at is not null from schedule s
where s.app is not distinct from :app::text and s.source = 1 and s.deleted_at is null
order by name;

-- DELIVERY
select run, input_hash from delivery where schedule = :schedule and id = :id;

-- DUE_SCHEDULES
with now as materialized (select clock() as at),
chosen as materialized (
  select id, min(place) as place from (
    (select s.id, row_number() over () as place from (
      select x.id from schedule x where x.next_at <= (select at from now) order by x.next_at limit :limit) s)
    union all
    (select s.id, 1000000 + s.id from schedule s where (s.is_gated or s.is_replacing or s.backfill is not null) and (s.is_replacing or s.backfill is not null or coalesce((
  select coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false) from unnest(s.live) with ordinality l (id, place)
  where (select 1 from outcome o where o.id = l.id) is null
  and (select 1 from run r where r.id = l.id) is not null order by l.place limit 1), true)) limit :limit)
    union all
    (select s.id, 2000000000::bigint + s.id from schedule s where s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null limit :limit)
  ) x group by id order by 2 limit :limit
)

select now.at as now, y.* from now left join lateral (
    select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at,
      exists (select from job j where j.name = s.job) as is_job_known,
      case when cardinality(s.live) > 0 then (
        select json_agg(json_build_array(l.id, r.mode, r.nominal_at, coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place)
        from unnest(s.live) with ordinality l (id, place),
          lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
        where (select 1 from outcome o where o.id = l.id) is null) end as live_runs,
      case when s.backfill is not null then (
        select to_json(b) from backfill b where b.id = s.backfill) end as backfill_state,
      (
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null)) as pauses
    from chosen c, lateral (select * from schedule x where x.id = c.id offset 0) s
    order by c.place) y on true;

-- GATED_SCHEDULES
with now as materialized (select clock() as at),
chosen as materialized (
  select s.id, row_number() over () as place from schedule s where (s.is_gated or s.is_replacing or s.backfill is not null) and (s.is_replacing or s.backfill is not null or coalesce((
  select coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false) from unnest(s.live) with ordinality l (id, place)
  where (select 1 from outcome o where o.id = l.id) is null
  and (select 1 from run r where r.id = l.id) is not null order by l.place limit 1), true)) limit :limit
)

select now.at as now, y.* from now left join lateral (
    select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at,
      exists (select from job j where j.name = s.job) as is_job_known,
      case when cardinality(s.live) > 0 then (
        select json_agg(json_build_array(l.id, r.mode, r.nominal_at, coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place)
        from unnest(s.live) with ordinality l (id, place),
          lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
        where (select 1 from outcome o where o.id = l.id) is null) end as live_runs,
      case when s.backfill is not null then (
        select to_json(b) from backfill b where b.id = s.backfill) end as backfill_state,
      (
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null)) as pauses
    from chosen c, lateral (select * from schedule x where x.id = c.id offset 0) s
    order by c.place) y on true;

-- LAST_DECLARED_BY
select x.name, x.program from (
  select n.value as name, i.program, row_number() over (partition by n.value order by i.seen_at desc, i.no desc) as place
  from instance i, json_array_elements_text(i.schedules) as n (value)
  where i.app is not distinct from :app::text and n.value = any(:names::text[])
) x where x.place = 1;

-- LIST
select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at, exists (select from job j where j.name = s.job) as is_job_known, to_json(s.live) as live_now,
  r.status as last_status, coalesce(r.started_at, r.created_at) as last_run_at
from schedule s
left join lateral (select x.status, x.started_at, x.created_at from run_state x where x.id = s.last_run offset 0) r on true
where s.deleted_at is null
  and (:name::text is null or s.name = :name::text)
  and (:after::text is null or s.name > :after::text collate "C")
  and (:job::text is null or s.job = :job::text)
  and (:app::text is null or s.app = :app::text)
  and (:state::text is null or :state::text = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit :limit;

-- NAMES
select s.id, s.name from schedule s where s.id = any(:ids::int[]);

-- REVIVE
with now as materialized (select clock() as at),
reopened as (
  delete from outcome where id = :id::uuid and status in (2, 3) and exists (select from run r where r.id = :id::uuid)
  returning id, fence, started_at, finished_at, holder, attempt, extra, status, error
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, case when status = 3 then 5 else 0 end, holder, started_at, finished_at, error
  from reopened where fence is not null
),
revived as materialized (
  select o.id, o.attempt, o.extra + 1 as extra, r.lane, r.policy, r.priority, l.job, 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from reopened o
  join run r on r.id = o.id
  join lane l on l.id = r.lane
  left join job j on j.name = l.job
),
newcomers as materialized (
  select job, flow_key as key, lane, not :isGated::boolean as lined from revived where flow_key is not null
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
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select r.id, now.at - r.priority * 60000, r.lane, r.policy, r.attempt, 0, 0, 0, r.extra, false
  from revived r cross join now where not :isGated::boolean and r.flow_key is null
),
held as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select r.id, now.at, r.lane, r.policy, r.priority, r.attempt, 0, 0, 0, r.extra, false,
    case when :isGated::boolean then 'schedule' else 'flow' end, f.id
  from revived r left join flows f on f.job = r.job and f.key = r.flow_key cross join now
  where :isGated::boolean or r.flow_key is not null
),

child_changes as materialized (
  select r.batch, 1 as unended, 0 as completed, -(o.status = 2)::int as failed, -(o.status = 3)::int as cancelled
  from reopened o, lateral (select x.batch from run x where x.id = o.id offset 0) r where r.batch is not null
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
) select id, (select count(*) from continued) as continued from reopened;

-- REVIVING
with now as materialized (select clock() as at),
reopened as (
  delete from outcome where id = :id::uuid and status in (2, 3) and exists (select from run r where r.id = :id::uuid)
  returning id, fence, started_at, finished_at, holder, attempt, extra, status, error
),
noted as (
  insert into attempt (run, fence, attempt, ended, holder, started_at, ended_at, error)
  select id, fence, attempt, case when status = 3 then 5 else 0 end, holder, started_at, finished_at, error
  from reopened where fence is not null
),
revived as materialized (
  select o.id, o.attempt, o.extra + 1 as extra, r.lane, r.policy, r.priority, l.job, 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end as flow_key
  from reopened o
  join run r on r.id = o.id
  join lane l on l.id = r.lane
  left join job j on j.name = l.job
),
newcomers as materialized (
  select job, flow_key as key, lane, not :isGated::boolean as lined from revived where flow_key is not null
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
returned as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select r.id, now.at - r.priority * 60000, r.lane, r.policy, r.attempt, 0, 0, 0, r.extra, false
  from revived r cross join now where not :isGated::boolean and r.flow_key is null
),
held as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select r.id, now.at, r.lane, r.policy, r.priority, r.attempt, 0, 0, 0, r.extra, false,
    case when :isGated::boolean then 'schedule' else 'flow' end, f.id
  from revived r left join flows f on f.job = r.job and f.key = r.flow_key cross join now
  where :isGated::boolean or r.flow_key is not null
),

child_changes as materialized (
  select r.batch, 1 as unended, 0 as completed, -(o.status = 2)::int as failed, -(o.status = 3)::int as cancelled
  from reopened o, lateral (select x.batch from run x where x.id = o.id offset 0) r where r.batch is not null
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
);

-- SCHEDULE_STATES
with now as materialized (select clock() as at),
chosen as materialized (
  select s.id, row_number() over () as place from schedule s where s.name = any(:names::text[])
)

select now.at as now, y.* from now left join lateral (
    select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at,
      exists (select from job j where j.name = s.job) as is_job_known,
      case when cardinality(s.live) > 0 then (
        select json_agg(json_build_array(l.id, r.mode, r.nominal_at, coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place)
        from unnest(s.live) with ordinality l (id, place),
          lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
        where (select 1 from outcome o where o.id = l.id) is null) end as live_runs,
      case when s.backfill is not null then (
        select to_json(b) from backfill b where b.id = s.backfill) end as backfill_state,
      (
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null)) as pauses
    from chosen c, lateral (select * from schedule x where x.id = c.id offset 0) s
    order by c.place) y on true;

-- SEEN_DEFINITIONS
select hash, release, first_seen_at from declared where schedule = :schedule order by first_seen_at, hash collate "C";

-- STATE
select now.at as now, y.* from now left join lateral (
    select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at,
      exists (select from job j where j.name = s.job) as is_job_known,
      case when cardinality(s.live) > 0 then (
        select json_agg(json_build_array(l.id, r.mode, r.nominal_at, coalesce((select w.gate = 'schedule' from waiting w where w.id = l.id), false)) order by l.place)
        from unnest(s.live) with ordinality l (id, place),
          lateral (select x.mode, x.nominal_at from run x where x.id = l.id offset 0) r
        where (select 1 from outcome o where o.id = l.id) is null) end as live_runs,
      case when s.backfill is not null then (
        select to_json(b) from backfill b where b.id = s.backfill) end as backfill_state,
      (
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null)) as pauses
    from chosen c, lateral (select * from schedule x where x.id = c.id offset 0) s
    order by c.place) y on true;

-- VERSIONS
select v.version, v.kind, v.at, v.by, v.job, v.definition, v.input, v.anchor_at from schedule_version v
where v.schedule = (select s.id from schedule s where s.name = :name) order by v.version;
