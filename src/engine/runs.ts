// `holdfast.runs`: looking at runs, and an operator's few verbs on them.

import { type Actor, type AuditEntry, auditEntry } from "../core/audit.js";
import { type Duration, durationMs } from "../core/duration.js";
import {
  ConfigurationError,
  RunNotFoundError,
  StoppedError,
  WaitTimeoutError,
} from "../core/errors.js";
import type { StoredError } from "../core/failure.js";
import { firstIdAt, isUuid } from "../core/id.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../core/paging.js";
import type { Clock, Ports, Timer } from "../core/ports.js";
import { MODES, type Mode, RUN_STATUSES, type RunId, type RunStatus } from "../core/run.js";
import { refuseUnknownMembers } from "../core/suggest.js";
import { parseTraceparent } from "../core/trace.js";
import type { AttemptRecord, CancelAnswer, RetryAnswer, RunRecord, Store } from "../store/store.js";
import type { Desk } from "./desk.js";
import { type RunExchange, toExchanges } from "./exchange.js";
import {
  countsOf,
  type ItemCounts,
  type ItemListOptions,
  type ItemPage,
  itemPage,
} from "./item-view.js";
import { reviveUnderSchedule } from "./revive.js";
import {
  type Batch,
  type ChildListOptions,
  readChildFilter,
  retryFailedChildren,
  toBatch,
} from "./run-children.js";
import {
  type RunLogOptions,
  type RunLogPage,
  type RunProgress,
  readLogOptions,
  toLogPage,
  toProgress,
} from "./run-kept.js";
import { instantMs } from "./schedule-options.js";
import { toWaitingFor, type WaitingFor } from "./waiting-for.js";

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

export type RunListOptions = {
  readonly status?: RunStatus;
  readonly job?: string;
  /** The name of the schedule that made them. */
  readonly schedule?: string;
  readonly mode?: Mode;
  readonly tag?: string;
  /** Part of the input, or a whole key or id. */
  readonly text?: string;
  /** Stored from then on, by the time in their ids. */
  readonly from?: Date | string;
  /** Stored until then. */
  readonly to?: Date | string;
  /** @default 50, at most 1,000 */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
};

export type RunPage = { readonly runs: readonly Run[]; readonly nextCursor: string | null };

