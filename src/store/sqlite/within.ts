// Storing runs inside a caller's transaction on SQLite, where a transaction is a state of a handle:
// our own, if it was given to us, or another one that is open on the same file. Synchronous throughout.
// Another library on the same file would not share its locks with ours and corrupt it: it is refused.

import { ConfigurationError } from "../../shared/errors.js";
import type { EnqueueAnswer, WithinParams } from "../store.js";
import { fileOf, isOpenTransaction, type SqliteHandle } from "./connection.js";
import { Refused, SqliteEnqueue } from "./enqueue.js";
import { SqliteLimits } from "./flow.js";
import { SqliteSession } from "./session.js";

const FIELD = "enqueue().tx";

type Entry = { readonly asker: SqliteSession; readonly enqueue: SqliteEnqueue };

export class SqliteWithin {
  readonly #own: Entry;
  readonly #others = new WeakMap<SqliteHandle, Entry>();

  constructor(own: Entry) {
    this.#own = own;
  }

  async enqueueWithin(params: WithinParams): Promise<readonly EnqueueAnswer[]> {
    return this.enqueueWithinSync(params);
  }

  enqueueWithinSync({ tx, runs }: WithinParams): readonly EnqueueAnswer[] {
    const handle = handleOf(tx);
    const { asker, enqueue } = this.#entryOf(handle);
    if (!isOpenTransaction(handle))
      throw wrong("is a handle without an open transaction; send BEGIN IMMEDIATE first");
    // What it learns is not kept: the caller may roll back.
    asker.beginLearning();
    asker.file.exec("savepoint holdfast_enqueue");
    try {
      return enqueue.store({ runs, isAtomic: true }, this.#own.asker.now());
    } catch (error) {
      asker.file.exec("rollback to holdfast_enqueue");
      if (error instanceof Refused) return error.answers;
      throw error;
    } finally {
      asker.file.exec("release holdfast_enqueue");
    }
  }

  #entryOf(handle: SqliteHandle): Entry {
    const own = this.#own.asker.file.handle;
    if (handle === own) return this.#own;
    const known = this.#others.get(handle);
    if (known) return known;
    if (handle.constructor !== own.constructor)
      throw wrong(
        "is a handle of another SQLite library than the one that Holdfast uses, and two of them corrupt a file; give that handle as `database` too",
      );
    if (fileOf(handle) === "" || fileOf(handle) !== fileOf(own))
      throw wrong(
        `is open on ${fileOf(handle) || "a database in memory"}, and Holdfast on ${fileOf(own) || "another one in memory"}; runs are stored in the same file as what they belong to`,
      );
    const asker = new SqliteSession({ file: this.#own.asker.file.on(handle) });
    const entry = { asker, enqueue: new SqliteEnqueue(asker, new SqliteLimits(asker.file)) };
    this.#others.set(handle, entry);
    return entry;
  }
}

/** The handle itself, or the one below a Drizzle database or transaction. */
function handleOf(tx: unknown): SqliteHandle {
  const { session, $client } = (tx ?? {}) as { session?: { client?: unknown }; $client?: unknown };
  const found = [tx, $client, session?.client].find(isHandle);
  if (found) return found;
  throw wrong("is no SQLite handle; give the DatabaseSync on which your transaction is open");
}

function isHandle(value: unknown): value is SqliteHandle {
  const { prepare, exec } = (value ?? {}) as { prepare?: unknown; exec?: unknown };
  return typeof prepare === "function" && typeof exec === "function";
}

function wrong(message: string): ConfigurationError {
  return new ConfigurationError([{ field: FIELD, message }]);
}
