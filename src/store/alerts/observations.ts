// Observes for alerts: reads the facts that the rules judge, in statements that change nothing. One instance does so once
// a minute.

import type {
  AlertObservation,
  ObservationParams,
  ObservedApart,
  ObservedEnd,
  ObservedJob,
  ObservedRate,
  ObservedReclaim,
  ObservedRun,
  ObservedSchedule,
  ObservedSkip,
  ObservedTick,
  ObservedWait,
} from "../../alerts/rules/observation.js";
import type { ScheduleAlertRules } from "../../alerts/rules/rules.js";
import { REASONS } from "../../schedules/rules/tick.js";
import { flag, numberOrNull, type Row, statusOf, textOrNull } from "../rows.js";
import { row, rows, type Statements } from "../session.js";
import type { SqlText } from "../sql/dialect.js";
import * as sql from "./observation-statements.js";

/** Schedules are observed first, since their own rules say what else to read. */
export type ObservedSchedules = Pick<
  AlertObservation,
  "now" | "schedulerPolledAt" | "recordedUntil" | "ticks"
> & {
  readonly schedules: readonly ObservedSchedule[];
};

export type ObservedRest = Omit<AlertObservation, "jobRates" | keyof ObservedSchedules> & {
  /** The newest tick at which each schedule was paused by its rule, according to its newest alert. */
  readonly pausedTicks: Readonly<Record<string, number>>;
};

export type ApartParams = {
  readonly schedules: readonly string[];
  readonly overMs: number;
  readonly limit: number;
};

export function* observeSchedules(): Statements<ObservedSchedules> {
  const looked = yield* row(sql.LOOKED);
  const schedules = yield* rows(sql.SCHEDULES);
  const ticks = yield* rows(sql.TROUBLED_TICKS);
  return {
    now: Number(looked?.now),
    schedulerPolledAt: numberOrNull(looked?.polled_at),
    recordedUntil: numberOrNull(looked?.recorded_until),
    schedules: schedules.map(toObservedSchedule),
    ticks: ticks.map(toObservedTick),
  };
}

/** Reads only the facts that some rule needs. Each engine finds causes of dead rows its own way. */
export function* observeRest(
  params: ObservationParams,
): Statements<Omit<ObservedRest, "culprits">> {
  const { silentMs, ranMs, isRunningCounted, runningOf, unattendedMs, skewMs, ratesOf } = params;
  const { ends, skips, waitedMs, reclaimedMs } = params;
  const isRunAsked = silentMs !== null || ranMs !== null;
  const isRunningAsked = isRunningCounted || runningOf.length > 0;
  const runs = yield* rowsIf(isRunAsked, sql.HELD_RUNS, { silentMs, ranMs });
  const reclaims = yield* rowsIf(reclaimedMs !== null, sql.RECLAIMS, { reclaimedMs });
  const running = yield* rowsIf(isRunningAsked, sql.RUNNING, { schedules: runningOf });
  const jobs = yield* rowsIf(unattendedMs !== null, sql.UNATTENDED, { unattendedMs });
  const waits = yield* rowsIf(waitedMs !== null, sql.WAITS, { waitedMs });
  const skews = yield* rowsIf(skewMs !== null, sql.SKEWED, { skewMs });
  const asked = JSON.stringify(ratesOf);
  const rates = yield* rowsIf(ratesOf.length > 0, sql.RATES, { ratesOf: asked });
  const depth = { depth: ends?.depth ?? 0, schedules: ends?.of ?? null };
  const ended = yield* rowsIf(ends !== null, sql.ENDS, depth);
  const skipped = yield* rowsIf(skips !== null, sql.SKIPS, { skips });
  const failing = [...new Set(ended.map(({ name }) => String(name)))];
  const paused = yield* rowsIf(failing.length > 0, sql.PAUSED_TICKS, { schedules: failing });
  return {
    runs: runs.map(toObservedRun),
    reclaims: reclaims.map(toObservedReclaim),
    running: toRunning(running),
    jobs: jobs.map(toObservedJob),
    waits: waits.map(toObservedWait),
    skews: skews.map(toSkew),
    scheduleRates: rates.map(toObservedRate),
    ends: ended.map(toObservedEnd),
    skips: skipped.map(toObservedSkip),
    pausedTicks: Object.fromEntries(paused.flatMap(pausedTickOf)),
  };
}

