// What is kept with a run, as users see it: how far it is, and its log lines.

import { ConfigurationError } from "../shared/errors.js";
import { limitProblems } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { KeptLevel, LogRecord } from "../store/log-store.js";
import type { ProgressRecord } from "../store/progress-store.js";

/** How far a run is, as its last attempt that told anything told it. */
export type RunProgress = {
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly at: Date;
  readonly attempt: number;
  /** Every stage of that attempt, with the time at which it began. */
  readonly stages: readonly { readonly stage: string; readonly at: Date }[];
};

export type RunLogEntry = {
  readonly at: Date;
  readonly level: KeptLevel;
  readonly attempt: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
};

export type RunLogPage = {
  /** The oldest first. */
  readonly lines: readonly RunLogEntry[];
  /** Give it as `after` to go on from here, also for lines that are yet to come. */
  readonly cursor: string | null;
};

export type RunLogOptions = {
  /** `cursor` of the page before. */
  readonly after?: string | null | undefined;
  /** @default 1000, at most 10,000 */
  readonly limit?: number | undefined;
};

const LIMIT_DEFAULT = 1_000;
const LIMIT_MAX = 10_000;
const CURSOR = /^(\d{1,15})-(\d{1,9})$/;

export function toProgress(record: ProgressRecord): RunProgress {
  const { id: _, ...progress } = record;
  return {
    ...progress,
    at: new Date(record.at),
    stages: record.stages.map(({ stage, at }) => ({ stage, at: new Date(at) })),
  };
}

export function readLogOptions(options: RunLogOptions): {
  readonly after: { readonly fence: number; readonly no: number } | null;
  readonly limit: number;
} {
  const problems = refuseUnknownMembers(options, ["after", "limit"], "runs.logs()");
  const { after = null, limit = LIMIT_DEFAULT } = options;
  problems.push(...limitProblems(limit, { max: LIMIT_MAX, example: 1_000 }));
  const [, fence, no] = CURSOR.exec(after ?? "0-0") ?? [];
  if (fence === undefined)
    problems.push({ field: "after", message: "must be the cursor of an earlier page" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { after: { fence: Number(fence), no: Number(no) }, limit };
}

export function toLogPage(records: readonly LogRecord[], after: string | null): RunLogPage {
  const last = records.at(-1);
  return {
    lines: records.map(({ at, level, attempt, message, fields }) => ({
      at: new Date(at),
      level,
      attempt,
      message,
      fields: fields === null ? {} : (JSON.parse(fields) as Record<string, unknown>),
    })),
    cursor: last ? `${last.fence}-${last.no}` : after,
  };
}
