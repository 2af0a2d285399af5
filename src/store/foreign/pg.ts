// `pg`: a client on which a transaction is open, a pool that opens one. Whatever else has a
// `query(text, values)` is taken for an open transaction too, our own `tx` of a handler among it.

import { hasMethods, type Library, type OpenIn, rowsOf } from "./library.js";
import { wireStatement } from "./wire-text.js";

type Queryable = { query(text: string, values?: readonly unknown[]): Promise<unknown> };
type Client = Queryable & { release(error?: unknown): void };
type Pool = Queryable & { connect(): Promise<Client> };

/** What a client of `pg` says of itself while no transaction is open. */
const IDLE = "I";

export const pgLibrary: Library = {
  name: "pg",
  transaction(value) {
    if (!hasMethods(value, "query") || isPool(value)) return null;
    const client = value as unknown as Queryable & { getTransactionStatus?: () => unknown };
    if (client.getTransactionStatus?.() === IDLE) return null;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await client.query(statement.text, statement.values));
    };
  },
  database: (value) => (isPool(value) ? inPool(value) : null),
};

function isPool(value: object): value is Pool {
  return hasMethods(value, "connect", "query") && "totalCount" in value;
}

function inPool(pool: Pool): OpenIn {
  return async (fn) => {
    const client = await pool.connect();
    let failure: unknown;
    try {
      await client.query("begin");
      const value = await fn(client);
      await client.query("commit");
      return value;
    } catch (error) {
      // A client that cannot even roll back is of no use to anybody else.
      await client.query("rollback").catch((broken: unknown) => {
        failure = broken;
      });
      throw error;
    } finally {
      client.release(failure);
    }
  };
}
