// Writes the rare parts that a change of a schedule may have beside its ticks and runs (an edit, a pause, a backfill, a
// check-in, a delivery), and new schedules: the same on both engines. Each is a step of the transaction that wrote the
// change at its revision, so the schedule's row is locked on PostgreSQL. The tick write itself differs by engine.

import { addAudit } from "../audit.js";
import { modeCode, type Row, statusCode } from "../rows.js";
import { row, run, type Statements } from "../session.js";
import {
  type BackfillChange,
  type CheckIn,
  EDIT_KINDS,
  type NewSchedule,
  type ScheduleChange,
  type ScheduleEdit,
  SOURCES,
} from "./changes.js";

const SET_STANDING = /* sql */ `
update {schedule} set paused_at = :pausedAt::bigint, paused_by = :pausedBy, pause_note = :pauseNote,
  broken_at = :brokenAt::bigint, broken_error = :brokenError, updated_at = {now}
where id = :id`;

const SET_RELEASE = /* sql */ `update {schedule} set release = :release where id = :id`;

const EDIT_SCHEDULE = /* sql */ `
update {schedule} set version = version + 1, job = :job, queue = :queue, priority = :priority::smallint,
  tags = :tags::text[], input = :input, definition = :definition, anchor_at = :anchorAt::bigint,
  range_min = :rangeMin::bigint, range_max = :rangeMax::bigint, fail_min = :failMin::bigint, fail_max = :failMax::bigint,
  app = :app, source = :source::smallint, release = :release, code_hash = :codeHash, began_at = null,
  deleted_at = case when :isDeleted::boolean then {now} end, updated_at = {now}
where id = :id`;

const CREATE_SCHEDULE = /* sql */ `
insert into {schedule} (name, revision, version, job, queue, priority, tags, input, definition, anchor_at,
  cursor_at, next_at, is_ended, hold_until, hold_run, last_run, last_tick_at, live, is_gated, is_replacing,
  range_min, range_max, fail_min, fail_max, tzdata, app, source, release, code_hash, created_at, updated_at)
select :name, 1, 1, :job, :queue, :priority::smallint, :tags::text[], :input, :definition, :anchorAt::bigint,
  :cursorAt::bigint, :nextAt::bigint, :isEnded::boolean, :holdUntil::bigint, :holdRun::uuid, :lastRun::uuid,
  :lastTickAt::bigint, :live::uuid[], :isGated::boolean, :isReplacing::boolean,
  :rangeMin::bigint, :rangeMax::bigint, :failMin::bigint, :failMax::bigint, :tzdata, :app, :source::smallint,
  :release, :codeHash, n.at, n.at
from (select {now} as at) n where true
on conflict (name) do nothing returning id`;

/** From the present state of the schedule. */
const ADD_VERSION = /* sql */ `
insert into {schedule_version} (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, :kind::smallint, {now}, :by::text, s.job, s.definition, s.input, s.anchor_at
from {schedule} s where s.id = :id`;

const SEE_DEFINITION = /* sql */ `
insert into {declared} as d (schedule, hash, release, first_seen_at) values (:id, :codeHash, :release, {now})
on conflict (schedule, hash) do update set
  first_seen_at = case when :isForced::boolean then excluded.first_seen_at else d.first_seen_at end,
  release = coalesce(excluded.release, d.release)`;

const SET_BEGAN = /* sql */ `update {schedule} set began_at = :beganAt::bigint where id = :id`;

const ADD_DELIVERY = /* sql */ `
insert into {delivery} (schedule, id, run, input_hash) values (:schedule, :id, :run::uuid, :inputHash)`;

const PUT_BACKFILL = /* sql */ `
insert into {backfill} as b (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, created_by,
  ended_at, is_cancelled)
select :id::uuid, :schedule::int, :fromAt::bigint, :toAt::bigint, :cursorAt::bigint, :total::int, :made::int, :passed::int,
  :isAll::boolean, n.at, :by::text, case when :isEnded::boolean then n.at end, :isCancelled::boolean
from (select {now} as at) n where true
on conflict (id) do update set cursor_at = excluded.cursor_at, made = excluded.made, passed = excluded.passed,
  ended_at = excluded.ended_at, is_cancelled = excluded.is_cancelled`;

const SET_BACKFILL = /* sql */ `
update {schedule} set backfill = case when :isEnded::boolean then null else :id::uuid end where id = :schedule`;

const ADD_BACKFILL_RUN = /* sql */ `
insert into {backfill_run} (schedule, at, backfill, run) values (:schedule, :at::bigint, :id::uuid, :run::uuid)`;

export const JOB_OF_SCHEDULE = /* sql */ `select s.job from {schedule} s where s.id = :id`;

