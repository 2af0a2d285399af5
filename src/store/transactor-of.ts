// Which transactor a user's database object (`ctx.commit(fn, { on })`) means. The one place that turns
// such an object into something the store can settle in.

import { ConfigurationError } from "../shared/errors.js";
import { transactorOf as foreignTransactorOf } from "./foreign/index.js";
import type { Store } from "./store.js";
import type { Transactor } from "./transaction.js";

export function transactorOf(handle: unknown, engine: Store["engine"]): Transactor {
  if (engine === "sqlite") {
    const message =
      "is for PostgreSQL; on SQLite the transaction is opened on the database of the Holdfast itself, " +
      "so leave it out";
    throw new ConfigurationError([{ field: "ctx.commit().on", message }]);
  }
  return isTransactor(handle) ? handle : foreignTransactorOf(handle, "ctx.commit().on");
}

/** Whoever uses a library that is not known here gives its own. */
function isTransactor(handle: unknown): handle is Transactor {
  return typeof (handle as Partial<Transactor> | null)?.transact === "function";
}
