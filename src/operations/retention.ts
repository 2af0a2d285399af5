// Removes history, ledger rows and log lines past their retention, and runs of jobs with a shorter retention. Each pass is
// bounded.

import type { JobDefinition } from "../runs/rules/job.js";
import type { RunId } from "../runs/rules/run.js";
import type { PruneParams } from "../store/retention.js";
import type { Store } from "../store/store.js";

export type Pruned = {
  /** Removed rows, and whole days if history is partitioned by days. */
  readonly removed: number;
};

export type PruneOptions = {
  /** Called after each pass with the total so far. */
  readonly onProgress?: ((pruned: Pruned) => void) | undefined;
};

const BATCH = 1_000;
const VISIT_MAX = 5_000;
/** Bounds one pass; the next one continues. */
const ROUNDS_MAX = 20;

/** The retention times, and the jobs with a shorter retention. */
export type RetentionParams = {
  readonly store: Store;
  readonly keep: Omit<PruneParams, "limit">;
  readonly keepSignalsMs: number;
  readonly jobs: JobRetention;
};

/** The jobs of this process with a shorter retention, each with the position of its last pass. */
export class JobRetention {
  readonly #jobs: () => Iterable<JobDefinition>;
  readonly #after = new Map<string, RunId | null>();

  constructor(jobs: () => Iterable<JobDefinition>) {
    this.#jobs = jobs;
  }

  /** Returns the number of removed runs. */
  async pruneOnce(
    store: Store,
    { isWhole = false, isTimeUp = never }: { isWhole?: boolean; isTimeUp?: () => boolean } = {},
  ): Promise<number> {
    let total = 0;
    for (const { name: job, retention } of this.#jobs()) {
      if (!retention) continue;
      for (let round = 0; isWhole || round < ROUNDS_MAX; round += 1) {
        const after = this.#after.get(job) ?? null;
        const pruned = await store.retention.pruneJob({
          job,
          ...retention,
          after,
          limit: VISIT_MAX,
        });
        this.#after.set(job, pruned.after);
        total += pruned.removed;
        if (isTimeUp()) return total;
        if (pruned.isDone) break;
      }
    }
    return total;
  }
}

/** Removes a bounded amount; at least one batch, however short the time is. */
export async function pruneSome(
  { store, keep, keepSignalsMs, jobs }: RetentionParams,
  isTimeUp: () => boolean = never,
): Promise<void> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const count = await store.retention.prune({ ...keep, limit: BATCH });
    if (isTimeUp()) return;
    if (count < BATCH) break;
  }
  await pruneWaits(store, keepSignalsMs, ROUNDS_MAX);
  if (isTimeUp()) return;
  await jobs.pruneOnce(store, { isTimeUp });
}

/** Signals past their time, and the steps of runs that are gone. */
async function pruneWaits(store: Store, keepMs: number, roundsMax: number): Promise<number> {
  let total = 0;
  for (let round = 0; round < roundsMax; round += 1) {
    const signals = await store.signals.prune({ keepMs, limit: BATCH });
    const steps = await store.steps.prune({ limit: BATCH });
    total += signals + steps;
    if (signals < BATCH && steps < BATCH) break;
  }
  return total;
}

function never(): boolean {
  return false;
}

/** Removes everything past its retention. */
export async function pruneAll(
  params: RetentionParams & {
    readonly keepLocksMs: number;
    readonly onProgress: (pruned: Pruned) => void;
  },
): Promise<Pruned> {
  const { store, keep, keepLocksMs, keepSignalsMs, jobs, onProgress } = params;
  let removed = 0;
  for (;;) {
    const count = await store.retention.prune({ ...keep, limit: BATCH });
    removed += count;
    onProgress({ removed });
    if (count === 0) break;
  }
  removed += await pruneWaits(store, keepSignalsMs, Number.POSITIVE_INFINITY);
  removed += await jobs.pruneOnce(store, { isWhole: true });
  for (;;) {
    const locks = await store.locks.tidy({ keepMs: keepLocksMs, limit: BATCH });
    removed += locks.removed;
    if (locks.removed < BATCH) break;
  }
  onProgress({ removed });
  return { removed };
}
