// What a handler holds in its hands while it runs. Everything is made when it is first asked for:
// most runs never look at their signal.

import type { Mode, RunId } from "../core/run.js";
import type { Claim, ClaimedRun } from "../store/store.js";
import { type Logger, withFields } from "../telemetry/log.js";
import type { CommitOptions, CommitPhase, ItemOptions, TransactionHandle } from "./work-options.js";

/** The attempt that a context belongs to. */
export type Attempted = {
  readonly run: ClaimedRun;
  readonly claim: Claim;
  signal(): AbortSignal;
  /** Why it was told to stop. */
  readonly stopReason: Error | null;
  /** When the handler began, on this instance's monotonic clock. */
  readonly startedMs: number;
  commitPhase: CommitPhase;
  /** The last call of `ctx.commit`, also if nobody waits for it. */
  committing: Promise<unknown> | null;
};

/** What a context needs of the worker that runs it; one object for all runs. */
export type ContextServices = {
  readonly log: Logger;
  heartbeat(attempted: Attempted): Promise<void>;
  item(asked: {
    readonly attempted: Attempted;
    readonly key: string;
    readonly fn: (tx: never) => unknown;
    readonly options: ItemOptions<never>;
  }): Promise<unknown>;
  commit<Value, Tx>(
    attempted: Attempted,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions,
  ): Promise<Value>;
};

export class RunContext {
  readonly #attempted: Attempted;
  readonly #services: ContextServices;
  #log: Logger | null = null;

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
    return this.#services.item({ attempted: this.#attempted, key, fn, options });
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
    const committing = this.#services.commit(this.#attempted, fn, options);
    this.#attempted.committing = committing;
    return committing;
  }
}
