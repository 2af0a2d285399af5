// Pauses the requests of a worker to a failing database: 100 ms after the first failure, twice as long after each
// further one, at most 5 s. Emits every failure, and the recovery.

import { describeFailure } from "../shared/failure.js";
import { type Clock, delay } from "../shared/ports.js";
import type { Emit } from "../telemetry/log.js";

const FIRST_MS = 100;
const MAX_MS = 5_000;

export class Backoff {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #over: AbortSignal;
  #failures = 0;
  #isOn = false;

  constructor(params: {
    readonly clock: Clock;
    readonly emit: Emit;
    /** Aborts when the worker is closed: the wait then ends early. */
    readonly over: AbortSignal;
  }) {
    this.#clock = params.clock;
    this.#emit = params.emit;
    this.#over = params.over;
  }

  /** Whether requests are paused now. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** How often the database has failed in a row. */
  get failures(): number {
    return this.#failures;
  }

  async failed(what: string, error: unknown): Promise<void> {
    this.#failures += 1;
    const retryInMs = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(this.#failures - 1, 10));
    this.#isOn = true;
    this.#emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
    await delay(this.#clock, retryInMs, this.#over);
    this.#isOn = false;
  }

  recovered(what: string): void {
    if (this.#failures > 0) this.#emit("store.recovered", { what });
    this.#failures = 0;
  }
}
