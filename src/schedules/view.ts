// Converts stored schedules, ticks, versions and backfills for callers: dates, durations as text, and a description.

import { type ScheduleAlertOptions, writeScheduleAlerts } from "../alerts/rules/rules.js";
import type { RunId, RunStatus } from "../runs/rules/run.js";
import { writeDuration } from "../shared/duration.js";
import type { EditKind, ScheduleSource } from "../store/schedules/changes.js";
import type {
  BackfillRecord,
  ScheduleFilter,
  ScheduleRecord,
  ScheduleVersion as StoredVersion,
} from "../store/schedules/schedules.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { TickRecord } from "../store/schedules/ticks.js";
import type { Store } from "../store/store.js";
import { describeWhen } from "./rules/describe-when.js";
import type { Overlap } from "./rules/overlap.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { type Evidence, OUTCOME_OF, type Outcome, type Reason } from "./rules/tick.js";
import { compile } from "./schedule-cache.js";

export type ScheduleStatus = "active" | "paused" | "ended" | "broken";

/** When and how, in the words of the options. */
export type ScheduleRules = {
  readonly cron: string | null;
  readonly timezone: string;
  readonly dst: { readonly gap: string; readonly overlap: string } | null;
  readonly every: string | null;
  readonly at: Date | null;
  readonly from: Date | null;
  readonly until: Date | null;
  readonly exclude: readonly string[];
  readonly calendars: readonly string[];
  readonly overlap: Overlap;
  readonly missed: {
    readonly run: ScheduleDefinition["missed"]["run"];
    readonly within: string | null;
    readonly limit: number;
  };
  readonly afterFailure: string | null;
  readonly grace: string;
  /** A remote job checks in; this instance executes nothing for it. */
  readonly monitor: boolean;
  readonly priority: number | null;
  readonly queue: string | null;
  readonly tags: readonly string[];
  /** Rules of its own; null: those for everything. */
  readonly alerts: ScheduleAlertOptions | null;
};

