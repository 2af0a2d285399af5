// Types the facts from which alerts are found, and computes the failure rates of jobs. One instance reads the facts once a
// minute; their cost does not grow with the history. Pure.

import type { RunId, TerminalStatus } from "../../runs/rules/run.js";
import type { ScheduleAlertRules } from "./rules.js";

/** A schedule that is late, stuck or broken, or has rules of its own. */
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

/** A run that was taken from its silent holder and given another attempt. */
export type ObservedReclaim = {
  readonly id: RunId;
  readonly job: string;
  readonly schedule: string | null;
  readonly holder: string;
  readonly agoMs: number;
};

/** A job with ready runs that no instance executes. */
export type ObservedJob = {
  readonly job: string;
  readonly queue: string;
  readonly oldestDueAt: number;
  /** Counted up to a thousand. */
  readonly runs: number;
};

/** A suspended run that waits for a signal or for a run that it called. */
export type ObservedWait = {
  readonly id: RunId;
  readonly job: string;
  readonly kind: "signal" | "run";
  /** The name of the signal, or the job of the called run. */
  readonly name: string;
  readonly waitedMs: number;
};

/** The newest ledger row of a schedule, if it reports a problem. */
export type ObservedTick = {
  readonly schedule: string;
  readonly reason: "stuck_reset" | "no_ping";
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly recordedAt: number;
};

/** How many runs of a job or schedule completed and failed. */
export type ObservedRate = {
  readonly name: string;
  readonly completed: number;
  readonly failed: number;
};

/** Runs of a schedule that does not count for its job: those of one hour, or those that have not ended. */
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

/** One of the newest fired ticks of a schedule and the status of its run; the newest first. */
export type ObservedEnd = {
  readonly schedule: string;
  readonly at: number;
  readonly run: RunId;
  /** Null: it has not ended. */
  readonly status: TerminalStatus | null;
  readonly error: string | null;
};

/** One of the newest ledger rows of a schedule with a live run whose newest row is a skip; the newest first. */
export type ObservedSkip = {
  readonly schedule: string;
  readonly lastAt: number;
  readonly count: number;
  /** Whether a live run blocked it. */
  readonly isSkip: boolean;
  /** The blocking run has not begun: it waits for a worker. */
  readonly isWaiting: boolean;
};

/** A cause that keeps dead rows from being removed, or the dead rows themselves. */
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
  /** The last poll of an instance with the scheduler on. */
  readonly schedulerPolledAt: number | null;
  /** Up to when ticks are recorded: later than now only if the database's clock went back. */
  readonly recordedUntil: number | null;
  readonly schedules: readonly ObservedSchedule[];
  readonly runs: readonly ObservedRun[];
  /** The newest first. */
  readonly reclaims: readonly ObservedReclaim[];
  readonly running: {
    readonly total: number;
    readonly bySchedule: Readonly<Record<string, number>>;
  };
  readonly jobs: readonly ObservedJob[];
  /** The longest waits first; one for each run. */
  readonly waits: readonly ObservedWait[];
  readonly ticks: readonly ObservedTick[];
  readonly jobRates: readonly ObservedRate[];
  readonly scheduleRates: readonly ObservedRate[];
  readonly ends: readonly ObservedEnd[];
  readonly skips: readonly ObservedSkip[];
  readonly skews: readonly { readonly instance: string; readonly skewMs: number }[];
  readonly culprits: readonly Culprit[];
};

/** The bounds of what to read: those of the rule that needs the most. Null: nothing to read. */
export type ObservationParams = {
  readonly silentMs: number | null;
  readonly ranMs: number | null;
  readonly reclaimedMs: number | null;
  readonly isRunningCounted: boolean;
  /** Schedules whose running runs are counted. */
  readonly runningOf: readonly string[];
  readonly unattendedMs: number | null;
  readonly skewMs: number | null;
  readonly transactionMs: number | null;
  readonly waitedMs: number | null;
  readonly ratesOf: readonly { readonly schedule: string; readonly overMs: number }[];
  /** How many of the newest ledger rows to read of schedules that skip. */
  readonly skips: number | null;
  /** How many of the newest ticks to read, of these schedules or of all. */
  readonly ends: { readonly depth: number; readonly of: readonly string[] | null } | null;
};

// ── failure rates by job. A schedule with a rule of its own, or with `alerts: false`, takes its runs out of the rate of its job. ──

const HOUR_MS = 3_600_000;
/** How many ticks of such schedules one pass reads in total. */
const APART_MAX = 30_000;

/** The schedules whose runs do not count for their job, of jobs with failures only. */
export function apartOf(
  schedules: readonly Pick<ObservedSchedule, "name" | "rules" | "job">[],
  rates: readonly ObservedRate[],
): { readonly schedules: readonly string[]; readonly limit: number } {
  const failing = new Set(rates.flatMap(({ name, failed }) => (failed > 0 ? [name] : [])));
  const names = schedules
    .filter(({ rules, job }) => rules?.failureRate !== undefined && failing.has(job))
    .map(({ name }) => name);
  return { schedules: names, limit: Math.max(1, Math.floor(APART_MAX / names.length)) };
}

/**
 * The full hour from which on all runs of these schedules were read, by job. Null: from the beginning of the window. For
 * a schedule with more ticks than were read, only the newest hours can be separated from its job.
 */
export function hoursRead(
  rows: readonly ObservedApart[],
  { limit, sinceAt }: { readonly limit: number; readonly sinceAt: number },
): ReadonlyMap<string, number | null> {
  const read = new Map<string, { job: string; ticks: number; oldestAt: number }>();
  for (const { schedule, job, ticks, oldestAt } of rows) {
    const sum = read.get(schedule) ?? { job, ticks: 0, oldestAt };
    sum.ticks += ticks;
    sum.oldestAt = Math.min(sum.oldestAt, oldestAt);
    read.set(schedule, sum);
  }
  const hours = new Map<string, number | null>();
  for (const { job, ticks, oldestAt } of read.values()) {
    const before = hours.get(job) ?? null;
    const isWhole = ticks < limit || oldestAt <= sinceAt;
    const hourAt = isWhole ? null : Math.ceil(oldestAt / HOUR_MS) * HOUR_MS;
    hours.set(
      job,
      before === null || hourAt === null ? (before ?? hourAt) : Math.max(before, hourAt),
    );
  }
  return hours;
}

/** The rate of a job from this hour on, without those runs. */
export function withoutApart(
  rate: ObservedRate,
  rows: readonly ObservedApart[],
  sinceHourAt: number,
): ObservedRate {
  let { completed, failed } = rate;
  for (const row of rows) {
    if (row.job !== rate.name || row.hourAt === null || row.hourAt < sinceHourAt) continue;
    completed -= row.completed;
    failed -= row.failed;
  }
  // A revived run has ended twice, and has one outcome.
  return { name: rate.name, completed: Math.max(0, completed), failed: Math.max(0, failed) };
}
