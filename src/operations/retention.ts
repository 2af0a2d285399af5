// Removing what is past its time: history, ledger and log lines by the instance's own times, and the runs
// of jobs that keep theirs for less. Bounded passes, again and again until nothing is left.

import type { JobDefinition } from "../runs/rules/job.js";
import type { RunId } from "../runs/rules/run.js";
import type { PruneParams } from "../store/retention.js";
import type { Store } from "../store/store.js";

export type Pruned = {
  /** How much was removed: rows, and whole days where history is kept by days. */
  readonly removed: number;
};

export type PruneOptions = {
  /** Hears after each pass how much was removed so far. */
  readonly onProgress?: ((pruned: Pruned) => void) | undefined;
};

const BATCH = 1_000;
const VISIT_MAX = 5_000;
/** What one tidying does at most; the next one goes on. */
const ROUNDS_MAX = 20;

/** What is kept for how long, and the jobs that keep theirs for less. */
export type Keeping = {
  readonly store: Store;
  readonly keep: Omit<PruneParams, "limit">;
  readonly jobs: JobRetention;
};

/** The jobs of this process that keep their runs for less, each with where the last pass came to. */
export class JobRetention {
  readonly #jobs: () => Iterable<JobDefinition>;
  readonly #after = new Map<string, RunId | null>();

  constructor(jobs: () => Iterable<JobDefinition>) {
    this.#jobs = jobs;
  }

  /** Answers how many runs were removed. */
  async pruneOnce(
    store: Store,
    { isWhole = false, isTimeUp = never }: { isWhole?: boolean; isTimeUp?: () => boolean } = {},
  ): Promise<number> {
    let total = 0;
    for (const { name: job, retention } of this.#jobs()) {
      if (!retention) continue;
      for (let round = 0; isWhole || round < ROUNDS_MAX; round += 1) {
        const after = this.#after.get(job) ?? null;
        const pruned = await store.pruneJob({ job, ...retention, after, limit: VISIT_MAX });
        this.#after.set(job, pruned.after);
        total += pruned.removed;
        if (isTimeUp()) return total;
        if (pruned.isDone) break;
      }
    }
    return total;
  }
}

/** A bounded amount of what is past its time, and at least a little of it, however short the time is. */
export async function pruneSome(
  { store, keep, jobs }: Keeping,
  isTimeUp: () => boolean = never,
): Promise<void> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const count = await store.prune({ ...keep, limit: BATCH });
    if (isTimeUp()) return;
    if (count < BATCH) break;
  }
  await jobs.pruneOnce(store, { isTimeUp });
}

function never(): boolean {
  return false;
}

/** Until nothing is left that is past its time. */
export async function pruneAll(
  params: Keeping & {
    readonly keepLocksMs: number;
    readonly onProgress: (pruned: Pruned) => void;
  },
): Promise<Pruned> {
  const { store, keep, keepLocksMs, jobs, onProgress } = params;
  let removed = 0;
  for (;;) {
    const count = await store.prune({ ...keep, limit: BATCH });
    removed += count;
    onProgress({ removed });
    if (count === 0) break;
  }
  removed += await jobs.pruneOnce(store, { isWhole: true });
  for (;;) {
    const locks = await store.tidyLocks({ keepMs: keepLocksMs, limit: BATCH });
    removed += locks.removed;
    if (locks.removed < BATCH) break;
  }
  onProgress({ removed });
  return { removed };
}
