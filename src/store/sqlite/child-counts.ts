// Applies ends and revivals of children to their batches on SQLite, inside the write transaction that ends or revives
// them.

import type { BatchCount } from "../batches.js";
import { statusCode } from "../rows.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import type { SqliteLimits } from "./limits.js";
import { GATE_SCHEDULE_RUNS, READY_SCHEDULE_RUNS } from "./schedule-statements.js";
import type { ChildChange } from "./settlement-rows.js";

/** The number of the mode `enqueued`. */
const ENQUEUED = 0;

export const COUNT_BATCH = /* sql */ `
update {batch} set unended = unended + :unended, completed = completed + :completed, failed = failed + :failed,
  cancelled = cancelled + :cancelled
where id = :batch returning unended, ended_at`;

const END_BATCH = /* sql */ `
update {batch} set ended_at = :now where id = :batch returning then_run`;

/** The run that follows the batch. */
const CONTINUE_BATCH = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select then_run, :now, :now, then_lane, then_policy, then_version, then_priority, ${ENQUEUED}, run,
  json_object('scheduled', scheduled, 'errors', refused, 'completed', completed, 'failed', failed,
    'cancelled', cancelled)
from {batch} where id = :batch`;

type Tables = { readonly file: SqliteFile; readonly limits: SqliteLimits };

/** Counts ends and revivals; returns how many runs that follow batches were made. */
export function countChildren(
  tables: Tables,
  changes: readonly ChildChange[],
  now: number,
): number {
  storeEndsOfCalls(tables.file, changes, now);
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

/** A call is a batch of one child: its end is stored with the wait of the parent, which will be woken. */
const ANSWER_CALL = /* sql */ `
update {wait} set status = :status, value = :result, error = :error, ended_at = :now
where batch = :batch and child = :id and ended_at is null returning run`;

export const WAKE_RUN = /* sql */ `
insert into {wake} (run, at) values (:run, :now) on conflict do update set at = excluded.at`;

function storeEndsOfCalls(file: SqliteFile, changes: readonly ChildChange[], now: number): void {
  for (const { isEnd, id, batch, status, result = null, error = null } of changes) {
    if (!isEnd || id === undefined) continue;
    const parent = file.get(ANSWER_CALL, { batch, id, status, result, error, now });
    if (parent) file.run(WAKE_RUN, { run: String(parent.run), now });
  }
}

/** The transaction that ends a batch for the first time makes the run that follows it. */
export function changeBatch({ file, limits }: Tables, change: Row, now: number): boolean {
  const { batch } = change;
  const after = file.get(COUNT_BATCH, change);
  if (!after || after.ended_at !== null || after.unended !== 0) return false;
  const ended = file.get(END_BATCH, { batch, now });
  if (!ended || ended.then_run === null) return false;
  file.run(CONTINUE_BATCH, { batch, now });
  const run = String(ended.then_run);
  const ids = JSON.stringify([run]);
  const limit = limits.flowsOf([run]).get(run);
  file.run(limit === undefined ? READY_SCHEDULE_RUNS : GATE_SCHEDULE_RUNS, { ids, now });
  if (limit !== undefined) limits.stand(run, limit, now);
  return true;
}
