// Opens the database of an example for Kysely: PostgreSQL, or a SQLite file. An application of yours has one of the
// two, and does not need this file.

import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import type { SqliteHandle } from "holdfast";
import { Kysely, PostgresDialect, SqliteDialect } from "kysely";
import pg from "pg";

export type AppDatabase = {
  /** For Holdfast, which works through the same pool or file. */
  readonly handle: pg.Pool | SqliteHandle;
  readonly db: Kysely<unknown>;
};

/** @param url "sqlite:file.db" or "postgres://…" */
export function openDatabase(url: string): AppDatabase {
  if (url.startsWith("sqlite:")) return openSqlite(url.slice("sqlite:".length));
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  // A connection that breaks while it is idle is replaced by the next one.
  pool.on("error", () => undefined);
  return { handle: pool, db: new Kysely({ dialect: new PostgresDialect({ pool }) }) };
}

function openSqlite(file: string): AppDatabase {
  mkdirSync(path.dirname(file), { recursive: true });
  const handle = new DatabaseSync(file, { timeout: 5_000 });
  handle.exec("pragma journal_mode = wal");
  return { handle, db: onSqlite(handle) };
}

/** Kysely on Node's kind of handle. One of better-sqlite3 is given to `SqliteDialect` as it is. */
export function onSqlite(handle: DatabaseSyncInstance): Kysely<unknown> {
  const prepare = (text: string) => {
    const statement = handle.prepare(text);
    return {
      reader: statement.columns().length > 0,
      all: (values: readonly unknown[]) => statement.all(...(values as string[])),
      run: (values: readonly unknown[]) => statement.run(...(values as string[])),
      iterate: (values: readonly unknown[]) => statement.iterate(...(values as string[])),
    };
  };
  const database = { prepare, close: () => handle.close() };
  return new Kysely({ dialect: new SqliteDialect({ database }) });
}

/** Runs every file of `folder` for this database (`001_name.sql`, or `001_name.sqlite.sql`), in order. */
export async function migrate({ handle }: AppDatabase, folder: string): Promise<void> {
  const other = "exec" in handle ? ".postgres.sql" : ".sqlite.sql";
  const files = readdirSync(folder).filter(
    (name) => name.endsWith(".sql") && !name.endsWith(other),
  );
  for (const name of files.sort()) {
    const text = readFileSync(path.join(folder, name), "utf8");
    if ("exec" in handle) handle.exec(text);
    else await handle.query(text);
  }
}