export function* observeApart(params: ApartParams): Statements<readonly ObservedApart[]> {
  return (yield* rows(sql.APART, params)).map(toObservedApart);
}

function* rowsIf(isAsked: boolean, text: SqlText, params: Row): Statements<readonly Row[]> {
  return isAsked ? yield* rows(text, params) : [];
}

function toObservedSchedule(row: Row): ObservedSchedule {
  return {
    name: String(row.name),
    job: String(row.job),
    nextAt: numberOrNull(row.next_at),
    isEnded: flag(row.is_ended),
    isPaused: row.paused_at !== null,
    brokenAt: numberOrNull(row.broken_at),
    brokenError: textOrNull(row.broken_error),
    rules: rulesOf(row.definition),
  };
}

/** An unknown value, for example from a newer version of the library, counts as nothing. */
function rulesOf(definition: unknown): Partial<ScheduleAlertRules> | null {
  if (typeof definition !== "string") return null;
  try {
    const { alerts } = JSON.parse(definition) as { alerts?: Partial<ScheduleAlertRules> };
    return alerts ?? null;
  } catch {
    return null;
  }
}

function toObservedTick(row: Row): ObservedTick {
  return {
    schedule: String(row.name),
    reason: REASONS[Number(row.reason)] as ObservedTick["reason"],
    firstAt: Number(row.at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    recordedAt: Number(row.recorded_at),
  };
}

function toObservedRun(row: Row): ObservedRun {
  return {
    id: String(row.id),
    job: String(row.job),
    schedule: textOrNull(row.schedule),
    holder: String(row.holder),
    silentMs: Number(row.silent_ms),
    ranMs: Number(row.ran_ms),
    items: Number(row.items),
  };
}

function toObservedReclaim(row: Row): ObservedReclaim {
  return {
    id: String(row.id),
    job: String(row.job),
    schedule: textOrNull(row.schedule),
    holder: String(row.holder),
    agoMs: Number(row.ago_ms),
  };
}

/** The row without a schedule is the sum of all. */
function toRunning(rows: readonly Row[]) {
  const total = rows.find(({ schedule }) => schedule === null);
  const others = rows.filter(({ schedule }) => schedule !== null);
  return {
    total: Number(total?.runs ?? 0),
    bySchedule: Object.fromEntries(others.map((row) => [String(row.schedule), Number(row.runs)])),
  };
}

function toObservedJob(row: Row): ObservedJob {
  return {
    job: String(row.job),
    queue: String(row.queue),
    oldestDueAt: Number(row.due_at),
    runs: Number(row.runs),
  };
}

function toObservedWait(row: Row): ObservedWait {
  return {
    id: String(row.run),
    job: String(row.job),
    kind: Number(row.kind) === 2 ? "signal" : "run",
    name: String(row.name),
    waitedMs: Number(row.waited_ms),
  };
}

function toObservedRate(row: Row): ObservedRate {
  return {
    name: String(row.name),
    completed: Number(row.completed),
    failed: Number(row.failed),
  };
}

function toObservedApart(row: Row): ObservedApart {
  return {
    schedule: String(row.name),
    job: String(row.job),
    hourAt: numberOrNull(row.hour_at),
    ticks: Number(row.ticks),
    oldestAt: Number(row.oldest_at),
    completed: Number(row.completed),
    failed: Number(row.failed),
  };
}

function toObservedEnd(row: Row): ObservedEnd {
  return {
    schedule: String(row.name),
    at: Number(row.at),
    run: String(row.run),
    status: row.status === null ? null : (statusOf(Number(row.status)) as ObservedEnd["status"]),
    error: textOrNull(row.error),
  };
}

function toObservedSkip(row: Row): ObservedSkip {
  return {
    schedule: String(row.name),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    isSkip: flag(row.is_skip),
    isWaiting: flag(row.is_waiting),
  };
}

function toSkew(row: Row): { readonly instance: string; readonly skewMs: number } {
  return { instance: String(row.id), skewMs: Number(row.skew_ms) };
}

/** The tick at which a schedule was paused, from the evidence of an alert. */
function pausedTickOf(row: Row): readonly (readonly [string, number])[] {
  const { pausedTickAt } = JSON.parse(String(row.evidence)) as { pausedTickAt?: unknown };
  return typeof pausedTickAt === "number" ? [[String(row.subject), pausedTickAt]] : [];
}
