// Looking at the whole: which instances there are, how runs ended, what failed and why.

import { createHash } from "node:crypto";
import type { RunId } from "../runs/rules/run.js";
import { readDuration } from "../shared/duration-text.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { errorPattern, type StoredError } from "../shared/failure.js";
import { readInstant } from "../shared/instant.js";
import { requireName } from "../shared/names.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { FailureRecord, Since, StatisticsRecord } from "../store/operators.js";
import type { Store } from "../store/store.js";

export type Instance = {
  /** `host:pid:boot-uuid`. */
  readonly id: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly jobs: readonly string[];
  readonly isScheduler: boolean;
  /** Not stopped, and seen lately. */
  readonly isLive: boolean;
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly retiredAt: Date | null;
  /** How many runs it holds. */
  readonly held: number;
  /** How far its clock is from the database's, as far as that is certain; null before it was looked at. */
  readonly skewMs: number | null;
  /** Since when it claims and fires nothing, by whom and why. */
  readonly quietAt: Date | null;
  readonly quietBy: string | null;
  readonly quietNote: string | null;
};

export type InstanceListOptions = {
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type InstancePage = {
  readonly instances: readonly Instance[];
  readonly nextCursor: string | null;
};

/** An instant, or a duration such as "24h": so long ago. */
export type SinceOption = Date | string | number;

export type StatsOptions = {
  /** Whole hours from there on. @default "24h" */
  readonly since?: SinceOption | undefined;
  /** How long a stretch is, in UTC. @default hours */
  readonly by?: "hour" | "day" | undefined;
  /** Runs of this job alone. */
  readonly job?: string | undefined;
};

/** How runs ended. */
export type Totals = {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Completed of completed and failed, runs made by hand, for a test or by a backfill left out. */
  readonly successRate: number | null;
  /** Of the completed ones, how long their last attempt took. */
  readonly meanMs: number | null;
};

export type Stats = {
  readonly by: "hour" | "day";
  readonly overall: Totals;
  readonly jobs: readonly (Totals & { readonly job: string })[];
  /** The oldest first; those in which nothing ended are left out. */
  readonly stretches: readonly (Totals & { readonly at: Date })[];
};

export type ErrorsOptions = {
  /** @default "24h" */
  readonly since?: SinceOption | undefined;
};

/** Failed runs of one job with the same error, whatever numbers, ids and times are in it. */
export type ErrorGroup = {
  /** The same for the same error of the same job, today and tomorrow. */
  readonly fingerprint: string;
  readonly job: string;
  readonly code: string;
  /** Of the newest. */
  readonly message: string;
  readonly runs: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly lastRunId: RunId;
};

export type ErrorReport = {
  /** The one that happened last first. */
  readonly errors: readonly ErrorGroup[];
  /** There were more failed runs than were read: the counts are of the newest. */
  readonly isCut: boolean;
};

const SINCE_DEFAULT = "24h";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** So many failed runs are read at most. */
export const FAILURES_READ_MAX = 1_000;
const MESSAGE_SHOWN = 500;
const INSTANCE_CURSOR = /^([lg])(\d{1,9})$/;

export async function listInstances(
  store: Store,
  { limit, after }: ReturnType<typeof readInstanceList>,
): Promise<InstancePage> {
  const records = await store.instances({ limit: limit + 1, ...(after ? { after } : {}) });
  const { page, last } = pageOf(records, limit);
  return {
    instances: page.map(({ no: _, startedAt, seenAt, retiredAt, quietAt, ...rest }) => ({
      ...rest,
      quietAt: quietAt === null ? null : new Date(quietAt),
      startedAt: new Date(startedAt),
      seenAt: new Date(seenAt),
      retiredAt: retiredAt === null ? null : new Date(retiredAt),
    })),
    nextCursor: last && `${last.isLive ? "l" : "g"}${last.no}`,
  };
}

export function readInstanceList(options: InstanceListOptions) {
  const { limit = PAGE_DEFAULT, cursor } = options;
  const problems = refuseUnknownMembers(options, ["limit", "cursor"], "instances.list()");
  problems.push(...limitProblems(limit));
  const [, life, no] = INSTANCE_CURSOR.exec(cursor ?? "l0") ?? [];
  if (life === undefined) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const after = cursor === undefined ? null : { isLive: life === "l", no: Number(no) };
  return { limit, after };
}

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

/** What begins with a year is meant as an instant, so that its complaint is about instants. */
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
  const records = await store.statistics({ since, bucketMs, job });
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
  const records = await store.failures({ since, limit: FAILURES_READ_MAX });
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
