// Declares the verbs that commit a user's work together with a settlement or an item, and the transactions that they use.
// The engines differ: on PostgreSQL the work is asynchronous, on a connection of ours or of the user's library; on SQLite it
// is synchronous, on our own handle.

import type { Grant, Settlement } from "./claims.js";
import type { ItemResult, ItemWrite } from "./items.js";
import type { NewStep } from "./steps.js";

/** Sends one statement (`$1` …) inside of an open transaction; returns its rows. */
export type TxQuery = (
  text: string,
  values: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>;

/** An open transaction: the user's object for it, and a function that sends our statements in it. */
export type OpenTransaction = { readonly tx: unknown; readonly query: TxQuery };

/** Opens a transaction around `fn`: commits when it resolves, rolls back when it rejects. */
export interface Transactor {
  transact<Value>(fn: (opened: OpenTransaction) => Promise<Value>): Promise<Value>;
}

type InTransaction = Grant & {
  /** Opens the transaction. Null: on a connection of the store. SQLite has only its own. */
  readonly on: Transactor | null;
  /** The timeout of each statement that the user's work sends. */
  readonly timeoutMs: number;
};

export type CommitParams = InTransaction & {
  readonly holder: number;
  /** A number from 0 to 1 for schedules with a range, whose next tick depends on the end of a run. */
  readonly random: number;
  /** The user's work. The last statement of the transaction applies the settlement that it returns. On SQLite synchronous. */
  readonly work: (tx: unknown) => Settlement | Promise<Settlement>;
};

export type CommitItemParams = InTransaction & {
  /** The user's work. The last statement of the transaction stores the item that it returns. On SQLite synchronous. */
  readonly work: (tx: unknown) => ItemWrite | Promise<ItemWrite>;
};

export type CommitStepParams = InTransaction & {
  readonly generation: number;
  /** The user's work. The last statements of the transaction store the step that it returns. On SQLite synchronous. */
  readonly work: (tx: unknown) => NewStep | Promise<NewStep>;
};

export interface CommitVerbs {
  /**
   * Does the user's work and settles its run in one transaction. If the work throws, nothing is changed and the error is
   * thrown again. An `OutcomeUnknownError` means that the reply to the commit was lost.
   */
  run(params: CommitParams): Promise<"committed" | "stale">;
  /** Does the user's work and stores an item in one transaction. Unless the item is stored, nothing is changed. */
  item(params: CommitItemParams): Promise<ItemResult>;
  /** Does the user's work and stores a step in one transaction; returns its number. A stored step is not stored again. */
  step(params: CommitStepParams): Promise<number | "stale">;
}

/** Thrown to roll back a transaction with a user's work; carries the result out of it and never leaves the store. */
export class RolledBack<Result> {
  constructor(readonly result: Result) {}
}

/** Wraps an error of the user's function, so that it does not count as a failure of ours. */
export class ThrownByWork {
  constructor(readonly error: unknown) {}
}

/** Statements that would end the transaction, so that the run would be completed without it. Savepoints are allowed. */
const ENDS_TRANSACTION =
  /(begin|start\s+transaction|commit|end|abort|rollback(?!\s+(work\s+|transaction\s+)?to\b)|prepare\s+transaction)\b/iy;

/**
 * Whether a statement in this text would end the transaction. It reads backwards and visits every position once,
 * however many comments follow each other.
 */
export function endsTransaction(text: string): boolean {
  const end = text.length;
  /** Where the next word begins after spaces and comments, and where the next star is. */
  const words = new Int32Array(end + 3).fill(end);
  const stars = new Int32Array(end + 3).fill(end);
  let newline = end;
  for (let at = end - 1; at >= 0; at -= 1) {
    const star = stars[at + 2] as number;
    let word = at;
    if (/\s/.test(text.charAt(at))) word = words[at + 1] as number;
    else if (text.startsWith("--", at) && newline < end) word = words[newline + 1] as number;
    else if (text.startsWith("/*", at) && text[star + 1] === "/") word = words[star + 2] as number;
    words[at] = word;
    stars[at] = text[at] === "*" ? at : (stars[at + 1] as number);
    if (text[at] === "\n") newline = at;
    const isStart = at === 0 || text[at - 1] === ";";
    if (!isStart) continue;
    ENDS_TRANSACTION.lastIndex = word;
    if (ENDS_TRANSACTION.test(text)) return true;
  }
  return false;
}
