// Watches that attempts end in time: one timer for the earliest deadline, since a timer for every run
// would cost more than short runs do. A handler that does not stop when told has a few seconds more.

import { ABORT_GRACE_MS } from "../runs/rules/run.js";
import { TimeoutError } from "../shared/errors.js";
import type { Clock, Timer } from "../shared/ports.js";
import type { Execution } from "./execution.js";

export class Deadlines {
  readonly #clock: Clock;
  readonly #running: () => Iterable<Execution>;
  readonly #onDisobeyed: (execution: Execution) => void;
  readonly #graces = new Set<Timer>();
  #next: { readonly atMs: number; readonly timer: Timer } | null = null;

  constructor(params: {
    readonly clock: Clock;
    readonly running: () => Iterable<Execution>;
    /** The handler goes on although its time and its grace are over. */
    readonly onDisobeyed: (execution: Execution) => void;
  }) {
    this.#clock = params.clock;
    this.#running = params.running;
    this.#onDisobeyed = params.onDisobeyed;
  }

  watch(execution: Execution): void {
    const atMs = deadlineMs(execution);
    if (this.#next && this.#next.atMs <= atMs) return;
    this.#next?.timer.cancel();
    const timer = this.#clock.timer(atMs - this.#clock.monotonicMs(), () => this.#enforce());
    this.#next = { atMs, timer };
  }

  close(): void {
    this.#next?.timer.cancel();
    for (const timer of this.#graces) timer.cancel();
  }

  #enforce(): void {
    this.#next = null;
    const nowMs = this.#clock.monotonicMs();
    for (const execution of this.#running()) {
      if (nowMs < deadlineMs(execution)) this.watch(execution);
      else if (!execution.stopReason) this.#end(execution);
    }
  }

  #end(execution: Execution): void {
    execution.abort(new TimeoutError(execution.claim.policy.timeoutMs));
    const timer = this.#clock.timer(ABORT_GRACE_MS, () => {
      this.#graces.delete(timer);
      this.#onDisobeyed(execution);
    });
    this.#graces.add(timer);
  }
}

/** Counted from the claim, as the database counts it. */
function deadlineMs({ claimedMs, claim }: Execution): number {
  return claimedMs + claim.policy.timeoutMs;
}
