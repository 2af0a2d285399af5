// Sends our statements in a transaction that a user's code opened on PostgreSQL, and opens transactions on a user's database
// for `ctx.commit(fn, { on })`. libraries.ts knows the libraries.

import { ConfigurationError } from "../../../shared/errors.js";
import type { Transactor, TxQuery } from "../../commits.js";
import type { Store } from "../../store.js";
import type { PostgresSession } from "../session.js";
import { LIBRARIES, type Library } from "./libraries.js";

/** Created with the tables, so that two databases with equal names are distinguished. */
const IDENTITY = /* sql */ `select v.identity::text as identity from {schema_version} v`;

const FIELD = "enqueue().tx";

export class CallersTransactions {
  readonly #session: PostgresSession;
  /** Transactions, and clients that serve one transaction after the other, whose database is known to be ours. */
  readonly #checked = new WeakSet<object>();
  #identity: string | null = null;

  constructor(session: PostgresSession) {
    this.#session = session;
  }

  /** Refuses a transaction on another database. */
  async queryOf(tx: unknown, field = FIELD): Promise<TxQuery> {
    const query = txQuery(tx, field);
    if (!this.#checked.has(tx as object)) await this.#check(query, field);
    this.#checked.add(tx as object);
    return query;
  }

  /** Runs carry numbers of lanes and policies, which mean something else in another database. */
  async #check(query: TxQuery, field: string): Promise<void> {
    if (this.#identity === null) {
      const [own] = await this.#session.repeat("enqueue.within", IDENTITY, {});
      this.#identity = String(own?.identity);
    }
    let found: readonly Record<string, unknown>[] = [];
    let cause: unknown;
    try {
      found = await this.#session.withinForeign(query, IDENTITY, {});
    } catch (error) {
      cause = error;
    }
    if (found[0]?.identity === this.#identity) return;
    const why = cause instanceof Error ? ` (${cause.message})` : "";
    throw new ConfigurationError([
      {
        field,
        message: `is a transaction that cannot reach the tables of this Holdfast${why}; open it on the same database, with a role that may use its schema`,
      },
    ]);
  }
}

export function transactorOf(handle: unknown, engine: Store["engine"]): Transactor {
  if (engine === "sqlite") {
    const message =
      "is for PostgreSQL; on SQLite the transaction is opened on the database of the Holdfast itself, " +
      "so leave it out";
    throw new ConfigurationError([{ field: "ctx.commit().on", message }]);
  }
  return isTransactor(handle) ? handle : libraryTransactor(handle, "ctx.commit().on");
}

/** A user of an unknown library passes these functions. */
function isTransactor(handle: unknown): handle is Transactor {
  return typeof (handle as Partial<Transactor> | null)?.transact === "function";
}

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
export function libraryTransactor(handle: unknown, field = "commit().on"): Transactor {
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
