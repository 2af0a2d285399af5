// Converts stored runs, attempts, progress, log lines and items for users.

import { ConfigurationError } from "../shared/errors.js";
import { readStoredError, type StoredError } from "../shared/failure.js";
import { readStored } from "../shared/json.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { parseTraceparent } from "../shared/trace-context.js";
import type { ItemFilter, ItemRecord } from "../store/items.js";
import { isFullPage, type KeptLevel, type LogRecord } from "../store/logs.js";
import type { ProgressRecord } from "../store/progress.js";
import type { AttemptRecord, RunRecord } from "../store/runs/runs.js";
import type { Store } from "../store/store.js";
import type { WaitingFor } from "./pending-reason.js";
import { FAILED_OUTCOME } from "./rules/item.js";
import type { Mode, RunId, RunStatus } from "./rules/run.js";

export type Run = {
  readonly id: RunId;
  readonly job: string;
  readonly queue: string;
  readonly status: RunStatus;
  readonly mode: Mode;
  readonly priority: number;
  readonly attempt: number;
  readonly fence: number | null;
  readonly input: unknown;
  readonly result: unknown;
  readonly error: StoredError | null;
  readonly schedule: string | null;
  /** The run that made it. */
  readonly parent: RunId | null;
  readonly nominalAt: Date | null;
  readonly createdAt: Date;
  readonly dueAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly updatedAt: Date;
  readonly durationMs: number | null;
  readonly heartbeatAt: Date | null;
  readonly holder: string | null;
  readonly leaseUntil: Date | null;
  readonly cancelRequestedAt: Date | null;
  readonly key: string | null;
  readonly tags: readonly string[];
  /** The id of its trace, if it was traced. */
  readonly traceId: string | null;
  /** It is completed, and some of its items failed. */
  readonly partial: boolean;
  readonly items: ItemCounts;
  /** Null: its handler reported none. */
  readonly progress: RunProgress | null;
};

/** One run with details that lists leave out. */
export type RunDetails = Run & {
  /** Why it does not begin; null if it is not pending. */
  readonly waitingFor: WaitingFor | null;
};

export type RunAttempt = {
  readonly attempt: number;
  readonly fence: number;
  readonly holder: string;
  readonly end: AttemptRecord["end"];
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly error: StoredError | null;
};

/**
 * A page of runs. Inputs, results and errors of more than 2 KiB are cut: `{ $truncated: true, bytes, preview }` stands for a value,
 * and an error says `truncated: true`. A page whose runs weigh more than 1 MiB ends early, with a cursor.
 */
export type RunPage = { readonly runs: readonly Run[]; readonly nextCursor: string | null };

export async function runPage(
  store: Store,
  records: readonly RunRecord[],
  limit: number,
): Promise<RunPage> {
  const { page, last } = pageOf(records, limit);
  const end = page.at(-1);
  const next = last ?? (end?.isFollowed ? end : null);
  return { runs: await withProgress(store, page), nextCursor: next?.id ?? null };
}

async function withProgress(store: Store, records: readonly RunRecord[]): Promise<Run[]> {
  const progress =
    records.length === 0 ? [] : await store.progress.listed(records.map(({ id }) => id));
  const known = new Map(progress.map((each) => [each.id, toProgress(each)]));
  return records.map((record) => toRun(record, known.get(record.id) ?? null));
}

export function toRun(record: RunRecord, progress: RunProgress | null): Run {
  const { startedAt, finishedAt } = record;
  const { attemptsMax: _, isFollowed: __, trace, ...shown } = record;
  return {
    ...shown,
    input: readStored(record.input),
    result: record.result === null ? null : readStored(record.result),
    error: record.status === "completed" ? null : toError(record.error),
    nominalAt: toDate(record.nominalAt),
    createdAt: new Date(record.createdAt),
    dueAt: new Date(record.dueAt),
    startedAt: toDate(startedAt),
    finishedAt: toDate(finishedAt),
    updatedAt: new Date(record.updatedAt),
    durationMs: startedAt !== null && finishedAt !== null ? finishedAt - startedAt : null,
    heartbeatAt: toDate(record.heartbeatAt),
    leaseUntil: toDate(record.leaseUntil),
    cancelRequestedAt: toDate(record.cancelRequestedAt),
    ...countsOf(record),
    traceId: parseTraceparent(trace)?.traceId ?? null,
    progress,
  };
}

