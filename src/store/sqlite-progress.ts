// How far runs are, on SQLite. A write happens inside of a write transaction.

import type { RunId } from "../core/run.js";
import type { ProgressParams, ProgressRecord, ProgressWrite } from "./progress-store.js";
import { toProgressRecord } from "./record-kept.js";
import { RENEW } from "./sql/sqlite.js";
import * as sql from "./sql/sqlite-progress.js";
import type { SqliteFile } from "./sqlite.js";
import type { SqliteLeases } from "./sqlite-leases.js";
import type { RenewAnswer } from "./store.js";

export class SqliteProgress {
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;

  constructor(file: SqliteFile, leases: SqliteLeases) {
    this.#file = file;
    this.#leases = leases;
  }

  write({ holder, writes }: ProgressParams, now: number): RenewAnswer {
    const fences = JSON.stringify(writes.map(({ fence }) => fence));
    const held = this.#file.all(RENEW, { holder, fences, now }).map((row) => ({
      fence: Number(row.fence),
      leaseMs: Number(row.lease_ms),
      ids: JSON.parse(String(row.ids)) as RunId[],
    }));
    const leases = this.#leases.leases(held.map(({ fence }) => fence));
    for (const write of writes) {
      const lease = leases.get(write.fence);
      if (lease?.members.has(write.id)) this.#put(write, lease.row.attempt, now);
    }
    return { held, unknown: [] };
  }

  of(ids: readonly RunId[]): ProgressRecord[] {
    return this.#file.all(sql.PROGRESS_OF, { ids: JSON.stringify(ids) }).map(toProgressRecord);
  }

  /** Stages that are stored keep their times, so a repeated call changes nothing. */
  #put({ id, fence, stage, done, total, ...write }: ProgressWrite, attempt: number, now: number) {
    const found = this.#file.get(sql.PROGRESS_STORED, { id });
    const kept = (found?.fence === fence ? JSON.parse(String(found.stages)) : []) as unknown[];
    const fresh = write.stages
      .slice(kept.length)
      .map(({ stage: each, agoMs }) => [each, now - agoMs]);
    const stages = JSON.stringify([...kept, ...fresh]);
    const at = now - write.agoMs;
    this.#file.run(sql.PUT_PROGRESS, { id, fence, attempt, at, stage, done, total, stages });
  }
}
