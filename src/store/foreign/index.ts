// A user's database library on PostgreSQL: from its open transaction to statements of ours inside of
// it, and from its database to a transaction that it opens. Recognised by shape, library by library.

import { ConfigurationError } from "../../shared/errors.js";
import type { Transactor, TxQuery } from "../transaction.js";
import { drizzleLibrary } from "./drizzle.js";
import { knexLibrary } from "./knex.js";
import { kyselyLibrary } from "./kysely.js";
import type { Library } from "./library.js";
import { pgLibrary } from "./pg.js";
import { postgresJsLibrary } from "./postgres-js.js";
import { prismaLibrary } from "./prisma.js";

/** `pg` comes last, as many things have a `query`. */
const LIBRARIES: readonly Library[] = [
  drizzleLibrary,
  kyselyLibrary,
  knexLibrary,
  prismaLibrary,
  postgresJsLibrary,
  pgLibrary,
];
const NAMES = "pg, Drizzle, Kysely, Knex, Prisma or postgres.js";

/** Statements inside a user's open transaction. `field` names the option in messages. */
export function txQuery(tx: unknown, field = "enqueue().tx"): TxQuery {
  const found = recognised(tx, (library, value) => library.transaction(value));
  if (found) return found;
  const known = recognised(tx, (library, value) => (library.database(value) ? library : null));
  throw wrong(
    field,
    known
      ? `is a database of ${known.name}, not an open transaction; give the object that its transaction function hands you`
      : `is no open transaction of ${NAMES}; on a pg client send BEGIN first`,
  );
}

/** Opens transactions on a user's database; inside, `tx` is the library's own object. */
export function transactorOf(handle: unknown, field = "commit().on"): Transactor {
  const openIn = recognised(handle, (library, value) => library.database(value));
  if (openIn)
    return {
      transact: (fn) => openIn((tx) => fn({ tx, query: txQuery(tx, field) })),
    };
  const known = recognised(handle, (library, value) =>
    library.transaction(value) ? library : null,
  );
  throw wrong(
    field,
    known
      ? `is a transaction or a single connection of ${known.name}; give the database (of pg: the Pool), so that a transaction of its own can be opened`
      : `is no database of ${NAMES}`,
  );
}

function recognised<T>(
  value: unknown,
  ask: (library: Library, value: object) => T | null,
): T | null {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return null;
  for (const library of LIBRARIES) {
    const found = ask(library, value);
    if (found !== null) return found;
  }
  return null;
}

function wrong(field: string, message: string): ConfigurationError {
  return new ConfigurationError([{ field, message }]);
}
