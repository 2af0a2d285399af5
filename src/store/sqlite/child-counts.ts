// What ends and revivals of children do to their batches on SQLite, inside of the write transaction that
// ends or revives them.

import type { BatchCount } from "../batch-count.js";
import { statusCode } from "../rows.js";
import type { ChildChange } from "./books.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteLimits } from "./flow.js";
import * as sql from "./sql/batches.js";
import { GATE_SCHEDULE_RUNS, READY_SCHEDULE_RUNS } from "./sql/schedule-changes.js";

type Tables = { readonly file: SqliteFile; readonly flow: SqliteLimits };

/** Counts ends and revivals; answers how many runs that come after were made. */
export function countChildren(
  tables: Tables,
  changes: readonly ChildChange[],
  now: number,
): number {
  const byBatch = new Map<number, Omit<BatchCount, "scheduled" | "errors">>();
  for (const { batch, status, isEnd } of changes) {
    const step = isEnd ? 1 : -1;
    const is = (code: number) => (status === code ? step : 0);
    const before = byBatch.get(batch);
    byBatch.set(batch, {
      unended: (before?.unended ?? 0) - step,
      completed: (before?.completed ?? 0) + is(statusCode("completed")),
      failed: (before?.failed ?? 0) + is(statusCode("failed")),
      cancelled: (before?.cancelled ?? 0) + is(statusCode("cancelled")),
    });
  }
  let continued = 0;
  for (const [batch, change] of byBatch)
    if (changeBatch(tables, { batch, ...change }, now)) continued += 1;
  return continued;
}

/** Whoever brings a batch to its end for the first time makes the run that comes after. */
export function changeBatch({ file, flow }: Tables, change: Row, now: number): boolean {
  const { batch } = change;
  const after = file.get(sql.COUNT_BATCH, change);
  if (!after || after.ended_at !== null || after.unended !== 0) return false;
  const ended = file.get(sql.END_BATCH, { batch, now });
  if (!ended || ended.then_run === null) return false;
  file.run(sql.CONTINUE_BATCH, { batch, now });
  const run = String(ended.then_run);
  const ids = JSON.stringify([run]);
  const limit = flow.flowsOf([run]).get(run);
  file.run(limit === undefined ? READY_SCHEDULE_RUNS : GATE_SCHEDULE_RUNS, { ids, now });
  if (limit !== undefined) flow.stand(run, limit, now);
  return true;
}
