// Keeps log lines with runs on SQLite.

import type { RunId } from "../../runs/rules/run.js";
import {
  type KeptLog,
  LOG_LEVELS_KEPT,
  type LogLine,
  type LogRecord,
  type LogStore,
  type ReplyLine,
  toKeptLog,
  toLogRecord,
} from "../logs.js";
import type { Grant } from "../store.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";

export const APPEND_LOGS = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now - (value ->> 4), value ->> 5, value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set at = excluded.at, message = excluded.message, fields = excluded.fields`;

export const LOGS = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log}
where run = :id and (fence, no) > (:fence, :no) and no > 0 order by fence, no limit (:limit + 0)`;

/** The line about dropped lines is the one whose fields say how many. */
export const KEPT_LOG = /* sql */ `
select coalesce(max(iif(is_marker, null, no)), 0) as last,
  coalesce(sum(iif(is_marker or no between :first and :last, 0, length(message))), 0) as chars,
  max(iif(is_marker, fields, null)) as marker
from (
  select no, message, fields, fields is not null and substr(fields, 1, 11) = '{"dropped":' as is_marker
  from {log} where run = :id and fence = :fence and no > 0
)`;

/** Line 0: it is told apart from what was said, and never in the way of a worker that counts from 1. */
export const KEEP_REPLY = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select id, :fence, 0, :attempt, :now - :agoMs, :level, :message, :fields from {run} where id = :id
on conflict do update set at = excluded.at, level = excluded.level, message = excluded.message, fields = excluded.fields`;

export const REPLIES = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log} where run = :id and no = 0 order by fence`;

export const PRUNE_LOGS = /* sql */ `delete from {log} where run in (select value from json_each(:ids))`;

export class SqliteLogs {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;

  constructor(asker: SqliteSession, leases: SqliteLeases) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#leases = leases;
  }

  append(params: Parameters<LogStore["appendLogs"]>[0]): Promise<readonly Grant[]> {
    return this.#asker.write("appendLogs", (now) => this.#append(params, now));
  }

  #append({ holder, lines }: Parameters<LogStore["appendLogs"]>[0], now: number): Grant[] {
    const leases = this.#leases.leases(lines.map(({ fence }) => fence));
    const refused = new Map<string, Grant>();
    const rows: unknown[][] = [];
    for (const line of lines) {
      const lease = leases.get(line.fence);
      if (lease?.row.holder === holder && lease.members.has(line.id))
        rows.push(rowOf(line, lease.row.attempt));
      else refused.set(`${line.id} ${line.fence}`, { id: line.id, fence: line.fence });
    }
    if (rows.length > 0) this.#file.runEach(APPEND_LOGS, rows, { now });
    return [...refused.values()];
  }

  async keepReply({ level, ...reply }: ReplyLine): Promise<void> {
    const row = { ...reply, level: LOG_LEVELS_KEPT.indexOf(level) };
    await this.#asker.write("keepReply", (now) => this.#file.run(KEEP_REPLY, { ...row, now }));
  }

  replies(id: RunId): Promise<readonly LogRecord[]> {
    return this.#file.read(() => this.#file.all(REPLIES, { id }).map(toLogRecord));
  }

  kept(asked: Parameters<LogStore["keptLog"]>[0]): Promise<KeptLog> {
    return this.#file.read(() => toKeptLog(this.#file.get(KEPT_LOG, asked) ?? {}));
  }

  of(params: {
    readonly id: RunId;
    readonly after: { readonly fence: number; readonly no: number } | null;
    readonly limit: number;
  }): Promise<readonly LogRecord[]> {
    const { id, after, limit } = params;
    const { fence, no } = after ?? { fence: 0, no: 0 };
    const asked = { id, fence, no, limit };
    return this.#file.read(() => this.#file.all(LOGS, asked).map(toLogRecord));
  }
}

function rowOf({ id, fence, no, agoMs, level, message, fields }: LogLine, attempt: number) {
  return [id, fence, no, attempt, agoMs, LOG_LEVELS_KEPT.indexOf(level), message, fields];
}