export type Schedule = ScheduleRules & {
  readonly name: string;
  readonly job: string;
  readonly input: unknown;
  readonly status: ScheduleStatus;
  /** When it runs, in plain words. */
  readonly description: string;
  readonly nextAt: Date | null;
  /** Only for a monitor: when the watched job reported its start, if it has not ended since. */
  readonly beganAt: Date | null;
  /** The newest fired tick, its run, and the status of that run. */
  readonly lastTickAt: Date | null;
  readonly lastRunId: RunId | null;
  readonly lastRunAt: Date | null;
  readonly lastStatus: RunStatus | null;
  /** Ticks before this are held back after a failure. */
  readonly heldUntil: Date | null;
  readonly pausedAt: Date | null;
  readonly pausedBy: string | null;
  readonly pauseNote: string | null;
  readonly brokenAt: Date | null;
  readonly brokenError: string | null;
  readonly version: number;
  readonly app: string | null;
  readonly source: ScheduleSource;
  readonly release: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** One tick of the ledger, or a stretch of equal ones. */
export type Tick = {
  readonly schedule: string;
  readonly at: Date;
  /** The last of a stretch; the same as `at` for one tick. */
  readonly lastAt: Date;
  readonly count: number;
  readonly outcome: Outcome;
  readonly reason: Reason;
  /** How late a tick was fired. */
  readonly lateMs: number | null;
  readonly runId: RunId | null;
  /** The status of its run; null: it has none, or the run is no longer kept. */
  readonly runStatus: RunStatus | null;
  readonly recordedAt: Date;
  readonly recordedBy: string | null;
  readonly version: number;
  readonly evidence: Evidence | null;
};

export type ScheduleVersion = ScheduleRules & {
  readonly version: number;
  readonly kind: EditKind;
  readonly at: Date;
  readonly by: string | null;
  readonly job: string;
  readonly input: unknown;
  readonly description: string;
};

export type Backfill = {
  readonly id: string;
  readonly from: Date;
  readonly to: Date;
  readonly status: "running" | "done" | "cancelled";
  /** Ticks in its range. */
  readonly total: number;
  /** Runs made for them so far. */
  readonly made: number;
  /** Ticks that had a completed run already. */
  readonly passed: number;
  readonly createdAt: Date;
  readonly createdBy: string | null;
  readonly endedAt: Date | null;
};

/** How many schedules are read at a time, since each may have an input of 256 KiB. */
const READ_TOGETHER = 100;
const PAGE_BYTES_MAX = 1_048_576;

/** Reads schedules until there are `limit` of them, or until they have the bytes of a page. */
export async function schedulePage(
  store: Pick<Store, "schedules">,
  filter: ScheduleFilter,
): Promise<{ readonly schedules: readonly Schedule[]; readonly nextCursor: string | null }> {
  const page: ScheduleRecord[] = [];
  let bytes = 0;
  let after = filter.after;
  for (;;) {
    const wanted = Math.min(READ_TOGETHER, filter.limit + 1 - page.length);
    const from = after === undefined ? {} : { after };
    const records = await store.schedules.list({ ...filter, ...from, limit: wanted });
    for (const record of records) {
      const isFull = page.length === filter.limit || bytes >= PAGE_BYTES_MAX;
      if (isFull) return { schedules: page.map(toSchedule), nextCursor: after ?? null };
      page.push(record);
      bytes += record.input.length + record.definition.length;
      after = record.name;
    }
    if (records.length < wanted) return { schedules: page.map(toSchedule), nextCursor: null };
  }
}

export function toSchedule(record: ScheduleRecord): Schedule {
  const rules = rulesOf(record.definition);
  const untilMs = rules?.until?.getTime() ?? Number.POSITIVE_INFINITY;
  const nextAt = nextTickOf(record);
  const isOver = nextAt !== null && nextAt > untilMs;
  return {
    ...(rules ?? UNREADABLE),
    name: record.name,
    job: record.job,
    input: JSON.parse(record.input),
    status: statusOf({ ...record, isEnded: record.isEnded || isOver }),
    description: wordsOf(record.definition),
    nextAt: isOver ? null : dateOrNull(nextAt),
    beganAt: dateOrNull(record.beganAt),
    lastTickAt: dateOrNull(record.lastTickAt),
    lastRunId: record.lastRun,
    lastRunAt: dateOrNull(record.lastRunAt),
    lastStatus: record.lastStatus,
    heldUntil: dateOrNull(record.holdUntil),
    pausedAt: dateOrNull(record.pausedAt),
    pausedBy: record.pausedBy,
    pauseNote: record.pauseNote,
    brokenAt: dateOrNull(record.brokenAt),
    brokenError: record.brokenError,
    version: record.version,
    app: record.app,
    source: record.source,
    release: record.release,
    createdAt: new Date(record.createdAt),
    updatedAt: new Date(record.updatedAt),
  };
}

/** The next tick. For a monitor the store keeps the deadline of the check-in, which is later. */
export function nextTickOf(
  record: Pick<ScheduleState, "isMonitor" | "nextAt" | "cursorAt" | "definition" | "anchorAt">,
): number | null {
  const { isMonitor, nextAt, cursorAt } = record;
  if (!isMonitor || nextAt === null) return nextAt;
  try {
    return compile(record).when.next(cursorAt);
  } catch {
    return nextAt; // An unreadable definition has no computable tick.
  }
}

export function statusOf(record: {
  readonly brokenAt: number | null;
  readonly pausedAt: number | null;
  readonly isEnded: boolean;
}): ScheduleStatus {
  if (record.brokenAt !== null) return "broken";
  if (record.pausedAt !== null) return "paused";
  return record.isEnded ? "ended" : "active";
}

export function toTick(record: TickRecord): Tick {
  const outcome = OUTCOME_OF[record.reason];
  return {
    schedule: record.schedule,
    at: new Date(record.firstAt),
    lastAt: new Date(record.lastAt),
    count: record.count,
    outcome,
    reason: record.reason,
    lateMs: outcome === "fired" ? Math.max(0, record.recordedAt - record.firstAt) : null,
    runId: record.run,
    runStatus: record.runStatus,
    recordedAt: new Date(record.recordedAt),
    recordedBy: record.recordedBy,
    version: record.version,
    evidence: record.evidence,
  };
}

export function toVersion(stored: StoredVersion): ScheduleVersion {
  return {
    ...(rulesOf(stored.definition) ?? UNREADABLE),
    version: stored.version,
    kind: stored.kind,
    at: new Date(stored.at),
    by: stored.by,
    job: stored.job,
    input: JSON.parse(stored.input),
    description: wordsOf(stored.definition),
  };
}

export function toBackfill(record: BackfillRecord): Backfill {
  const { id, total, made, passed, createdBy, endedAt, isCancelled } = record;
  return {
    id,
    total,
    made,
    passed,
    createdBy,
    from: new Date(record.fromAt),
    to: new Date(record.toAt),
    status: endedAt === null ? "running" : isCancelled ? "cancelled" : "done",
    createdAt: new Date(record.createdAt),
    endedAt: dateOrNull(endedAt),
  };
}

/** Null for a definition that only a newer version of the library can read. */
function rulesOf(text: string): ScheduleRules | null {
  try {
    const { when, missed, afterFailure, graceMs, ...rest } = JSON.parse(text) as ScheduleDefinition;
    return {
      ...rest,
      cron: when.cron,
      timezone: when.timezone,
      dst: when.dst,
      every: when.everyMs === null ? null : rangeText(when.everyMs, when.everyMaxMs),
      at: dateOrNull(when.atMs),
      from: dateOrNull(when.fromMs),
      until: dateOrNull(when.untilMs),
      exclude: when.exclude,
      calendars: when.calendars.map(({ name }) => name),
      missed: {
        run: missed.run,
        within: missed.withinMs === null ? null : writeDuration(missed.withinMs),
        limit: missed.limit,
      },
      afterFailure: afterFailure && rangeText(afterFailure.minMs, afterFailure.maxMs),
      grace: writeDuration(graceMs),
      monitor: rest.monitor === true,
      alerts: rest.alerts ? writeScheduleAlerts(rest.alerts) : null,
    };
  } catch {
    return null;
  }
}

const UNREADABLE: ScheduleRules = {
  cron: null,
  timezone: "UTC",
  dst: null,
  every: null,
  at: null,
  from: null,
  until: null,
  exclude: [],
  calendars: [],
  overlap: "skip",
  missed: { run: "latest", within: null, limit: 100 },
  afterFailure: null,
  grace: "30s",
  monitor: false,
  priority: null,
  queue: null,
  tags: [],
  alerts: null,
};

function wordsOf(definition: string): string {
  try {
    return describeWhen((JSON.parse(definition) as ScheduleDefinition).when);
  } catch {
    return "a definition that this version cannot read";
  }
}

function rangeText(minMs: number, maxMs: number | null): string {
  return maxMs === null ? writeDuration(minMs) : `${writeDuration(minMs)}..${writeDuration(maxMs)}`;
}

function dateOrNull(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}
