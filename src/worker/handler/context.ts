// Defines the context that a handler gets. Each part is made on first use: most runs never read their
// signal.

import type { Enqueued, EnqueueOptions } from "../../runs/enqueue.js";
import type { Job } from "../../runs/job.js";
import type { ProgressOptions } from "../../runs/rules/progress.js";
import type { Mode, RunId } from "../../runs/rules/run.js";
import { ConfigurationError } from "../../shared/errors.js";
import type { BatchAnswer } from "../../store/batches.js";
import type { Grant } from "../../store/store.js";
import type { Logger } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { CommitOptions, ItemOptions, TransactionHandle } from "./commit.js";
import { type BatchEntry, type BatchOptions, type FanOut, readBatchOptions } from "./fan-out.js";
import { type RunLog, type RunLogLevel, runLog } from "./logs.js";

/** The services of the worker that a context calls; one object for all runs. */
export type ContextServices = {
  readonly log: Logger;
  readonly fanOut: FanOut;
  heartbeat(attempt: AttemptView): Promise<void>;
  item(asked: {
    readonly attempt: AttemptView;
    readonly key: string;
    readonly fn: (tx: never) => unknown;
    readonly options: ItemOptions<never>;
  }): Promise<unknown>;
  commit<Value, Tx>(
    attempt: AttemptView,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions,
  ): Promise<Value>;
  progress(attempt: AttemptView, reported: ProgressOptions): Promise<void>;
  keepLine(attempt: AttemptView, level: RunLogLevel, fields: object, message: string): void;
};

export class RunContext {
  readonly #attempt: AttemptView;
  readonly #services: ContextServices;
  #log: RunLog | null = null;
  #batchNames: Set<string> | null = null;

  constructor(attempt: AttemptView, services: ContextServices) {
    this.#attempt = attempt;
    this.#services = services;
  }

  /** The run that this is an attempt of. */
  get runId(): RunId {
    return this.#attempt.run.id;
  }

  /** The name of its job. */
  get job(): string {
    return this.#attempt.claim.job;
  }

  /** As they were given when it was enqueued. */
  get tags(): readonly string[] {
    return this.#attempt.run.tags;
  }

  /** The number of this try, the first one is 1. */
  get attempt(): number {
    return this.#attempt.claim.attempt;
  }

  /** Names this grant of the run; grows with every grant, never reused. */
  get fence(): number {
    return this.#attempt.claim.fence;
  }

  /** Why this run exists. */
  get mode(): Mode {
    return this.#attempt.run.mode;
  }

  /** The tick this run was made for, where a schedule made it. */
  get nominalAt(): Date | null {
    const { nominalAt } = this.#attempt.run;
    return nominalAt === null ? null : new Date(nominalAt);
  }

  /** How long after its tick the run was made; null where no schedule made it for a tick. */
  get lateMs(): number | null {
    const { nominalAt, createdAt } = this.#attempt.run;
    return nominalAt === null ? null : Math.max(0, createdAt - nominalAt);
  }

  /** The same for every attempt of this run: give it to receivers that can recognise a repeat. */
  get idempotencyKey(): string {
    return this.#attempt.run.id;
  }

  /** Aborts when the lease is lost, the run is cancelled, its time is over, or the instance stops. */
  get signal(): AbortSignal {
    return this.#attempt.signal();
  }

  /** The instance's logger; every line carries the run, its job and its attempt, and is kept with the run. */
  get log(): RunLog {
    const { run, claim } = this.#attempt;
    this.#log ??= runLog({
      logger: this.#services.log,
      fields: {
        run: run.id,
        job: claim.job,
        attempt: claim.attempt,
        ...(run.tags.length > 0 ? { tags: run.tags } : {}),
      },
      keep: (level, fields, message) =>
        this.#services.keepLine(this.#attempt, level, fields, message),
    });
    return this.#log;
  }

  /**
   * Tells how far the run is; what is left out stays as it was, a new stage begins anew. Counts as a
   * heartbeat. Call it as often as you like: it is written once a second, and when the stage changes.
   * Need not be awaited; rejects with a `LeaseLostError` if the run is no longer ours.
   */
  progress(reported: ProgressOptions): Promise<void> {
    return this.#services.progress(this.#attempt, reported);
  }

  /** Renews the lease now and rejects with a `LeaseLostError` if it is no longer ours. */
  heartbeat(): Promise<void> {
    return this.#services.heartbeat(this.#attempt);
  }

  get #grant(): Grant {
    return { id: this.runId, fence: this.fence };
  }

  /**
   * Stores a run whose parent is this one, only while this attempt holds its lease. Another attempt
   * stores another one, unless it has a key.
   */
  enqueue<Input>(
    job: Job<Input, unknown> | string,
    input: Input,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    return this.#services.fanOut.enqueue(this.#grant, { job, input, options });
  }

  /**
   * Stores many runs at once, and, when the last of them has ended, one run of the job `then` with
   * their counts. Once per run and name over all attempts: a later one gets the first answer.
   */
  async enqueueBatch<Input>(
    entries: readonly BatchEntry<Input>[],
    options: BatchOptions = {},
  ): Promise<BatchAnswer> {
    const { name, after } = readBatchOptions(options);
    this.#batchNames ??= new Set();
    if (this.#batchNames.has(name)) {
      const message = `this attempt has made the batch "${name}" already; give each its own, such as { name: "second" }`;
      throw new ConfigurationError([{ field: "enqueueBatch().name", message }]);
    }
    this.#batchNames.add(name);
    return this.#services.fanOut.enqueueBatch(this.#grant, { name, after, entries });
  }

  /**
   * Does one unit of this run, once over all its attempts: a later attempt gets the stored value. The
   * value is what JSON makes of it, also the first time. With `tx: true`, what `fn` does in `tx` and
   * the stored item commit together.
   */
  item<Value, Tx = TransactionHandle>(
    key: string,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: ItemOptions<Value> & { readonly onError: "record" },
  ): Promise<Value | undefined>;
  item<Value, Tx = TransactionHandle>(
    key: string,
    fn: (tx: Tx) => Value | Promise<Value>,
    options?: ItemOptions<Value>,
  ): Promise<Value>;
  item(
    key: string,
    fn: (tx: never) => unknown,
    options: ItemOptions<never> = {},
  ): Promise<unknown> {
    return this.#services.item({ attempt: this.#attempt, key, fn, options });
  }

  /**
   * Completes this run together with what `fn` does in `tx`: both, or neither. The value of `fn` is
   * the result; what the handler returns or throws after it is only logged. If `fn` throws, all is
   * rolled back and the error comes out. On SQLite `fn` is synchronous.
   */
  commit<Value, Tx = TransactionHandle>(
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions = {},
  ): Promise<Value> {
    const committing = this.#services.commit(this.#attempt, fn, options);
    this.#attempt.committing = committing;
    return committing;
  }
}