/** A run of remote work that has ended: it is never pending nor held, so it is stored with its outcome at once. */
const ADD_CHECKED_IN = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
select :id::uuid, n.at, coalesce(:nominalAt::bigint, n.at), :lane::int, :policy::int, 1, 0, :mode::smallint, s.id,
  :nominalAt::bigint, s.tags, s.input
from {schedule} s cross join (select {now} as at) n where s.id = :schedule`;

const PUT_CHECK_IN = /* sql */ `
insert into {outcome} as o (id, started_at, finished_at, lane, attempt, extra, status, error)
select :id::uuid, n.at - :ranMs::bigint, n.at, :lane::int, 1, 0, :status::smallint, :error::text
from (select {now} as at) n where true
on conflict (id) do update set started_at = coalesce(excluded.started_at, o.started_at),
  finished_at = excluded.finished_at, status = excluded.status, error = excluded.error`;

const COUNT_CHECK_IN = /* sql */ `
insert into {rollup} as t (hour_at, lane, mode, status, shard, runs, ran_ms)
select n.at - n.at % 3600000, :lane::int, :mode::smallint, :status::smallint, 0, 1, coalesce(:ranMs::bigint, 0)
from (select {now} as at) n where true
on conflict (hour_at, lane, mode, status, shard) do update set runs = t.runs + 1, ran_ms = t.ran_ms + excluded.ran_ms`;

/** The lane and the policy of a check-in's run, which has no job. */
export type CheckInNumbers = { readonly lane: number; readonly policy: number };

/** Returns the number of the new schedule; null if its name is taken. */
export function* createSchedule({
  name,
  edit,
  progress,
  audit,
}: NewSchedule): Statements<number | null> {
  const created = yield* row(CREATE_SCHEDULE, { ...progress, ...editParams(edit), name });
  if (!created) return null;
  const id = Number(created.id);
  yield* addVersion(id, edit);
  yield* addAudit(audit);
  return id;
}

/**
 * Everything that a change may have beside its ticks, its runs, its gates and its progress; a revived run is separate.
 */
export function* writeRest(
  change: ScheduleChange,
  numbers: CheckInNumbers | undefined,
): Statements<void> {
  const { id, standing, edit, release, delivery, backfill, beganAt, checkIn, audit } = change;
  yield* addAudit(audit);
  if (release !== undefined) yield* run(SET_RELEASE, { id, release });
  if (standing) yield* run(SET_STANDING, { id, ...standing });
  if (edit) {
    yield* run(EDIT_SCHEDULE, { id, ...editParams(edit) });
    yield* addVersion(id, edit);
  }
  if (delivery) yield* run(ADD_DELIVERY, { ...delivery, schedule: id });
  if (backfill) yield* putBackfill(id, backfill);
  if (beganAt !== undefined) yield* run(SET_BEGAN, { id, beganAt });
  if (checkIn) yield* putCheckIn(id, checkIn, numbers);
}

function* addVersion(id: number, edit: ScheduleEdit): Statements<void> {
  const { by, codeHash, release, isForced } = edit;
  yield* run(ADD_VERSION, { id, kind: EDIT_KINDS.indexOf(edit.kind), by });
  if (codeHash !== null) yield* run(SEE_DEFINITION, { id, codeHash, release, isForced });
}

function* putBackfill(schedule: number, change: BackfillChange): Statements<void> {
  const { state, by, isEnded, isCancelled, run: made } = change;
  yield* run(PUT_BACKFILL, { ...state, schedule, by, isEnded, isCancelled });
  yield* run(SET_BACKFILL, { id: state.id, schedule, isEnded });
  if (made) yield* run(ADD_BACKFILL_RUN, { id: state.id, schedule, at: made.at, run: made.id });
}

function* putCheckIn(
  schedule: number,
  checkIn: CheckIn,
  numbers: CheckInNumbers | undefined,
): Statements<void> {
  const [mode, status] = [modeCode(checkIn.mode), statusCode(checkIn.status)];
  const params = { ...checkIn, ...numbers, schedule, mode, status };
  if (!checkIn.isAgain) yield* run(ADD_CHECKED_IN, params);
  yield* run(PUT_CHECK_IN, params);
  yield* run(COUNT_CHECK_IN, params);
}

function editParams(edit: ScheduleEdit): Row {
  const { job, queue, priority, tags, input, definition, anchorAt, app, release, codeHash } = edit;
  return {
    ...{ job, queue, priority, input, definition, anchorAt, app, release, codeHash },
    tags: tags.length === 0 ? null : tags,
    rangeMin: edit.range?.minMs ?? null,
    rangeMax: edit.range?.maxMs ?? null,
    failMin: edit.afterFailure?.minMs ?? null,
    failMax: edit.afterFailure?.maxMs ?? null,
    source: SOURCES.indexOf(edit.source),
    isDeleted: edit.isDeleted,
  };
}
