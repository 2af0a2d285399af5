// Writes the progress of runs on SQLite: the transaction renews the leases first, and stores the progress of those that
// are still held.

import type { Grant } from "../claims.js";
import { type AppendParams, LOG_LEVELS_KEPT, type LogLine, Logs } from "../logs.js";
import {
  Progress,
  type ProgressParams,
  type ProgressResult,
  type ProgressWrite,
} from "../progress.js";
import type { SqliteFile } from "./connection/connection.js";
import type { LeaseRows } from "./lease-rows.js";
import type { SqliteSession } from "./session.js";

const PROGRESS_STORED = /* sql */ `select fence, stages from {progress} where run = :id`;

const PUT_PROGRESS = /* sql */ `
insert into {progress} (run, fence, attempt, at, stage, done, total, stages)
values (:id, :fence, :attempt, :at, :stage, :done, :total, :stages)
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, at = excluded.at,
  stage = excluded.stage, done = excluded.done, total = excluded.total, stages = excluded.stages`;

export class SqliteProgress extends Progress {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;

  constructor(session: SqliteSession, leases: LeaseRows) {
    super(session);
    this.#session = session;
    this.#file = session.file;
    this.#leases = leases;
  }

  write(params: ProgressParams): Promise<ProgressResult> {
    return this.#session.transact("progress.write", (now) => this.#write(params, now));
  }

  #write({ holder, writes }: ProgressParams, now: number): ProgressResult {
    const renewed = this.#leases.renew({ holder, fences: writes.map(({ fence }) => fence) }, now);
    const leases = this.#leases.leases(renewed.held.map(({ fence }) => fence));
    for (const write of writes) {
      const lease = leases.get(write.fence);
      if (lease?.members.has(write.id)) this.#put(write, lease.row.attempt, now);
    }
    return renewed;
  }

  /** Stored stages keep their times, so a repeated call changes nothing. */
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

const APPEND = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now - (value ->> 4), value ->> 5, value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set at = excluded.at, message = excluded.message, fields = excluded.fields`;

export class SqliteLogs extends Logs {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;

  constructor(session: SqliteSession, leases: LeaseRows) {
    super(session);
    this.#session = session;
    this.#file = session.file;
    this.#leases = leases;
  }

  append(params: AppendParams): Promise<readonly Grant[]> {
    return this.#session.transact("logs.append", (now) => this.#append(params, now));
  }

  #append({ holder, lines }: AppendParams, now: number): Grant[] {
    const leases = this.#leases.leases(lines.map(({ fence }) => fence));
    const refused = new Map<string, Grant>();
    const rows: unknown[][] = [];
    for (const line of lines) {
      const lease = leases.get(line.fence);
      if (lease?.row.holder === holder && lease.members.has(line.id))
        rows.push(rowOf(line, lease.row.attempt));
      else refused.set(`${line.id} ${line.fence}`, { id: line.id, fence: line.fence });
    }
    if (rows.length > 0) this.#file.runEach(APPEND, rows, { now });
    return [...refused.values()];
  }
}

function rowOf({ id, fence, no, agoMs, level, message, fields }: LogLine, attempt: number) {
  return [id, fence, no, attempt, agoMs, LOG_LEVELS_KEPT.indexOf(level), message, fields];
}
