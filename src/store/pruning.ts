// Which of the runs that a call looked at go, the same for both engines.

import type { RunId } from "../runs/rules/run.js";
import type { PrunedJob } from "./retention-store.js";

export type Visited = {
  readonly id: RunId;
  /** It is of the job in question, and past its time. */
  readonly isOld: boolean;
  /** It is of the job in question, but ended too lately: it is looked at again. */
  readonly isYoung: boolean;
};

/** What goes, and where the next call goes on. */
export function judgeVisited(
  visited: readonly Visited[],
  { after, limit }: { readonly after: RunId | null; readonly limit: number },
): { readonly ids: readonly RunId[]; readonly answer: (removed: number) => PrunedJob } {
  const firstYoung = visited.findIndex(({ isYoung }) => isYoung);
  const passed = firstYoung < 0 ? visited : visited.slice(0, firstYoung);
  return {
    ids: visited.filter(({ isOld }) => isOld).map(({ id }) => id),
    answer: (removed) => ({
      removed,
      after: passed.at(-1)?.id ?? after,
      isDone: visited.length < limit || passed.length === 0,
    }),
  };
}

/** The smallest UUIDv7 of a moment. */
export function firstIdAt(ms: number): RunId {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
