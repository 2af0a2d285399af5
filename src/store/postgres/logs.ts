// Log lines that are kept with runs, on PostgreSQL.

import {
  type KeptLog,
  LOG_LEVELS_KEPT,
  type LogRecord,
  type LogStore,
  type ReplyLine,
  toKeptLog,
  toLogRecord,
} from "../logs.js";
import type { Grant } from "../store.js";
import { plainColumn, textColumn } from "./array.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/logs.js";

export class PostgresLogs {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async append({ holder, lines }: Parameters<LogStore["appendLogs"]>[0]): Promise<Grant[]> {
    const rows = await this.#asker.attempt("appendLogs", this.#asker.work, sql.APPEND_LOGS, {
      holder,
      ids: plainColumn(lines, ({ id }) => id),
      fences: plainColumn(lines, ({ fence }) => fence),
      numbers: plainColumn(lines, ({ no }) => no),
      agoMs: plainColumn(lines, ({ agoMs }) => agoMs),
      levels: plainColumn(lines, ({ level }) => LOG_LEVELS_KEPT.indexOf(level)),
      messages: textColumn(lines, ({ message }) => message),
      fields: textColumn(lines, ({ fields }) => fields),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async keepReply({ level, ...reply }: ReplyLine): Promise<void> {
    const row = { ...reply, level: LOG_LEVELS_KEPT.indexOf(level) };
    await this.#asker.attempt("keepReply", this.#asker.work, sql.KEEP_REPLY, row);
  }

  async replies(id: string): Promise<LogRecord[]> {
    return (await this.#asker.repeat("replies", sql.REPLIES, { id })).map(toLogRecord);
  }

  async kept(asked: Parameters<LogStore["keptLog"]>[0]): Promise<KeptLog> {
    const [row = {}] = await this.#asker.repeat("keptLog", sql.KEPT_LOG, asked);
    return toKeptLog(row);
  }

  async of({ id, after, limit }: Parameters<LogStore["logs"]>[0]): Promise<LogRecord[]> {
    const { fence, no } = after ?? { fence: 0, no: 0 };
    const rows = await this.#asker.repeat("logs", sql.LOGS, { id, fence, no, limit });
    return rows.map(toLogRecord);
  }
}
