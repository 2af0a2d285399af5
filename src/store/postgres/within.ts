// Storing runs inside a caller's transaction on PostgreSQL, whichever library opened it.

import { ConfigurationError } from "../../shared/errors.js";
import { txQuery } from "../foreign/index.js";
import type { EnqueueAnswer, WithinParams } from "../store.js";
import type { TxQuery } from "../transaction.js";
import type { PostgresEnqueue } from "./enqueue.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/within.js";

const FIELD = "enqueue().tx";

export class PostgresWithin {
  readonly #asker: PostgresSession;
  readonly #enqueue: PostgresEnqueue;
  /** Transactions, and clients that serve one after the other, whose database is known to be ours. */
  readonly #checked = new WeakSet<object>();
  #identity: string | null = null;

  constructor(params: { readonly asker: PostgresSession; readonly enqueue: PostgresEnqueue }) {
    this.#asker = params.asker;
    this.#enqueue = params.enqueue;
  }

  async enqueueWithin({ tx, runs }: WithinParams): Promise<readonly EnqueueAnswer[]> {
    const query = txQuery(tx, FIELD);
    if (!this.#checked.has(tx as object)) await this.#check(query);
    this.#checked.add(tx as object);
    return this.#enqueue.enqueueWithin(query, runs);
  }

  enqueueWithinSync(): never {
    throw new ConfigurationError([
      {
        field: "enqueueSync()",
        message: "is for SQLite; on PostgreSQL use `await job.enqueue(input, { tx })`",
      },
    ]);
  }

  /** Runs carry numbers of lanes and policies, which mean something else in another database. */
  async #check(query: TxQuery): Promise<void> {
    if (this.#identity === null) {
      const [own] = await this.#asker.repeat("enqueue", sql.IDENTITY, {});
      this.#identity = String(own?.identity);
    }
    let found: readonly Record<string, unknown>[] = [];
    let cause: unknown;
    try {
      found = await this.#asker.withinForeign(query, sql.IDENTITY, {});
    } catch (error) {
      cause = error;
    }
    if (found[0]?.identity === this.#identity) return;
    const why = cause instanceof Error ? ` (${cause.message})` : "";
    throw new ConfigurationError([
      {
        field: FIELD,
        message: `is a transaction that cannot reach the tables of this Holdfast${why}; open it on the same database, with a role that may use its schema`,
      },
    ]);
  }
}
