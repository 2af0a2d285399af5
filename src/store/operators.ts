// Declares the store's verbs that only operators need, and maps their rows: ending stale leases, and reading statistics,
// failures and instances.

import type { RunId, TerminalStatus } from "../runs/rules/run.js";
import { numberOrNull, type Row, statusOf, textOrNull } from "./rows.js";

/** A lease is stale when its holder was silent for so long, or when it has been held for so long. */
export type StaleParams = {
  readonly silentMs: number;
  readonly ranMs: number;
  /** A holder within its run's own lease and timeout keeps the run, however short the two times above are. */
  readonly respectsLeases?: boolean;
};

export type InstanceRecord = {
  /** Its number: newer instances have larger ones. */
  readonly no: number;
  readonly id: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly jobs: readonly string[];
  readonly isScheduler: boolean;
  /** Not retired, and seen lately. */
  readonly isLive: boolean;
  readonly startedAt: number;
  readonly seenAt: number;
  readonly retiredAt: number | null;
  /** How many runs it holds. */
  readonly held: number;
  /** How far its clock is from the database's, as far as that is certain; null before it was looked at. */
  readonly skewMs: number | null;
  /** Since when it claims and fires nothing, by whom and why. */
  readonly quietAt: number | null;
  readonly quietBy: string | null;
  readonly quietNote: string | null;
};

export type InstanceFilter = {
  readonly limit: number;
  /** The last one of the page before. */
  readonly after?: Pick<InstanceRecord, "isLive" | "no">;
};

/** From when on: an instant, or so long ago by the database's clock. */
export type Since = { readonly at: number } | { readonly agoMs: number };

export type StatisticsFilter = {
  readonly since: Since;
  readonly bucketMs: number;
  readonly job: string | null;
};

/** Ended runs of one status: of one stretch of time (then `job` is null) or of one job. */
export type StatisticsRecord = {
  readonly at: number | null;
  readonly job: string | null;
  readonly status: TerminalStatus;
  readonly runs: number;
  /** Of these, the ones that nobody made by hand: scheduled or enqueued. */
  readonly regular: number;
  readonly ranMs: number;
};

export type FailureRecord = {
  readonly id: RunId;
  readonly job: string;
  readonly finishedAt: number;
  /** JSON text. */
  readonly error: string | null;
};

/** Differs from an earlier one if runs were stored, or claimed, or have ended meanwhile, or people changed something. */
export type Glance = {
  readonly newestRun: RunId | null;
  /** Opaque: changes with what is held and what has ended. */
  readonly leases: string;
  /** The newest entry of the audit trail: what people change leaves one. */
  readonly audited: number | null;
  readonly openAlerts: number;
};

export interface OperatorStore {
  /**
   * Makes stale leases end now, whatever they were granted for; answers how many. A reclaim then takes
   * them: what was silent as lost, what was not and ran for too long as over its time.
   */
  expireStale(params: StaleParams): Promise<number>;
  /** Cheap enough to be asked every other second. */
  glance(): Promise<Glance>;
  /** Live ones first, then the newest. */
  instances(filter: InstanceFilter): Promise<readonly InstanceRecord[]>;
  /** Sums of what has ended, by stretch of time and by job; whole hours. */
  statistics(filter: StatisticsFilter): Promise<readonly StatisticsRecord[]>;
  /** Of the newest failed runs, at most `limit`, those that failed since then; the newest first. */
  failures(params: {
    readonly since: Since;
    readonly limit: number;
  }): Promise<readonly FailureRecord[]>;
}

// Row mappers, the same for both databases.

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
