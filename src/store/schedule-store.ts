// What the engine asks of a database about schedules. Reading and writing are apart: a decision is
// made from what was read, and written only if the schedule is still at the revision it was read at.
// So no lock is held while deciding, and of two instances that decide the same tick one writes.

import type { AuditEntry } from "../operations/rules/audit.js";
import type { Pause } from "../operations/rules/pause.js";
import type { Mode, RunId, RunStatus, TerminalStatus } from "../runs/rules/run.js";
import type { CalendarRules } from "../schedules/calendars/calendar.js";
import type { LiveRun } from "../schedules/rules/overlap.js";
import type { Outcome, TickEntry } from "../schedules/rules/tick.js";

/** Who made a schedule: a declaration in code, or a call. The position is what the tables store. */
export const SOURCES = ["api", "code"] as const;
export type ScheduleSource = (typeof SOURCES)[number];

/** What a version of a schedule was made by. The position is what the tables store: append only. */
export const EDIT_KINDS = ["created", "edited", "deleted", "recreated"] as const;
export type EditKind = (typeof EDIT_KINDS)[number];

/** What changes with every pass of the ticker. */
export type ScheduleProgress = {
  /** Every tick up to here is in the ledger. */
  readonly cursorAt: number;
  /** Null: none is due ever, as the schedule is paused, ended, broken or deleted. */
  readonly nextAt: number | null;
  readonly isEnded: boolean;
  /** Ticks before this are held back, since this run failed. */
  readonly holdUntil: number | null;
  readonly holdRun: RunId | null;
  /** The run of the newest fired tick, and that tick: its end draws the next interval. */
  readonly lastRun: RunId | null;
  readonly lastTickAt: number | null;
  /** Runs that were not terminal when this was written, in the order in which they go. */
  readonly live: readonly RunId[];
  /** Somebody has to look when its live runs end: one of them is gated. */
  readonly isGated: boolean;
  /** Live runs are still to be cancelled, as a newer one replaces them. */
  readonly isReplacing: boolean;
  /** The rules of time zones that the next tick was computed with. */
  readonly tzdata: string | null;
};

export type ScheduleStanding = {
  readonly pausedAt: number | null;
  readonly pausedBy: string | null;
  readonly pauseNote: string | null;
  readonly brokenAt: number | null;
  readonly brokenError: string | null;
};

/** All of a schedule that decisions need. */
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
    /** Its definition says that nothing runs here: check-ins come from elsewhere. */
    readonly isMonitor: boolean;
    /** When what a monitor watches last said that it began, and has not ended since. */
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
    /** Pauses of everything that unrecorded ticks may fall into, and the one that is on. */
    readonly pauses: readonly Pause[];
  };

/** A backfill that goes on: it makes its runs one after the other. */
export type BackfillState = {
  readonly id: string;
  readonly fromAt: number;
  readonly toAt: number;
  /** Ticks up to here are done with. */
  readonly cursorAt: number;
  readonly total: number;
  readonly made: number;
  /** Ticks that had a completed run already. */
  readonly passed: number;
  /** Also ticks that have a completed run. */
  readonly isAll: boolean;
};

export type BackfillRecord = BackfillState & {
  readonly createdAt: number;
  readonly createdBy: string | null;
  readonly endedAt: number | null;
  readonly isCancelled: boolean;
};

/** A run that a schedule makes. Its job's announced policy and the schedule's input go with it. */
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

/** What is to become of one schedule, if it still is what it was. */
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
  /** A newer release declares the same: the definition stays, and older ones have lost. */
  readonly release?: string;
  /** A gated run that may begin. */
  readonly opens?: RunId;
  /** A failed or cancelled run that goes on, by an operator's will. */
  readonly revives?: { readonly id: RunId; readonly isGated: boolean };
  /** Recognises a repeated trigger; it made the one run of this change. */
  readonly delivery?: { readonly id: string; readonly inputHash: string; readonly run: RunId };
  readonly backfill?: BackfillChange;
  /** Of a monitor: its start that counts from now on; null: none does. */
  readonly beganAt?: number | null;
  readonly checkIn?: CheckIn;
  /** Kept in the audit trail if this is applied. */
  readonly audit?: AuditEntry;
};

/** A run that ended elsewhere, as it was checked in: nobody here ever claims it. */
export type CheckIn = {
  readonly id: RunId;
  readonly mode: "scheduled" | "manual";
  readonly nominalAt: number | null;
  readonly status: Exclude<TerminalStatus, "cancelled">;
  /** Null: when it began is not known. */
  readonly ranMs: number | null;
  /** JSON. */
  readonly error: string | null;
  /** The run is there: this takes the place of what was said of it before. */
  readonly isAgain: boolean;
};

/** Whether it is of the cadence: runs by a tick or for one in a backfill, and what a monitor is told. */
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

