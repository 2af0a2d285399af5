// Declares the store's verbs that remove rows past their retention. One call removes a bounded number of rows; the
// next call continues.

import type { RunId } from "../runs/rules/run.js";

export type PruneParams = {
  readonly keepMs: number;
  readonly keepTicksMs: number;
  /** Of log lines that are kept with runs; they go with their runs at the latest. @default keepMs */
  readonly keepLogsMs?: number;
  readonly limit: number;
};

export type PruneJobParams = {
  readonly job: string;
  /** Ended runs older than this go; null: by their number alone. */
  readonly keepMs: number | null;
  /** All but the newest so many go; null: by their age alone. */
  readonly keepCount: number | null;
  /** Where the last call came to: nothing up to here is looked at again. */
  readonly after: RunId | null;
  /** How many runs are looked at. */
  readonly limit: number;
};

export type PrunedJob = {
  readonly removed: number;
  readonly after: RunId | null;
  /** Nothing is left for now. */
  readonly isDone: boolean;
};

export interface RetentionStore {
  /** Removes what is past its time, a bounded amount; answers how much. */
  prune(params: PruneParams): Promise<number>;
  /** The same for one job that keeps its runs for a shorter time. */
  pruneJob(params: PruneJobParams): Promise<PrunedJob>;
}

// Decides which of the visited runs are removed, the same for both databases.

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
