// Runs that a run makes, on SQLite, inside of a write transaction: a batch with its children, and
// what the end of each does to it.

import type { RunId } from "../core/run.js";
import { type BatchCount, countBatch, foreignRuns } from "./batch-count.js";
import type * as batches from "./batch-store.js";
import { statusCode } from "./record.js";
import * as sql from "./sql/sqlite-batches.js";
import { READY_SCHEDULE_RUNS } from "./sql/sqlite-schedule-changes.js";
import type { Row, SqliteFile } from "./sqlite.js";
import type { SqliteEnqueue } from "./sqlite-enqueue.js";
import type { SqliteLeases } from "./sqlite-leases.js";
import type * as store from "./store.js";

/** A child that has ended, or goes on after it had. */
export type ChildChange = {
  readonly batch: number;
  readonly status: number;
  readonly isEnd: boolean;
};

/** Counts ends and revivals; answers how many runs that come after were made. */
export function countChildren(
  file: SqliteFile,
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
  for (const [batch, change] of byBatch) if (count(file, { batch, ...change }, now)) continued += 1;
  return continued;
}

/** Whoever brings a batch to its end for the first time makes the run that comes after. */
function count(file: SqliteFile, change: Row, now: number): boolean {
  const { batch } = change;
  const after = file.get(sql.COUNT_BATCH, change);
  if (!after || after.ended_at !== null || after.unended !== 0) return false;
  const ended = file.get(sql.END_BATCH, { batch, now });
  if (!ended || ended.then_run === null) return false;
  file.run(sql.CONTINUE_BATCH, { batch, now });
  file.run(READY_SCHEDULE_RUNS, { ids: JSON.stringify([ended.then_run]), now });
  return true;
}

export class SqliteBatches {
  readonly #file: SqliteFile;
  readonly #enqueue: SqliteEnqueue;
  readonly #leases: SqliteLeases;

  constructor(params: {
    readonly file: SqliteFile;
    readonly enqueue: SqliteEnqueue;
    readonly leases: SqliteLeases;
  }) {
    this.#file = params.file;
    this.#enqueue = params.enqueue;
    this.#leases = params.leases;
  }

  enqueueChildren(
    { parent, runs }: { readonly parent: store.Grant; readonly runs: readonly store.NewRun[] },
    now: number,
  ): readonly store.EnqueueAnswer[] | "stale" {
    if (!this.#isHeld(parent)) return "stale";
    const origin = { parent: parent.id, batch: null };
    return this.#enqueue.store({ runs, isAtomic: false }, now, origin);
  }

  enqueueBatch(batch: batches.NewBatch, now: number): batches.BatchAnswer | "stale" {
    if (!this.#isHeld(batch.parent)) return "stale";
    const { name, after } = batch;
    const parent = batch.parent.id;
    const added = this.#file.get(sql.ADD_BATCH, {
      parent,
      name,
      now,
      ...this.#continuation(after),
    });
    if (!added) {
      const made = this.#file.get(sql.MADE_BATCH, { parent, name }) as Row;
      const errors = JSON.parse(String(made.errors)) as batches.BatchError[];
      return { scheduled: Number(made.scheduled), errors };
    }
    const id = Number(added.id);
    const runs = batch.children.map(({ run }) => run);
    const answers = this.#enqueue.store({ runs, isAtomic: false }, now, { parent, batch: id });
    const ids = JSON.stringify(foreignRuns(answers));
    const ended = this.#file.all(sql.OUTCOMES, { ids });
    const endedAs = new Map(ended.map((row) => [String(row.id), Number(row.status)]));
    const { scheduled, errors, ...counts } = countBatch(batch, answers, endedAs);
    this.#file.run(sql.FILL_BATCH, {
      batch: id,
      scheduled,
      refused: errors.length,
      errors: JSON.stringify(errors),
    });
    count(this.#file, { batch: id, ...counts }, now);
    return { scheduled, errors };
  }

  retryChildren(params: batches.RetryChildren, now: number): readonly RunId[] {
    const { parent, batch = null, after = null, limit } = params;
    const rows = this.#file.all(sql.FAILED_CHILDREN, { parent, batch, after, limit });
    const ids = rows.map((row) => String(row.id));
    for (const id of ids) this.#leases.revive({ id, isGated: false }, now);
    return ids;
  }

  #isHeld({ id, fence }: store.Grant): boolean {
    return this.#file.get(sql.HELD, { fence, parent: id }) !== undefined;
  }

  #continuation(after: store.NewRun | null): Row {
    return {
      thenRun: after?.id ?? null,
      thenLane: after && this.#enqueue.lane(after.queue, after.job),
      thenPolicy: after && this.#enqueue.policy(after.policy),
      thenVersion: after?.version ?? null,
      thenPriority: after?.priority ?? null,
    };
  }
}
