// Rows of our tables to the store's records, the same for both engines: what differs between them
// (big integers as text, JSON parsed or not) ends here.

import {
  ATTEMPT_ENDS,
  MODES,
  type Mode,
  ON_LOST,
  type Policy,
  type TerminalStatus,
} from "../runs/rules/run.js";
import { isSameResult } from "../shared/json.js";
import { splitTags } from "../shared/trace-context.js";
import { isLimited, type Limits, NO_LIMITS, WHOLE_JOB } from "../worker/rules/limits.js";
import type { BatchError, BatchRecord } from "./batches.js";
import type { QueueRecord, Waiting } from "./limits.js";
import { toGlobalPause } from "./pause.js";
import { numberOrNull, type Row, statusOf, TERMINAL_CODES, textOrNull } from "./rows.js";
import type {
  AttemptRecord,
  Claim,
  InstanceAnnouncement,
  JobAnnouncement,
  PollAnswer,
  RemoteAnnouncement,
  RunRecord,
  Settlement,
} from "./store.js";

// What the reaper writes as the error of an attempt. Nobody else writes these texts: by them a run
// that was taken from its holder is told apart from one that its holder settled.
export const LOST_ERROR = JSON.stringify({
  code: "LEASE_EXPIRED",
  name: "LeaseExpired",
  message: "The holder fell silent and its lease expired.",
});
export const TIMEOUT_ERROR = JSON.stringify({
  code: "TIMEOUT",
  name: "TimeoutError",
  message: "The attempt ran for longer than its timeout.",
});
export const CANCEL_ERROR = JSON.stringify({
  code: "CANCEL_ENFORCED",
  name: "CancelEnforced",
  message: "The run was cancelled and its holder did not end it in time.",
});

/** Whether an attempt with this error was taken from its holder, who therefore did not end it. */
export function isTakenAway(error: string | null): boolean {
  return error === LOST_ERROR || error === TIMEOUT_ERROR || error === CANCEL_ERROR;
}

export function modeCode(mode: Mode): number {
  return MODES.indexOf(mode);
}

export function toPolicy(values: readonly number[]): Policy {
  const [leaseMs, timeoutMs, attempts, delayMs, factor, maxMs, jitter, onLost] = values as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return {
    leaseMs,
    timeoutMs,
    retry: { attempts, delayMs, factor, maxMs, jitter },
    onLost: ON_LOST[onLost] ?? "retry",
  };
}

/** The limits of a job, as its row has them. */
export function toLimits(row: Row): Limits {
  const concurrencyLimit = numberOrNull(row.concurrency_limit);
  const rateLimit = numberOrNull(row.rate_limit);
  return {
    concurrency:
      concurrencyLimit === null
        ? null
        : { limit: concurrencyLimit, key: textOrNull(row.concurrency_key) },
    rate:
      rateLimit === null
        ? null
        : { limit: rateLimit, perMs: Number(row.rate_per_ms), key: textOrNull(row.rate_key) },
  };
}

/** The same, on its way to the row. */
export function limitColumns(limits: Limits = NO_LIMITS): Row {
  const { concurrency, rate } = limits;
  return {
    concurrencyLimit: concurrency?.limit ?? null,
    concurrencyKey: concurrency?.key ?? null,
    rateLimit: rate?.limit ?? null,
    ratePerMs: rate?.perMs ?? null,
    rateKey: rate?.key ?? null,
  };
}

export function instanceColumns({ jobs, schedules, works, ...plain }: InstanceAnnouncement) {
  return {
    ...plain,
    jobs: JSON.stringify(jobs.map(({ name }) => name)),
    schedules: JSON.stringify(schedules),
    works: JSON.stringify(works?.jobs ?? []),
    queues: works?.queues ? JSON.stringify(works.queues) : null,
  };
}

/** The row of a remote worker. */
export function remoteColumns({ works, ...plain }: RemoteAnnouncement) {
  const queues = works.queues && JSON.stringify(works.queues);
  return { ...plain, works: JSON.stringify(works.jobs), queues };
}

/** A job as it was announced. `policy` is a list, however the engine tells it. */
export function toAnnouncement(row: Row, policy: readonly number[]): JobAnnouncement {
  const limits = toLimits(row);
  return {
    name: String(row.name),
    queue: String(row.queue),
    priority: Number(row.priority),
    version: Number(row.version),
    policy: toPolicy(policy),
    ...(isLimited(limits) ? { limits } : {}),
    ...(row.input_schema === null ? {} : { inputSchema: String(row.input_schema) }),
  };
}

