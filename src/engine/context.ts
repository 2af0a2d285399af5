// What a handler holds in its hands while it runs. Everything is made when it is first asked for:
// most runs never look at their signal.

import type { Mode, RunId } from "../core/run.js";
import type { ClaimedRun } from "../store/store.js";
import type { Logger } from "../telemetry/log.js";

/** What `enqueue` takes besides the input. */
export type ContextServices = {
  readonly log: Logger;
  heartbeat(): Promise<void>;
  readonly signal: () => AbortSignal;
};

export class RunContext {
  readonly #run: ClaimedRun;
  readonly #services: ContextServices;
  readonly attempt: number;
  readonly fence: number;

  constructor(params: {
    readonly run: ClaimedRun;
    readonly attempt: number;
    readonly fence: number;
    readonly services: ContextServices;
  }) {
    this.#run = params.run;
    this.#services = params.services;
    this.attempt = params.attempt;
    this.fence = params.fence;
  }

  get runId(): RunId {
    return this.#run.id;
  }

  /** Why this run exists. */
  get mode(): Mode {
    return this.#run.mode;
  }

  /** The tick this run was made for, where a schedule made it. */
  get nominalAt(): Date | null {
    return this.#run.nominalAt === null ? null : new Date(this.#run.nominalAt);
  }

  /** The same for every attempt of this run: give it to receivers that can recognise a repeat. */
  get idempotencyKey(): string {
    return this.#run.id;
  }

  /** Aborts when the lease is lost, the run is cancelled, its time is over, or the instance stops. */
  get signal(): AbortSignal {
    return this.#services.signal();
  }

  get log(): Logger {
    return this.#services.log;
  }

  /** Renews the lease now and rejects with a `LeaseLostError` if it is no longer ours. */
  heartbeat(): Promise<void> {
    return this.#services.heartbeat();
  }
}
