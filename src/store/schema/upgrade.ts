// Brings tables of an earlier version up to this one. Everything here only adds, and may be repeated: a database that was made
// between two versions has a part of it already.

import type { Engine } from "../sql/dialect.js";
import { ACCESS_TABLES, RECLAIM_INDEX } from "./operators.js";
import { WAIT_TABLES } from "./waits.js";

/** Columns that version 2 added. */
export const ADDED_COLUMNS = [
  { table: "instance", column: "program", type: "text" },
  { table: "instance", column: "remote_by", type: "text" },
  { table: "waiting", column: "asleep_at", type: "bigint" },
  { table: "lock", column: "execution", type: "text" },
  { table: "lock_history", column: "execution", type: "text" },
] as const;

/** Tables that version 2 added, with their indexes. */
export const ADDED_TABLES = (ACCESS_TABLES + WAIT_TABLES + RECLAIM_INDEX)
  .replaceAll("create table {", "create table if not exists {")
  .replace(/create (unique )?index (\w+) on/g, "create $1index if not exists $2 on");

export function tooOld(version: number, known: number): string {
  return (
    `The tables are of version ${version}, and this Holdfast needs version ${known}; stop instances of the earlier release, ` +
    'then run `holdfast migrate` or set migrate: "auto".'
  );
}

/** The view of runs shows columns that were added; PostgreSQL keeps what was granted on it. */
export function remadeView(create: string, engine: Engine): string {
  return engine === "postgres"
    ? create.replace("create view {", "create or replace view {")
    : `drop view if exists {run_state};\n${create}`;
}
