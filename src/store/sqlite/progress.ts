// Keeps the progress of runs on SQLite.

import type { RunId } from "../../runs/rules/run.js";
import {
  type ProgressParams,
  type ProgressRecord,
  type ProgressWrite,
  toProgressRecord,
} from "../progress.js";
import type { RenewAnswer } from "../store.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";

const PROGRESS_STORED = /* sql */ `select fence, stages from {progress} where run = :id`;

const PUT_PROGRESS = /* sql */ `
insert into {progress} (run, fence, attempt, at, stage, done, total, stages)
values (:id, :fence, :attempt, :at, :stage, :done, :total, :stages)
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, at = excluded.at,
  stage = excluded.stage, done = excluded.done, total = excluded.total, stages = excluded.stages`;

export const PROGRESS_OF = /* sql */ `
select run, attempt, at, stage, done, total, stages from {progress}
where run in (select value from json_each(:ids))`;

export const PRUNE_PROGRESS = /* sql */ `
delete from {progress} where run in (select value from json_each(:ids))`;

export class SqliteProgress {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;

  constructor(asker: SqliteSession, leases: SqliteLeases) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#leases = leases;
  }

  write(params: ProgressParams): Promise<RenewAnswer> {
    return this.#asker.write("progress", (now) => this.#write(params, now));
  }

  #write({ holder, writes }: ProgressParams, now: number): RenewAnswer {
    const renewed = this.#leases.renew({ holder, fences: writes.map(({ fence }) => fence) }, now);
    const leases = this.#leases.leases(renewed.held.map(({ fence }) => fence));
    for (const write of writes) {
      const lease = leases.get(write.fence);
      if (lease?.members.has(write.id)) this.#put(write, lease.row.attempt, now);
    }
    return renewed;
  }

  of(ids: readonly RunId[]): Promise<readonly ProgressRecord[]> {
    const params = { ids: JSON.stringify(ids) };
    return this.#file.read(() => this.#file.all(PROGRESS_OF, params).map(toProgressRecord));
  }

  /** Stages that are stored keep their times, so a repeated call changes nothing. */
  #put({ id, fence, stage, done, total, ...write }: ProgressWrite, attempt: number, now: number) {
    const found = this.#file.get(PROGRESS_STORED, { id });
    const kept = (found?.fence === fence ? JSON.parse(String(found.stages)) : []) as unknown[];
    const fresh = write.stages
      .slice(kept.length)
      .map(({ stage: each, agoMs }) => [each, now - agoMs]);
    const stages = JSON.stringify([...kept, ...fresh]);
    const at = now - write.agoMs;
    this.#file.run(PUT_PROGRESS, { id, fence, attempt, at, stage, done, total, stages });
  }
}
