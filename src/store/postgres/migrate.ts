// Creates the schema and its views on PostgreSQL, once, however many instances start at the same time. The public views have
// native types; private views serve them and the checks.

import type { Clock } from "../../shared/ports.js";
import { CREATE_SCHEMA, SCHEMA_VERSION, UPGRADE_SCHEMA } from "../schema/schema.js";
import { ADDED_COLUMNS } from "../schema/upgrade.js";
import { createPrivateViews, createViews, type ViewForms } from "../schema/views.js";
import { type Dialect, fillIn } from "../sql/template.js";
import { inTransaction, type PostgresSource } from "./connection/connection.js";
import { firstDays } from "./days.js";
import { DATABASE_CLOCK, type PostgresSession } from "./session.js";
import { createFunctions } from "./sql/functions.js";

// JSON text may contain values that jsonb cannot hold: an escaped NUL, or half of a surrogate pair.
const UNHOLDABLE = String.raw`\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]`;
const json = (text: string) =>
  String.raw`(case when strpos(${text}, '\u') = 0 then ${text}
    else regexp_replace(${text}, '${UNHOLDABLE}', '\\ufffd', 'gi') end)::jsonb`;

const FORMS: ViewForms = {
  // Replaced, not dropped and created: grants of users on a view stay.
  create: (name) => `create or replace view {${name}} as`,
  instant: (ms) => `to_timestamp((${ms}) / 1000.0)`,
  day: (ms) => `cast(to_timestamp((${ms}) / 1000.0) at time zone 'UTC' as date)`,
  json,
  texts: (column) => `coalesce(to_jsonb(${column}), '[]')`,
  member: (text, name) => `(${json(text)} ->> '${name}')`,
};

export const CREATE_PRIVATE_VIEWS = createPrivateViews("postgres", FORMS);
export const CREATE_VIEWS = createViews(FORMS);

type SchemaVersion = { readonly version: number; readonly minCompatible: number };

export async function schemaVersion({
  work,
  dialect,
}: PostgresSession): Promise<SchemaVersion | null> {
  const table = dialect.name("schema_version");
  const { rows } = await work.query({
    text: `select to_regclass('${table}') is not null as known`,
  });
  if (rows[0]?.known !== true) return null;
  const found = await work.query({ text: `select version, min_compatible from ${table}` });
  const row = found.rows[0];
  return row ? { version: Number(row.version), minCompatible: Number(row.min_compatible) } : null;
}

/** What waiting workers listen to. */
export function channelOf(schema: string): string {
  return `holdfast_${schema}`;
}

/** Views and functions get no clock from outside: they always use the database's. */
function onItsOwnClock(dialect: Dialect): Dialect {
  return { ...dialect, now: DATABASE_CLOCK };
}

/** Creates the tables, or upgrades those of an older version. */
export async function createSchema(params: {
  readonly session: PostgresSession;
  readonly source: PostgresSource;
  readonly clock: Clock;
  readonly schema: string;
}): Promise<void> {
  const { session, source, clock, schema } = params;
  const { dialect } = session;
  await inTransaction({ source, clock }, async (query) => {
    await query("set local lock_timeout = '20s'");
    await query("select pg_advisory_xact_lock(hashtext($1))", [`holdfast:${schema}`]);
    const table = dialect.name("schema_version");
    const [row] = await query(`select to_regclass('${table}') is not null as known`);
    if (row?.known === true) {
      const [found] = await query(`select version from ${table}`);
      if (Number(found?.version) >= SCHEMA_VERSION) return;
      await query(fillIn(upgradeOf(schema), onItsOwnClock(dialect)));
      await query(
        `update ${table} set version = ${SCHEMA_VERSION}, min_compatible = ${SCHEMA_VERSION}`,
      );
      return;
    }
    await query(`create schema if not exists "${schema}"`);
    const days = firstDays({ now: await session.databaseNow(), dialect });
    await query([fillIn(CREATE_SCHEMA.postgres, dialect), ...days].join(";\n"));
    const inSql = onItsOwnClock(dialect);
    await query(fillIn(CREATE_PRIVATE_VIEWS + CREATE_VIEWS, inSql));
    await query(fillIn(createFunctions(channelOf(schema)), inSql));
    await query(
      `insert into ${table} values (${SCHEMA_VERSION}, ${SCHEMA_VERSION}, ${DATABASE_CLOCK})`,
    );
  });
}

/** Functions are replaced, not made anew: their grants stay. */
function upgradeOf(schema: string): string {
  const columns = ADDED_COLUMNS.map(
    ({ table, column, type }) =>
      `alter table {${table}} add column if not exists ${column} ${type};`,
  );
  const functions = createFunctions(channelOf(schema));
  return [
    ...columns,
    UPGRADE_SCHEMA.postgres,
    CREATE_PRIVATE_VIEWS + CREATE_VIEWS,
    functions.replaceAll(/^create function \{/gm, "create or replace function {"),
  ].join("\n");
}
