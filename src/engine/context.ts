// What a handler holds in its hands while it runs. Everything is made when it is first asked for:
// most runs never look at their signal.

import type { ProgressOptions } from "../core/progress.js";
import type { Mode, RunId } from "../core/run.js";
import type { Logger } from "../telemetry/log.js";
import type { Attempted } from "./attempted.js";
import { type RunLog, type RunLogLevel, runLog } from "./run-log.js";

/** What a context needs of the worker that runs it; one object for all runs. */
export type ContextServices = {
  readonly log: Logger;
  heartbeat(attempted: Attempted): Promise<void>;
  progress(attempted: Attempted, told: ProgressOptions): Promise<void>;
  keepLine(attempted: Attempted, level: RunLogLevel, fields: object, message: string): void;
};

export class RunContext {
  readonly #attempted: Attempted;
  readonly #services: ContextServices;
  #log: RunLog | null = null;

  constructor(attempted: Attempted, services: ContextServices) {
    this.#attempted = attempted;
    this.#services = services;
  }

  get runId(): RunId {
    return this.#attempted.run.id;
  }

  /** The name of its job. */
  get job(): string {
    return this.#attempted.claim.job;
  }

  /** As they were given when it was enqueued. */
  get tags(): readonly string[] {
    return this.#attempted.run.tags;
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

  /** The instance's logger; every line carries the run, its job and its attempt, and is kept with the run. */
  get log(): RunLog {
    const { run, claim } = this.#attempted;
    this.#log ??= runLog({
      logger: this.#services.log,
      fields: {
        run: run.id,
        job: claim.job,
        attempt: claim.attempt,
        ...(run.tags.length > 0 ? { tags: run.tags } : {}),
      },
      keep: (level, fields, message) =>
        this.#services.keepLine(this.#attempted, level, fields, message),
    });
    return this.#log;
  }

  /**
   * Tells how far the run is; what is left out stays as it was, a new stage begins anew. Counts as a
   * heartbeat. Call it as often as you like: it is written once a second, and when the stage changes.
   * Need not be awaited; rejects with a `LeaseLostError` if the run is no longer ours.
   */
  progress(told: ProgressOptions): Promise<void> {
    return this.#services.progress(this.#attempted, told);
  }

  /** Renews the lease now and rejects with a `LeaseLostError` if it is no longer ours. */
  heartbeat(): Promise<void> {
    return this.#services.heartbeat(this.#attempted);
  }
}
