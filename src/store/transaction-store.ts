// What the engine asks of a database inside a transaction that its caller has open. Nothing here
// commits: what is stored is there when the caller commits, and is gone when the caller rolls back.

import type { EnqueueAnswer, NewRun } from "./store.js";

export type WithinParams = {
  /** The caller's transaction, in the words of the caller's database library. */
  readonly tx: unknown;
  readonly runs: readonly NewRun[];
};

export interface TransactionStore {
  /**
   * Stores new runs in the caller's transaction, all or none. A key that is taken by another input
   * answers with a conflict, stores nothing of the call, and leaves the transaction usable.
   */
  enqueueWithin(params: WithinParams): Promise<readonly EnqueueAnswer[]>;
  /** The same without waiting for anything; on SQLite alone, and only once the store is open. */
  enqueueWithinSync(params: WithinParams): readonly EnqueueAnswer[];
}
