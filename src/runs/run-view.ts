// Runs as users see them, of what the store knows.

import { readStoredError, type StoredError } from "../shared/failure.js";
import { readStored } from "../shared/json.js";
import { pageOf } from "../shared/paging.js";
import { parseTraceparent } from "../shared/trace-context.js";
import type { AttemptRecord, RunRecord, Store } from "../store/store.js";
import { countsOf, type ItemCounts } from "./item-view.js";
import type { WaitingFor } from "./pending-reason.js";
import type { Mode, RunId, RunStatus } from "./rules/run.js";
import { type RunProgress, toProgress } from "./run-records.js";

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
  /** Of the trace that it belongs to, where it was traced. */
  readonly traceId: string | null;
  /** It is completed, and some of its items failed. */
  readonly partial: boolean;
  readonly items: ItemCounts;
  /** Null: its handler told nothing. */
  readonly progress: RunProgress | null;
};

/** One run, looked at by itself. */
export type RunDetails = Run & {
  /** Why it does not begin; null where it is not pending. */
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
  const told = records.length === 0 ? [] : await store.progressOf(records.map(({ id }) => id));
  const known = new Map(told.map((each) => [each.id, toProgress(each)]));
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
