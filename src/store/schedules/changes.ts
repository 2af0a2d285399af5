// Describes changes of schedules: everything that the ticker, an edit, a trigger or a check-in writes about one schedule in
// one commit, at the revision that was read.

import type { AuditEntry } from "../../operations/rules/audit.js";
import type { Mode, RunId, TerminalStatus } from "../../runs/rules/run.js";
import type { TickEntry } from "../../schedules/rules/tick.js";

/** How a schedule was made: by a declaration in code, or by a call. The tables store the position. */
export const SOURCES = ["api", "code"] as const;
export type ScheduleSource = (typeof SOURCES)[number];

/** How a version of a schedule was made. The tables store the position: append only. */
export const EDIT_KINDS = ["created", "edited", "deleted", "recreated"] as const;
export type EditKind = (typeof EDIT_KINDS)[number];

/** The part that changes with every pass of the ticker. */
export type ScheduleProgress = {
  /** Every tick up to here is in the ledger. */
  readonly cursorAt: number;
  /** Null: no tick is ever due, because the schedule is paused, ended, broken or deleted. */
  readonly nextAt: number | null;
  readonly isEnded: boolean;
  /** Ticks before this are held back, since this run failed. */
  readonly holdUntil: number | null;
  readonly holdRun: RunId | null;
  /** The run of the newest fired tick, and that tick: its end draws the next interval. */
  readonly lastRun: RunId | null;
  readonly lastTickAt: number | null;
  /** Runs that were not terminal when this was written, in their order. */
  readonly live: readonly RunId[];
  /** The schedule must be evaluated when its live runs end: one of them is gated. */
  readonly isGated: boolean;
  /** Live runs are still to be cancelled, because a newer one replaces them. */
  readonly isReplacing: boolean;
  /** The version of the time zone rules by which the next tick was computed. */
  readonly tzdata: string | null;
};

export type ScheduleStanding = {
  readonly pausedAt: number | null;
  readonly pausedBy: string | null;
  readonly pauseNote: string | null;
  readonly brokenAt: number | null;
  readonly brokenError: string | null;
};

/** A backfill in progress: it makes its runs one after the other. */
export type BackfillState = {
  readonly id: string;
  readonly fromAt: number;
  readonly toAt: number;
  /** Ticks up to here are finished. */
  readonly cursorAt: number;
  readonly total: number;
  readonly made: number;
  /** Ticks that already had a completed run. */
  readonly passed: number;
  /** Also ticks that have a completed run. */
  readonly isAll: boolean;
};

/** A run that a schedule makes. It also gets its job's announced policy and the schedule's input. */
export type ScheduleRun = {
  readonly id: RunId;
  readonly mode: Exclude<Mode, "enqueued">;
  readonly nominalAt: number | null;
  readonly isGated: boolean;
  /** JSON instead of the schedule's own. */
  readonly input: string | null;
  /** The W3C trace context of its tick. */
  readonly trace?: string;
};

/** A definition that becomes the current one. */
export type ScheduleEdit = {
  readonly kind: EditKind;
  readonly by: string | null;
  readonly job: string;
  readonly definition: string;
  readonly input: string;
  readonly anchorAt: number;
  /** The bounds that the end of a run draws from, where the definition has them. */
  readonly range: { readonly minMs: number; readonly maxMs: number } | null;
  readonly afterFailure: { readonly minMs: number; readonly maxMs: number } | null;
  readonly priority: number | null;
  readonly queue: string | null;
  readonly tags: readonly string[];
  readonly app: string | null;
  readonly source: ScheduleSource;
  readonly release: string | null;
  readonly codeHash: string | null;
  /** Counts this hash as first seen now, whatever was seen before. */
  readonly isForced: boolean;
  readonly isDeleted: boolean;
};

/** A change of one schedule, applied only if the schedule is still at the revision that was read. */
export type ScheduleChange = {
  readonly id: number;
  /** Written only at this revision. */
  readonly revision: number;
  readonly progress: ScheduleProgress;
  readonly ticks: readonly TickEntry[];
  readonly runs: readonly ScheduleRun[];
  /** The parts that most changes do not have. */
  readonly standing?: ScheduleStanding;
  readonly edit?: ScheduleEdit;
  /** A newer release declares the same: the definition stays, and older releases no longer count. */
  readonly release?: string;
  /** A gated run that may begin. */
  readonly opens?: RunId;
  /** A failed or cancelled run that an operator retries. */
  readonly revives?: { readonly id: RunId; readonly isGated: boolean };
  /** Identifies a repeated trigger; the trigger made the one run of this change. */
  readonly delivery?: { readonly id: string; readonly inputHash: string; readonly run: RunId };
  readonly backfill?: BackfillChange;
  /** For a monitor: its current start; null: there is none. */
  readonly beganAt?: number | null;
  readonly checkIn?: CheckIn;
  /** Kept in the audit trail if this is applied. */
  readonly audit?: AuditEntry;
};

/** The end of remote work, as it was reported by a check-in: no instance ever claims this run. */
export type CheckIn = {
  readonly id: RunId;
  readonly mode: "scheduled" | "manual";
  readonly nominalAt: number | null;
  readonly status: Exclude<TerminalStatus, "cancelled">;
  /** Null: when it began is not known. */
  readonly ranMs: number | null;
  /** JSON. */
  readonly error: string | null;
  /** The run exists: this replaces what was reported before. */
  readonly isAgain: boolean;
};

/** Whether it belongs to the cadence: runs by a tick or of a backfill, and check-ins of a monitor. */
export function isOfCadence({ runs, checkIn, beganAt }: ScheduleChange): boolean {
  const isTold = checkIn !== undefined || (beganAt ?? null) !== null;
  return isTold || runs.some(({ mode }) => mode === "scheduled" || mode === "backfill");
}

export type BackfillChange = {
  readonly state: BackfillState;
  readonly isNew: boolean;
  readonly by: string | null;
  readonly isEnded: boolean;
  readonly isCancelled: boolean;
  /** The run of this change, for this tick. */
  readonly run: { readonly id: RunId; readonly at: number } | null;
};

export type NewSchedule = {
  readonly name: string;
  readonly edit: ScheduleEdit;
  readonly progress: ScheduleProgress;
  readonly audit?: AuditEntry;
};
