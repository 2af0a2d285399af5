// Lists references between rows: no row may name a row that does not exist. A new table adds a line here. The list
// leaves out rows that may outlive the row that they name: a tick, a delivery or a batch whose run was pruned, and an
// attempt whose holder was.

import type { SqlText } from "../sql/dialect.js";

export type Check = {
  /** A rule that holds in every healthy database. */
  readonly name: string;
  /** The promise that it is part of (docs/reliability.md). */
  readonly promise: string | null;
  readonly sql: string | { readonly postgres: string; readonly sqlite: string };
};

export type Repair =
  | {
      /** A description of the repair, for the plan. */
      readonly says: string;
      readonly sql: readonly SqlText[];
    }
  | { readonly advice: string };

type Reference = {
  readonly name: string;
  readonly table: string;
  /** The column that names the other row; null names none. */
  readonly column: string;
  readonly target: string;
  readonly targetColumn: string;
  readonly promise?: string;
  /** The repair: delete the row, or set the reference to null. Null: there is none. */
  readonly repair: "remove" | "forget" | null;
  /** On PostgreSQL a day of this table is dropped after the same day of the referenced table. */
  readonly goesLater?: true;
};

const DAY_MS = 86_400_000;

const ofRun = (name: string, table: string): Reference => {
  const target = { column: "run", target: "run", targetColumn: "id" };
  return { name, table, ...target, promise: "S16", repair: "remove", goesLater: true };
};
const ofSchedule = (
  name: string,
  table: string,
  repair: Reference["repair"] = "remove",
): Reference => {
  return { name, table, column: "schedule", target: "schedule", targetColumn: "id", repair };
};
const ofFlow = (name: string, table: string): Reference => {
  return { name, table, column: "flow", target: "flow", targetColumn: "id", repair: "remove" };
};

export const REFERENCES: readonly Reference[] = [
  ofRun("an attempt belongs to a run", "attempt"),
  ofRun("an item belongs to a run", "item"),
  ofRun("a count of items belongs to a run", "item_count"),
  ofRun("progress belongs to a run", "progress"),
  ofRun("a log line belongs to a run", "log"),
  ofSchedule("a run of a schedule has it", "run", "forget"),
  ofSchedule("a tick belongs to a schedule", "tick"),
  ofSchedule("a version belongs to a schedule", "schedule_version"),
  ofSchedule("a definition in code belongs to a schedule", "declared"),
  ofSchedule("a delivery belongs to a schedule", "delivery"),
  ofSchedule("a backfill belongs to a schedule", "backfill"),
  ofSchedule("a backfilled tick belongs to a schedule", "backfill_run"),
  {
    name: "a schedule's backfill is there",
    table: "schedule",
    column: "backfill",
    target: "backfill",
    targetColumn: "id",
    repair: "forget",
  },
  ofFlow("a line belongs to a limit", "flow_line"),
  ofFlow("a turn belongs to a limit", "flow_turn"),
  ofFlow("a run that was let through has its limit", "flow_run"),
  {
    name: "a delivery of an alert has its alert",
    table: "alert_delivery",
    column: "alert",
    target: "alert",
    targetColumn: "id",
    repair: "remove",
  },
  {
    name: "a run has its lane",
    table: "run",
    column: "lane",
    target: "lane",
    targetColumn: "id",
    repair: null,
    promise: "S16",
  },
  {
    name: "a run has its policy",
    table: "run",
    column: "policy",
    target: "policy",
    targetColumn: "id",
    repair: null,
    promise: "S16",
  },
  {
    name: "a job has its policy",
    table: "job",
    column: "policy",
    target: "policy",
    targetColumn: "id",
    repair: null,
  },
];

const isLost = ({ table, column, target, targetColumn }: Reference, unless = "false") => /* sql */ `
select cast(x.${column} as text) as what, count(*) as "rows" from {${table}} x
where x.${column} is not null and not exists (select 1 from {${target}} y where y.${targetColumn} = x.${column})
  and not (${unless})
group by x.${column}`;

/**
 * PostgreSQL drops a day of history table by table: whether the referenced day was dropped before this one. The id of a
 * run begins with its time.
 */
export function isDroppedBefore(gone: string, there: string, run: string): string {
  const day = `('x' || substr(replace(${run}::text, '-', ''), 1, 12))::bit(48)::bigint / ${DAY_MS}`;
  return `to_regclass('{${gone}}_day_' || ${day}) is null and to_regclass('{${there}}_day_' || ${day}) is not null`;
}

export const REFERENCE_CHECKS: readonly Check[] = REFERENCES.map((reference) => {
  const { name, table, promise = null, goesLater = false } = reference;
  const sql = goesLater
    ? {
        postgres: isLost(reference, isDroppedBefore("run", table, "x.run")),
        sqlite: isLost(reference),
      }
    : isLost(reference);
  return { name, promise, sql };
});
