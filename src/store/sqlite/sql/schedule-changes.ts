// What is written of schedules on SQLite. Runs and ledger rows take what they need from the schedule
// as it stands, so these statements come before the ones that change it.

import { TICKS_KEPT } from "../../sql/retention.js";

const COUNTERS = "attempt, losses, refunds, laters, extra";

/** Of [id, revision] pairs, the ids of those that are still so. */
export const UNCHANGED = /* sql */ `
select json_group_array(s.id) as ids
from json_each(:rows) e cross join {schedule} s on s.id = e.value ->> 0 where s.revision = e.value ->> 1`;

export const INSERT_TICKS = /* sql */ `
insert into {tick} (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
select s.id, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, :now, :holder, s.version,
  e.value ->> 6, e.value ->> 7
from json_each(:rows) e cross join {schedule} s on s.id = e.value ->> 0`;

// Outer joins: the run of a job that nobody announced has no policy and is refused, not left out.
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

/** A run that goes on behind a gate, by an operator's will. */
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

/** Those of limited jobs stand in line instead. */
export const LIMITED_GATED = /* sql */ `
select w.id, w.flow from {waiting} w
where w.id in (select value from json_each(:ids)) and w.gate = 'schedule' and w.flow is not null`;

export const SET_PROGRESS = /* sql */ `
update {schedule} set revision = revision + 1, cursor_at = e.value ->> 1, next_at = e.value ->> 2,
  is_ended = e.value ->> 3, hold_until = e.value ->> 4, hold_run = e.value ->> 5, last_run = e.value ->> 6,
  last_tick_at = e.value ->> 7, live = e.value ->> 8, is_gated = e.value ->> 9, is_replacing = e.value ->> 10,
  tzdata = e.value ->> 11
from json_each(:rows) e where {schedule}.id = e.value ->> 0`;

export const SET_STANDING = /* sql */ `
update {schedule} set paused_at = :pausedAt, paused_by = :pausedBy, pause_note = :pauseNote, broken_at = :brokenAt,
  broken_error = :brokenError, updated_at = :now
where id = :schedule`;

export const SET_RELEASE = /* sql */ `update {schedule} set release = :release where id = :schedule`;

export const EDIT_SCHEDULE = /* sql */ `
update {schedule} set version = version + 1, job = :job, queue = :queue, priority = :priority, tags = :tags,
  input = :input, definition = :definition, anchor_at = :anchorAt, range_min = :rangeMin, range_max = :rangeMax,
  fail_min = :failMin, fail_max = :failMax, app = :app, source = :source, release = :release, code_hash = :codeHash,
  began_at = null, deleted_at = iif(:isDeleted, :now, null), updated_at = :now
where id = :schedule`;

export const CREATE_SCHEDULE = /* sql */ `
insert into {schedule} (name, revision, version, job, queue, priority, tags, input, definition, anchor_at, cursor_at,
  next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated, is_replacing, range_min, range_max,
  fail_min, fail_max, tzdata, deleted_at, app, source, release, code_hash, created_at, updated_at)
values (:name, 1, 1, :job, :queue, :priority, :tags, :input, :definition, :anchorAt, :cursorAt, :nextAt, :isEnded,
  :holdUntil, :holdRun, :lastRun, :lastTickAt, :live, :isGated, :isReplacing, :rangeMin, :rangeMax, :failMin, :failMax,
  :tzdata, iif(:isDeleted, :now, null), :app, :source, :release, :codeHash, :now, :now)
on conflict (name) do nothing returning id`;

export const KEEP_VERSION = /* sql */ `
insert into {schedule_version} (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, :kind, :now, :by, s.job, s.definition, s.input, s.anchor_at from {schedule} s where s.id = :schedule`;

export const SEE_DEFINITION = /* sql */ `
insert into {declared} (schedule, hash, release, first_seen_at) values (:schedule, :codeHash, :release, :now)
on conflict do update set first_seen_at = excluded.first_seen_at where :isForced`;

export const QUEUE_OF_JOB = /* sql */ `select queue from {job} where name = :job`;

export const JOB_OF_SCHEDULE = /* sql */ `select job from {schedule} where id = :schedule`;

