// `holdfast.runs`: looking at runs, and an operator's few verbs on them.

import { type Actor, type AuditEntry, auditEntry } from "../operations/rules/audit.js";
import { reviveUnderSchedule } from "../schedules/trigger.js";
import type { ScheduleUpdater } from "../schedules/updater.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, RunAmbiguousError, RunNotFoundError } from "../shared/errors.js";
import { firstIdAt, idFragment, isUuid } from "../shared/id.js";
import { requireName } from "../shared/names.js";
import { instantMs } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { BatchRecord, ChildFilter } from "../store/batches.js";
import type { CancelAnswer, RetryAnswer, RunFilter, Store } from "../store/store.js";
import { type RunExchange, toExchanges } from "./dispatch-log.js";
import { toWaitingFor } from "./pending-reason.js";
import { MODES, type Mode, RUN_STATUSES, type RunId, type RunStatus } from "./rules/run.js";
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

/** Not an id of any run: options are checked also where there is none. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";

/** How many runs an ambiguous fragment names. */
const CANDIDATES_MAX = 10;

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
    /** A run that was cancelled or revived may free another one, or be due itself. */
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
    const words = change === undefined ? {} : { change };
    return auditEntry(this.#actor, { verb, noun: "run", name: id, ...words });
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
    const known = await this.#idOf(id);
    if (known === null) return null;
    const store = await this.#store();
    const [record, [told]] = await Promise.all([store.run(known), store.progressOf([known])]);
    return record ? toRun(record, told ? toProgress(told) : null) : null;
  }

  /** Newest first. */
  async list(options: RunListOptions = {}): Promise<RunPage> {
    const filter = readRunFilter(options);
    const { limit } = filter;
    const store = await this.#store();
    return runPage(store, await store.runs({ ...filter, limit: limit + 1 }), limit);
  }

  /** The runs that this one made, newest first; what comes after a batch is named by its batch. */
  async children(id: RunId, options: ChildListOptions = {}): Promise<RunPage> {
    const known = await this.#idOf(id);
    const filter = readChildFilter(known ?? NO_RUN, options);
    if (known === null) return { runs: [], nextCursor: null };
    const { limit } = filter;
    const store = await this.#store();
    return runPage(store, await store.children({ ...filter, limit: limit + 1 }), limit);
  }

  /** The batches that this run made, in their order. */
  async batches(id: RunId): Promise<readonly Batch[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    return (await (await this.#store()).batches(known)).map(toBatch);
  }

  /** One attempt more for every failed child; answers how many there were. */
  async retryFailed(
    id: RunId,
    options: { readonly batch?: string } = {},
  ): Promise<{ readonly retried: number }> {
    const known = await this.#idOf(id);
    if (known === null) return { retried: 0 };
    const store = await this.#store();
    const { batch } = options;
    const words = batch === undefined ? undefined : `batch ${batch}`;
    const audit = this.#audit("retry_failed", known, words);
    const retried = await retryFailedChildren(store, known, options, audit);
    if (retried > 0) {
      store.wake();
      this.#onChanged();
    }
    return { retried };
  }

  /** Every attempt so far, the first one first. */
  async attempts(id: RunId): Promise<readonly RunAttempt[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    return (await (await this.#store()).attempts(known)).map(toAttempt);
  }

  /** Every time that it was sent to a service elsewhere, with what came back; the first one first. */
  async exchanges(id: RunId): Promise<readonly RunExchange[]> {
    const known = await this.#idOf(id);
    if (known === null) return [];
    const store = await this.#store();
    const replies = await store.replies(known);
    return replies.length === 0 ? [] : toExchanges(replies, await store.attempts(known));
  }

  /** Its items, by key or the slowest first. */
  async items(id: RunId, options: ItemListOptions = {}): Promise<ItemPage> {
    return itemPage(await this.#store(), (await this.#idOf(id)) ?? NO_RUN, options);
  }

  /** The log lines that were kept with it, the oldest first, over all attempts. */
  async logs(id: RunId, options: RunLogOptions = {}): Promise<RunLogPage> {
    const { after, limit } = readLogOptions(options);
    const known = await this.#idOf(id);
    if (known === null) return toLogPage([], null);
    const records = await (await this.#store()).logs({ id: known, after, limit });
    return toLogPage(records, options.after ?? null);
  }

  /** A pending run at once; a running one is told to stop and is cancelled when it does. */
  async cancel(id: RunId): Promise<CancelAnswer> {
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    const store = await this.#store();
    const chance = this.#ports.chance.next();
    const answer = await store.cancel({ id: known, chance, audit: this.#audit("cancel", known) });
    this.#onChanged();
    return answer;
  }

  /** One attempt more for a failed or cancelled run. */
  async retry(id: RunId): Promise<RetryAnswer> {
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    const store = await this.#store();
    const run = await store.run(known);
    const audit = this.#audit("retry", known);
    const schedule = run?.schedule ?? null;
    const answer =
      run === null || schedule === null
        ? await store.retry({ id: known, audit })
        : await reviveUnderSchedule({ store, run, schedule, updater: this.#updater, audit });
    if (answer === "pending") {
      store.wake();
      this.#onChanged();
    }
    return answer;
  }

  /** Removes a run that has ended, with its history. */
  async delete(id: RunId): Promise<"removed" | "not_terminal" | "not_found"> {
    const known = await this.#idOf(id);
    if (known === null) return "not_found";
    return (await this.#store()).remove({ id: known, audit: this.#audit("delete", known) });
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
    const ended = await this.get(found.id);
    if (!ended) throw new RunNotFoundError(id);
    return ended;
  }

  /**
   * The id as it is stored: given whole, or by six characters or more of its beginning or its end. Null: it can be the id of no
   * run, or there is none. Throws where several begin or end like this.
   */
  async #idOf(id: RunId): Promise<RunId | null> {
    if (isUuid(id)) return id.toLowerCase();
    const digits = idFragment(id);
    if (digits === null) return null;
    const store = await this.#store();
    const found = await store.runsLike({ digits, limit: CANDIDATES_MAX + 1 });
    if (found.length > 1)
      throw new RunAmbiguousError(
        id,
        found.slice(0, CANDIDATES_MAX),
        found.length > CANDIDATES_MAX,
      );
    return found[0] ?? null;
  }
}

// ── the options of runs.list ─────────────────────────────────────────────────────────────────────

export type RunListOptions = {
  readonly status?: RunStatus | undefined;
  readonly job?: string | undefined;
  /** The name of the schedule that made them. */
  readonly schedule?: string | undefined;
  readonly mode?: Mode | undefined;
  readonly tag?: string | undefined;
  /** Part of the input, or a whole key or id. */
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
  ...["status", "job", "schedule", "mode", "tag", "text", "from", "to", "limit", "cursor"],
];

/** Throws what is wrong with the options, all of it at once. */
function readRunFilter(options: RunListOptions): RunFilter {
  const { limit = PAGE_DEFAULT, cursor, status, mode } = options;
  const problems = refuseUnknownMembers(options, MEMBERS, "runs.list()");
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

/** How a batch stands: entries that have no child, and what became of the others so far. */
export type Batch = Omit<BatchRecord, "after"> & {
  /** The run that was made when the last child had ended; null before, or if none was asked for. */
  readonly then: RunId | null;
};

export type ChildListOptions = {
  readonly status?: RunStatus | undefined;
  /** Only those of the batch of this name. */
  readonly batch?: string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

/** So many are revived in one transaction. */
const RETRIED_TOGETHER = 1_000;

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

/** Answers how many go on; each is looked at once, also if it fails again meanwhile. */
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
    // One entry for all of them, with the first.
    const kept = after === undefined ? { audit } : {};
    const params = { parent, ...only, ...from, ...kept, limit: RETRIED_TOGETHER };
    const ids = await store.retryChildren(params);
    retried += ids.length;
    after = ids.at(-1);
    if (ids.length < RETRIED_TOGETHER) return retried;
  }
}
