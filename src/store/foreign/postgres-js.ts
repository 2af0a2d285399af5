// postgres.js: `sql` inside of `sql.begin(…)`. Both are functions with methods.

import { hasMethods, type Library, rowsOf } from "./library.js";
import { wireStatement } from "./wire-text.js";

type Unsafe = { unsafe(text: string, values: readonly unknown[]): Promise<unknown> };
type Database = Unsafe & { begin<T>(fn: (sql: object) => Promise<T>): Promise<T> };

export const postgresJsLibrary: Library = {
  name: "postgres.js",
  transaction(value) {
    if (!hasMethods(value, "unsafe", "savepoint")) return null;
    const sql = value as unknown as Unsafe;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await sql.unsafe(statement.text, statement.values));
    };
  },
  database(value) {
    if (!hasMethods(value, "unsafe", "begin")) return null;
    const database = value as unknown as Database;
    return (fn) => database.begin(fn);
  },
};