export const KEEP_DELIVERY = /* sql */ `
insert into {delivery} (schedule, id, run, input_hash) values (:schedule, :id, :run, :inputHash)`;

export const SET_BEGAN = /* sql */ `update {schedule} set began_at = :beganAt where id = :schedule`;

// A run that ended elsewhere: it is never pending nor held, so it goes straight to its outcome.
export const INSERT_CHECKED_IN = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select :id, :now, coalesce(:nominalAt, :now), :lane, :policy, 1, 0, :mode, s.id, :nominalAt, s.tags, s.input
from {schedule} s where s.id = :schedule`;
export const PUT_CHECK_IN = /* sql */ `
insert into {outcome} (id, started_at, finished_at, lane, attempt, extra, status, error)
values (:id, :now - :ranMs, :now, :lane, 1, 0, :status, :error)
on conflict (id) do update set started_at = coalesce(excluded.started_at, started_at), finished_at = excluded.finished_at,
  status = excluded.status, error = excluded.error`;

export const INSERT_BACKFILL = /* sql */ `
insert into {backfill} (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, created_by,
  ended_at, is_cancelled)
values (:id, :schedule, :fromAt, :toAt, :cursorAt, :total, :made, :passed, :isAll, :now, :by, iif(:isEnded, :now, null),
  :isCancelled)`;

export const UPDATE_BACKFILL = /* sql */ `
update {backfill} set from_at = :fromAt, to_at = :toAt, cursor_at = :cursorAt, total = :total, made = :made,
  passed = :passed, is_all = :isAll, ended_at = iif(:isEnded, :now, null), is_cancelled = :isCancelled
where id = :id`;

export const SET_BACKFILL = /* sql */ `
update {schedule} set backfill = iif(:isEnded, null, :id) where id = :schedule`;

export const KEEP_BACKFILL_RUN = /* sql */ `
insert into {backfill_run} (schedule, at, backfill, run) values (:schedule, :at, :id, :run)`;

// The end of the run of the newest fired tick: of an interval that is drawn it sets the next tick,
// of any other it may hold ticks back after a failure. The draw needs no code of the schedule.
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

/** Before the runs themselves: a backfill's run is found by its tick. */
export const PRUNE_RUNS_OF_SCHEDULES = [
  /* sql */ `
delete from {backfill_run} where (schedule, at) in (
    select r.schedule, r.nominal_at from json_each(:ids) m cross join {run} r on r.id = m.value
    where r.schedule is not null)
  and run in (select value from json_each(:ids))`,
  /* sql */ `delete from {delivery} where run in (select value from json_each(:ids))`,
] as const;
// A stretch is old when its last tick is; its first one is older, and has the index.
export const PRUNE_TICKS = /* sql */ `
delete from {tick} where (schedule, at) in (
  select schedule, at from {tick} indexed by {tick_at}
  where at < :now - :keepMs and last_at < :now - :keepMs order by at limit (:limit + 0))`;

/** Of whole days, in the order of the index, from where the last look came to. */
export const VISIT_TICKS = /* sql */ `
select schedule, at from {tick} indexed by {tick_at}
where (at, schedule) > (:afterAt, :afterSchedule) and at < :untilAt order by at, schedule limit (:limit + 0)`;

/**
 * Of those, the ones that go: see thinDay of postgres-days.ts for what stays. Asked in the order of what it costs: only
 * of rows that fired, or are not the first of their minute, are the newer ones counted.
 */
export const THIN_TICKS = /* sql */ `
delete from {tick} where (schedule, at) in (
  select t.schedule, t.at from json_each(:rows) e
  cross join {tick} t on t.schedule = e.value ->> 0 and t.at = e.value ->> 1
  where not (t.outcome <> 0 and (t.last_at >= t.at + 60000 or not exists (
      select 1 from {tick} x where x.schedule = t.schedule and x.at >= t.at - t.at % 60000 and x.at < t.at and x.outcome <> 0)))
    and ${TICKS_KEPT} <= (select count(*) from (
      select 1 from {tick} y where y.schedule = t.schedule and y.at > t.at
        and y.at < t.at - t.at % 86400000 + 86400000 + :keepTicksMs limit ${TICKS_KEPT})))`;
export const PRUNE_BACKFILLS = /* sql */ `delete from {backfill} where ended_at < :now - :keepMs`;
