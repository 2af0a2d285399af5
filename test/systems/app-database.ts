// Gives the tests of the systems an application's database: open as the example opens it, and with a query for what
// a test looks up or puts into it.

import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { SqliteHandle } from "holdfast";
import { CompiledQuery } from "kysely";
import * as shared from "../../examples/shared/database.js";

export { migrate } from "../../examples/shared/database.js";

export type AppDatabase = shared.AppDatabase & {
  /** Values are `$1`, `$2` … on both databases. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
};

export function openDatabase(url: string): AppDatabase {
  return queried(shared.openDatabase(url));
}

/** On the handle of a test kit, which closes it. */
export function onHandle(handle: SqliteHandle): AppDatabase {
  return queried({ handle, db: shared.onSqlite(handle as DatabaseSyncInstance) });
}

function queried({ handle, db }: shared.AppDatabase): AppDatabase {
  return {
    handle,
    db,
    query: async (text, values = []) => {
      const placed = "exec" in handle ? text.replace(/\$(\d)/g, "?$1") : text;
      const { rows } = await db.executeQuery(CompiledQuery.raw(placed, [...values]));
      return rows as Record<string, unknown>[];
    },
    close: () => db.destroy(),
  };
}
