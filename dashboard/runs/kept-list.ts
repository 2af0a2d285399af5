// The list of runs that was looked at last, for the way into a run and back: what is known is shown at once
// and read again behind it.

import type { Run } from "../api/wire.js";

type ListPage = { readonly cursor: string | undefined; readonly runs: readonly Run[] };
/** `key` is the filter that it was read with. */
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

/** What this filter showed, where it was the last one. */
export function keptList(key: string): ListRead | null {
  return kept?.key === key && kept.pages.length > 0 ? kept : null;
}

/** A run as the list showed it. */
export function keptRun(id: string): Run | undefined {
  return kept?.pages.flatMap(({ runs }) => runs).find((run) => run.id === id);
}
