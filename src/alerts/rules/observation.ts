// What is looked at to find alerts: plain facts of the present and sums of the past, read once a minute
// by one instance. None of it costs more with a longer history.

import type { RunId, TerminalStatus } from "../../runs/rules/run.js";
import type { ScheduleAlertRules } from "./rules.js";

/** A schedule that is late, stands still, cannot be evaluated or has rules of its own. */
export type ObservedSchedule = {
  readonly name: string;
  readonly job: string;
  readonly nextAt: number | null;
  readonly isEnded: boolean;
  readonly isPaused: boolean;
  readonly brokenAt: number | null;
  readonly brokenError: string | null;
  readonly rules: Partial<ScheduleAlertRules> | null;
};

/** A running run that was silent or ran for longer than some rule allows. */
export type ObservedRun = {
  readonly id: RunId;
  readonly job: string;
  readonly schedule: string | null;
  readonly holder: string;
  readonly silentMs: number;
  readonly ranMs: number;
  /** How many of its items are done. */
  readonly items: number;
};

/** A job with ready runs that no instance executes. */
export type SightJob = {
  readonly job: string;
  readonly queue: string;
  readonly oldestDueAt: number;
  /** Counted up to a thousand. */
  readonly runs: number;
};

/** The newest ledger row of a schedule, where it tells of trouble. */
export type ObservedTick = {
  readonly schedule: string;
  readonly reason: "stuck_reset" | "no_ping";
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly recordedAt: number;
};

/** How many runs of a job or schedule ended how. */
export type ObservedRate = {
  readonly name: string;
  readonly completed: number;
  readonly failed: number;
};

/** Runs of a schedule that does not count for its job: those that ended within one hour, or have not. */
export type ObservedApart = {
  readonly schedule: string;
  readonly job: string;
  /** Null: they have not ended. */
  readonly hourAt: number | null;
  readonly ticks: number;
  readonly oldestAt: number;
  readonly completed: number;
  readonly failed: number;
};

/** One of the newest fired ticks of a schedule with how its run stands; the newest first. */
export type ObservedEnd = {
  readonly schedule: string;
  readonly at: number;
  readonly run: RunId;
  /** Null: it has not ended. */
  readonly status: TerminalStatus | null;
  readonly error: string | null;
};

/** One of the newest ledger rows of a schedule that has a live run, where the newest is a skip; the newest first. */
export type ObservedSkip = {
  readonly schedule: string;
  readonly lastAt: number;
  readonly count: number;
  /** Whether a live run was in the way. */
  readonly isSkip: boolean;
  /** The run in the way has not begun: it waits for a worker. */
  readonly isWaiting: boolean;
};

/** What keeps dead rows from being removed, or the dead rows themselves. */
export type Culprit =
  | {
      readonly what: "transaction";
      readonly pid: number;
      readonly application: string;
      readonly user: string;
      readonly state: string;
      readonly ageMs: number;
    }
  | { readonly what: "prepared"; readonly name: string; readonly ageMs: number }
  | { readonly what: "replication"; readonly name: string }
  | {
      readonly what: "bloat";
      readonly table: string;
      readonly deadRows: number;
      readonly liveRows: number;
    }
  | { readonly what: "reader"; readonly pages: number };

export type AlertObservation = {
  /** The database's. */
  readonly now: number;
  /** When an instance with the scheduler on has last looked at schedules. */
  readonly schedulerPolledAt: number | null;
  /** Up to when ticks are recorded: later than now only if the database's clock went back. */
  readonly recordedUntil: number | null;
  readonly schedules: readonly ObservedSchedule[];
  readonly runs: readonly ObservedRun[];
  readonly running: {
    readonly total: number;
    readonly bySchedule: Readonly<Record<string, number>>;
  };
  readonly jobs: readonly SightJob[];
  readonly ticks: readonly ObservedTick[];
  readonly jobRates: readonly ObservedRate[];
  readonly scheduleRates: readonly ObservedRate[];
  readonly ends: readonly ObservedEnd[];
  readonly skips: readonly ObservedSkip[];
  readonly skews: readonly { readonly instance: string; readonly skewMs: number }[];
  readonly culprits: readonly Culprit[];
};

/** What of all that is worth reading: the smallest of the bounds that any rule has. Null: nothing. */
export type ObservationParams = {
  readonly silentMs: number | null;
  readonly ranMs: number | null;
  readonly isRunningCounted: boolean;
  /** Schedules whose running runs are counted. */
  readonly runningOf: readonly string[];
  readonly unattendedMs: number | null;
  readonly skewMs: number | null;
  readonly transactionMs: number | null;
  readonly ratesOf: readonly { readonly schedule: string; readonly overMs: number }[];
  /** How many of the newest ledger rows to read of schedules that skip. */
  readonly skips: number | null;
  /** How many of the newest ticks to read, of these schedules or of all. */
  readonly ends: { readonly depth: number; readonly of: readonly string[] | null } | null;
};
