-- DELETE_OPENED
delete from waiting where id in (select value from json_each(:ids)) and gate = 'schedule' and flow is null;

-- DUE_SCHEDULES
with due as materialized (
  select s.id, 0 as part, s.next_at as at from schedule s indexed by schedule_next
  where s.next_at <= :now order by s.next_at, s.id limit (:limit + 0)
), looking as materialized (
  select s.id, 1 as part, s.id as at from schedule s indexed by schedule_look
  where (s.is_gated or s.is_replacing or s.backfill is not null)
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule') 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id) order by m.key limit 1), 1) end and (s.next_at is null or s.next_at > :now)
  order by s.id limit (:limit + 0) - (select count(*) from due)
), lost as materialized (
  select s.id, 2 as part, s.id as at from schedule s indexed by schedule_lost
  where s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null and s.id not in (select id from looking)
  order by s.id limit (:limit + 0) - (select count(*) from due) - (select count(*) from looking)
)

select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from job j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule')) order by m.key) 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id)),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from backfill b where b.id = s.backfill),
  'pauses', (
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null))
) as state
from (select * from due union all select * from looking union all select * from lost) c
cross join schedule s on s.id = c.id order by c.part, c.at, c.id;

-- END_SCHEDULE_RUNS
update schedule set revision = revision + 1,
  next_at = case
    when range_min is null then next_at
    when e.value ->> 2 and fail_min is not null
      then :now + fail_min + cast((e.value ->> 3) * (fail_max - fail_min + 1) as integer)
    else :now + range_min + cast((e.value ->> 3) * (range_max - range_min + 1) as integer)
  end,
  hold_until = case
    when range_min is null then :now + fail_min + cast((e.value ->> 3) * (fail_max - fail_min + 1) as integer)
    else hold_until
  end,
  hold_run = iif(range_min is null, last_run, hold_run)
from json_each(:rows) e
where schedule.id = e.value ->> 0 and last_run = e.value ->> 1
  and iif(range_min is null, fail_min is not null and e.value ->> 2, next_at is not null);

-- GATED_SCHEDULES
select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from job j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule')) order by m.key) 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id)),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from backfill b where b.id = s.backfill),
  'pauses', (
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null))
) as state from schedule s indexed by schedule_look where (s.is_gated or s.is_replacing or s.backfill is not null)
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule') 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id) order by m.key limit 1), 1) end order by s.id limit (:limit + 0);

-- GATE_REVIVED
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate)
select r.id, :now, r.lane, r.policy, r.priority, :attempt, 0, 0, 0, :extra, 0, 'schedule'
from run r where r.id = :id;

-- GATE_SCHEDULE_RUNS
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate)
select r.id, :now, r.lane, r.policy, r.priority, 0, 0, 0, 0, 0, 0, 'schedule'
from json_each(:ids) m cross join run r on r.id = m.value;

-- INSERT_SCHEDULE_RUNS
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select e.value ->> 1, :now, :now, l.id, j.policy, j.version, coalesce(s.priority, j.priority), e.value ->> 2, s.id,
  e.value ->> 3, iif(e.value ->> 5 is null, s.tags, json_insert(coalesce(s.tags, '[]'), '$[#]', e.value ->> 5)),
  coalesce(e.value ->> 4, s.input)
from json_each(:rows) e cross join schedule s on s.id = e.value ->> 0
left join job j on j.name = s.job
left join lane l on l.job = s.job and l.queue = coalesce(s.queue, j.queue);

-- INSERT_TICKS
insert into tick (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
select s.id, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, :now, :holder, s.version,
  e.value ->> 6, e.value ->> 7
from json_each(:rows) e cross join schedule s on s.id = e.value ->> 0;

-- LIMITED_GATED
select w.id, w.flow from waiting w
where w.id in (select value from json_each(:ids)) and w.gate = 'schedule' and w.flow is not null;

-- OPEN_GATES
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select id, wake_at - priority * 60000, lane, policy, attempt, losses, refunds, laters, extra, suspect from waiting
where id in (select value from json_each(:ids)) and gate = 'schedule' and flow is null;

-- READY_SCHEDULE_RUNS
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, :now - r.priority * 60000, r.lane, r.policy, 0, 0, 0, 0, 0, 0
from json_each(:ids) m cross join run r on r.id = m.value;

-- SCHEDULE_STATES
select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from job j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule')) order by m.key) 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id)),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from backfill b where b.id = s.backfill),
  'pauses', (
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null))
) as state from schedule s where s.name in (select value from json_each(:names)) order by s.name;

-- SET_PROGRESS
update schedule set revision = revision + 1, cursor_at = e.value ->> 1, next_at = e.value ->> 2,
  is_ended = e.value ->> 3, hold_until = e.value ->> 4, hold_run = e.value ->> 5, last_run = e.value ->> 6,
  last_tick_at = e.value ->> 7, live = e.value ->> 8, is_gated = e.value ->> 9, is_replacing = e.value ->> 10,
  tzdata = e.value ->> 11
from json_each(:rows) e where schedule.id = e.value ->> 0;

-- STATE
select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from job j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, exists (select 1 from waiting w where w.id = r.id and w.gate = 'schedule')) order by m.key) 
from json_each(s.live) m cross join run r on r.id = m.value
where not exists (select 1 from outcome o where o.id = r.id)),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from backfill b where b.id = s.backfill),
  'pauses', (
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from pause z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from schedule m where m.next_at is not null))
) as state;

-- UNCHANGED
select json_group_array(s.id) as ids
from json_each(:rows) e cross join schedule s on s.id = e.value ->> 0 where s.revision = e.value ->> 1;
