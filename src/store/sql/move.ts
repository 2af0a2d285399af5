// The statements of a move from SQLite to PostgreSQL. They are made for each table from the columns
// that both databases have; names come from the schema, never from a user.

import type { MovedColumn } from "../move-tables.js";

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");

// ── SQLite ─────────────────────────────────────────────────────────────────────────────────────

export const SOURCE_TABLES = /* sql */ `
select substr(name, 10) as name from sqlite_master where type = 'table' and name glob 'holdfast_*'`;

export const SOURCE_COLUMNS = /* sql */ `select name, pk from pragma_table_info(:table) order by cid`;

export const SOURCE_LIVE = /* sql */ `
select id from {instance}
where retired_at is null and seen_at > unixepoch('subsec') * 1000 - max(60000, 3 * poll_ms) order by no`;

export const SOURCE_KNOWS_INSTANCE = /* sql */ `select 1 from {instance} where id = :id`;

/** The largest number that was ever given, also where its row is gone. */
export const SOURCE_SEQUENCE = /* sql */ `select seq from sqlite_sequence where name = :table`;

export const SOURCE_DAYS = /* sql */ `
select (select min(id) from {run}) as first_run, (select max(id) from {run}) as last_run,
  (select min(at) from {tick}) as first_tick, (select max(at) from {tick}) as last_tick`;

export const countOf = (table: string) => /* sql */ `select count(*) as count from {${table}}`;

export const maxOf = (table: string, column: string) =>
  /* sql */ `select max("${column}") as max from {${table}}`;

/** The parameters of where a page begins, by place. */
export const keyParameter = (at: number) => `key${String.fromCharCode(65 + at)}`;

export function pageOf(params: {
  readonly table: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly isFirst: boolean;
}): string {
  const { table, columns, key, isFirst } = params;
  const after = key.map((_, at) => `:${keyParameter(at)}`).join(", ");
  const where = isFirst ? "" : `where (${quoted(key)}) > (${after})`;
  return `select ${quoted(columns)} from {${table}} ${where} order by ${quoted(key)} limit (:limit + 0)`;
}

// ── PostgreSQL ─────────────────────────────────────────────────────────────────────────────────

/** How far a move has come; it stays as the record of one that ended. */
export const CREATE_MOVE = /* sql */ `
create table if not exists {move} (source text not null, began_at bigint not null, ended_at bigint, state text not null)`;

export const FIND_MOVE = /* sql */ `select source, ended_at, state from {move}`;
export const BEGIN_MOVE = /* sql */ `insert into {move} (source, began_at, state) values (:source, {now}, :state)`;
export const KEEP_MOVE = /* sql */ `update {move} set state = :state`;
export const END_MOVE = /* sql */ `update {move} set ended_at = {now}, state = :state`;

export const TARGET_COLUMNS = /* sql */ `
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attidentity <> '' as is_identity,
  a.attnotnull and not a.atthasdef and a.attidentity = '' as is_needed
from pg_catalog.pg_attribute a
where a.attrelid = to_regclass(:table::text) and a.attnum > 0 and not a.attisdropped order by a.attnum`;

export const TARGET_LIVE = /* sql */ `
select id from {instance} where retired_at is null and seen_at > {now} - greatest(60000, 3 * poll_ms) order by no`;

export const isEmpty = (table: string) =>
  /* sql */ `select not exists (select from {${table}}) as is_empty`;

/** One array of texts for each column, cast by the server. */
export function insertInto(params: {
  readonly table: string;
  readonly columns: readonly MovedColumn[];
  readonly made: Readonly<Record<string, string>>;
}): string {
  const { table, columns, made } = params;
  const names = columns.map(({ name }) => name);
  const arrays = names.map((_, at) => `$${at + 1}::text[]`).join(", ");
  const values = columns.map(({ name, type }) => `u."${name}"::${type}`);
  return `insert into {${table}} (${quoted([...names, ...Object.keys(made)])}) overriding system value
select ${[...values, ...Object.values(made)].join(", ")} from unnest(${arrays}) as u (${quoted(names)})`;
}

export const raiseIdentity = (column: string) => /* sql */ `
select setval(pg_get_serial_sequence(:table::text, '${column}'), :last::bigint)`;
export const raiseSequence = (sequence: string) =>
  /* sql */ `select setval('{${sequence}}', :last::bigint)`;
