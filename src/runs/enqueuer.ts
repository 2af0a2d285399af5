// Enqueues of one process: those made at once travel together, and other processes are told of new work,
// not too often.

import { Together } from "../shared/batcher.js";
import type { Clock } from "../shared/ports.js";
import type { EnqueueAnswer, NewRun, Store } from "../store/store.js";
import { type StoredRuns, storedRuns } from "./wake-hint.js";

/** Other processes are told of new work at most this often. */
const WAKE_EVERY_MS = 10;

export class Enqueuer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onStored: (stored: StoredRuns) => void;
  readonly #together: Together<NewRun, EnqueueAnswer>;
  #toldAt = Number.NEGATIVE_INFINITY;
  #isWakePending = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    /** Called after a commit. */
    readonly onStored: (stored: StoredRuns) => void;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#onStored = params.onStored;
    this.#together = new Together({
      send: (runs) => this.#storeAll(runs, { isAtomic: false }),
      charsOf: ({ input }) => input.length,
    });
  }

  one(run: NewRun): Promise<EnqueueAnswer> {
    return this.#together.one(run);
  }

  /** All or none, in one statement of its own. */
  async many(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
    return runs.length === 0 ? [] : this.#storeAll(runs, { isAtomic: true });
  }

  async #storeAll(
    runs: readonly NewRun[],
    { isAtomic }: { readonly isAtomic: boolean },
  ): Promise<readonly EnqueueAnswer[]> {
    const stored = await this.#store.enqueue({ runs, isAtomic, tellsOthers: this.#mayTell() });
    this.#onStored(storedRuns(runs, this.#clock.wallMs()));
    return stored;
  }

  /** The first is told at once, the following ones together a little later. */
  #mayTell(): boolean {
    if (this.#isWakePending) return false;
    const waitMs = this.#toldAt + WAKE_EVERY_MS - this.#clock.monotonicMs();
    if (waitMs <= 0) {
      this.#toldAt = this.#clock.monotonicMs();
      return true;
    }
    this.#isWakePending = true;
    this.#clock.timer(waitMs, () => {
      this.#isWakePending = false;
      this.#toldAt = this.#clock.monotonicMs();
      this.#store.wake();
    });
    return false;
  }
}
