-- ADD_BACKFILL_RUN
insert into backfill_run (schedule, at, backfill, run) values (:schedule, :at::bigint, :id::uuid, :run::uuid);

-- ADD_CHECKED_IN
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select :id::uuid, n.at, coalesce(:nominalAt::bigint, n.at), :lane::int, :policy::int, 1, 0, :mode::smallint, s.id,
  :nominalAt::bigint, s.tags, s.input
from schedule s cross join (select clock() as at) n where s.id = :schedule;

-- ADD_DELIVERY
insert into delivery (schedule, id, run, input_hash) values (:schedule, :id, :run::uuid, :inputHash);

-- ADD_VERSION
insert into schedule_version (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, :kind::smallint, clock(), :by::text, s.job, s.definition, s.input, s.anchor_at
from schedule s where s.id = :id;

-- COUNT_CHECK_IN
insert into rollup as t (hour_at, lane, mode, status, shard, runs, ran_ms)
select n.at - n.at % 3600000, :lane::int, :mode::smallint, :status::smallint, 0, 1, coalesce(:ranMs::bigint, 0)
from (select clock() as at) n where true
on conflict (hour_at, lane, mode, status, shard) do update set runs = t.runs + 1, ran_ms = t.ran_ms + excluded.ran_ms;

-- CREATE_SCHEDULE
insert into schedule (name, revision, version, job, queue, priority, tags, input, definition, anchor_at,
  cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated, is_replacing,
  range_min, range_max, fail_min, fail_max, tzdata, app, source, release, code_hash, created_at, updated_at)
select :name, 1, 1, :job, :queue, :priority::smallint, :tags::text[], :input, :definition, :anchorAt::bigint,
  :cursorAt::bigint, :nextAt::bigint, :isEnded::boolean, :holdUntil::bigint, :holdRun::uuid, :lastRun::uuid,
  :lastTickAt::bigint, :live::uuid[], :isGated::boolean, :isReplacing::boolean,
  :rangeMin::bigint, :rangeMax::bigint, :failMin::bigint, :failMax::bigint, :tzdata, :app, :source::smallint,
  :release, :codeHash, n.at, n.at
from (select clock() as at) n where true
on conflict (name) do nothing returning id;

-- EDIT_SCHEDULE
update schedule set version = version + 1, job = :job, queue = :queue, priority = :priority::smallint,
  tags = :tags::text[], input = :input, definition = :definition, anchor_at = :anchorAt::bigint,
  range_min = :rangeMin::bigint, range_max = :rangeMax::bigint, fail_min = :failMin::bigint, fail_max = :failMax::bigint,
  app = :app, source = :source::smallint, release = :release, code_hash = :codeHash, began_at = null,
  deleted_at = case when :isDeleted::boolean then clock() end, updated_at = clock()
where id = :id;

-- JOB_OF_SCHEDULE
select s.job from schedule s where s.id = :id;

-- PUT_BACKFILL
insert into backfill as b (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, created_by,
  ended_at, is_cancelled)
select :id::uuid, :schedule::int, :fromAt::bigint, :toAt::bigint, :cursorAt::bigint, :total::int, :made::int, :passed::int,
  :isAll::boolean, n.at, :by::text, case when :isEnded::boolean then n.at end, :isCancelled::boolean
from (select clock() as at) n where true
on conflict (id) do update set cursor_at = excluded.cursor_at, made = excluded.made, passed = excluded.passed,
  ended_at = excluded.ended_at, is_cancelled = excluded.is_cancelled;

-- PUT_CHECK_IN
insert into outcome as o (id, started_at, finished_at, lane, attempt, extra, status, error)
select :id::uuid, n.at - :ranMs::bigint, n.at, :lane::int, 1, 0, :status::smallint, :error::text
from (select clock() as at) n where true
on conflict (id) do update set started_at = coalesce(excluded.started_at, o.started_at),
  finished_at = excluded.finished_at, status = excluded.status, error = excluded.error;

-- SEE_DEFINITION
insert into declared as d (schedule, hash, release, first_seen_at) values (:id, :codeHash, :release, clock())
on conflict (schedule, hash) do update set
  first_seen_at = case when :isForced::boolean then excluded.first_seen_at else d.first_seen_at end,
  release = coalesce(excluded.release, d.release);

-- SET_BACKFILL
update schedule set backfill = case when :isEnded::boolean then null else :id::uuid end where id = :schedule;

-- SET_BEGAN
update schedule set began_at = :beganAt::bigint where id = :id;

-- SET_RELEASE
update schedule set release = :release where id = :id;

-- SET_STANDING
update schedule set paused_at = :pausedAt::bigint, paused_by = :pausedBy, pause_note = :pauseNote,
  broken_at = :brokenAt::bigint, broken_error = :brokenError, updated_at = clock()
where id = :id;
