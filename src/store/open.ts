// Finds the store that a `database` option means. It connects to nothing and imports only the store's own code: a
// driver is loaded when a database of its kind is opened.

import { ConfigurationError, type Problem } from "../shared/errors.js";
import type { Clock, Random } from "../shared/ports.js";
import { gather } from "../shared/problems.js";
import { redactUrl } from "../shared/redact.js";
import { checkPostgresUrl, type PostgresSource } from "./postgres/connection/connection.js";
import { PostgresStore } from "./postgres/store.js";
import type { SqliteHandle } from "./sqlite/connection/handle.js";
import { SqliteStore } from "./sqlite/store.js";
import type { Store } from "./store.js";

/** `sqlite:path`, `sqlite::memory:`, `postgres://…`, a pg Pool, or a SQLite handle. */
export type Database = string | PostgresSource | SqliteHandle;

type OpenParams = {
  readonly database: Database;
  readonly schema: string;
  readonly synchronous: "FULL" | "NORMAL";
  readonly migrate: "auto" | "check" | "off";
  readonly mayCreate: boolean;
  readonly clock: Clock;
  readonly random: Random;
};

const SQLITE_FILE = /^sqlite:(?:\/\/(?=\/))?(.+)$/;
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,47}$/;

export function storeFor(params: OpenParams): Store {
  const problems = placeProblems(params);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { database } = params;
  if (typeof database !== "string") {
    return isSqliteHandle(database)
      ? new SqliteStore({ ...params, source: { handle: database } })
      : new PostgresStore({ ...params, source: database });
  }
  const [, file] = SQLITE_FILE.exec(database) ?? [];
  return file === undefined
    ? new PostgresStore({ ...params, source: database })
    : new SqliteStore({ ...params, source: { file } });
}

/** The problem with the place of the tables, in words. Opens nothing. */
export function placeProblems({
  database,
  schema,
}: Pick<OpenParams, "database" | "schema">): Problem[] {
  const problems: Problem[] = [];
  if (!SCHEMA_NAME.test(schema) || schema.startsWith("pg_")) {
    problems.push({
      field: "schema",
      message: 'must be lower-case letters, digits and _, at most 48, for example "holdfast"',
    });
  }
  gather(problems, () => checkDatabase(database));
  return problems;
}

function checkDatabase(database: Database): void {
  if (typeof database !== "string") {
    if (isSqliteHandle(database) || isPool(database)) return;
    throw wrong("it is neither a URL nor a pg Pool nor a SQLite handle");
  }
  if (/^postgres(ql)?:/.test(database)) {
    checkPostgresUrl(database);
    return;
  }
  if (/^sqlite:\/\/[^/]/.test(database)) {
    const path = database.slice("sqlite://".length);
    throw wrong(`"${database}" could mean "sqlite:${path}" or "sqlite:/${path}"`);
  }
  const [, file] = SQLITE_FILE.exec(database) ?? [];
  if (file === undefined) {
    const isPath = /^[^:?#]+$/.test(database);
    const hint = isPath ? `, did you mean "sqlite:${database}"?` : "";
    throw wrong(`"${redactUrl(database)}" is neither a SQLite nor a PostgreSQL URL${hint}`);
  }
  if (/[?\0]/.test(file)) throw wrong("a SQLite path has no parameters");
}

function wrong(why: string): ConfigurationError {
  return new ConfigurationError([
    {
      field: "database",
      message: `${why}; right would be "sqlite:app.db" or "postgres://user:password@host:5432/name"`,
    },
  ]);
}

function isSqliteHandle(value: object): value is SqliteHandle {
  return "prepare" in value && "exec" in value && typeof value.prepare === "function";
}

function isPool(value: object): value is Exclude<PostgresSource, string> {
  return "connect" in value && "query" in value && "totalCount" in value;
}
