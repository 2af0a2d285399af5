// Turns the call of an enqueue into a stored run: checks the options, builds the run, and stores it by itself or in the
// caller's transaction. Calls made in the same moment share one statement. Every check comes before the
// first statement: a call that is refused has stored nothing.

import { createHash } from "node:crypto";
import { Batcher } from "../shared/batcher.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, KeyConflictError, type Problem } from "../shared/errors.js";
import { readInstant } from "../shared/instant.js";
import { canonicalJson, encodeInput } from "../shared/json.js";
import { requireKey, requireName, requirePriority, requireTags } from "../shared/names.js";
import type { Clock, Ids } from "../shared/ports.js";
import { gather } from "../shared/problems.js";
import { requireValid, validateInput } from "../shared/schema.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { EnqueueResult, NewKey, NewRun, WithinParams } from "../store/enqueue.js";
import type { Store } from "../store/store.js";
import type { Tracing } from "../telemetry/tracing.js";
import { isLimited, limitKeyOf } from "../worker/rules/limits.js";
import type { JobDefinition } from "./rules/job.js";
import type { RunId } from "./rules/run.js";

/** Other processes are woken for new runs at most this often. */
const WAKE_EVERY_MS = 10;

export type EnqueueOptions = {
  /** The same key and input give the same run to every caller; another input is refused. */
  readonly key?: string | undefined;
  /** How long the key refers to its run: a duration, or until the run has ended. @default until the run is pruned */
  readonly keyFor?: Duration | "live" | undefined;
  /**
   * What a repeated key does to its run while that has not begun: nothing, give it this input and time, or only this time.
   * Once the run has begun, a new run gets the key. @default "return"
   */
  readonly onDuplicate?: OnDuplicate | undefined;
  /**
   * With `delay` and `onDuplicate: "postpone"` or `"replace"`: calls move the run no further than this after it was
   * enqueued, so that a steady stream of calls cannot postpone it for ever. @default no bound
   */
  readonly maxWait?: Duration | undefined;
  /** Not before this instant. */
  readonly at?: Date | string | undefined;
  /** Not before this much time has passed. */
  readonly delay?: Duration | undefined;
  /** −100 … 100, larger is more urgent; one step is worth one minute of waiting. @default the job's */
  readonly priority?: number | undefined;
  /** @default the job's */
  readonly queue?: string | undefined;
  /** Words to find the run by; log lines carry them. */
  readonly tags?: readonly string[] | undefined;
  /**
   * Your open transaction: the run is stored in it, and is there once you commit. On PostgreSQL of
   * pg, Drizzle, Kysely, Knex, Prisma or postgres.js; on SQLite the handle itself.
   */
  readonly tx?: object | undefined;
};

export type OnDuplicate = (typeof ON_DUPLICATE)[number];

export type Enqueued = { readonly id: RunId; readonly deduplicated: boolean };

// ── building the run ─────────────────────────────────────────────────────────────────────────────

export type NewRunParams = {
  readonly definition: JobDefinition;
  readonly input: unknown;
  readonly options: EnqueueOptions;
  readonly id: RunId;
};

/**
 * Checks an enqueue whole, and makes the run that will be stored: the caller's value, not the
 * schema's output, as it is parsed again when it runs.
 */
export async function newRun(params: NewRunParams): Promise<NewRun> {
  const { schema } = params.definition;
  if (schema) await validateInput(schema, params.input);
  return uncheckedRun(params);
}

/** For many inputs: avoids an await for each input without a schema, which would cost more than the rest. */
export function newRunSoon(params: NewRunParams): NewRun | Promise<NewRun> {
  return params.definition.schema ? newRun(params) : uncheckedRun(params);
}

/** For synchronous callers: an asynchronous schema is refused. */
export function newRunNow(params: NewRunParams): NewRun {
  const { schema, name } = params.definition;
  const checked = schema ? schema["~standard"].validate(params.input) : { value: null };
  if (checked instanceof Promise) {
    checked.catch(() => undefined);
    const message = `the schema of "${name}" is asynchronous; use \`await job.enqueue(input, { tx })\``;
    throw new ConfigurationError([{ field: "enqueueSync()", message }]);
  }
  requireValid(checked);
  return uncheckedRun(params);
}

/** Builds the run without checking the input by its schema. */
export function uncheckedRun({ definition, input, options, id }: NewRunParams): NewRun {
  const { key, dueAt, delayMs, tags, queue, priority } = readOptions(options);
  const json = encodeInput(input);
  const { limits } = definition;
  return {
    id,
    job: definition.name,
    policy: definition.policy,
    version: definition.version,
    mode: "enqueued",
    input: json,
    dueAt,
    delayMs,
    tags,
    queue: queue ?? definition.queue,
    priority: priority ?? definition.priority,
    key: key === null ? null : { ...key, inputHash: inputHash(json) },
    ...(isLimited(limits) ? { flow: limitKeyOf(limits, json) } : {}),
  };
}

