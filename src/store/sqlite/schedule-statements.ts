// The statements about schedules on SQLite. Every part of a poll names one of the three partial indexes of `schedule`:
// its cost must not grow with the number of idle schedules. Runs and ledger rows take their values from the present row
// of the schedule, so those statements come before the ones that change it.
import { COUNTERS } from "../rows.js";
import { IS_LOST, MAY_NEED_LOOK } from "../schedules/state.js";

/** Pauses that unrecorded ticks may fall into, for statements that read schedules. */
export const PAUSES = /* sql */ `(
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from {pause} z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from {schedule} m where m.next_at is not null))`;

/** The runs of a schedule's `live` that have no outcome yet, as a row source inside a subquery. */
const LIVE = /* sql */ `
from json_each(s.live) m cross join {run} r on r.id = m.value
where not exists (select 1 from {outcome} o where o.id = r.id)`;

const IS_GATED = /* sql */ `exists (select 1 from {waiting} w where w.id = r.id and w.gate = 'schedule')`;

/** Every run before the first gated one is gone, because it ended or was removed. */
const NEEDS_LOOK = /* sql */ `${MAY_NEED_LOOK}
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select ${IS_GATED} ${LIVE} order by m.key limit 1), 1) end`;

/** The part of a poll about schedules, as members of a JSON object. */
// A `case` stops at the first true condition; an "or" of subqueries would evaluate all of them.
export const POLLED_SCHEDULES = /* sql */ `
  'hasDueSchedule', case
    when not :isScheduler then 0
    when exists (select 1 from {schedule} s indexed by {schedule_next} where s.next_at <= :now) then 1
    when exists (select 1 from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK}) then 1
    else exists (select 1 from {schedule} s indexed by {schedule_lost} where ${IS_LOST})
  end,
  'hasFreeGate', case
    when :isScheduler then 0
    else exists (select 1 from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK})
  end,
  'hasGated', case
    when exists (select 1 from {waiting} w indexed by {waiting_gate} where w.gate = 'schedule') then 1
    else exists (
      select 1 from {schedule} s indexed by {schedule_look} where ${MAY_NEED_LOOK} and s.backfill is not null)
  end,
  'nextTickAt', case when :isScheduler then
    (select min(s.next_at) from {schedule} s indexed by {schedule_next} where s.next_at > :now)
  end`;

// One JSON text for a row: thirty columns of a thousand schedules take three times as long (measured).
const STATE = /* sql */ `
select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from {job} j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, ${IS_GATED}) order by m.key) ${LIVE}),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from {backfill} b where b.id = s.backfill),
  'pauses', ${PAUSES}
) as state`;

export const DUE_SCHEDULES = /* sql */ `
with due as materialized (
  select s.id, 0 as part, s.next_at as at from {schedule} s indexed by {schedule_next}
  where s.next_at <= :now order by s.next_at, s.id limit (:limit + 0)
), looking as materialized (
  select s.id, 1 as part, s.id as at from {schedule} s indexed by {schedule_look}
  where ${NEEDS_LOOK} and (s.next_at is null or s.next_at > :now)
  order by s.id limit (:limit + 0) - (select count(*) from due)
), lost as materialized (
  select s.id, 2 as part, s.id as at from {schedule} s indexed by {schedule_lost}
  where ${IS_LOST} and s.id not in (select id from looking)
  order by s.id limit (:limit + 0) - (select count(*) from due) - (select count(*) from looking)
)
${STATE}
from (select * from due union all select * from looking union all select * from lost) c
cross join {schedule} s on s.id = c.id order by c.part, c.at, c.id`;

/** Only those that must be evaluated, whether or not a tick of them is due. */
export const GATED_SCHEDULES = /* sql */ `
${STATE} from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK} order by s.id limit (:limit + 0)`;

export const SCHEDULE_STATES = /* sql */ `
${STATE} from {schedule} s where s.name in (select value from json_each(:names)) order by s.name`;

/** Of [id, revision] pairs, the ids of those that are unchanged. */
export const UNCHANGED = /* sql */ `
select json_group_array(s.id) as ids
from json_each(:rows) e cross join {schedule} s on s.id = e.value ->> 0 where s.revision = e.value ->> 1`;

export const INSERT_TICKS = /* sql */ `
insert into {tick} (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
select s.id, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, :now, :holder, s.version,
  e.value ->> 6, e.value ->> 7
from json_each(:rows) e cross join {schedule} s on s.id = e.value ->> 0`;

// Outer joins: the run of an unannounced job has no policy and is refused, not left out.
export const INSERT_SCHEDULE_RUNS = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select e.value ->> 1, :now, :now, l.id, j.policy, j.version, coalesce(s.priority, j.priority), e.value ->> 2, s.id,
  e.value ->> 3, iif(e.value ->> 5 is null, s.tags, json_insert(coalesce(s.tags, '[]'), '$[#]', e.value ->> 5)),
  coalesce(e.value ->> 4, s.input)
from json_each(:rows) e cross join {schedule} s on s.id = e.value ->> 0
left join {job} j on j.name = s.job
left join {lane} l on l.job = s.job and l.queue = coalesce(s.queue, j.queue)`;

export const READY_SCHEDULE_RUNS = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select r.id, :now - r.priority * 60000, r.lane, r.policy, 0, 0, 0, 0, 0, 0
from json_each(:ids) m cross join {run} r on r.id = m.value`;

export const GATE_SCHEDULE_RUNS = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate)
select r.id, :now, r.lane, r.policy, r.priority, 0, 0, 0, 0, 0, 0, 'schedule'
from json_each(:ids) m cross join {run} r on r.id = m.value`;

/** A run behind a gate that an operator retries. */
export const GATE_REVIVED = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate)
select r.id, :now, r.lane, r.policy, r.priority, :attempt, 0, 0, 0, :extra, 0, 'schedule'
from {run} r where r.id = :id`;

export const OPEN_GATES = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select id, wake_at - priority * 60000, lane, policy, ${COUNTERS}, suspect from {waiting}
where id in (select value from json_each(:ids)) and gate = 'schedule' and flow is null`;

export const DELETE_OPENED = /* sql */ `
delete from {waiting} where id in (select value from json_each(:ids)) and gate = 'schedule' and flow is null`;

/** Runs of limited jobs join their line instead. */
export const LIMITED_GATED = /* sql */ `
select w.id, w.flow from {waiting} w
where w.id in (select value from json_each(:ids)) and w.gate = 'schedule' and w.flow is not null`;

export const SET_PROGRESS = /* sql */ `
update {schedule} set revision = revision + 1, cursor_at = e.value ->> 1, next_at = e.value ->> 2,
  is_ended = e.value ->> 3, hold_until = e.value ->> 4, hold_run = e.value ->> 5, last_run = e.value ->> 6,
  last_tick_at = e.value ->> 7, live = e.value ->> 8, is_gated = e.value ->> 9, is_replacing = e.value ->> 10,
  tzdata = e.value ->> 11
from json_each(:rows) e where {schedule}.id = e.value ->> 0`;

// The end of the run of the newest fired tick: for a random interval it sets the next tick, for any other it may hold
// ticks back after a failure. The draw needs no code of the schedule.
export const END_SCHEDULE_RUNS = /* sql */ `
update {schedule} set revision = revision + 1,
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
where {schedule}.id = e.value ->> 0 and last_run = e.value ->> 1
  and iif(range_min is null, fail_min is not null and e.value ->> 2, next_at is not null)`;
