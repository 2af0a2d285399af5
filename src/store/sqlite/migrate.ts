// Creates the schema and its views on SQLite, once, however many instances start at the same time. The public views have
// times as ISO text, JSON as text, booleans as 0 and 1; private views serve them and the checks.

import { MigrationError } from "../../shared/errors.js";
import { type Dialect, fillIn } from "../sql/template.js";
import { createViews, type ViewForms } from "../sql/views.js";
import type { SqliteFile } from "./connection.js";
import { CREATE_BATCHES } from "./schema/runs.js";
import { CREATE_SCHEMA, SCHEMA_VERSION } from "./schema/schema.js";

const FORMS: ViewForms = {
  create: (name) => `drop view if exists {${name}};\ncreate view {${name}} as`,
  instant: (ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', (${ms}) / 1000.0, 'unixepoch')`,
  day: (ms) => `strftime('%Y-%m-%d', (${ms}) / 1000.0, 'unixepoch')`,
  json: (text) => text,
  texts: (column) => `coalesce(${column}, '[]')`,
  member: (text, name) => `(${text} ->> '${name}')`,
};

export const CREATE_PRIVATE_VIEWS = /* sql */ `
-- Where runs are that have not ended.
drop view if exists {live_run};
create view {live_run} as
select id as run, 'ready' as place, null as fence, lane, policy, attempt, extra from {ready}
union all
select id, 'waiting', null, lane, policy, attempt, extra from {waiting}
union all
select m.value, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from {lease} k, json_each(k.ids) m;

-- The runs that schedules take for live.
drop view if exists {schedule_live};
create view {schedule_live} as
select s.id as schedule, m.value as run from {schedule} s, json_each(s.live) m;

drop view if exists {held_lock};
create view {held_lock} as select name, fence, holder, acquired_at, renewed_at, until from {lock};
`;

export const CREATE_VIEWS = createViews(FORMS);

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
