// Drizzle on PostgreSQL, with any driver whose `execute` answers with rows (node-postgres, postgres.js).
// A statement is handed over as what its `sql` tag would become: an object that says its text.

import { hasMethods, type Library, rowsOf } from "./library.js";
import { wireStatement } from "./wire-text.js";

type Drizzle = {
  execute(query: unknown): Promise<unknown>;
  transaction<T>(fn: (tx: object) => Promise<T>): Promise<T>;
};

export const drizzleLibrary: Library = {
  name: "Drizzle",
  transaction(value) {
    if (!isDrizzle(value) || !isTransaction(value)) return null;
    return async (text, values) => {
      const { text: sql, values: params } = wireStatement(text, values);
      const query = { toQuery: () => ({ sql, params }) };
      return rowsOf(await value.execute({ getSQL: () => query }));
    };
  },
  database(value) {
    if (!isDrizzle(value) || isTransaction(value)) return null;
    return (fn) => value.transaction(fn);
  },
};

function isDrizzle(value: object): value is Drizzle {
  return hasMethods(value, "execute", "transaction") && "dialect" in value && "session" in value;
}

function isTransaction(value: object): boolean {
  return hasMethods(value, "rollback");
}