export function toAttempt(record: AttemptRecord): RunAttempt {
  return {
    ...record,
    startedAt: new Date(record.startedAt),
    endedAt: new Date(record.endedAt),
    error: toError(record.error),
  };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function toError(json: string | null): StoredError | null {
  return json === null ? null : readStoredError(json);
}

// ── progress and log lines ──

/** The progress of a run, from its last attempt that reported any. */
export type RunProgress = {
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
  readonly at: Date;
  readonly attempt: number;
  /** Every stage of that attempt with its start. In lists empty if they have more than 2 KiB. */
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
  /** Pass it as `after` to continue from here, also for later lines. */
  readonly cursor: string | null;
  /** The same cursor if there may be more lines now: a page ends at its limit, or when it has 1 MiB. */
  readonly nextCursor: string | null;
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

export function toLogPage(
  records: readonly LogRecord[],
  { after, limit }: { readonly after: string | null; readonly limit: number },
): RunLogPage {
  const last = records.at(-1);
  const cursor = last ? `${last.fence}-${last.no}` : after;
  return {
    lines: records.map(({ at, level, attempt, message, fields }) => ({
      at: new Date(at),
      level,
      attempt,
      message,
      fields: fields === null ? {} : (JSON.parse(fields) as Record<string, unknown>),
    })),
    cursor,
    nextCursor: isFullPage(records, limit) ? cursor : null,
  };
}

// ── items: `runs.items`, and the counts on the run itself ──

/** How many items a run has, stored with it: reading costs the same for ten and a million. */
export type ItemCounts = {
  readonly total: number;
  readonly byOutcome: Readonly<Record<string, number>>;
};

export type RunItem = {
  readonly key: string;
  /** `ok` or a name that the handler gives; `failed`: it threw, and a later attempt retries it. */
  readonly outcome: string;
  /** The attempt that did the item, or that failed last. */
  readonly attempt: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly value: unknown;
  readonly error: StoredError | null;
};

export type ItemListOptions = {
  /** Only items with this outcome. */
  readonly outcome?: string | undefined;
  /** By key, or the slowest first. @default by key */
  readonly sort?: "slowest" | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

/** A page of items. One whose items weigh more than 1 MiB ends early, with a cursor. */
export type ItemPage = { readonly items: readonly RunItem[]; readonly nextCursor: string | null };

export function countsOf({ items, status }: RunRecord): {
  readonly items: ItemCounts;
  readonly partial: boolean;
} {
  const outcomes = Object.keys(items).sort();
  const byOutcome = Object.fromEntries(outcomes.map((name) => [name, items[name] as number]));
  const total = outcomes.reduce((sum, name) => sum + (items[name] as number), 0);
  const partial = status === "completed" && (items[FAILED_OUTCOME] ?? 0) > 0;
  return { items: { total, byOutcome }, partial };
}

export async function itemPage(
  store: Store,
  id: string,
  options: ItemListOptions,
): Promise<ItemPage> {
  const { limit, filter } = readOptions(id, options);
  const records = await store.items.list({ ...filter, limit: limit + 1 });
  const { page, last } = pageOf(records, limit);
  const end = page.at(-1);
  const next = last ?? (end?.isFollowed ? end : null);
  return { items: page.map(toItem), nextCursor: next && cursorOf(next) };
}

function readOptions(
  id: string,
  options: ItemListOptions,
): { readonly limit: number; readonly filter: Omit<ItemFilter, "limit"> } {
  const { limit = PAGE_DEFAULT, outcome, sort, cursor } = options;
  const known = ["outcome", "sort", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, known, "runs.items()");
  problems.push(...limitProblems(limit));
  if (sort !== undefined && sort !== "slowest")
    problems.push({ field: "sort", message: 'must be "slowest", or be left out: by key' });
  if (outcome !== undefined && typeof outcome !== "string")
    problems.push({ field: "outcome", message: 'must be a text, for example "failed"' });
  const after = cursor === undefined ? undefined : readCursor(cursor);
  if (after === null) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    limit,
    filter: {
      id,
      sort: sort ?? "key",
      ...(outcome === undefined ? {} : { outcome }),
      ...(after ? { after } : {}),
    },
  };
}

function toItem({ isFollowed: _, ...record }: ItemRecord): RunItem {
  return {
    ...record,
    startedAt: new Date(record.startedAt),
    value: record.value === null ? null : JSON.parse(record.value),
    error: record.error === null ? null : (JSON.parse(record.error) as StoredError),
  };
}

function cursorOf({ key, durationMs }: ItemRecord): string {
  return Buffer.from(JSON.stringify([key, durationMs])).toString("base64url");
}

function readCursor(cursor: unknown): { key: string; durationMs: number } | null {
  try {
    const [key, durationMs] = JSON.parse(Buffer.from(String(cursor), "base64url").toString());
    // PostgreSQL stores no NUL: no item has such a key.
    const isKey = typeof key === "string" && !key.includes("\0");
    return isKey && Number.isSafeInteger(durationMs) ? { key, durationMs } : null;
  } catch {
    return null;
  }
}