/** Equal inputs have equal hashes, in any order of their members. */
export function inputHash(inputJson: string): string {
  return createHash("sha256").update(canonicalJson(inputJson)).digest("base64url");
}

/** Throws on a key conflict; otherwise returns the run of this call. */
export function accepted(run: NewRun, result: EnqueueResult): Enqueued {
  if (!("conflict" in result)) return result;
  throw new KeyConflictError({ job: run.job, key: run.key?.key ?? "", runId: result.conflict });
}

// ── storing the run ──────────────────────────────────────────────────────────────────────────────

export type EnqueuerParams = {
  readonly store: Store;
  /** Opens the database on first use, or rejects because the instance has stopped. */
  readonly opened: (verb: string) => Promise<Store>;
  /** Returns whether the database is open; throws if the instance has stopped. */
  readonly isOpenFor: (verb: string) => boolean;
  readonly tracing: Tracing | null;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Called when this process has stored runs. */
  readonly onStored: (stored: WakeHint) => void;
};

/** Stores the runs that one instance enqueues, under the active trace if there is one. */
export class Enqueuer {
  readonly #params: EnqueuerParams;
  readonly #batcher: Batcher<NewRun, EnqueueResult>;
  #wokeAtMs = Number.NEGATIVE_INFINITY;
  #isWakePending = false;

