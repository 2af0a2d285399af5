// Reads statistics for `holdfast.stats()` and `holdfast.errors()`: how runs ended, and errors grouped by cause.

import { createHash } from "node:crypto";
import type { RunId } from "../runs/rules/run.js";
import { readDuration } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { errorPattern, type StoredError } from "../shared/failure.js";
import { readInstant } from "../shared/instant.js";
import { requireName } from "../shared/names.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { FailureRecord, Since, StatisticsRecord } from "../store/statistics.js";
import type { Store } from "../store/store.js";

/** An instant, or a duration such as "24h" before now. */
export type SinceOption = Date | string | number;

export type StatsOptions = {
  /** Counted in full hours. @default "24h" */
  readonly since?: SinceOption | undefined;
  /** The length of a stretch, in UTC. @default hours */
  readonly by?: "hour" | "day" | undefined;
  /** Only runs of this job. */
  readonly job?: string | undefined;
};

/** How runs ended. */
export type Totals = {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Completed of completed and failed; without runs made by hand, for a test or by a backfill. */
  readonly successRate: number | null;
  /** The mean time of the last attempt of completed runs. */
  readonly meanMs: number | null;
};

export type Stats = {
  readonly by: "hour" | "day";
  readonly overall: Totals;
  readonly jobs: readonly (Totals & { readonly job: string })[];
  /** Oldest first; without stretches in which no run ended. */
  readonly stretches: readonly (Totals & { readonly at: Date })[];
};

export type ErrorsOptions = {
  /** @default "24h" */
  readonly since?: SinceOption | undefined;
};

/** Failed runs of one job with the same error, ignoring numbers, ids and times in it. */
export type ErrorGroup = {
  /** Stable for the same error of the same job. */
  readonly fingerprint: string;
  readonly job: string;
  readonly code: string;
  /** The message of the newest run. */
  readonly message: string;
  readonly runs: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly lastRunId: RunId;
};

export type ErrorReport = {
  /** Newest first. */
  readonly errors: readonly ErrorGroup[];
  /** More runs failed than were read: the counts cover the newest only. */
  readonly isCut: boolean;
};

const SINCE_DEFAULT = "24h";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How many failed runs are read at most. */
export const FAILURES_READ_MAX = 1_000;
const MESSAGE_SHOWN = 500;
export function readStats(options: StatsOptions) {
  const { since = SINCE_DEFAULT, by = "hour", job } = options;
  const problems = refuseUnknownMembers(options, ["since", "by", "job"], "stats()");
  if (by !== "hour" && by !== "day")
    problems.push({ field: "stats().by", message: 'must be "hour" or "day"' });
  const from = readSince(since, "stats().since", problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { since: from, by, job: job === undefined ? null : requireName(job, "stats().job") };
}

export function readErrors(options: ErrorsOptions): Since {
  const problems = refuseUnknownMembers(options, ["since"], "errors()");
  const since = readSince(options.since ?? SINCE_DEFAULT, "errors().since", problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return since;
}

/** A text that begins with a year is read as an instant, so that an error is about instants. */
export function readSince(value: SinceOption, field: string, problems: Problem[]): Since {
  const isInstant = value instanceof Date || (typeof value === "string" && /^\d{4}-/.test(value));
  const read = isInstant ? readInstant(value) : readDuration(value);
  if (typeof read === "number") return isInstant ? { at: read } : { agoMs: read };
  problems.push({
    field,
    message: `${read} An instant such as "2030-01-31T09:00:00Z" will do too.`,
  });
  return { agoMs: 0 };
}

export async function statsOf(
  store: Store,
  { since, by, job }: ReturnType<typeof readStats>,
): Promise<Stats> {
  const bucketMs = by === "day" ? DAY_MS : HOUR_MS;
  const records = await store.statistics.summary({ since, bucketMs, job });
  const ofTime = records.filter(({ at }) => at !== null);
  const times = [...groupBy(ofTime, ({ at }) => at as number)].sort(([a], [b]) => a - b);
  const ofJobs = records.filter((record) => record.job !== null);
  const jobs = [...groupBy(ofJobs, (record) => record.job as string)];
  return {
    by,
    overall: totalsOf(ofTime),
    jobs: jobs
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, rows]) => ({ job: name, ...totalsOf(rows) })),
    stretches: times.map(([at, rows]) => ({ at: new Date(at), ...totalsOf(rows) })),
  };
}

export async function errorsOf(store: Store, since: Since): Promise<ErrorReport> {
  const records = await store.statistics.failures({ since, limit: FAILURES_READ_MAX });
  const described = records.map((record) => ({ ...record, ...describe(record) }));
  const groups = groupBy(described, ({ job, code, message }) =>
    JSON.stringify([job, code, errorPattern(message)]),
  );
  return {
    errors: [...groups].map(([alike, rows]) => {
      const fingerprint = createHash("sha256").update(alike).digest("hex").slice(0, 12);
      // The newest is the first, and a group has at least one.
      const [newest] = rows as [(typeof rows)[number]];
      const { job, code, message, id, finishedAt } = newest;
      const firstAt = new Date(rows.at(-1)?.finishedAt ?? finishedAt);
      const lastAt = new Date(finishedAt);
      const runs = rows.length;
      return { fingerprint, job, code, message, runs, firstAt, lastAt, lastRunId: id };
    }),
    isCut: records.length === FAILURES_READ_MAX,
  };
}

function describe({ error }: FailureRecord): { readonly code: string; readonly message: string } {
  const { code, message } = JSON.parse(error ?? "{}") as Partial<StoredError>;
  return { code: code ?? "ERROR", message: (message ?? "").slice(0, MESSAGE_SHOWN) };
}

function totalsOf(records: readonly StatisticsRecord[]): Totals {
  const sum = (of: "runs" | "regular" | "ranMs", status: StatisticsRecord["status"]) =>
    records.reduce((total, each) => total + (each.status === status ? each[of] : 0), 0);
  const [completed, failed] = [sum("runs", "completed"), sum("runs", "failed")];
  const cancelled = sum("runs", "cancelled");
  const succeeded = sum("regular", "completed");
  const judged = succeeded + sum("regular", "failed");
  return {
    total: completed + failed + cancelled,
    completed,
    failed,
    cancelled,
    successRate: judged === 0 ? null : succeeded / judged,
    meanMs: completed === 0 ? null : Math.round(sum("ranMs", "completed") / completed),
  };
}

function groupBy<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}
