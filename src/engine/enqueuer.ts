// Enqueues of one process are coalesced: while a batch is on its way, what comes meanwhile makes the
// next one. Each caller is answered after the commit of its own batch, and one bad run never fails
// its neighbours. Nothing is delayed on purpose: a lone call goes out at once.

import { OutcomeUnknownError, StoreUnavailableError } from "../core/errors.js";
import type { Clock } from "../core/ports.js";
import type { EnqueueAnswer, NewRun, Store } from "../store/store.js";

const BATCH_MAX = 1_000;
/** Larger batches would keep the event loop, or be refused by drivers and servers. */
const BATCH_CHARS_MAX = 8 * 1024 * 1024;
/** Two keep the database busy while an answer travels; more would only make smaller batches. */
const IN_FLIGHT_MAX = 2;
/** Other processes are told of new work at most this often. */
const WAKE_EVERY_MS = 10;

type Asked = {
  readonly run: NewRun;
  readonly resolve: (answer: EnqueueAnswer) => void;
  readonly reject: (error: unknown) => void;
};

export class Enqueuer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onStored: (dueInMs: number) => void;
  #asked: Asked[] = [];
  #inFlight = 0;
  #isScheduled = false;
  #toldAt = Number.NEGATIVE_INFINITY;
  #isWakePending = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    /** Called after a commit with the time until the first of its runs is due. */
    readonly onStored: (dueInMs: number) => void;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#onStored = params.onStored;
  }

  one(run: NewRun): Promise<EnqueueAnswer> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ run, resolve, reject });
      this.#schedule();
    });
  }

  /** All or none, in one statement of its own. */
  async many(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
    if (runs.length === 0) return [];
    const stored = await this.#store.enqueue({
      runs,
      isAtomic: true,
      tellsOthers: this.#mayTell(),
    });
    this.#tellStored(runs);
    return stored;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= IN_FLIGHT_MAX) return;
    this.#isScheduled = true;
    // A microtask later, so that calls made together travel together.
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#asked.length > 0 && this.#inFlight < IN_FLIGHT_MAX) void this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#asked.splice(0, this.#batchLength());
    this.#inFlight += 1;
    try {
      await this.#storeBatch(batch);
    } finally {
      this.#inFlight -= 1;
      if (this.#asked.length > 0) this.#schedule();
    }
  }

  #batchLength(): number {
    let chars = 0;
    let length = 0;
    for (const { run } of this.#asked) {
      if (length === BATCH_MAX || chars >= BATCH_CHARS_MAX) break;
      chars += run.input.length;
      length += 1;
    }
    return length;
  }

  async #storeBatch(batch: readonly Asked[]): Promise<void> {
    try {
      const answers = await this.#store.enqueue({
        runs: batch.map(({ run }) => run),
        isAtomic: false,
        tellsOthers: this.#mayTell(),
      });
      batch.forEach(({ resolve }, at) => {
        resolve(answers[at] as EnqueueAnswer);
      });
      this.#tellStored(batch.map(({ run }) => run));
    } catch (error) {
      // A database that is away is away for all of them; anything else may be the fault of one.
      if (batch.length === 1 || isAbsent(error)) for (const { reject } of batch) reject(error);
      else for (const asked of batch) await this.#storeBatch([asked]);
    }
  }

  #tellStored(runs: readonly NewRun[]): void {
    const wallMs = this.#clock.wallMs();
    let dueInMs = Number.POSITIVE_INFINITY;
    for (const { dueAt, delayMs } of runs) {
      dueInMs = Math.min(dueInMs, dueAt === null ? delayMs : dueAt - wallMs);
    }
    this.#onStored(dueInMs);
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

function isAbsent(error: unknown): boolean {
  return error instanceof StoreUnavailableError || error instanceof OutcomeUnknownError;
}
