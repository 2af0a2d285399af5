// Lists the tables that a move from SQLite to PostgreSQL copies. Every table of the schema is in one of the two lists,
// so that none is forgotten. Pure: the columns themselves are read from both databases.

import { PARTITIONED } from "../schema/schema.js";

/** In the order in which they are copied: referenced tables first, waiting work last. */
export const MOVED_TABLES = [
  "policy",
  "lane",
  "job",
  "queue",
  "pause",
  "calendar",
  "instance",
  "schedule",
  "schedule_version",
  "declared",
  ...PARTITIONED,
  "tick",
  "key",
  "delivery",
  "backfill",
  "backfill_run",
  "batch",
  "step",
  "wait",
  "signal",
  "wake",
  "rollup",
  "alert",
  "alert_delivery",
  "flow",
  "flow_line",
  "flow_run",
  "flow_turn",
  "lock_history",
  "lock",
  "audit",
  "access_key",
  "waiting",
  "ready",
  "lease",
] as const;

export type MovedTable = (typeof MOVED_TABLES)[number];

/** Tables that are not copied, and why. */
export const LEFT_TABLES: Readonly<Record<string, string>> = {
  schema_version: "the new database has its own",
  session: "people sign in again on the new database",
  alert_turn: "the first instance to look on the new database takes the turn",
  lock_waiter: "a waiter that is silent for three seconds is void, and asks again",
};

/** Columns that SQLite does not have: their values for copied rows, as SQL. */
export const MADE_COLUMNS: Readonly<Partial<Record<MovedTable, Readonly<Record<string, string>>>>> =
  {
    // Copied items keep their state; `tries` only distinguishes a new row from a replaced one.
    item: { tries: "1" },
    flow: { revision: "0" },
    // SQLite keeps only held locks.
    lock: { state: "0", ended_at: "null" },
  };

/** Sequences that are not an identity of a column: the table and column whose values they must stay above. */
export const LOCK_FENCES = { sequence: "lock_fence", tables: ["lock", "lock_history"] } as const;

export type MovedColumn = {
  readonly name: string;
  /** The type in PostgreSQL, such as "uuid[]". */
  readonly type: string;
  readonly isIdentity: boolean;
};

type TargetColumn = MovedColumn & { readonly isNeeded: boolean };

/** The columns to copy of a table; a column that only one side has is named. */
export function columnsToMove(
  table: MovedTable,
  source: readonly string[],
  target: readonly TargetColumn[],
): { readonly columns: readonly MovedColumn[]; readonly unknown: readonly string[] } {
  const made = MADE_COLUMNS[table] ?? {};
  const known = new Map(target.map((column) => [column.name, column]));
  const columns = source.flatMap((name) => known.get(name) ?? []);
  const lost = source.filter((name) => !known.has(name));
  const missing = target.filter(
    ({ name, isNeeded }) => isNeeded && !source.includes(name) && made[name] === undefined,
  );
  const unknown = [...lost, ...missing.map(({ name }) => name)].map((name) => `${table}.${name}`);
  return { columns, unknown };
}