  constructor(params: EnqueuerParams) {
    this.#params = params;
    this.#batcher = new Batcher({
      send: (runs) => this.#storeAll(runs, { isAtomic: false }),
      charsOf: ({ input }) => input.length,
    });
  }

  newId(): RunId {
    return this.#params.ids.run();
  }

  /** Stores one run by itself, or in the caller's transaction. */
  store(run: NewRun, tx: object | undefined): Promise<EnqueueResult> {
    if (tx === undefined) return this.#one(run);
    return this.within({ tx, runs: [run] }).then(([result]) => result as EnqueueResult);
  }

  async #one(run: NewRun): Promise<EnqueueResult> {
    const { opened, tracing } = this.#params;
    await opened("enqueue");
    if (!tracing) return this.#batcher.add(run);
    return tracing.enqueue([run], ([traced = run]) => this.#batcher.add(traced));
  }

  /** Stores all runs or none. */
  async many(runs: readonly NewRun[]): Promise<readonly EnqueueResult[]> {
    const { opened, tracing } = this.#params;
    await opened("enqueueMany");
    if (!tracing) return this.#storeTogether(runs);
    return tracing.enqueue(runs, (traced) => this.#storeTogether(traced));
  }

  /** Stores runs in the caller's transaction. */
  async within({ tx, runs }: WithinParams): Promise<readonly EnqueueResult[]> {
    const { store, opened, tracing } = this.#params;
    await opened("enqueue");
    const results = await (tracing
      ? tracing.enqueue(runs, (traced) => store.enqueue.within({ tx, runs: traced }))
      : store.enqueue.within({ tx, runs }));
    this.#storedWithin();
    return results;
  }

  /** The same without waiting, on SQLite. */
  withinSync({ tx, runs }: WithinParams): readonly EnqueueResult[] {
    const { store, isOpenFor, tracing } = this.#params;
    if (!isOpenFor("enqueueSync")) throw notOpen();
    const results = tracing
      ? tracing.enqueueSync(runs, (traced) => store.enqueue.withinSync({ tx, runs: traced }))
      : store.enqueue.withinSync({ tx, runs });
    this.#storedWithin();
    return results;
  }

  /**
   * On SQLite a claim waits until the caller's transaction is over, and then finds its runs. On
   * PostgreSQL the commit itself notifies every listener.
   */
  #storedWithin(): void {
    if (this.#params.store.engine === "sqlite") this.#params.onStored({ dueInMs: 0 });
  }

  async #storeTogether(runs: readonly NewRun[]): Promise<readonly EnqueueResult[]> {
    return runs.length === 0 ? [] : this.#storeAll(runs, { isAtomic: true });
  }

  async #storeAll(
    runs: readonly NewRun[],
    { isAtomic }: { readonly isAtomic: boolean },
  ): Promise<readonly EnqueueResult[]> {
    const { store, clock, onStored } = this.#params;
    const stored = await store.enqueue.runs({ runs, isAtomic, wakesOthers: this.#mayWakeOthers() });
    onStored(wakeHintOf(runs, clock.wallMs()));
    return stored;
  }

  /** The first enqueue wakes other processes at once; those that follow share one later wake-up. */
  #mayWakeOthers(): boolean {
    const { store, clock } = this.#params;
    if (this.#isWakePending) return false;
    const waitMs = this.#wokeAtMs + WAKE_EVERY_MS - clock.monotonicMs();
    if (waitMs <= 0) {
      this.#wokeAtMs = clock.monotonicMs();
      return true;
    }
    this.#isWakePending = true;
    clock.timer(waitMs, () => {
      this.#isWakePending = false;
      this.#wokeAtMs = clock.monotonicMs();
      store.wake();
    });
    return false;
  }
}

function notOpen(): ConfigurationError {
  const message =
    "needs a database that is open, and opening takes time; first `await holdfast.start()` or any other verb";
  return new ConfigurationError([{ field: "enqueueSync()", message }]);
}

/** The wake hint for local workers: the jobs with new runs, and when the first is due. */
export type WakeHint = {
  /** Time until the first run is due; zero or less: now. */
  readonly dueInMs: number;
  /** Left out: runs of any job. */
  readonly jobs?: readonly string[];
};

export function wakeHintOf(runs: readonly NewRun[], wallMs: number): WakeHint {
  let dueInMs = Number.POSITIVE_INFINITY;
  const jobs = new Set<string>();
  for (const { job, dueAt, delayMs } of runs) {
    dueInMs = Math.min(dueInMs, dueAt === null ? delayMs : dueAt - wallMs);
    jobs.add(job);
  }
  return { dueInMs, jobs: [...jobs] };
}

// ── reading the options ──────────────────────────────────────────────────────────────────────────

const ON_DUPLICATE = ["return", "replace", "postpone"] as const;
const ENQUEUE_MEMBERS = [
  "key",
  "keyFor",
  "onDuplicate",
  "maxWait",
  "at",
  "delay",
  "priority",
  "queue",
  "tags",
  "tx",
];

const NO_OPTIONS = {
  key: null,
  dueAt: null,
  delayMs: 0,
  priority: null,
  queue: null,
  tags: [],
} as const;

function readOptions(options: EnqueueOptions): {
  readonly key: Omit<NewKey, "inputHash"> | null;
  readonly dueAt: number | null;
  readonly delayMs: number;
  readonly priority: number | null;
  readonly queue: string | null;
  readonly tags: readonly string[];
} {
  const members = Object.keys(options);
  if (members.length === 0) return NO_OPTIONS;
  const problems: Problem[] = refuseUnknownMembers(options, ENQUEUE_MEMBERS, "enqueue()");
  const read = <Value, T>(value: Value | undefined, take: (value: Value) => T): T | null =>
    value === undefined ? null : gather<T | null>(problems, () => take(value), null);
  if (options.at !== undefined && options.delay !== undefined) {
    problems.push({
      field: "enqueue().at and enqueue().delay",
      message: "exclude each other; give one of them",
    });
  }
  for (const member of ["keyFor", "onDuplicate"] as const) {
    if (options[member] !== undefined && options.key === undefined)
      problems.push({
        field: `enqueue().${member}`,
        message: 'needs a key, such as key: "order-7"',
      });
  }
  const name = read(options.key, (value) => requireKey(value, "enqueue().key"));
  const lastsMs = read(options.keyFor, keyForMs) ?? undefined;
  const onDuplicate = read(options.onDuplicate, duplicateRule) ?? undefined;
  const dueAt = read(options.at, instantMs);
  const delayMs = read(options.delay, (value) => durationMs(value, "enqueue().delay")) ?? 0;
  const maxWaitMs = read(options.maxWait, (value) => maxWait(value, options, delayMs)) ?? undefined;
  const key = name === null ? null : { key: name, lastsMs, onDuplicate, maxWaitMs };
  const priority = read(options.priority, (value) => requirePriority(value, "enqueue().priority"));
  const queue = read(options.queue, (value) => requireName(value, "enqueue().queue"));
  const tags = read(options.tags, (value) => requireTags(value, "enqueue().tags")) ?? [];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { key, dueAt, delayMs, priority, queue, tags };
}

function keyForMs(value: Duration | "live"): number | "live" {
  return value === "live" ? value : durationMs(value, "enqueue().keyFor", { min: 1 });
}

function maxWait(value: Duration, { onDuplicate, at }: EnqueueOptions, delayMs: number): number {
  const field = "enqueue().maxWait";
  const refuse = (message: string) => new ConfigurationError([{ field, message }]);
  const waitMs = durationMs(value, field, { min: 1 });
  if (onDuplicate !== "postpone" && onDuplicate !== "replace")
    throw refuse('needs onDuplicate: "postpone" or "replace"; other calls move no run');
  if (at !== undefined) throw refuse("needs delay instead of at: it bounds a time that moves");
  if (waitMs < delayMs) throw refuse("must not be shorter than the delay");
  return waitMs;
}

function duplicateRule(value: OnDuplicate): "replace" | "postpone" | undefined {
  if (!ON_DUPLICATE.includes(value)) {
    const message = 'must be "return", "replace" or "postpone"';
    throw new ConfigurationError([{ field: "enqueue().onDuplicate", message }]);
  }
  return value === "return" ? undefined : value;
}

function instantMs(value: Date | string): number {
  const instant = readInstant(value);
  if (typeof instant === "string")
    throw new ConfigurationError([{ field: "enqueue().at", message: instant }]);
  return instant;
}