/** What keeps a pending run, from what the tables say about it. */
export function toWaiting(row: Row): Waiting {
  const now = Number(row.now);
  const wakeAt = numberOrNull(row.wake_at);
  // A gate that is free keeps nothing: the next poll of any instance opens it.
  if (row.gate === "schedule" && row.is_kept) return { reason: "schedule" };
  if (row.gate === null && wakeAt !== null && wakeAt > now)
    return { reason: "time", until: wakeAt };
  const halt = toGlobalPause({ paused: row.paused });
  if (halt) return { reason: "paused", since: halt.since, note: halt.note };
  if (row.paused_at !== null) {
    const since = Number(row.paused_at);
    return {
      reason: "paused_queue",
      queue: String(row.queue),
      since,
      note: textOrNull(row.pause_note),
    };
  }
  const { concurrency, rate } = toLimits(row);
  const ahead = Number(row.ahead ?? 0);
  const held = Number(row.held);
  const keyFor = (path: string | null) => (path === null ? WHOLE_JOB : String(row.key));
  if (row.gate === "flow" && concurrency && held >= concurrency.limit) {
    const { limit, key } = concurrency;
    return { reason: "concurrency", key: keyFor(key), limit, held, ahead };
  }
  if (row.gate === "flow" && rate && Number(row.used) >= rate.limit) {
    const { limit, perMs, key } = rate;
    const until = Number(row.first_at ?? now) + perMs;
    return { reason: "rate", key: keyFor(key), limit, perMs, until, ahead };
  }
  return { reason: "worker", instances: Number(row.instances) };
}

export function toQueueRecord(row: Row): QueueRecord {
  return {
    name: String(row.name),
    ready: Number(row.ready),
    waiting: Number(row.waiting),
    running: Number(row.running),
    pausedAt: numberOrNull(row.paused_at),
    pauseNote: textOrNull(row.pause_note),
  };
}

/** Equal policies are one row: this text is how they are recognised. */
export function policyDigest(policy: Policy): string {
  const { retry } = policy;
  return JSON.stringify([
    policy.leaseMs,
    policy.timeoutMs,
    retry.attempts,
    retry.delayMs,
    retry.factor,
    retry.maxMs,
    retry.jitter,
    ON_LOST.indexOf(policy.onLost),
  ]);
}

type ClaimRow = Omit<Claim, "policy" | "runs"> & {
  readonly policy: readonly number[];
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
  readonly runs:
    | readonly [
        string,
        string,
        number,
        number,
        number,
        number,
        number,
        // Left out where there is none of them.
        (number | null)?,
        (number | null)?,
        (number | null)?,
        (readonly string[] | null)?,
      ][]
    | null;
};

const NO_TAGS: readonly string[] = [];

/** How many runs came with these claims. */
export function countOf(claims: readonly Claim[]): number {
  return claims.reduce((sum, { runs }) => sum + runs.length, 0);
}

export function toClaim(row: ClaimRow): Claim {
  const { refunds, laters, extraAttempts } = row;
  const runs = (row.runs ?? []).map(
    ([
      id,
      input,
      mode,
      version,
      priority,
      createdAt,
      dueAt,
      nominalAt = null,
      schedule = null,
      batch = null,
      tags = null,
    ]) => {
      const run = {
        id,
        input,
        mode: MODES[mode] as Mode,
        version,
        priority,
        createdAt,
        dueAt,
        nominalAt,
        schedule,
        batch,
        tags: NO_TAGS,
        refunds,
        laters,
        extraAttempts,
      };
      return tags === null ? run : { ...run, ...splitTags(tags) };
    },
  );
  return {
    fence: row.fence,
    job: row.job,
    queue: row.queue,
    attempt: row.attempt,
    policy: toPolicy(row.policy),
    leaseMs: row.leaseMs,
    isSuspect: row.isSuspect,
    isLimited: row.isLimited,
    runs,
  };
}

/** The longest wait that a table can hold without doubt: a hundred years. */
const DELAY_MAX_MS = 36_525 * 86_400_000;

/** A wait that is no number would leave the run in no table at all: it is none. */
export function wholeDelayMs(delayMs: number): number {
  return Number.isNaN(delayMs) ? 0 : Math.min(Math.max(0, Math.round(delayMs)), DELAY_MAX_MS);
}

/**
 * Whether the end that history knows of a grant is the one that this settlement asks for: then it
 * was applied before and its answer was lost. Any other end means that the fence had passed on; a
 * reclaimed run is told apart by the error that only the reaper writes.
 */