/** Not an id of any run: options are checked also where there is none. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";
const LIST_MEMBERS = [
  ...["status", "job", "schedule", "mode", "tag", "text", "from", "to", "limit", "cursor"],
];

export class Runs {
  readonly #store: () => Promise<Store>;
  readonly #waiter: Waiter;
  readonly #ports: Ports;
  readonly #desk: Desk;
  readonly #onChanged: () => void;
  readonly #actor: Actor;

  constructor(params: {
    readonly store: () => Promise<Store>;
    readonly actor: Actor;
    readonly waiter: Waiter;
    readonly ports: Ports;
    readonly desk: Desk;
    /** A run that was cancelled or revived may free another one, or be due itself. */
    readonly onChanged: () => void;
  }) {
    this.#store = params.store;
    this.#waiter = params.waiter;
    this.#ports = params.ports;
    this.#desk = params.desk;
    this.#onChanged = params.onChanged;
    this.#actor = params.actor;
  }

  #audit(verb: string, id: RunId, change?: string): AuditEntry {
    const words = change === undefined ? {} : { change };
    return auditEntry(this.#actor, { verb, noun: "run", name: id.toLowerCase(), ...words });
  }

  /** One run, with why it does not begin where it waits; null: there is none. */
  async get(id: RunId): Promise<RunDetails | null> {
    const run = await this.#find(id);
    if (!run) return null;
    const store = await this.#store();
    const waiting = run.status === "pending" ? await store.waitingFor(run.id) : null;
    return { ...run, waitingFor: toWaitingFor(waiting) };
  }

  async #find(id: RunId): Promise<Run | null> {
    if (!isUuid(id)) return null;
    const store = await this.#store();
    const known = id.toLowerCase();
    const [record, [told]] = await Promise.all([store.run(known), store.progressOf([known])]);
    return record ? toRun(record, told ? toProgress(told) : null) : null;
  }

  /** Newest first. */
  async list(options: RunListOptions = {}): Promise<RunPage> {
    const { limit = PAGE_DEFAULT, cursor, status, mode } = options;
    const problems = refuseUnknownMembers(options, LIST_MEMBERS, "runs.list()");
    problems.push(...limitProblems(limit));
    if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
    if (status !== undefined && !RUN_STATUSES.includes(status)) {
      problems.push({ field: "status", message: `must be one of ${RUN_STATUSES.join(", ")}` });
    }
    if (mode !== undefined && !MODES.includes(mode))
      problems.push({ field: "mode", message: `must be one of ${MODES.join(", ")}` });
    if (problems.length > 0) throw new ConfigurationError(problems);
    const { job, schedule, tag, text, from, to } = options;
    const bounds = idBounds({
      since: from === undefined ? undefined : instantMs(from, "runs.list().from"),
      until: to === undefined ? undefined : instantMs(to, "runs.list().to"),
      cursor,
    });
    const store = await this.#store();
    const records = await store.runs({
      limit: limit + 1,
      ...(status === undefined ? {} : { status }),
      ...(mode === undefined ? {} : { mode }),
      ...(job === undefined ? {} : { job }),
      ...(schedule === undefined ? {} : { schedule }),
      ...(tag === undefined ? {} : { tag }),
      ...(text === undefined ? {} : { text }),
      ...bounds,
    });
    return runPage(store, records, limit);
  }

  /** The runs that this one made, newest first; what comes after a batch is named by its batch. */
  async children(id: RunId, options: ChildListOptions = {}): Promise<RunPage> {
    const filter = readChildFilter(id.toLowerCase(), options);
    if (!isUuid(id)) return { runs: [], nextCursor: null };
    const { limit } = filter;
    const store = await this.#store();
    return runPage(store, await store.children({ ...filter, limit: limit + 1 }), limit);
  }

  /** The batches that this run made, in their order. */
  async batches(id: RunId): Promise<readonly Batch[]> {
    if (!isUuid(id)) return [];
    return (await (await this.#store()).batches(id.toLowerCase())).map(toBatch);
  }

  /** One attempt more for every failed child; answers how many there were. */
  async retryFailed(
    id: RunId,
    options: { readonly batch?: string } = {},
  ): Promise<{ readonly retried: number }> {
    if (!isUuid(id)) return { retried: 0 };
    const store = await this.#store();
    const { batch } = options;
    const words = batch === undefined ? undefined : `batch ${batch}`;
    const audit = this.#audit("retry_failed", id, words);
    const retried = await retryFailedChildren(store, id.toLowerCase(), options, audit);
    if (retried > 0) {
      store.wake();
      this.#onChanged();
    }
    return { retried };
  }

  /** Every attempt so far, the first one first. */
  async attempts(id: RunId): Promise<readonly RunAttempt[]> {
    if (!isUuid(id)) return [];
    const records = await (await this.#store()).attempts(id.toLowerCase());
    return records.map((record) => ({
      ...record,
      startedAt: new Date(record.startedAt),
      endedAt: new Date(record.endedAt),
      error: toError(record.error),
    }));
  }

  /** Every time that it was sent to a service elsewhere, with what came back; the first one first. */
  async exchanges(id: RunId): Promise<readonly RunExchange[]> {
    if (!isUuid(id)) return [];
    const store = await this.#store();
    const replies = await store.replies(id.toLowerCase());
    return replies.length === 0 ? [] : toExchanges(replies, await store.attempts(id.toLowerCase()));
  }

  /** Its items, by key or the slowest first. */
  async items(id: RunId, options: ItemListOptions = {}): Promise<ItemPage> {
    const store = await this.#store();
    return itemPage(store, isUuid(id) ? id.toLowerCase() : NO_RUN, options);
  }

  /** The log lines that were kept with it, the oldest first, over all attempts. */
  async logs(id: RunId, options: RunLogOptions = {}): Promise<RunLogPage> {
    const { after, limit } = readLogOptions(options);
    if (!isUuid(id)) return toLogPage([], null);
    const records = await (await this.#store()).logs({ id: id.toLowerCase(), after, limit });
    return toLogPage(records, options.after ?? null);
  }

  /** A pending run at once; a running one is told to stop and is cancelled when it does. */
  async cancel(id: RunId): Promise<CancelAnswer> {
    if (!isUuid(id)) return "not_found";
    const store = await this.#store();
    const answer = await store.cancel({
      id: id.toLowerCase(),
      chance: this.#ports.chance.next(),
      audit: this.#audit("cancel", id),
    });
    this.#onChanged();
    return answer;
  }

  /** One attempt more for a failed or cancelled run. */
  async retry(id: RunId): Promise<RetryAnswer> {
    if (!isUuid(id)) return "not_found";
    const store = await this.#store();
    const run = await store.run(id.toLowerCase());
    const audit = this.#audit("retry", id);
    const schedule = run?.schedule ?? null;
    const answer =
      run === null || schedule === null
        ? await store.retry({ id: id.toLowerCase(), audit })
        : await reviveUnderSchedule({ store, run, schedule, desk: this.#desk, audit });
    if (answer === "pending") {
      store.wake();
      this.#onChanged();
    }
    return answer;
  }

  /** Removes a run that has ended, with its history. */
  async delete(id: RunId): Promise<"removed" | "not_terminal" | "not_found"> {
    if (!isUuid(id)) return "not_found";
    const audit = this.#audit("delete", id);
    return (await this.#store()).remove({ id: id.toLowerCase(), audit });
  }

  /** Resolves with the run once it has ended, also when it failed. */
  async wait(
    id: RunId,
    options: { readonly timeout?: Duration; readonly signal?: AbortSignal } = {},
  ): Promise<RunDetails> {
    const timeoutMs =
      options.timeout === undefined ? null : durationMs(options.timeout, "wait().timeout");
    const found = await this.#find(id);
    if (!found) throw new RunNotFoundError(id);
    if (found.finishedAt) return { ...found, waitingFor: null };
    await this.#waiter.terminal({ id: found.id, timeoutMs, signal: options.signal });
    const ended = await this.get(id);
    if (!ended) throw new RunNotFoundError(id);
    return ended;
  }
}

const WAIT_FIRST_MS = 20;
const WAIT_MAX_MS = 500;

/** Watches runs until they end: at once when this instance settles them, else by asking for all together. */
export class Waiter {
  readonly #store: () => Promise<Store>;
  readonly #clock: Clock;
  readonly #waiting = new Map<RunId, Set<(error?: Error) => void>>();
  #timer: Timer | null = null;
  #lookAtMs = 0;
  #everyMs = WAIT_FIRST_MS;
  #isClosed = false;

  constructor(params: { readonly store: () => Promise<Store>; readonly clock: Clock }) {
    this.#store = params.store;
    this.#clock = params.clock;
  }

  terminal(params: {
    readonly id: RunId;
    readonly timeoutMs: number | null;
    readonly signal: AbortSignal | undefined;
  }): Promise<void> {
    const { id, timeoutMs, signal } = params;
    // The first look at the run may have been answered only after the stop.
    if (this.#isClosed) return Promise.reject(new StoppedError("wait"));
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
        waiting.delete(onEnd);
        if (waiting.size === 0) this.#waiting.delete(id);
        settle();
      };
      const onEnd = (error?: Error) => finish(() => (error ? reject(error) : resolve()));
      const onAbort = () => finish(() => reject(signal?.reason));
      const timer =
        timeoutMs === null
          ? null
          : this.#clock.timer(timeoutMs, () =>
              finish(() => reject(new WaitTimeoutError(id, timeoutMs))),
            );
      const waiting = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, waiting.add(onEnd));
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) return onAbort();
      this.#everyMs = WAIT_FIRST_MS;
      this.#ask(WAIT_FIRST_MS);
    });
  }

  /** This instance has settled these; whether they ended is for the database to say. */
  settled(runs: readonly { readonly id: RunId }[]): void {
    if (this.#waiting.size > 0 && runs.some(({ id }) => this.#waiting.has(id))) this.#ask(0);
  }

  /** Nobody will look any more: whoever still waits is told. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const enders of [...this.#waiting.values()])
      for (const end of [...enders]) end(new StoppedError("wait"));
  }

  /** The sooner look wins, or those who come would keep those who wait from ever being looked for. */
  #ask(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#timer && this.#lookAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#lookAtMs = atMs;
    this.#timer = this.#clock.timer(delayMs, () => {
      this.#timer = null;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    if (this.#waiting.size === 0) return;
    try {
      const ended = await (await this.#store()).terminal([...this.#waiting.keys()]);
      for (const id of ended) for (const end of [...(this.#waiting.get(id) ?? [])]) end();
    } catch {
      // The next look asks again; a caller who set a time limit hears of it.
    }
    if (this.#waiting.size === 0) return;
    this.#everyMs = Math.min(WAIT_MAX_MS, this.#everyMs * 1.5);
    this.#ask(this.#everyMs);
  }
}

/** Ids begin with the time at which they were made, so a stretch of time is a stretch of ids. */
function idBounds(params: {
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly cursor: string | undefined;
}): { readonly before?: RunId; readonly since?: RunId } {
  const { since, until } = params;
  const cursor = params.cursor?.toLowerCase();
  const end = until === undefined ? undefined : firstIdAt(until + 1);
  const before = [cursor, end].filter((id) => id !== undefined).sort()[0];
  return {
    ...(before === undefined ? {} : { before }),
    ...(since === undefined ? {} : { since: firstIdAt(since) }),
  };
}

async function runPage(
  store: Store,
  records: readonly RunRecord[],
  limit: number,
): Promise<RunPage> {
  const { page, last } = pageOf(records, limit);
  return { runs: await withProgress(store, page), nextCursor: last?.id ?? null };
}

async function withProgress(store: Store, records: readonly RunRecord[]): Promise<Run[]> {
  const told = records.length === 0 ? [] : await store.progressOf(records.map(({ id }) => id));
  const known = new Map(told.map((each) => [each.id, toProgress(each)]));
  return records.map((record) => toRun(record, known.get(record.id) ?? null));
}

function toRun(record: RunRecord, progress: RunProgress | null): Run {
  const { startedAt, finishedAt } = record;
  const { attemptsMax: _, trace, ...shown } = record;
  return {
    ...shown,
    input: JSON.parse(record.input),
    result: record.result === null ? null : JSON.parse(record.result),
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

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function toError(json: string | null): StoredError | null {
  return json === null ? null : (JSON.parse(json) as StoredError);
}
