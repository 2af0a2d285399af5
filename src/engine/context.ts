// What a handler holds in its hands while it runs. Everything is made when it is first asked for:
// most runs never look at their signal.

import { ConfigurationError } from "../core/errors.js";
import type { Mode, RunId } from "../core/run.js";
import type { BatchAnswer } from "../store/batch-store.js";
import type { Claim, ClaimedRun, Grant } from "../store/store.js";
import { type Logger, withFields } from "../telemetry/log.js";
import { type BatchEntry, type BatchOptions, type FanOut, readBatchOptions } from "./fan-out.js";
import type { Enqueued, EnqueueOptions, Job } from "./job.js";

/** The attempt that a context belongs to. */
export type Attempted = {
  readonly run: ClaimedRun;
  readonly claim: Claim;
  signal(): AbortSignal;
};

/** What a context needs of the worker that runs it; one object for all runs. */
export type ContextServices = {
  readonly log: Logger;
  readonly fanOut: FanOut;
  heartbeat(attempted: Attempted): Promise<void>;
};

export class RunContext {
  readonly #attempted: Attempted;
  readonly #services: ContextServices;
  #log: Logger | null = null;
  #batchNames: Set<string> | null = null;

  constructor(attempted: Attempted, services: ContextServices) {
    this.#attempted = attempted;
    this.#services = services;
  }

  get runId(): RunId {
    return this.#attempted.run.id;
  }

  /** The number of this try, the first one is 1. */
  get attempt(): number {
    return this.#attempted.claim.attempt;
  }

  /** Names this grant of the run; grows with every grant, never reused. */
  get fence(): number {
    return this.#attempted.claim.fence;
  }

  /** Why this run exists. */
  get mode(): Mode {
    return this.#attempted.run.mode;
  }

  /** The tick this run was made for, where a schedule made it. */
  get nominalAt(): Date | null {
    const { nominalAt } = this.#attempted.run;
    return nominalAt === null ? null : new Date(nominalAt);
  }

  /** How long after its tick the run was made; null where no schedule made it for a tick. */
  get lateMs(): number | null {
    const { nominalAt, createdAt } = this.#attempted.run;
    return nominalAt === null ? null : Math.max(0, createdAt - nominalAt);
  }

  /** The same for every attempt of this run: give it to receivers that can recognise a repeat. */
  get idempotencyKey(): string {
    return this.#attempted.run.id;
  }

  /** Aborts when the lease is lost, the run is cancelled, its time is over, or the instance stops. */
  get signal(): AbortSignal {
    return this.#attempted.signal();
  }

  /** The instance's logger; every line carries the run, its job and its attempt. */
  get log(): Logger {
    const { run, claim } = this.#attempted;
    this.#log ??= withFields(this.#services.log, {
      run: run.id,
      job: claim.job,
      attempt: claim.attempt,
    });
    return this.#log;
  }

  /** Renews the lease now and rejects with a `LeaseLostError` if it is no longer ours. */
  heartbeat(): Promise<void> {
    return this.#services.heartbeat(this.#attempted);
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
}
