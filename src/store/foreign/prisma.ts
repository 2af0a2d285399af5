// Prisma on PostgreSQL, through its driver adapter. Inside of a transaction its client cannot connect
// or disconnect: that is how one is told from the other.

import { hasMethods, type Library, type Rows, rowsOf } from "./library.js";
import { wireStatement } from "./wire-text.js";

type Raw = { $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown> };
type Database = Raw & { $transaction<T>(fn: (tx: object) => Promise<T>): Promise<T> };

export const prismaLibrary: Library = {
  name: "Prisma",
  transaction(value) {
    if (!hasMethods(value, "$queryRawUnsafe") || hasMethods(value, "$connect")) return null;
    const client = value as unknown as Raw;
    return async (text, values) => {
      const statement = wireStatement(text, values);
      return rowsOf(await client.$queryRawUnsafe(statement.text, ...statement.values)).map(
        asOthers,
      );
    };
  },
  database(value) {
    if (!hasMethods(value, "$queryRawUnsafe", "$transaction", "$connect")) return null;
    const database = value as unknown as Database;
    return (fn) => database.$transaction(fn);
  },
};

/** Large integers are text everywhere else. */
function asOthers(row: Rows[number]): Rows[number] {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === "bigint" ? String(value) : value,
  ]);
  return Object.fromEntries(members) as Rows[number];
}
