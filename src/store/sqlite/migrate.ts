// Creates the schema and its views on SQLite, once, however many instances start at the same time. The public views have
// times as ISO text, JSON as text, booleans as 0 and 1; private views serve them and the checks.

import { MigrationError } from "../../shared/errors.js";
import { CREATE_SCHEMA, SCHEMA_VERSION, UPGRADE_SCHEMA } from "../schema/schema.js";
import { ADDED_COLUMNS, tooOld } from "../schema/upgrade.js";
import { createPrivateViews, createViews, type ViewForms } from "../schema/views.js";
import { type Dialect, fillIn } from "../sql/template.js";
import type { SqliteFile } from "./connection/connection.js";

const FORMS: ViewForms = {
  create: (name) => `drop view if exists {${name}};\ncreate view {${name}} as`,
  instant: (ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', (${ms}) / 1000.0, 'unixepoch')`,
  day: (ms) => `strftime('%Y-%m-%d', (${ms}) / 1000.0, 'unixepoch')`,
  json: (text) => text,
  texts: (column) => `coalesce(${column}, '[]')`,
  member: (text, name) => `(${text} ->> '${name}')`,
};

export const CREATE_PRIVATE_VIEWS = createPrivateViews("sqlite", FORMS);
export const CREATE_VIEWS = createViews(FORMS);

/**
 * The time in views. Shells of distributions read them too (Debian 12 has 3.40), and `unixepoch('subsec')` is null
 * before SQLite 3.42.
 */
const VIEW_NOW = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)";

function createAllViews(dialect: Dialect): string {
  return fillIn(CREATE_PRIVATE_VIEWS + CREATE_VIEWS, { ...dialect, now: VIEW_NOW });
}

const NO_TABLES = 'The file has no Holdfast tables; run `holdfast migrate` or set migrate: "auto".';

const FOUND = "select * from {schema_version}";

type SqliteMigration = {
  readonly file: SqliteFile;
  readonly dialect: Dialect;
  readonly migrate: "auto" | "check" | "off";
  readonly now: () => number;
};

/** Creates the tables if that is requested; throws if there are none, or newer ones. */
export async function migrateSqlite(migration: SqliteMigration): Promise<void> {
  const { file } = migration;
  if (!(await file.read(() => isMigrated(migration)))) await createSchema(migration);
  let found = await file.read(() => file.get(FOUND));
  if (found && Number(found.version) < SCHEMA_VERSION && migration.migrate === "auto") {
    await upgrade(migration);
    found = await file.read(() => file.get(FOUND));
  }
  if (!found) throw new MigrationError(NO_TABLES, null);
  if (Number(found.version) < SCHEMA_VERSION)
    throw new MigrationError(tooOld(Number(found.version), SCHEMA_VERSION), Number(found.version));
  if (Number(found.min_compatible) > SCHEMA_VERSION) {
    throw new MigrationError(
      `The tables are of version ${found.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
      Number(found.version),
    );
  }
}

function isMigrated({ file, dialect }: SqliteMigration): boolean {
  const name = dialect.name("schema_version");
  return file.get("select 1 from sqlite_master where name = :name", { name }) !== undefined;
}

async function createSchema(migration: SqliteMigration): Promise<void> {
  const { file, dialect, migrate, now } = migration;
  if (migrate !== "auto") throw new MigrationError(NO_TABLES);
  await file.write("migrate", () => {
    if (isMigrated(migration)) return;
    file.exec(fillIn(CREATE_SCHEMA.sqlite, dialect) + createAllViews(dialect));
    file.run("insert into {schema_version} values (:version, :version, :now)", {
      version: SCHEMA_VERSION,
      now: now(),
    });
  });
}

/** For tables of an older version. */
async function upgrade({ file, dialect }: SqliteMigration): Promise<void> {
  await file.write("migrate", () => {
    if (Number(file.get(FOUND)?.version) >= SCHEMA_VERSION) return;
    for (const { table, column, type } of ADDED_COLUMNS) {
      const params = { table: dialect.name(table), column };
      if (file.get("select 1 from pragma_table_info(:table) where name = :column", params))
        continue;
      file.exec(fillIn(`alter table {${table}} add column ${column} ${type}`, dialect));
    }
    file.exec(fillIn(UPGRADE_SCHEMA.sqlite, dialect) + createAllViews(dialect));
    file.run("update {schema_version} set version = :version, min_compatible = :version", {
      version: SCHEMA_VERSION,
    });
  });
}
