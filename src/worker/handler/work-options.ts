// What a handler may say about an item and a commit, and what it gets in a transaction.

import type { PostgresTx } from "../../store/postgres/transactor.js";
import type { SqliteHandle } from "../../store/sqlite/connection.js";

/**
 * How far a commit has come. While it is being settled nobody but the database knows whether the run
 * is still held: a heartbeat that no longer finds it says nothing.
 */
export type CommitPhase = "none" | "working" | "settling" | "done";

/**
 * What is in a transaction: `query` on PostgreSQL, the database handle on SQLite. Code that is meant for
 * one of them says so: `ctx.commit((tx: PostgresTx) => …)`.
 */
export type TransactionHandle = PostgresTx & SqliteHandle;

export type CommitOptions = {
  /** The database object that opens the transaction, on PostgreSQL; `tx` is then what it gives. */
  readonly on?: unknown | undefined;
};

export type ItemOptions<Value = unknown> = {
  /**
   * What a failure does: `throw` ends this attempt, `record` goes on, and the call answers undefined.
   * Either way it is stored, and a later attempt tries the item again.
   * @default "throw"
   */
  readonly onError?: "throw" | "record" | undefined;
  /** Names how a done item turned out, for counting. @default () => "ok" */
  readonly outcome?: ((value: Value) => string) | undefined;
  /** True: `fn(tx)` runs in a transaction, which also stores the item. On SQLite `fn` is synchronous. */
  readonly tx?: boolean | undefined;
};
