// Opens a handle of a SQLite library safely, reads its state and its errors, and detects that the file at its path is
// no longer the open one. The only file that knows a SQLite library. One library per file and process: two of them do
// not share POSIX locks and corrupt the file, so a given handle is used as it is.

import type { BigIntStats } from "node:fs";
import {
  ConfigurationError,
  StoreGoneError,
  StoreReadOnlyError,
  StoreUnavailableError,
  StoreUnsupportedError,
  TxEndedError,
} from "../../../shared/errors.js";
import { endsTransaction } from "../../commits.js";

/** The members that both `DatabaseSync` (node:sqlite, @photostructure/sqlite) and better-sqlite3 have. */
export type SqliteHandle = {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: unknown[]): { changes: number | bigint };
    get(...values: unknown[]): unknown;
    all(...values: unknown[]): unknown[];
  };
  close(): void;
};

/** The handle as a function in a transaction gets it: with `query`, so that the function looks as on PostgreSQL. */
export type SqliteTx = SqliteHandle & {
  /** Executes one statement at once. Values are `$1`, `$2` …, or `?`. */
  query(
    text: string,
    values?: readonly unknown[],
  ): { readonly rows: Record<string, unknown>[]; readonly rowCount: number };
};

/** A file (":memory:" for none) or the handle of the surrounding application. */
export type SqliteSource = { readonly file: string } | { readonly handle: SqliteHandle };

const HANDLES = new WeakMap<object, SqliteHandle>();

/** Everything that the handle has, and `query`. The handle may be the application's: nothing is added to it. */
export function transactionHandle(handle: SqliteHandle): SqliteTx {
  const query: SqliteTx["query"] = (text, values = []) => queryNow(handle, text, values);
  const tx = new Proxy(handle, {
    get(target, name) {
      if (name === "query") return query;
      const value: unknown = Reflect.get(target, name, target);
      // A method of a native object works only on that object.
      return typeof value === "function" && name !== "constructor" ? value.bind(target) : value;
    },
  }) as SqliteTx;
  HANDLES.set(tx, handle);
  return tx;
}

/** The handle below what `transactionHandle` made; any other one as it is. */
export function bareHandle(handle: SqliteHandle): SqliteHandle {
  return HANDLES.get(handle) ?? handle;
}

/** Strings, quoted names and comments as they are, a comment without an end to the end, and the placeholders of PostgreSQL. */
const PLACEHOLDERS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\$(\d+)/g;

function queryNow(
  handle: SqliteHandle,
  text: string,
  values: readonly unknown[],
): ReturnType<SqliteTx["query"]> {
  if (endsTransaction(text)) throw new TxEndedError("ctx.commit or ctx.item");
  const inOrder: unknown[] = [];
  // Both libraries bind `?` in the order of the text, which a value may occur in more than once.
  const sql = text.replace(PLACEHOLDERS, (found, number?: string) => {
    if (number === undefined) return found;
    inOrder.push(values[Number(number) - 1]);
    return "?";
  });
  const given = (inOrder.length > 0 ? inOrder : values).map(sqliteValue);
  const statement = handle.prepare(sql);
  if (returnsRows(statement)) {
    const rows = statement.all(...given) as Record<string, unknown>[];
    return { rows, rowCount: rows.length };
  }
  return { rows: [], rowCount: Number(statement.run(...given).changes) };
}

/** better-sqlite3 says so itself, `DatabaseSync` by the columns of the statement. */
function returnsRows(statement: object): boolean {
  const { reader, columns } = statement as { reader?: boolean; columns?: () => readonly unknown[] };
  return reader ?? (columns?.call(statement).length ?? 1) > 0;
}

/** As `pg` sends them: what SQLite has no type for is a number or a text. */
function sqliteValue(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "boolean") return Number(value);
  return value instanceof Date ? value.toISOString() : value;
}

export async function openFile(file: string, mayCreate: boolean): Promise<SqliteHandle> {
  if (file !== ":memory:") await prepareFile(file, mayCreate);
  const library = await import("@photostructure/sqlite");
  try {
    return new library.DatabaseSync(file) as unknown as SqliteHandle;
  } catch (error) {
    throw describeOpening(error, { file });
  }
}

/** Creates the folder and the file, readable by their owner alone: they contain inputs and results. */
async function prepareFile(file: string, mayCreate: boolean): Promise<void> {
  const { mkdirSync, openSync, closeSync, statSync } = await import("node:fs");
  const { dirname } = await import("node:path");
  try {
    statSync(file);
    return;
  } catch (cause) {
    if (isRefusal(cause)) throw new StoreReadOnlyError({ file, tried: "open", cause });
  }
  if (!mayCreate) {
    throw new StoreUnavailableError({
      tried: "open a SQLite file that does not exist",
      url: `sqlite:${file}`,
      isTemporary: false,
    });
  }
  try {
    mkdirSync(dirname(file), { recursive: true });
    closeSync(openSync(file, "a", 0o600));
  } catch (cause) {
    if (isRefusal(cause)) throw new StoreReadOnlyError({ file, tried: "make the file", cause });
    throw new StoreUnavailableError({
      tried: "make the SQLite file",
      url: `sqlite:${file}`,
      cause,
      isTemporary: false,
    });
  }
}

const ERRNO: Readonly<Record<number, string>> = {
  1: "EPERM",
  13: "EACCES",
  21: "EISDIR",
  30: "EROFS",
};

/** The rights of this process, or of its file system, are too few. */
function isRefusal(error: unknown): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  return ["EACCES", "EPERM", "EROFS"].includes(code);
}

