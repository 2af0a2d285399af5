// Keeps the last shown list of runs, for the way into a run and back: the known rows are shown at once and refetched in
// the background.

import type { Run } from "../api/wire.js";

type ListPage = { readonly cursor: string | undefined; readonly runs: readonly Run[] };
/** `key` is the filter of the request. */
export type ListRead = {
  readonly key: string;
  readonly pages: readonly ListPage[];
  readonly next: string | null;
};

let kept: ListRead | null = null;

export function keepList(read: ListRead): void {
  kept = read;
}

export function forgetList(): void {
  kept = null;
}

/** The rows of this filter, if it was the last one. */
export function keptList(key: string): ListRead | null {
  return kept?.key === key && kept.pages.length > 0 ? kept : null;
}

/** A run as the list showed it. */
export function keptRun(id: string): Run | undefined {
  return kept?.pages.flatMap(({ runs }) => runs).find((run) => run.id === id);
}
