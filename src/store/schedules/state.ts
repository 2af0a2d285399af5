// Reads the state of a schedule that decisions are made from, the same for both engines.

import type { Pause } from "../../operations/rules/pause.js";
import { MODES, type Mode } from "../../runs/rules/run.js";
import type { LiveRun } from "../../schedules/rules/overlap.js";
import { flag, json, numberOrNull, type Row, textOrNull } from "../rows.js";
import {
  type BackfillState,
  type ScheduleProgress,
  type ScheduleSource,
  type ScheduleStanding,
  SOURCES,
} from "./changes.js";

export const SCHEDULE_COLUMNS = /* sql */ `
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at`;

// With the exact expressions of the indexes `schedule_look` and `schedule_lost`, because SQLite's planner compares texts.
export const MAY_NEED_LOOK = "(s.is_gated or s.is_replacing or s.backfill is not null)";
/** Active but without a next tick: only damage makes such a row. */
export const IS_LOST = /* sql */ `s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null`;

/** The whole state of a schedule that decisions need. */
export type ScheduleState = Omit<ScheduleProgress, "live"> &
  ScheduleStanding & {
    readonly id: number;
    readonly name: string;
    readonly revision: number;
    readonly version: number;
    readonly job: string;
    /** Whether any instance has announced the job. */
    readonly isJobKnown: boolean;
    /** JSON of a ScheduleDefinition. */
    readonly definition: string;
    /** JSON, given to every run. */
    readonly input: string;
    /** Where a grid without `from` begins. */
    readonly anchorAt: number;
    /** By its definition no run is made here: check-ins come from outside. */
    readonly isMonitor: boolean;
    /** When the watched job last reported its start, if it has not ended since. */
    readonly beganAt: number | null;
    readonly deletedAt: number | null;
    readonly app: string | null;
    readonly source: ScheduleSource;
    readonly release: string | null;
    /** The hash of the definition in code that was applied last. */
    readonly codeHash: string | null;
    readonly createdAt: number;
    readonly updatedAt: number;
    /** The runs that are not terminal now. */
    readonly live: readonly LiveRun[];
    readonly backfill: BackfillState | null;
    /** Pauses of everything that unrecorded ticks may fall into, and the current one. */
    readonly pauses: readonly Pause[];
  };

/** A live run as the statements give it: id, mode, nominal time, whether it is gated. */
type LiveRow = readonly [string, number | string, number | string | null, boolean | number];

/** A pause of everything as the statements give it: at, until, by, note. */
type PauseRow = readonly [number, number | null, string | null, string | null];

/**
 * A row of `schedule` with `is_job_known`, `live_runs` (JSON of `LiveRow`s in the order of `live`),
 * `backfill_state` (JSON of the row of `backfill`, or null) and `pauses` (JSON of `PauseRow`s, or null).
 */
export function toScheduleState(row: Row): ScheduleState {
  const backfill = json<Row>(row.backfill_state);
  return {
    ...scheduleOf(row),
    live: (json<LiveRow[]>(row.live_runs) ?? []).map(toLiveRun),
    backfill: backfill === null ? null : toBackfillState(backfill),
    pauses: (json<PauseRow[]>(row.pauses) ?? []).map(
      ([at, until, by, note]): Pause => ({ at: Number(at), until: numberOrNull(until), by, note }),
    ),
  };
}

/** The columns that people see too. */
export function scheduleOf(row: Row): Omit<ScheduleState, "live" | "backfill" | "pauses"> {
  const definition = String(row.definition);
  // Quotes inside a text are escaped, so this can only be the member.
  const isMonitor = definition.includes('"monitor":true');
  return {
    id: Number(row.id),
    name: String(row.name),
    revision: Number(row.revision),
    version: Number(row.version),
    job: String(row.job),
    isJobKnown: isMonitor || flag(row.is_job_known),
    definition,
    isMonitor,
    beganAt: numberOrNull(row.began_at),
    input: String(row.input),
    anchorAt: Number(row.anchor_at),
    cursorAt: Number(row.cursor_at),
    nextAt: numberOrNull(row.next_at),
    isEnded: flag(row.is_ended),
    holdUntil: numberOrNull(row.hold_until),
    holdRun: textOrNull(row.hold_run),
    lastRun: textOrNull(row.last_run),
    lastTickAt: numberOrNull(row.last_tick_at),
    isGated: flag(row.is_gated),
    isReplacing: flag(row.is_replacing),
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
    isGated: flag(isGated),
  };
}

export function toBackfillState(row: Row): BackfillState {
  return {
    id: String(row.id),
    fromAt: Number(row.from_at),
    toAt: Number(row.to_at),
    cursorAt: Number(row.cursor_at),
    total: Number(row.total),
    made: Number(row.made),
    passed: Number(row.passed),
    isAll: flag(row.is_all),
  };
}