export function describeOpening(error: unknown, source: SqliteSource): unknown {
  const code = sqliteCode(error);
  const file = "file" in source ? source.file : "the given handle";
  // SQLite itself says only that it cannot open the file; the library adds why.
  const reason = ERRNO[(error as { systemErrno?: number }).systemErrno ?? 0];
  if (code === 26 || code === 11)
    return wrongPath(
      `"${file}" is not a SQLite database (or is damaged); give the path of one, or of a file that does not exist yet`,
    );
  if (reason === "EISDIR") return wrongPath(`"${file}" is a folder; give the path of a file`);
  if (reason !== undefined) return new StoreReadOnlyError({ file, tried: "open", cause: error });
  if (code !== undefined) {
    return new StoreUnavailableError({
      tried: "open the SQLite file",
      url: `sqlite:${file}`,
      cause: error,
      isTemporary: false,
    });
  }
  return error;
}

function wrongPath(message: string): ConfigurationError {
  const example = 'such as "sqlite:.holdfast/holdfast.db"';
  return new ConfigurationError([{ field: "database", message: `${message}, ${example}` }]);
}

/** Older engines can lose an acknowledged commit when several processes write and checkpoint. */
const NEEDED = [3, 51, 3] as const;

/** Fixed lines of older versions that carry the same correction. */
const BACKPORTS = [
  [3, 50, 7],
  [3, 44, 6],
] as const;

export function checkVersion(handle: SqliteHandle): void {
  const row = handle.prepare("select sqlite_version() as version").get() as { version: string };
  if (isSafeVersion(row.version)) return;
  throw new StoreUnsupportedError({
    found: `SQLite ${row.version}`,
    needed: `SQLite ${NEEDED.join(".")} or newer`,
    advice:
      "Older ones can lose commits when several processes write. Use the bundled library (give a path, " +
      "not a handle), or a newer better-sqlite3 or Node.",
  });
}

export function isSafeVersion(version: string): boolean {
  const found = version.split(".").map(Number);
  return (
    compare(found, NEEDED) >= 0 ||
    BACKPORTS.some(
      (line) => found[0] === line[0] && found[1] === line[1] && (found[2] ?? 0) >= line[2],
    )
  );
}

function compare(found: readonly number[], needed: readonly number[]): number {
  for (let at = 0; at < needed.length; at += 1) {
    const difference = (found[at] ?? 0) - (needed[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The path of the file that a handle has open; empty for a database in memory. */
export function fileOf(handle: SqliteHandle): string {
  const row = handle.prepare("select file from pragma_database_list where name = 'main'").get();
  return (row as { file: string | null } | undefined)?.file ?? "";
}

export function nameOf(source: SqliteSource): string {
  return "file" in source ? source.file : fileOf(source.handle);
}

// A blocking timeout would freeze the event loop and with it every heartbeat: we wait ourselves.
export const NO_WAITING = "pragma busy_timeout = 0";

export function busyTimeoutMs(handle: SqliteHandle): number {
  const row = handle.prepare("select timeout from pragma_busy_timeout").get();
  return Number((row as { timeout: unknown }).timeout);
}

export function isInTransaction(handle: SqliteHandle): boolean {
  return transactionState(handle) ?? true;
}

/** Whether the handle says that a transaction is open on it. */
export function isOpenTransaction(handle: SqliteHandle): boolean {
  return transactionState(handle) ?? false;
}

function transactionState(handle: SqliteHandle): boolean | undefined {
  const { isTransaction, inTransaction } = handle as {
    isTransaction?: boolean;
    inTransaction?: boolean;
  };
  return isTransaction ?? inTransaction;
}

/** SQLite's own result code, whichever library reports it. */
export function sqliteCode(error: unknown): number | undefined {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return errcode & 0xff;
  const [, name] = /^SQLITE_([A-Z]+)/.exec(typeof code === "string" ? code : "") ?? [];
  return name === undefined ? undefined : RESULT_CODES[name];
}

export const RESULT_CODES: Readonly<Record<string, number>> = {
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CONSTRAINT: 19,
  CANTOPEN: 14,
  NOTADB: 26,
};

// SQLite continues on a file that was deleted, moved or replaced, and nobody finds what it commits there.

/** Identifies the file at a path. */
type Identity = Pick<BigIntStats, "dev" | "ino">;
/** Null if that is unknown now: an unreadable folder says nothing about the file. */
type Find = (file: string) => Identity | "missing" | null;

export class SqlitePlace {
  readonly #file: string;
  readonly #find: Find;
  readonly #opened: Identity | null;
  #gone: StoreGoneError | null = null;

  private constructor(file: string, find: Find) {
    this.#file = file;
    this.#find = find;
    const found = find(file);
    this.#opened = found === "missing" ? null : found;
  }

  /** `file` is absolute, and open: its identity is read here for the first time. */
  static async of(file: string): Promise<SqlitePlace> {
    const { statSync } = await import("node:fs");
    const find: Find = (each) => {
      try {
        return statSync(each, { bigint: true });
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        return code === "ENOENT" || code === "ENOTDIR" ? "missing" : null;
      }
    };
    return new SqlitePlace(file, find);
  }

  /** Why nothing is stored any more; null while every check has found the file in its place. */
  get gone(): StoreGoneError | null {
    return this.#gone;
  }

  /** Throws if the path has another file, or none. The store stays gone, even if the file is put back. */
  look(): void {
    if (this.#gone) throw this.#gone;
    if (!this.#opened) return;
    const found = this.#find(this.#file);
    if (found === null) return;
    if (found !== "missing" && found.ino === this.#opened.ino && found.dev === this.#opened.dev)
      return;
    this.#gone = new StoreGoneError({ file: this.#file, isReplaced: found !== "missing" });
    throw this.#gone;
  }
}
