// What is removed once it is past its time, in domain verbs. A call is bounded; what is left is found by
// the next one.

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