/** A schedule as people see it. */
export type ScheduleRecord = Omit<ScheduleState, "live" | "backfill" | "pauses"> & {
  readonly live: readonly RunId[];
  /** Of the run of its newest fired tick. */
  readonly lastStatus: RunStatus | null;
  readonly lastRunAt: number | null;
};

export type TickRecord = TickEntry & {
  readonly schedule: string;
  /** How its run stands; null: it has none, or none that is kept. */
  readonly runStatus: RunStatus | null;
  readonly recordedAt: number;
  readonly recordedBy: string | null;
  readonly version: number;
};

export type ScheduleVersion = {
  readonly version: number;
  readonly kind: EditKind;
  readonly at: number;
  readonly by: string | null;
  readonly job: string;
  readonly definition: string;
  readonly input: string;
  readonly anchorAt: number;
};

export type ScheduleFilter = {
  readonly name?: string;
  readonly job?: string;
  readonly app?: string;
  readonly state?: "active" | "paused" | "ended" | "broken";
  /** In the order of names; continues after this one. */
  readonly after?: string;
  readonly limit: number;
};

export type TickFilter = {
  readonly schedule?: string;
  /** Nominal times, both inclusive. A stretch counts where it touches them. */
  readonly fromAt?: number;
  readonly toAt?: number;
  readonly outcome?: Outcome;
  /** Newest first; continues before this first tick (and schedule, where all are listed). */
  readonly before?: { readonly at: number; readonly schedule: string };
  readonly limit: number;
};

export type CalendarRecord = {
  readonly name: string;
  readonly rules: CalendarRules;
  readonly version: number;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
};

/** Definitions in code that were seen for a schedule. */
export type SeenDefinition = {
  readonly hash: string;
  readonly release: string | null;
  readonly firstSeenAt: number;
};

export interface ScheduleStore {
  /**
   * Schedules whose next tick is due, or that need a look since a run of theirs ended; the most
   * overdue first. `hasMore`: the limit was reached. `only: "gates"` leaves out those that nothing but a tick is due for.
   */
  dueSchedules(params: { readonly limit: number; readonly only?: "gates" }): Promise<{
    readonly now: number;
    readonly schedules: readonly ScheduleState[];
    readonly hasMore: boolean;
  }>;
  /** These schedules, deleted ones too, and the database's now. Unknown names are left out. */
  scheduleStates(params: { readonly names: readonly string[] }): Promise<{
    readonly now: number;
    readonly schedules: readonly ScheduleState[];
  }>;
  /**
   * Applies changes, each whole or not at all: progress, ledger, runs and the rest are one commit.
   * Answers the ids of those that were applied; the others were changed meanwhile (or are being
   * changed at this moment) and have to be read again. While everything is paused, nothing is applied
   * that is of the cadence: scheduled runs, those of a backfill, and what a monitor is told.
   */
  writeSchedules(params: {
    readonly holder: number | null;
    readonly changes: readonly ScheduleChange[];
  }): Promise<readonly number[]>;
  /** Makes a schedule; null if the name is taken, also by a deleted one. */
  createSchedule(params: NewSchedule): Promise<number | null>;

  schedules(filter: ScheduleFilter): Promise<readonly ScheduleRecord[]>;
  ticks(filter: TickFilter): Promise<readonly TickRecord[]>;
  scheduleVersions(params: { readonly name: string }): Promise<readonly ScheduleVersion[]>;
  /** The run that a delivery made before. */
  delivery(params: { readonly schedule: number; readonly id: string }): Promise<{
    readonly run: RunId;
    readonly inputHash: string;
  } | null>;
  /** Of these ticks, the ones that have a completed run, by the ledger or by a backfill. */
  completedTicks(params: {
    readonly schedule: number;
    readonly ticks: readonly number[];
  }): Promise<readonly number[]>;
  backfills(params: { readonly name: string }): Promise<readonly BackfillRecord[]>;

  /** Every definition in code that was seen for a schedule. */
  seenDefinitions(params: { readonly schedule: number }): Promise<readonly SeenDefinition[]>;
  /** Names of live instances' declared schedules in this app, and of stored ones that came from its code. */
  declaredNames(params: { readonly app: string | null }): Promise<{
    readonly announced: readonly string[];
    readonly stored: readonly {
      readonly name: string;
      readonly pausedBy: string | null;
      readonly isPaused: boolean;
    }[];
  }>;
  /** Cron schedules whose next tick was computed with other rules of time zones. */
  schedulesByTzdata(params: {
    readonly not: string;
    readonly limit: number;
  }): Promise<readonly string[]>;

  calendars(): Promise<readonly CalendarRecord[]>;
  putCalendar(params: {
    readonly name: string;
    readonly rules: CalendarRules;
    readonly by: string | null;
    readonly audit?: AuditEntry | undefined;
  }): Promise<void>;
  removeCalendar(params: {
    readonly name: string;
    readonly audit?: AuditEntry | undefined;
  }): Promise<boolean>;
}
