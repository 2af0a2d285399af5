// Declares the store's verbs for runs that a run creates. Every write here happens under the fence of the creating run;
// under an old fence the store writes nothing and returns "stale".
// store.ts defines a run's input and record: hence the type parameters.

import type { AuditEntry } from "../operations/rules/audit.js";
import type { RunId, RunStatus } from "../runs/rules/run.js";

/** A run under the fence that its holder believes in. */
type Maker = { readonly id: RunId; readonly fence: number };

/** Why an entry of a batch has no child: `index` is its place in the list that was given. */
export type BatchError = {
  readonly index: number;
  readonly code: string;
  readonly message: string;
};

export type NewBatchOf<NewRun> = {
  readonly parent: Maker;
  /** One batch of this name per run, over all attempts. */
  readonly name: string;
  readonly children: readonly { readonly index: number; readonly run: NewRun }[];
  /** Entries that were refused before. */
  readonly errors: readonly BatchError[];
  /** The run that comes after the last child; its input will be the counts. */
  readonly after: NewRun | null;
};

export type BatchAnswer = {
  readonly scheduled: number;
  readonly errors: readonly BatchError[];
};

/** How a batch stands now. */
export type BatchRecord = BatchAnswer & {
  readonly name: string;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** The run that was made after the last child had ended. */
  readonly after: RunId | null;
};

export type ChildFilter = {
  readonly parent: RunId;
  readonly batch?: string;
  readonly status?: RunStatus;
  /** Newest first; continues after this id. */
  readonly before?: RunId;
  readonly limit: number;
};

export type RetryChildren = {
  readonly parent: RunId;
  readonly batch?: string;
  /** Continues after this id. */
  readonly after?: RunId;
  readonly limit: number;
  /** Kept in the audit trail if there were any. */
  readonly audit?: AuditEntry | undefined;
};

export interface BatchVerbs<NewRun, EnqueueAnswer, RunRecord> {
  /** Stores runs that a held run makes, each with its own answer; the same id twice is the same run. */
  enqueueChildren(params: {
    readonly parent: Maker;
    readonly runs: readonly NewRun[];
  }): Promise<readonly EnqueueAnswer[] | "stale">;

  /**
   * Stores a batch with its children in one transaction. If the run has one of that name already, it
   * answers as it did then and makes nothing. A batch without children that are still to end makes
   * the run that comes after at once.
   */
  enqueueBatch(params: NewBatchOf<NewRun>): Promise<BatchAnswer | "stale">;

  /** In the order of their making. */
  batches(run: RunId): Promise<readonly BatchRecord[]>;
  children(filter: ChildFilter): Promise<readonly RunRecord[]>;
  /** One more attempt for failed children, in the order of their ids, a bounded number at once. */
  retryChildren(params: RetryChildren): Promise<readonly RunId[]>;
}
