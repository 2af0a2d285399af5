// How a run that was asked for reaches the database: alone or with others of the same moment, in a
// statement of its own, or inside the caller's transaction; under the trace that is going on, if any.

import { Batcher } from "../shared/batcher.js";
import { ConfigurationError } from "../shared/errors.js";
import type { Clock, Ids } from "../shared/ports.js";
import type { EnqueueAnswer, NewRun, Store } from "../store/store.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { Sender } from "./job.js";

export type SenderParams = {
  readonly store: Store;
  readonly opened: (verb: string) => Promise<Store>;
  /** Throws where the instance has stopped, answers whether the database is open. */
  readonly isOpenFor: (verb: string) => boolean;
  readonly enqueuer: Enqueuer;
  readonly tracing: Tracing | null;
  readonly ids: Ids;
  /** Runs were stored in this process. */
  readonly onStored: () => void;
};

export function newSender(params: SenderParams): Sender {
  const { store, opened, isOpenFor, enqueuer, tracing, ids } = params;
  // On SQLite a claim waits until the caller's transaction is over, and then finds its runs; on
  // PostgreSQL the commit itself tells all who listen.
  const storedWithin = () => {
    if (store.engine === "sqlite") params.onStored();
  };
  return {
    one: async (run) => {
      await opened("enqueue");
      if (!tracing) return enqueuer.one(run);
      return tracing.enqueue([run], ([traced = run]) => enqueuer.one(traced));
    },
    many: async (runs) => {
      await opened("enqueueMany");
      if (!tracing) return enqueuer.many(runs);
      return tracing.enqueue(runs, (traced) => enqueuer.many(traced));
    },
    within: async ({ tx, runs }) => {
      await opened("enqueue");
      const answers = await (tracing
        ? tracing.enqueue(runs, (traced) => store.enqueueWithin({ tx, runs: traced }))
        : store.enqueueWithin({ tx, runs }));
      storedWithin();
      return answers;
    },
    withinSync: ({ tx, runs }) => {
      if (!isOpenFor("enqueueSync")) throw notOpen();
      const answers = tracing
        ? tracing.enqueueSync(runs, (traced) => store.enqueueWithinSync({ tx, runs: traced }))
        : store.enqueueWithinSync({ tx, runs });
      storedWithin();
      return answers;
    },
    newId: () => ids.run(),
  };
}

function notOpen(): ConfigurationError {
  const message =
    "needs a database that is open, and opening takes time; first `await holdfast.start()` or any other verb";
  return new ConfigurationError([{ field: "enqueueSync()", message }]);
}

// Enqueues of one process: those made at once travel together, and other processes are told of new work,
// not too often.

/** Other processes are told of new work at most this often. */
const WAKE_EVERY_MS = 10;

export class Enqueuer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onStored: (stored: WakeHint) => void;
  readonly #batcher: Batcher<NewRun, EnqueueAnswer>;
  #wokeAtMs = Number.NEGATIVE_INFINITY;
  #isWakePending = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    /** Called after a commit. */
    readonly onStored: (stored: WakeHint) => void;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#onStored = params.onStored;
    this.#batcher = new Batcher({
      send: (runs) => this.#storeAll(runs, { isAtomic: false }),
      charsOf: ({ input }) => input.length,
    });
  }

  one(run: NewRun): Promise<EnqueueAnswer> {
    return this.#batcher.one(run);
  }

  /** All or none, in one statement of its own. */
  async many(runs: readonly NewRun[]): Promise<readonly EnqueueAnswer[]> {
    return runs.length === 0 ? [] : this.#storeAll(runs, { isAtomic: true });
  }

  async #storeAll(
    runs: readonly NewRun[],
    { isAtomic }: { readonly isAtomic: boolean },
  ): Promise<readonly EnqueueAnswer[]> {
    const stored = await this.#store.enqueue({
      runs,
      isAtomic,
      tellsOthers: this.#mayWakeOthers(),
    });
    this.#onStored(storedRuns(runs, this.#clock.wallMs()));
    return stored;
  }

  /** The first is told at once, the following ones together a little later. */
  #mayWakeOthers(): boolean {
    if (this.#isWakePending) return false;
    const waitMs = this.#wokeAtMs + WAKE_EVERY_MS - this.#clock.monotonicMs();
    if (waitMs <= 0) {
      this.#wokeAtMs = this.#clock.monotonicMs();
      return true;
    }
    this.#isWakePending = true;
    this.#clock.timer(waitMs, () => {
      this.#isWakePending = false;
      this.#wokeAtMs = this.#clock.monotonicMs();
      this.#store.wake();
    });
    return false;
  }
}

// What a commit that stored runs means for the workers of this process: when the first of them is due, and
// whose they are.

export type WakeHint = {
  /** Until the first of them is due; zero or less: now. */
  readonly dueInMs: number;
  /** Left out: runs of any job. */
  readonly jobs?: readonly string[];
};

export function storedRuns(runs: readonly NewRun[], wallMs: number): WakeHint {
  let dueInMs = Number.POSITIVE_INFINITY;
  const jobs = new Set<string>();
  for (const { job, dueAt, delayMs } of runs) {
    dueInMs = Math.min(dueInMs, dueAt === null ? delayMs : dueAt - wallMs);
    jobs.add(job);
  }
  return { dueInMs, jobs: [...jobs] };
}
