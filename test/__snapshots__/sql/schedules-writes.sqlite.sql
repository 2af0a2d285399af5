-- ADD_BACKFILL_RUN
insert into backfill_run (schedule, at, backfill, run) values (:schedule, :at, :id, :run);

-- ADD_CHECKED_IN
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select :id, n.at, coalesce(:nominalAt, n.at), :lane, :policy, 1, 0, :mode, s.id,
  :nominalAt, s.tags, s.input
from schedule s cross join (select :now as at) n where s.id = :schedule;

-- ADD_DELIVERY
insert into delivery (schedule, id, run, input_hash) values (:schedule, :id, :run, :inputHash);

-- ADD_VERSION
insert into schedule_version (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, :kind, :now, :by, s.job, s.definition, s.input, s.anchor_at
from schedule s where s.id = :id;

-- COUNT_CHECK_IN
insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
select n.at - n.at % 3600000, :lane, :mode, :status, 0, 1, coalesce(:ranMs, 0)
from (select :now as at) n where true
on conflict (hour_at, lane, mode, status, shard) do update set runs = t.runs + 1, ran_ms = t.ran_ms + excluded.ran_ms;

-- CREATE_SCHEDULE
insert into schedule (name, revision, version, job, queue, priority, tags, input, definition, anchor_at,
  cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated, is_replacing,
  range_min, range_max, fail_min, fail_max, tzdata, app, source, release, code_hash, created_at, updated_at)
select :name, 1, 1, :job, :queue, :priority, :tags, :input, :definition, :anchorAt,
  :cursorAt, :nextAt, :isEnded, :holdUntil, :holdRun, :lastRun,
  :lastTickAt, :live, :isGated, :isReplacing,
  :rangeMin, :rangeMax, :failMin, :failMax, :tzdata, :app, :source,
  :release, :codeHash, n.at, n.at
from (select :now as at) n where true
on conflict (name) do nothing returning id;

-- EDIT_SCHEDULE
update schedule set version = version + 1, job = :job, queue = :queue, priority = :priority,
  tags = :tags, input = :input, definition = :definition, anchor_at = :anchorAt,
  range_min = :rangeMin, range_max = :rangeMax, fail_min = :failMin, fail_max = :failMax,
  app = :app, source = :source, release = :release, code_hash = :codeHash, began_at = null,
  deleted_at = case when :isDeleted then :now end, updated_at = :now
where id = :id;

-- JOB_OF_SCHEDULE
select s.job from schedule s where s.id = :id;

-- PUT_BACKFILL
insert into backfill as b (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, created_by,
  ended_at, is_cancelled)
select :id, :schedule, :fromAt, :toAt, :cursorAt, :total, :made, :passed,
  :isAll, n.at, :by, case when :isEnded then n.at end, :isCancelled
from (select :now as at) n where true
on conflict (id) do update set cursor_at = excluded.cursor_at, made = excluded.made, passed = excluded.passed,
  ended_at = excluded.ended_at, is_cancelled = excluded.is_cancelled;

-- PUT_CHECK_IN
insert into outcome as o (id, started_at, finished_at, lane, attempt, extra, status, error)
select :id, n.at - :ranMs, n.at, :lane, 1, 0, :status, :error
from (select :now as at) n where true
on conflict (id) do update set started_at = coalesce(excluded.started_at, o.started_at),
  finished_at = excluded.finished_at, status = excluded.status, error = excluded.error;

-- SEE_DEFINITION
insert into declared as d (schedule, hash, release, first_seen_at) values (:id, :codeHash, :release, :now)
on conflict (schedule, hash) do update set
  first_seen_at = case when :isForced then excluded.first_seen_at else d.first_seen_at end,
  release = coalesce(excluded.release, d.release);

-- SET_BACKFILL
update schedule set backfill = case when :isEnded then null else :id end where id = :schedule;

-- SET_BEGAN
update schedule set began_at = :beganAt where id = :id;

-- SET_RELEASE
update schedule set release = :release where id = :id;

-- SET_STANDING
update schedule set paused_at = :pausedAt, paused_by = :pausedBy, pause_note = :pauseNote,
  broken_at = :brokenAt, broken_error = :brokenError, updated_at = :now
where id = :id;
