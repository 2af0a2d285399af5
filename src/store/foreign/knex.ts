// Knex on PostgreSQL, whose placeholders are question marks.

import { hasMethods, type Library, rowsOf } from "./library.js";
import { questionMarks, wireStatement } from "./wire-text.js";

type Raw = {
  readonly isTransaction?: boolean;
  raw(text: string, values: readonly unknown[]): Promise<unknown>;
};
type Database = Raw & { transaction<T>(fn: (trx: object) => Promise<T>): Promise<T> };

export const knexLibrary: Library = {
  name: "Knex",
  transaction(value) {
    if (!isKnex(value) || value.isTransaction !== true) return null;
    return async (text, values) => {
      const statement = questionMarks(wireStatement(text, values));
      return rowsOf(await value.raw(statement.text, statement.values));
    };
  },
  database(value) {
    if (!isKnex(value) || value.isTransaction === true) return null;
    return (fn) => (value as Database).transaction(fn);
  },
};

function isKnex(value: object): value is Raw {
  return hasMethods(value, "raw", "transaction", "queryBuilder");
}
