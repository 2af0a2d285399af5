// The application's own tables, on whichever database it was given: the same SQL text with $1, $2 … runs on
// both. An application of yours has one database and does not need this file.

import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Database, PostgresTx, SqliteHandle } from "holdfast";

export type Row = Record<string, unknown>;
export type Statement = readonly [text: string, values?: readonly unknown[]];

export type AppDatabase = {
  readonly kind: "postgres" | "sqlite";
  /** What Holdfast is given: it works through the same pool or handle. */
  readonly handle: Database;
  query(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * For `ctx.commit` and items with `tx`: these statements in that transaction, then `result`. On SQLite all
   * is done when it returns, as it has to be there.
   */
  within<T>(tx: unknown, statements: readonly Statement[], result: T): T | Promise<T>;
  /** These statements in a transaction, provided that the first one answers a row; else nothing, and false. */
  provided(first: Statement, statements: readonly Statement[]): Promise<boolean>;
  close(): Promise<void>;
};

/** @param url "sqlite:file.db" or "postgres://…" */
export async function openDatabase(url: string): Promise<AppDatabase> {
  return url.startsWith("sqlite:") ? openSqlite(url.slice("sqlite:".length)) : openPostgres(url);
}

async function openPostgres(url: string): Promise<AppDatabase> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  // A connection that breaks while nobody uses it is replaced by the next one.
  pool.on("error", () => undefined);
  return {
    kind: "postgres",
    handle: pool,
    query: async (text, values = []) => (await pool.query(text, [...values])).rows,
    within: async (tx, statements, result) => {
      for (const [text, values = []] of statements)
        await (tx as PostgresTx).query(text, [...values]);
      return result;
    },
    provided: async ([text, values = []], statements) => {
      const client = await pool.connect();
      try {
        await client.query("begin");
        const { rows } = await client.query(text, [...values]);
        if (rows.length > 0)
          for (const [each, given = []] of statements) await client.query(each, [...given]);
        await client.query("commit");
        return rows.length > 0;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
    close: () => pool.end(),
  };
}

async function openSqlite(file: string): Promise<AppDatabase> {
  const { DatabaseSync } = await import("@photostructure/sqlite");
  mkdirSync(path.dirname(file), { recursive: true });
  const sqlite = new DatabaseSync(file, { timeout: 5_000 });
  sqlite.exec("pragma journal_mode = wal");
  return onHandle(sqlite);
}

/** On a handle that is open already, for example that of a test. */
export function onHandle(sqlite: SqliteHandle): AppDatabase {
  const ask = (handle: SqliteHandle, [text, values = []]: Statement) =>
    handle
      .prepare(text)
      .all(Object.fromEntries(values.map((value, at) => [`$${at + 1}`, value]))) as Row[];
  return {
    kind: "sqlite",
    handle: sqlite,
    query: async (text, values = []) => ask(sqlite, [text, values]),
    within: (tx, statements, result) => {
      for (const statement of statements) ask(tx as SqliteHandle, statement);
      return result;
    },
    provided: async (first, statements) => {
      sqlite.exec("begin immediate");
      try {
        const isGiven = ask(sqlite, first).length > 0;
        if (isGiven) for (const statement of statements) ask(sqlite, statement);
        sqlite.exec("commit");
        return isGiven;
      } catch (error) {
        sqlite.exec("rollback");
        throw error;
      }
    },
    close: async () => sqlite.close(),
  };
}

/** Runs every file of `folder` for this database (`001_name.sql`, or `001_name.sqlite.sql`), in order. */
export async function migrate(db: AppDatabase, folder: string): Promise<void> {
  const other = db.kind === "sqlite" ? ".postgres.sql" : ".sqlite.sql";
  const files = readdirSync(folder).filter(
    (name) => name.endsWith(".sql") && !name.endsWith(other),
  );
  for (const name of files.sort()) {
    const text = readFileSync(path.join(folder, name), "utf8");
    if (db.kind === "sqlite") (db.handle as unknown as SqliteHandle).exec(text);
    else await db.query(text);
  }
}
