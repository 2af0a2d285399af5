// Kysely on PostgreSQL. Its plugins are left out of our statements: one that renames columns would
// rename ours.

import { hasMethods, type Library, rowsOf } from "./library.js";
import { wireStatement } from "./wire-text.js";

type Executor = {
  readonly isTransaction: boolean;
  withoutPlugins(): Executor;
  executeQuery(query: object): Promise<unknown>;
};
type Database = Executor & {
  transaction(): { execute<T>(fn: (trx: object) => Promise<T>): Promise<T> };
};

export const kyselyLibrary: Library = {
  name: "Kysely",
  transaction(value) {
    if (!isKysely(value) || !value.isTransaction) return null;
    const executor = value.withoutPlugins();
    return async (text, values) => {
      const { text: sql, values: parameters } = wireStatement(text, values);
      return rowsOf(await executor.executeQuery(rawQuery(sql, parameters)));
    };
  },
  database(value) {
    if (!isKysely(value) || value.isTransaction) return null;
    return (fn) => (value as Database).transaction().execute(fn);
  },
};

function isKysely(value: object): value is Executor {
  return (
    hasMethods(value, "executeQuery", "withoutPlugins") &&
    typeof (value as { isTransaction?: unknown }).isTransaction === "boolean"
  );
}

/** What `CompiledQuery.raw` makes; a query is known by the object of its id, not by the text in it. */
function rawQuery(sql: string, parameters: readonly unknown[]): object {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
  return { sql, parameters, query, queryId: { queryId: "holdfast" } };
}
