// Defines the context that a handler gets, `ctx`. Each part is made on first use: most runs never read their signal.

import type { HeldLock, LockOptions, LockResult } from "../../locks/locking.js";
import type { Enqueued, EnqueueOptions } from "../../runs/enqueue.js";
import type { Job } from "../../runs/job.js";
import type { ProgressOptions } from "../../runs/rules/progress.js";
import type { Mode, RunId } from "../../runs/rules/run.js";
import type { Duration } from "../../shared/duration.js";
import { ConfigurationError } from "../../shared/errors.js";
import type { BatchAnswer } from "../../store/batches.js";
import type { Grant } from "../../store/claims.js";
import type { Logger } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { CommitOptions, TransactionHandle } from "./commit.js";
import { type BatchEntry, type BatchOptions, type FanOut, readBatchOptions } from "./fan-out.js";
import type { ItemOptions } from "./items.js";
import { type RunLog, type RunLogLevel, runLog } from "./logs.js";
import { insideOf } from "./nesting.js";
import type {
  CallOptions,
  ReceivedSignal,
  SleepOptions,
  StepOptions,
  WaitForOptions,
} from "./step-options.js";
import type { Steps } from "./steps.js";

/** The services of the worker that a context calls; one object for all runs. */
export type ContextServices = {
  readonly log: Logger;
  readonly fanOut: FanOut;
  /** On the monotonic clock of this instance. */
  nowMs(): number;
  /** Whether this attempt has done an item that no earlier attempt had done. */
  hasDoneItems(attempt: AttemptView): boolean;
  heartbeat(attempt: AttemptView): Promise<void>;
  item(request: {
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
  /** `holdfast.lock`. */
  lock<Value>(
    name: string,
    options: LockOptions,
    fn: (lock: HeldLock) => Value | Promise<Value>,
  ): Promise<LockResult<Value>>;
  progress(attempt: AttemptView, reported: ProgressOptions): Promise<void>;
  keepLine(attempt: AttemptView, level: RunLogLevel, fields: object, message: string): void;
  readonly steps: Pick<Steps, "step" | "sleep" | "waitFor" | "call">;
};

/** A call of an execution that has been suspended. */
const NEVER: Promise<never> = new Promise(() => undefined);

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

  /** The tags that the run was enqueued with. */
  get tags(): readonly string[] {
    return this.#attempt.run.tags;
  }

  /** The number of this attempt; the first one is 1. */
  get attempt(): number {
    return this.#attempt.claim.attempt;
  }

  /** Identifies this grant of the run; grows with every grant, and is never reused. */
  get fence(): number {
    return this.#attempt.claim.fence;
  }

  /** Why this run exists. */
  get mode(): Mode {
    return this.#attempt.run.mode;
  }

  /** The tick that a schedule made this run for; null for other runs. */
  get nominalAt(): Date | null {
    const { nominalAt } = this.#attempt.run;
    return nominalAt === null ? null : new Date(nominalAt);
  }

  /** How long after its tick the run was made; null for runs without a tick. */
  get lateMs(): number | null {
    const { nominalAt, createdAt } = this.#attempt.run;
    return nominalAt === null ? null : Math.max(0, createdAt - nominalAt);
  }

  /** The same for every attempt of this run: pass it to services that can recognise a repeated request. */
  get idempotencyKey(): string {
    return this.#attempt.run.id;
  }

  /** Aborts when the lease is lost, the run is cancelled or times out, or the instance stops. */
  get signal(): AbortSignal {
    return this.#attempt.signal();
  }

  /** Logs with the instance's logger; every line carries the run, its job and its attempt, and is kept with the run. */
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
   * Reports how far the run is; members that are left out keep their value, and a new stage clears the counts. This is
   * a heartbeat too. Call it as often as you like: it is written once a second, and when the stage changes. Need not be
   * awaited; rejects with a `LeaseLostError` if this attempt no longer holds the run.
   */
  progress(reported: ProgressOptions): Promise<void> {
    return this.#open(() => this.#services.progress(this.#attempt, reported));
  }

  /** Renews the lease now; rejects with a `LeaseLostError` if this attempt no longer holds the run. */
  heartbeat(): Promise<void> {
    return this.#open(() => this.#services.heartbeat(this.#attempt));
  }

  /**
   * Runs `fn` until it has succeeded once in the life of this run, and stores its value before it returns it: later
   * executions get the stored value. A crash between the effect of `fn` and the store repeats `fn`. With `tx: true` the
   * work of `fn` in `tx` and the step commit together.
   */
  step<Value, Tx = TransactionHandle>(
    name: string,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: StepOptions = {},
  ): Promise<Value> {
    return this.#durable(
      (steps, attempt) =>
        steps.step(attempt, name, fn as (tx: never) => unknown, options) as Promise<Value>,
    );
  }

  /**
   * Waits for this time, however long, and holds no worker meanwhile: the run is suspended, and its handler begins again at
   * the top when the time has come.
   */
  sleep(time: Duration | Date, options: SleepOptions = {}): Promise<void> {
    return this.#durable((steps, attempt) => steps.sleep(attempt, time, options));
  }

  /**
   * Waits for a signal, and holds no worker meanwhile. Returns its value and time, or null if none was stored by the
   * deadline.
   */
  waitFor<Value = unknown>(
    signal: string,
    options: WaitForOptions = {},
  ): Promise<ReceivedSignal<Value> | null> {
    return this.#durable(
      (steps, attempt) =>
        steps.waitFor(attempt, signal, options) as Promise<ReceivedSignal<Value> | null>,
    );
  }

  /**
   * Makes a run of another job and waits for its result, holding no worker meanwhile. Throws a `ChildFailedError` if that
   * run fails or is cancelled. It is made once in the life of this run, and its input must be the same each time.
   */
  call<Input, Result>(
    job: Job<Input, Result>,
    input: Input,
    options?: CallOptions,
  ): Promise<Result>;
  call(job: string, input: unknown, options?: CallOptions): Promise<unknown>;
  call(
    job: Job<never, unknown> | string,
    input: unknown,
    options: CallOptions = {},
  ): Promise<unknown> {
    return this.#durable((steps, attempt) => steps.call(attempt, job, input, options));
  }

  /** Once the run is suspended its handler no longer counts: later calls do nothing, and never settle. */
  #durable<T>(call: (steps: ContextServices["steps"], attempt: AttemptView) => Promise<T>) {
    if (this.#attempt.suspension !== "none") return NEVER as Promise<T>;
    const answer = call(this.#services.steps, this.#attempt);
    // The handler may have ended without awaiting it: then nobody receives its later failure.
    answer.catch(() => undefined);
    return answer;
  }

  /** A call that is not durable: while it is open, the run is not suspended. */
  #open<T>(call: () => Promise<T>): Promise<T> {
    const attempt = this.#attempt;
    if (attempt.suspension !== "none") return NEVER as Promise<T>;
    // First, as it may throw at once: such a call is not open.
    const answer = call();
    attempt.openCalls += 1;
    const ended = () => {
      attempt.openCalls -= 1;
      attempt.journal?.changed();
    };
    answer.then(ended, ended);
    return answer;
  }

  get #grant(): Grant {
    return { id: this.runId, fence: this.fence };
  }

  /**
   * Stores a run whose parent is this one, only while this attempt holds its lease. Another attempt stores another run,
   * unless the run has a key.
   */
  enqueue<Input>(
    job: Job<Input, unknown> | string,
    input: Input,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    return this.#open(() => this.#services.fanOut.enqueue(this.#grant, { job, input, options }));
  }

  /**
   * Stores many runs at once, and, when the last of them has ended, one run of the job `then` with their counts. Once per
   * run and name over all attempts: a later attempt gets the result of the first.
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
    return this.#open(() =>
      this.#services.fanOut.enqueueBatch(this.#grant, { name, after, entries }),
    );
  }

  /**
   * Does one unit of this run, once over all its attempts: a later attempt gets the stored value. The call returns the
   * value as JSON preserves it, also the first time. With `tx: true`, the work of `fn` in `tx` and the item commit
   * together.
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
    return this.#open(() => this.#services.item({ attempt: this.#attempt, key, fn, options }));
  }

  /**
   * Runs the function under the lock of that name, as `holdfast.lock` does, and keeps the id of this run as the execution
   * of the grant. Nothing is suspended under a lock: call steps and waits before or after.
   */
  lock<Value>(
    name: string,
    options: LockOptions,
    fn: (lock: HeldLock) => Value | Promise<Value>,
  ): Promise<LockResult<Value>> {
    return this.#open(() =>
      this.#services.lock(name, { execution: this.runId, ...options }, (held) =>
        insideOf("ctx.lock", () => fn(held)),
      ),
    );
  }

  /**
   * Completes this run together with the work of `fn` in `tx`: both, or neither. The value of `fn` is the result of the
   * run; an error that the handler throws later is only logged. If `fn` throws, everything is rolled back and the error
   * is thrown. `tx.query(text, values)` is there on both databases; on SQLite `fn` is synchronous.
   */
  commit<Value, Tx = TransactionHandle>(
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions = {},
  ): Promise<Value> {
    return this.#open(() => {
      const committing = this.#services.commit(this.#attempt, fn, options);
      this.#attempt.committing = committing;
      return committing;
    });
  }
}
