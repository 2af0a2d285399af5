// The schema on SQLite: which version there is, and making it, once, however many start at once.

import { MigrationError } from "../../shared/errors.js";
import { type Dialect, fillIn } from "../sql/template.js";
import type { SqliteFile } from "./connection.js";
import { CREATE_BATCHES } from "./schema/batch.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "./schema/schema.js";
import { CREATE_PRIVATE_VIEWS, CREATE_VIEWS } from "./sql/views.js";

const NO_TABLES = 'The file has no Holdfast tables; run `holdfast migrate` or set migrate: "auto".';

const FOUND = "select * from {schema_version}";

export type SqliteMigration = {
  readonly file: SqliteFile;
  readonly dialect: Dialect;
  readonly migrate: "auto" | "check" | "off";
  readonly now: () => number;
};

/** Makes the tables where that is wanted; throws if there are none, or too new ones. */
export async function migrateSqlite(migration: SqliteMigration): Promise<void> {
  const { file } = migration;
  if (!(await file.read(() => isMigrated(migration)))) await createSchema(migration);
  let found = await file.read(() => file.get(FOUND));
  if (found && Number(found.version) < SCHEMA_VERSION && migration.migrate === "auto") {
    await remakeViews(migration);
    found = await file.read(() => file.get(FOUND));
  }
  if (!found) throw new MigrationError(NO_TABLES, null);
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
    file.exec(
      fillIn(CREATE_SCHEMA + CREATE_BATCHES + CREATE_PRIVATE_VIEWS + CREATE_VIEWS, dialect),
    );
    file.run("insert into {schema_version} values (:version, :version, :now)", {
      version: SCHEMA_VERSION,
      now: now(),
    });
  });
}

/** Of tables that an older version made. */
async function remakeViews({ file, dialect }: SqliteMigration): Promise<void> {
  await file.write("migrate", () => {
    if (Number(file.get(FOUND)?.version) >= SCHEMA_VERSION) return;
    file.exec(fillIn(CREATE_PRIVATE_VIEWS + CREATE_VIEWS, dialect));
    file.run("update {schema_version} set version = :version", { version: SCHEMA_VERSION });
  });
}