export function isSameEnd(
  settlement: Settlement,
  recorded: {
    readonly ended: number;
    readonly error: string | null;
    readonly result: string | null;
  },
): boolean {
  if (recorded.error !== settlement.error) return false;
  const cancelled = [ATTEMPT_ENDS.indexOf("cancelled"), 10 + TERMINAL_CODES.cancelled];
  switch (settlement.to) {
    case "completed":
      // Another result is another end: the first one stays, and the caller learns of it.
      return (
        recorded.ended === 10 + TERMINAL_CODES.completed &&
        isSameResult(settlement.result, recorded.result)
      );
    case "cancelled":
      return cancelled.includes(recorded.ended);
    case "failed":
      return [ATTEMPT_ENDS.indexOf("failed"), 10 + TERMINAL_CODES.failed, ...cancelled].includes(
        recorded.ended,
      );
    case "pending":
      return [ATTEMPT_ENDS.indexOf(settlement.end), ...cancelled].includes(recorded.ended);
  }
}

/** How an attempt ended, by the history of its run. */
export function toEnding(row: Row) {
  return {
    ended: Number(row.ended),
    error: textOrNull(row.error),
    result: textOrNull(row.result),
  };
}

/** A page of a list: its last record says where the page ended before the list did. */
export function toRunRecords(rows: readonly Row[]): readonly RunRecord[] {
  const isShort = rows.length > 0 && Number(rows[0]?.found_count) > rows.length;
  return rows.map((row, at) =>
    isShort && at === rows.length - 1
      ? { ...toRunRecord(row), isFollowed: true }
      : toRunRecord(row),
  );
}

export function toRunRecord(row: Row): RunRecord {
  return {
    id: String(row.id),
    job: String(row.job),
    queue: String(row.queue),
    status: statusOf(Number(row.status)),
    mode: MODES[Number(row.mode)] as Mode,
    priority: Number(row.priority),
    attempt: Number(row.attempt),
    attemptsMax: Number(row.attempts_max),
    fence: numberOrNull(row.fence),
    input: String(row.input),
    result: textOrNull(row.result),
    error: textOrNull(row.error),
    schedule: textOrNull(row.schedule),
    parent: textOrNull(row.parent),
    nominalAt: numberOrNull(row.nominal_at),
    createdAt: Number(row.created_at),
    dueAt: Number(row.due_at),
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
    updatedAt: Number(row.updated_at),
    heartbeatAt: numberOrNull(row.heartbeat_at),
    holder: textOrNull(row.holder),
    leaseUntil: numberOrNull(row.lease_until),
    key: textOrNull(row.key),
    ...splitTags(listOf(row.tags)),
    cancelRequestedAt: numberOrNull(row.cancel_requested_at),
    items: countsOf(row.items),
  };
}

/** One row that somebody damaged must not hide its neighbours: what cannot be read is shown as nothing. */
function listOf(json: unknown): readonly string[] {
  const found = parsedOr(json, []);
  return Array.isArray(found) ? found.map(String) : [];
}

function countsOf(json: unknown): Record<string, number> {
  const found = parsedOr(json, {});
  return typeof found === "object" && found !== null ? (found as Record<string, number>) : {};
}

function parsedOr(json: unknown, otherwise: unknown): unknown {
  if (json === null || json === undefined) return otherwise;
  try {
    return JSON.parse(String(json)) as unknown;
  } catch {
    return otherwise;
  }
}

/** Codes below ten are attempts that did not end their run; the outcome's status follows at ten. */
export function toAttemptRecord(row: Row): AttemptRecord {
  const code = Number(row.ended);
  return {
    attempt: Number(row.attempt),
    fence: Number(row.fence),
    holder: String(row.holder ?? "unknown"),
    end: code < 10 ? (ATTEMPT_ENDS[code] ?? "failed") : (statusOf(code - 10) as TerminalStatus),
    startedAt: Number(row.started_at),
    endedAt: Number(row.ended_at),
    error: textOrNull(row.error),
  };
}

export function toBatchRecord(row: Row): BatchRecord {
  return {
    name: String(row.name),
    scheduled: Number(row.scheduled),
    errors: JSON.parse(String(row.errors)) as BatchError[],
    completed: Number(row.completed),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
    after: textOrNull(row.then_run),
  };
}

/** Reports to a paused or quiet instance that there is nothing to claim or to fire. */
export function heeding(answer: PollAnswer): PollAnswer {
  if (answer.halt === null) return answer;
  return {
    ...answer,
    hasReady: false,
    hasSuspect: false,
    hasLimited: false,
    hasDueSchedule: false,
    hasFreeGate: false,
  };
}
