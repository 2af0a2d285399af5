// Rows of the tables of schedules to the store's records, the same for both engines. What differs
// between them ends here: big integers as text, booleans as 0 and 1, JSON parsed or not.

import type { Pause } from "../operations/rules/pause.js";
import { MODES, type Mode, type RunId } from "../runs/rules/run.js";
import type { CalendarRules } from "../schedules/calendars/calendar.js";
import type { LiveRun } from "../schedules/rules/overlap.js";
import { type Evidence, REASONS, type Reason } from "../schedules/rules/tick.js";
import { numberOrNull, type Row, statusOf, textOrNull } from "./rows.js";
import {
  type BackfillRecord,
  type BackfillState,
  type CalendarRecord,
  EDIT_KINDS,
  type EditKind,
  type ScheduleRecord,
  type ScheduleSource,
  type ScheduleState,
  type ScheduleVersion,
  type SeenDefinition,
  SOURCES,
  type TickRecord,
} from "./schedule-store.js";

/** A live run as the statements give it: id, mode, nominal time, whether it is gated. */
type LiveRow = readonly [string, number | string, number | string | null, boolean | number];

/** A pause of everything as the statements give it: at, until, by, note. */
type PauseRow = readonly [number, number | null, string | null, string | null];

/**
 * A row of `schedule` with `is_job_known`, `live_runs` (JSON of `LiveRow`s in the order of `live`),
 * `backfill_state` (JSON of the row of `backfill`, or null) and `pauses` (JSON of `PauseRow`s, or null).
 */
export function toScheduleState(row: Row): ScheduleState {
  const backfill = jsonOf<Row>(row.backfill_state);
  return {
    ...scheduleOf(row),
    live: (jsonOf<LiveRow[]>(row.live_runs) ?? []).map(toLiveRun),
    backfill: backfill === null ? null : toBackfillState(backfill),
    pauses: (jsonOf<PauseRow[]>(row.pauses) ?? []).map(
      ([at, until, by, note]): Pause => ({ at: Number(at), until: numberOrNull(until), by, note }),
    ),
  };
}

/** A row of `schedule` with `is_job_known`, `last_status` (code or null) and `last_run_at`. */
export function toScheduleRecord(row: Row): ScheduleRecord {
  return {
    ...scheduleOf(row),
    live: jsonOf<RunId[]>(row.live) ?? [],
    lastStatus: row.last_status === null ? null : statusOf(Number(row.last_status)),
    lastRunAt: numberOrNull(row.last_run_at),
  };
}

function scheduleOf(row: Row): Omit<ScheduleState, "live" | "backfill" | "pauses"> {
  const definition = String(row.definition);
  // Quotes inside of a text are escaped, so this can only be the member.
  const isMonitor = definition.includes('"monitor":true');
  return {
    id: Number(row.id),
    name: String(row.name),
    revision: Number(row.revision),
    version: Number(row.version),
    job: String(row.job),
    isJobKnown: isMonitor || isTrue(row.is_job_known),
    definition,
    isMonitor,
    beganAt: numberOrNull(row.began_at),
    input: String(row.input),
    anchorAt: Number(row.anchor_at),
    cursorAt: Number(row.cursor_at),
    nextAt: numberOrNull(row.next_at),
    isEnded: isTrue(row.is_ended),
    holdUntil: numberOrNull(row.hold_until),
    holdRun: textOrNull(row.hold_run),
    lastRun: textOrNull(row.last_run),
    lastTickAt: numberOrNull(row.last_tick_at),
    isGated: isTrue(row.is_gated),
    isReplacing: isTrue(row.is_replacing),
    tzdata: textOrNull(row.tzdata),
    pausedAt: numberOrNull(row.paused_at),
    pausedBy: textOrNull(row.paused_by),
    pauseNote: textOrNull(row.pause_note),
    brokenAt: numberOrNull(row.broken_at),
    brokenError: textOrNull(row.broken_error),
    deletedAt: numberOrNull(row.deleted_at),
    app: textOrNull(row.app),
    source: SOURCES[Number(row.source)] as ScheduleSource,
    release: textOrNull(row.release),
    codeHash: textOrNull(row.code_hash),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  };
}

function toLiveRun([id, mode, nominalAt, isGated]: LiveRow): LiveRun {
  return {
    id,
    mode: MODES[Number(mode)] as Mode,
    nominalAt: numberOrNull(nominalAt),
    isGated: isTrue(isGated),
  };
}

function toBackfillState(row: Row): BackfillState {
  return {
    id: String(row.id),
    fromAt: Number(row.from_at),
    toAt: Number(row.to_at),
    cursorAt: Number(row.cursor_at),
    total: Number(row.total),
    made: Number(row.made),
    passed: Number(row.passed),
    isAll: isTrue(row.is_all),
  };
}

export function toBackfillRecord(row: Row): BackfillRecord {
  return {
    ...toBackfillState(row),
    createdAt: Number(row.created_at),
    createdBy: textOrNull(row.created_by),
    endedAt: numberOrNull(row.ended_at),
    isCancelled: isTrue(row.is_cancelled),
  };
}

/** A row of `tick`, with the schedule's name as `schedule` and the instance's id as `recorded_by`. */
export function toTickRecord(row: Row): TickRecord {
  return {
    schedule: String(row.schedule),
    firstAt: Number(row.at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    reason: REASONS[Number(row.reason)] as Reason,
    run: textOrNull(row.run),
    runStatus: row.run_status === null ? null : statusOf(Number(row.run_status)),
    evidence: jsonOf<Evidence>(row.evidence),
    recordedAt: Number(row.recorded_at),
    recordedBy: textOrNull(row.recorded_by),
    version: Number(row.version),
  };
}

export function toScheduleVersion(row: Row): ScheduleVersion {
  return {
    version: Number(row.version),
    kind: EDIT_KINDS[Number(row.kind)] as EditKind,
    at: Number(row.at),
    by: textOrNull(row.by),
    job: String(row.job),
    definition: String(row.definition),
    input: String(row.input),
    anchorAt: Number(row.anchor_at),
  };
}

export function toSeenDefinition(row: Row): SeenDefinition {
  return {
    hash: String(row.hash),
    release: textOrNull(row.release),
    firstSeenAt: Number(row.first_seen_at),
  };
}

export function toCalendarRecord(row: Row): CalendarRecord {
  return {
    name: String(row.name),
    rules: jsonOf<CalendarRules>(row.rules) as CalendarRules,
    version: Number(row.version),
    updatedAt: Number(row.updated_at),
    updatedBy: textOrNull(row.updated_by),
  };
}

function jsonOf<T>(value: unknown): T | null {
  if (value === null || value === undefined) return null;
  return (typeof value === "string" ? JSON.parse(value) : value) as T;
}

function isTrue(value: unknown): boolean {
  return value === true || Number(value) === 1;
}
