// Which transactor a user's database object (`ctx.commit(fn, { on })`) means. The one place that turns
// such an object into something the store can settle in.

import { ConfigurationError } from "../core/errors.js";
import type { Store } from "./store.js";
import type { Transactor } from "./transaction.js";

export function transactorOf(handle: unknown, engine: Store["engine"]): Transactor {
  if (isTransactor(handle) && engine === "postgres") return handle;
  throw new ConfigurationError([
    {
      field: "ctx.commit().on",
      message:
        engine === "sqlite"
          ? "is for PostgreSQL; on SQLite the transaction is opened on the database of the Holdfast itself, so leave it out"
          : "must be an object with `transact(fn)`, or be left out: then `tx` has `query(text, values)`",
    },
  ]);
}

function isTransactor(handle: unknown): handle is Transactor {
  return typeof (handle as Partial<Transactor> | null)?.transact === "function";
}
