// What idempotency keys answer, the same for both engines: the same key with the same input is the
// same run for all callers; with another input it is a conflict.

import type { RunId } from "../runs/rules/run.js";
import type { EnqueueAnswer, NewKey, NewRun } from "./store.js";

/** Which run holds the key that the run `id` asked for. */
export type KeyHolder = { readonly id: RunId; readonly run: RunId; readonly inputHash: string };

/** Two members of one batch may ask for one key; only the first of them is stored. */
export function firstOfEachKey(runs: readonly NewRun[]): Map<string, NewRun> {
  const first = new Map<string, NewRun>();
  for (const run of runs)
    if (run.key !== null && !first.has(nameOf(run))) first.set(nameOf(run), run);
  return first;
}

export function answersOf(
  runs: readonly NewRun[],
  holders: readonly KeyHolder[],
): readonly EnqueueAnswer[] {
  const byAsker = new Map(holders.map((holder) => [holder.id, holder]));
  const first = firstOfEachKey(runs);
  return runs.map((run) => {
    if (run.key === null) return { id: run.id, deduplicated: false };
    const holder = byAsker.get((first.get(nameOf(run)) as NewRun).id);
    if (!holder) return { id: run.id, deduplicated: false };
    if (holder.inputHash !== run.key.inputHash) return { conflict: holder.run };
    return { id: holder.run, deduplicated: holder.run !== run.id };
  });
}

/**
 * A batch in parts to be stored one after the other: where a key is asked for again by a run that
 * replaces or postpones, what came before has to be stored first.
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

/** For how long a key lives, as its row has it. */
export function lastsColumns({ lastsMs }: NewKey): {
  readonly lastsMs: number | null;
  readonly isLive: boolean;
} {
  return { lastsMs: typeof lastsMs === "number" ? lastsMs : null, isLive: lastsMs === "live" };
}

function nameOf(run: NewRun): string {
  return JSON.stringify([run.job, run.key?.key]);
}
