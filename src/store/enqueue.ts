// Declares the verbs that store new runs, and decides what an idempotency key that is taken means for a batch of them.

import type { Mode, Policy, RunId } from "../runs/rules/run.js";

/** An update that changes nothing: it returns the number of the row that is there. */
export const ENSURE_LANE = /* sql */ `
insert into {lane} (queue, job) values (:queue, :job)
on conflict (job, queue) do update set job = excluded.job returning id`;

export const ENSURE_POLICY = /* sql */ `
insert into {policy} (digest, lease_ms, timeout_ms, attempts, delay_ms, factor, max_ms, jitter, on_lost)
values (:digest, :leaseMs, :timeoutMs, :attempts, :delayMs, :factor, :maxMs, :jitter, :onLost)
on conflict (digest) do update set digest = excluded.digest returning id`;

export interface EnqueueVerbs {
  /**
   * Stores new runs. The same id twice is the same run: a call that is repeated after a lost reply changes nothing. For a
   * taken key it returns the run that has it, or a conflict if the inputs differ. With `isAtomic` a conflict stores nothing
   * of the call.
   */
  runs(params: EnqueueParams): Promise<readonly EnqueueResult[]>;
  /**
   * Stores new runs in the caller's transaction, all or none; they exist once the caller commits. A key that is taken by
   * another input is a conflict: it stores nothing of the call and leaves the transaction usable.
   */
  within(params: WithinParams): Promise<readonly EnqueueResult[]>;
  /** Does the same synchronously; on SQLite alone, and only once the store is open. */
  withinSync(params: WithinParams): readonly EnqueueResult[];
}

export type NewRun = {
  readonly id: RunId;
  readonly job: string;
  readonly queue: string;
  readonly policy: Policy;
  readonly input: string;
  readonly mode: Mode;
  readonly version: number;
  readonly priority: number;
  /** The instant that a user gave. Null: `delayMs` after the commit. */
  readonly dueAt: number | null;
  readonly delayMs: number;
  readonly tags: readonly string[];
  /** The W3C trace context of the call that enqueues the run. */
  readonly trace?: string | undefined;
  readonly key: NewKey | null;
  /** The limit key that a run of a limited job waits under (worker/rules/limits.ts). */
  readonly flow?: string | undefined;
};

/** The idempotency key of a run. It lives as long as the run, unless `lastsMs` is given. */
export type NewKey = {
  readonly key: string;
  readonly inputHash: string;
  /** How long the key lives; "live": until its run has ended. */
  readonly lastsMs?: number | "live" | undefined;
  /** What happens to the run that has the key, if it has not begun. Once it has begun, the new run takes the key. */
  readonly onDuplicate?: "replace" | "postpone" | undefined;
  /** A postponed run becomes due at most this long after it was enqueued. */
  readonly maxWaitMs?: number | undefined;
};

export type EnqueueParams = {
  readonly runs: readonly NewRun[];
  /** Store all or none, also if one of the keys is taken by another input. */
  readonly isAtomic: boolean;
  /** Wake other processes right after the commit. */
  readonly wakesOthers: boolean;
};

export type EnqueueResult =
  | { readonly id: RunId; readonly deduplicated: boolean }
  | { readonly conflict: RunId };

export type WithinParams = {
  /** The caller's open transaction, an object of the caller's database library. */
  readonly tx: unknown;
  readonly runs: readonly NewRun[];
};

/** The run that holds the key which the run `id` requested. */
export type KeyHolder = { readonly id: RunId; readonly run: RunId; readonly inputHash: string };

/** The runs that may be stored: of two runs of one batch with the same key, only the first. */
export function firstOfEachKey(runs: readonly NewRun[]): Map<string, NewRun> {
  const first = new Map<string, NewRun>();
  for (const run of runs)
    if (run.key !== null && !first.has(nameOf(run))) first.set(nameOf(run), run);
  return first;
}

export function resultsOf(
  runs: readonly NewRun[],
  holders: readonly KeyHolder[],
): readonly EnqueueResult[] {
  const byRequester = new Map(holders.map((holder) => [holder.id, holder]));
  const first = firstOfEachKey(runs);
  return runs.map((run) => {
    if (run.key === null) return { id: run.id, deduplicated: false };
    const holder = byRequester.get((first.get(nameOf(run)) as NewRun).id);
    if (!holder) return { id: run.id, deduplicated: false };
    if (holder.inputHash !== run.key.inputHash) return { conflict: holder.run };
    return { id: holder.run, deduplicated: holder.run !== run.id };
  });
}

/**
 * Splits a batch into layers that are stored one after the other. A run that replaces or postpones starts a new layer if
 * its key occurred before: the earlier run has to be stored first.
 */
export function layersOf(runs: readonly NewRun[]): readonly (readonly NewRun[])[] {
  const layers: NewRun[][] = [];
  let seen = new Set<string>();
  for (const run of runs) {
    const isRival = run.key?.onDuplicate !== undefined && seen.has(nameOf(run));
    if (isRival || layers.length === 0) {
      layers.push([]);
      seen = new Set();
    }
    if (run.key !== null) seen.add(nameOf(run));
    layers.at(-1)?.push(run);
  }
  return layers;
}

/** The lifetime of a key, as its row stores it. */
export function lastsColumns({ lastsMs }: NewKey): {
  readonly lastsMs: number | null;
  readonly isLive: boolean;
} {
  return { lastsMs: typeof lastsMs === "number" ? lastsMs : null, isLive: lastsMs === "live" };
}

function nameOf(run: NewRun): string {
  return JSON.stringify([run.job, run.key?.key]);
}
