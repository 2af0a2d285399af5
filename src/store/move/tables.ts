// Lists the tables that a move from SQLite to PostgreSQL takes along. Every table of the schema is in one of the two lists,
// so that none is forgotten. Pure: the columns themselves are read from both databases.

import { PARTITIONED } from "../schema/schema.js";

/** In the order in which they are moved: what others refer to comes first, work that waits comes last. */
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

/** Tables that stay behind, and why. */
export const LEFT_TABLES: Readonly<Record<string, string>> = {
  schema_version: "the new database has its own",
  session: "people sign in again on the new database",
  alert_turn: "the first instance to look on the new database takes the turn",
  lock_waiter: "a waiter that is silent for three seconds is void, and asks again",
};

/** Columns that SQLite does not have: what they are for a row that comes from there, as SQL. */
export const MADE_COLUMNS: Readonly<Partial<Record<MovedTable, Readonly<Record<string, string>>>>> =
  {
    // Items are done or failed as they are; tries only tell a new row from a replaced one.
    item: { tries: "1" },
    flow: { revision: "0" },
    // SQLite keeps no lock that is not held.
    lock: { state: "0", ended_at: "null" },
  };

/** Sequences that are no identity of a column: the table and column whose values they must stay above. */
export const LOCK_FENCES = { sequence: "lock_fence", tables: ["lock", "lock_history"] } as const;

export type MovedColumn = {
  readonly name: string;
  /** As the new database calls it, such as "uuid[]". */
  readonly type: string;
  readonly isIdentity: boolean;
};

type TargetColumn = MovedColumn & { readonly isNeeded: boolean };

/** What of a table is copied; columns that one side knows and the other does not are named. */
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
