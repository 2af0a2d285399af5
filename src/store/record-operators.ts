// Rows of what operators ask as the store's records, the same for both databases.

import type { TerminalStatus } from "../runs/rules/run.js";
import type {
  FailureRecord,
  Glance,
  InstanceRecord,
  Since,
  StatisticsRecord,
} from "./operator-store.js";
import { statusOf } from "./record.js";

type Row = Record<string, unknown>;

export function toInstanceRecord(row: Row): InstanceRecord {
  return {
    no: Number(row.no),
    id: String(row.id),
    app: textOrNull(row.app),
    release: textOrNull(row.release),
    jobs: JSON.parse(String(row.jobs)) as string[],
    isScheduler: Boolean(row.is_scheduler),
    isLive: Boolean(row.is_live),
    startedAt: Number(row.started_at),
    seenAt: Number(row.seen_at),
    retiredAt: numberOrNull(row.retired_at),
    held: Number(row.held),
    skewMs: numberOrNull(row.skew_ms),
    quietAt: numberOrNull(row.quiet_at),
    quietBy: textOrNull(row.quiet_by),
    quietNote: textOrNull(row.quiet_note),
  };
}

export function toStatisticsRecord(row: Row): StatisticsRecord {
  return {
    at: numberOrNull(row.at),
    job: textOrNull(row.job),
    status: statusOf(Number(row.status)) as TerminalStatus,
    runs: Number(row.runs),
    regular: Number(row.regular),
    ranMs: Number(row.ran_ms),
  };
}

export function toFailureRecord(row: Row): FailureRecord {
  return {
    id: String(row.id),
    job: String(row.job),
    finishedAt: Number(row.finished_at),
    error: textOrNull(row.error),
  };
}

export function toGlance(row: Row): Glance {
  return {
    newestRun: textOrNull(row.newest),
    leases: `${row.held} ${row.ended}`,
    audited: row.audited === null ? null : Number(row.audited),
    openAlerts: Number(row.alerts),
  };
}

/** As the statements take it. */
export function sinceParams(since: Since): {
  readonly at: number | null;
  readonly agoMs: number | null;
} {
  return "at" in since ? { at: since.at, agoMs: null } : { at: null, agoMs: since.agoMs };
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
