// Log lines that are kept with runs, on SQLite.

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
import * as sql from "./sql/logs.js";

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
    if (rows.length > 0) this.#file.runEach(sql.APPEND_LOGS, rows, { now });
    return [...refused.values()];
  }

  async keepReply({ level, ...reply }: ReplyLine): Promise<void> {
    const row = { ...reply, level: LOG_LEVELS_KEPT.indexOf(level) };
    await this.#asker.write("keepReply", (now) => this.#file.run(sql.KEEP_REPLY, { ...row, now }));
  }

  replies(id: RunId): Promise<readonly LogRecord[]> {
    return this.#file.read(() => this.#file.all(sql.REPLIES, { id }).map(toLogRecord));
  }

  kept(asked: Parameters<LogStore["keptLog"]>[0]): Promise<KeptLog> {
    return this.#file.read(() => toKeptLog(this.#file.get(sql.KEPT_LOG, asked) ?? {}));
  }

  of(params: {
    readonly id: RunId;
    readonly after: { readonly fence: number; readonly no: number } | null;
    readonly limit: number;
  }): Promise<readonly LogRecord[]> {
    const { id, after, limit } = params;
    const { fence, no } = after ?? { fence: 0, no: 0 };
    const asked = { id, fence, no, limit };
    return this.#file.read(() => this.#file.all(sql.LOGS, asked).map(toLogRecord));
  }
}

function rowOf({ id, fence, no, agoMs, level, message, fields }: LogLine, attempt: number) {
  return [id, fence, no, attempt, agoMs, LOG_LEVELS_KEPT.indexOf(level), message, fields];
}
