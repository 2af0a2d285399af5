// Gives users `holdfast.runs`: reads runs, and cancels, retries, deletes and awaits them. This folder stores requests for
// work; it must never execute one.

import { type Actor, type AuditEntry, auditEntry } from "../operations/rules/audit.js";
import { reviveUnderSchedule } from "../schedules/trigger.js";
import type { ScheduleUpdater } from "../schedules/updater.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, RunAmbiguousError, RunNotFoundError } from "../shared/errors.js";
import { findId, firstIdAt, isUuid } from "../shared/id.js";
import { requireName } from "../shared/names.js";
import { instantMs } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { BatchRecord, ChildFilter } from "../store/batches.js";
import type { CancelResult, RetryResult, RunFilter } from "../store/runs/runs.js";
import type { Store } from "../store/store.js";
import { type RunExchange, toExchanges } from "./dispatch-log.js";
import { toWaitingFor } from "./pending-reason.js";
import { MODES, type Mode, RUN_STATUSES, type RunId, type RunStatus } from "./rules/run.js";
import { type RunStepOptions, type RunStepPage, stepPage } from "./step-view.js";
import {
  type ItemListOptions,
  type ItemPage,
  itemPage,
  type Run,
  type RunAttempt,
  type RunDetails,
  type RunLogOptions,
  type RunLogPage,
  type RunPage,
  readLogOptions,
  runPage,
  toAttempt,
  toLogPage,
  toProgress,
  toRun,
} from "./view.js";
import type { Waiter } from "./waiter.js";

/** Not the id of any run: lets options be checked without a run. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";

export class Runs {
  readonly #store: () => Promise<Store>;
  readonly #waiter: Waiter;
  readonly #ports: Ports;
  readonly #updater: ScheduleUpdater;
  readonly #onChanged: () => void;
  readonly #actor: Actor;

  constructor(params: {
    readonly store: () => Promise<Store>;
    readonly actor: Actor;
    readonly waiter: Waiter;
    readonly ports: Ports;
    readonly updater: ScheduleUpdater;
    /** A cancelled or revived run may unblock another one, or be due itself. */
    readonly onChanged: () => void;
  }) {
    this.#store = params.store;
    this.#waiter = params.waiter;
    this.#ports = params.ports;
    this.#updater = params.updater;
    this.#onChanged = params.onChanged;
    this.#actor = params.actor;
  }

  #audit(verb: string, id: RunId, change?: string): AuditEntry {
    const detail = change === undefined ? {} : { change };
    return auditEntry(this.#actor, { verb, noun: "run", name: id, ...detail });
  }

  /** One run, with the reason if it is pending; null: there is none. */
  async get(id: RunId): Promise<RunDetails | null> {
    const run = await this.#find(id);
    if (!run) return null;
    const store = await this.#store();
    const waiting = run.status === "pending" ? await store.runs.pendingReason(run.id) : null;
    return { ...run, waitingFor: toWaitingFor(waiting) };
  }

  async #find(id: RunId): Promise<Run | null> {
    const known = await this.#idOf(id);
    if (known === null) return null;
    const store = await this.#store();
    const [record, [progress]] = await Promise.all([
      store.runs.get(known),
      store.progress.of([known]),
    ]);
    return record ? toRun(record, progress ? toProgress(progress) : null) : null;
  }

  /** Newest first. */
  async list(options: RunListOptions = {}): Promise<RunPage> {
    const filter = readRunFilter(options);
    const { limit } = filter;
    const store = await this.#store();
    return runPage(store, await store.runs.list({ ...filter, limit: limit + 1 }), limit);
  }

  /** The runs that this one made, newest first; the run after a batch is named by its batch. */
  async children(id: RunId, options: ChildListOptions = {}): Promise<RunPage> {
    const known = await this.#idOf(id);
    const filter = readChildFilter(known ?? NO_RUN, options);
    if (known === null) return { runs: [], nextCursor: null };
    const { limit } = filter;
    const store = await this.#store();
    return runPage(store, await store.batches.children({ ...filter, limit: limit + 1 }), limit);
  }

  /** The batches that this run made, in their order. */
  async batches(id: RunId): Promise<readonly Batch[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    return (await (await this.#store()).batches.list(known)).map(toBatch);
  }

  /** Grants one more attempt to every failed child; returns their number. */
  async retryFailed(
    id: RunId,
    options: { readonly batch?: string } = {},
  ): Promise<{ readonly retried: number }> {
    const known = await this.#idOf(id);
    if (known === null) return { retried: 0 };
    const store = await this.#store();
    const { batch } = options;
    const change = batch === undefined ? undefined : `batch ${batch}`;
    const audit = this.#audit("retry_failed", known, change);
    const retried = await retryFailedChildren(store, known, options, audit);
    if (retried > 0) {
      store.wake();
      this.#onChanged();
    }
    return { retried };
  }

  /** Every attempt so far, oldest first. */
  async attempts(id: RunId): Promise<readonly RunAttempt[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    return (await (await this.#store()).runs.attempts(known)).map(toAttempt);
  }

  /** Every dispatch of this run to a remote service with its response, oldest first. */
  async exchanges(id: RunId): Promise<readonly RunExchange[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    const store = await this.#store();
    const replies = await store.logs.replies(known);
    return replies.length === 0 ? [] : toExchanges(replies, await store.runs.attempts(known));
  }

  /** Its items, by key or the slowest first. */
  async items(id: RunId, options: ItemListOptions = {}): Promise<ItemPage> {
    return itemPage(await this.#store(), (await this.#idOf(id)) ?? NO_RUN, options);
  }

  /** Its steps and waits: finished ones in the order in which they were recorded, then the open ones. */
  async steps(id: RunId, options: RunStepOptions = {}): Promise<RunStepPage> {
    return stepPage(await this.#store(), (await this.#idOf(id)) ?? NO_RUN, options);
  }

  /** Its kept log lines of all attempts, oldest first. */
  async logs(id: RunId, options: RunLogOptions = {}): Promise<RunLogPage> {
    const { after, limit } = readLogOptions(options);
    const known = await this.#idOf(id);
    if (known === null) return toLogPage([], { after: null, limit });
    const records = await (await this.#store()).logs.list({ id: known, after, limit });
    return toLogPage(records, { after: options.after ?? null, limit });
  }

  /** Cancels a pending run at once; a running one gets the signal to stop, and is cancelled when it ends. */
  async cancel(id: RunId): Promise<CancelResult> {
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    const store = await this.#store();
    const random = this.#ports.random.next();
    const result = await store.runs.cancel({
      id: known,
      random,
      audit: this.#audit("cancel", known),
    });
    this.#onChanged();
    return result;
  }

  /**
   * Grants one more attempt to a failed or cancelled run. Its finished steps stay, and failed runs that it called get one
   * more attempt too. With `fromStep` that step and all recorded after it are forgotten and done again; items stay.
   */
  async retry(id: RunId, options: RetryRunOptions = {}): Promise<RetryResult> {
    const fromStep = readRetryRun(options);
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    const store = await this.#store();
    const run = await store.runs.get(known);
    const audit = this.#audit("retry", known, fromStep === null ? undefined : `from ${fromStep}`);
    if (run?.status === "failed" || run?.status === "cancelled")
      await this.#reopen(store, known, fromStep);
    const schedule = run?.schedule ?? null;
    const result =
      run === null || schedule === null
        ? await store.runs.retry({ id: known, audit })
        : await reviveUnderSchedule({ store, run, schedule, updater: this.#updater, audit });
    if (result === "pending") {
      store.wake();
      this.#onChanged();
    }
    return result;
  }

  /** Prepares the steps of a run for its retry. A second call after a failure finishes the rest. */
  async #reopen(store: Store, id: RunId, fromStep: string | null): Promise<void> {
    const children = await store.steps.reopen({ id, fromStep });
    if (children === null) throw unknownStep(fromStep as string);
    const random = this.#ports.random.next();
    for (const child of children) {
      if (fromStep === null) await store.runs.retry({ id: child });
      else await store.runs.cancel({ id: child, random });
    }
    if (fromStep === null) await store.steps.endCalls({ id });
  }

  /** Removes a run that has ended, with its history. */
  async delete(id: RunId): Promise<"removed" | "not_terminal" | "not_found"> {
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    return (await this.#store()).runs.remove({ id: known, audit: this.#audit("delete", known) });
  }

  /** Resolves with the run once it has ended, even if it failed. */
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
    const ended = await this.get(found.id);
    if (!ended) throw new RunNotFoundError(id);
    return ended;
  }

  /**
   * The stored id for a full id, or for six or more characters of its beginning or end. Null: there is no such run. Throws
   * if several match.
   */
  #idOf(id: RunId): Promise<RunId | null> {
    return findId(id, {
      withDigits: async (asked) => (await this.#store()).runs.withDigits(asked),
      ambiguous: (candidates, hasMore) => new RunAmbiguousError(id, candidates, hasMore),
    });
  }
}

export type RetryRunOptions = {
  /** The name of a finished step: it and all recorded after it are done again. @default every finished step stays */
  readonly fromStep?: string | undefined;
};

function readRetryRun(options: RetryRunOptions): string | null {
  const problems = refuseUnknownMembers(options, ["fromStep"], "runs.retry()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { fromStep } = options;
  return fromStep === undefined ? null : requireName(fromStep, "runs.retry().fromStep");
}

function unknownStep(name: string): ConfigurationError {
  const message = `must be the name of a step or wait that has ended, but the run has none named "${name}"`;
  return new ConfigurationError([{ field: "runs.retry().fromStep", message }]);
}

// ── the options of runs.list ─────────────────────────────────────────────────────────────────────

export type RunListOptions = {
  readonly status?: RunStatus | undefined;
  /** Only runs that are suspended: they sleep, or wait for a signal or for a run that they called. */
  readonly waiting?: boolean | undefined;
  readonly job?: string | undefined;
  /** The name of the schedule that made them. */
  readonly schedule?: string | undefined;
  readonly mode?: Mode | undefined;
  readonly tag?: string | undefined;
  /** Part of the input, a whole key, or a run's id or six or more characters of its beginning or end. */
  readonly text?: string | undefined;
  /** Stored from then on, by the time in their ids. */
  readonly from?: Date | string | undefined;
  /** Stored until then. */
  readonly to?: Date | string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

const MEMBERS = [
  ...[
    "status",
    "waiting",
    "job",
    "schedule",
    "mode",
    "tag",
    "text",
    "from",
    "to",
    "limit",
    "cursor",
  ],
];

/** Throws one error that names every wrong option. */
function readRunFilter(options: RunListOptions): RunFilter {
  const { limit = PAGE_DEFAULT, cursor, status, mode, waiting = false } = options;
  const problems = refuseUnknownMembers(options, MEMBERS, "runs.list()");
  if (typeof waiting !== "boolean")
    problems.push({ field: "waiting", message: "must be true or false" });
  else if (waiting && status !== undefined && status !== "pending")
    problems.push({
      field: "status",
      message: 'must be "pending" or be left out with waiting: suspended runs are pending',
    });
  problems.push(...limitProblems(limit));
  if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
  if (status !== undefined && !RUN_STATUSES.includes(status))
    problems.push({ field: "status", message: `must be one of ${RUN_STATUSES.join(", ")}` });
  if (mode !== undefined && !MODES.includes(mode))
    problems.push({ field: "mode", message: `must be one of ${MODES.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { job, schedule, tag, text, from, to } = options;
  const bounds = idBounds({
    since: from === undefined ? undefined : instantMs(from, "runs.list().from"),
    until: to === undefined ? undefined : instantMs(to, "runs.list().to"),
    cursor,
  });
  return {
    limit,
    ...(status === undefined ? {} : { status }),
    ...(waiting ? { isAsleep: true } : {}),
    ...(mode === undefined ? {} : { mode }),
    ...(job === undefined ? {} : { job }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(tag === undefined ? {} : { tag }),
    ...(text === undefined ? {} : { text }),
    ...bounds,
  };
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

// ── children of a run ──────────────────────────────────────────────────────────────────────────────

/** The state of a batch: entries without a child, and the outcomes of the others so far. */
export type Batch = Omit<BatchRecord, "after"> & {
  /** The run that was made when the last child had ended; null before, or if none was requested. */
  readonly then: RunId | null;
};

export type ChildListOptions = {
  readonly status?: RunStatus | undefined;
  /** Only children of the batch of this name. */
  readonly batch?: string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

/** How many are revived in one transaction. */
const RETRY_BATCH = 1_000;

function readChildFilter(parent: RunId, options: ChildListOptions): ChildFilter {
  const { status, batch, limit = PAGE_DEFAULT, cursor } = options;
  const known = ["status", "batch", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, known, "runs.children()");
  problems.push(...limitProblems(limit));
  if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
  if (status !== undefined && !RUN_STATUSES.includes(status))
    problems.push({ field: "status", message: `must be one of ${RUN_STATUSES.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    parent,
    limit,
    ...(status === undefined ? {} : { status }),
    ...(batch === undefined ? {} : { batch: requireName(batch, "batch") }),
    ...(cursor === undefined ? {} : { before: cursor.toLowerCase() }),
  };
}

function toBatch({ after, ...counts }: BatchRecord): Batch {
  return { ...counts, then: after };
}

/** Returns the number of revived runs; each is visited once, even if it fails again meanwhile. */
async function retryFailedChildren(
  store: Store,
  parent: RunId,
  options: { readonly batch?: string },
  audit: AuditEntry,
): Promise<number> {
  const problems = refuseUnknownMembers(options, ["batch"], "runs.retryFailed()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { batch } = options;
  const only = batch === undefined ? {} : { batch: requireName(batch, "batch") };
  let retried = 0;
  for (let after: RunId | undefined; ; ) {
    const from = after === undefined ? {} : { after };
    // One audit entry for all, written with the first.
    const kept = after === undefined ? { audit } : {};
    const params = { parent, ...only, ...from, ...kept, limit: RETRY_BATCH };
    const ids = await store.batches.retryChildren(params);
    retried += ids.length;
    after = ids.at(-1);
    if (ids.length < RETRY_BATCH) return retried;
  }
}
