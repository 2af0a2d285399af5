// Keeps log lines with runs on PostgreSQL.

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

/** The leases are locked for as long as this takes, so that nobody takes a run meanwhile. */
export const APPEND_LOGS = /* sql */ `
with now as materialized (select {now} as at),
sent as materialized (
  select * from unnest(:ids::uuid[], :fences::bigint[], :numbers::int[], :agoMs::bigint[], :levels::smallint[],
    :messages::text[], :fields::text[]) as s (id, fence, no, "agoMs", level, message, fields)
),
held as materialized (
  select fence, ids, attempt from {lease}
  where fence = any(array(select distinct fence from sent)) and holder = :holder::int order by fence for share
),
valid as materialized (
  select s.*, h.attempt from sent s join held h on h.fence = s.fence where s.id = any(h.ids)
),
kept as (
  insert into {log} (run, fence, no, attempt, at, level, message, fields)
  select v.id, v.fence, v.no, v.attempt, now.at - v."agoMs", v.level, v.message, v.fields
  from valid v cross join now
  on conflict (run, fence, no)
  do update set at = excluded.at, message = excluded.message, fields = excluded.fields
)
select distinct s.id, s.fence::text from sent s
where not exists (select from valid v where v.id = s.id and v.fence = s.fence)`;

export const LOGS = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log}
where run = :id::uuid and (fence, no) > (:fence::bigint, :no::int) and no > 0 order by fence, no limit :limit`;

/** The line about dropped lines is the one whose fields say how many. */
export const KEPT_LOG = /* sql */ `
select coalesce(max(no) filter (where not is_marker), 0) as last,
  coalesce(sum(length(message)) filter (where not is_marker and no not between :first::int and :last::int), 0) as chars,
  max(fields) filter (where is_marker) as marker
from (
  select no, message, fields, fields is not null and starts_with(fields, '{"dropped":') as is_marker
  from {log} where run = :id::uuid and fence = :fence::bigint and no > 0
) l`;

/** Line 0: it is told apart from what was said, and never in the way of a worker that counts from 1. */
export const KEEP_REPLY = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select id, :fence::bigint, 0, :attempt::smallint, {now} - :agoMs::bigint, :level::smallint, :message::text, :fields::text
from {run} where id = :id::uuid
on conflict (run, fence, no)
do update set at = excluded.at, level = excluded.level, message = excluded.message, fields = excluded.fields`;

export const REPLIES = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log} where run = :id::uuid and no = 0 order by fence`;

export class PostgresLogs {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async append({ holder, lines }: Parameters<LogStore["appendLogs"]>[0]): Promise<Grant[]> {
    const rows = await this.#asker.attempt("appendLogs", this.#asker.work, APPEND_LOGS, {
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
    await this.#asker.attempt("keepReply", this.#asker.work, KEEP_REPLY, row);
  }

  async replies(id: string): Promise<LogRecord[]> {
    return (await this.#asker.repeat("replies", REPLIES, { id })).map(toLogRecord);
  }

  async kept(asked: Parameters<LogStore["keptLog"]>[0]): Promise<KeptLog> {
    const [row = {}] = await this.#asker.repeat("keptLog", KEPT_LOG, asked);
    return toKeptLog(row);
  }

  async of({ id, after, limit }: Parameters<LogStore["logs"]>[0]): Promise<LogRecord[]> {
    const { fence, no } = after ?? { fence: 0, no: 0 };
    const rows = await this.#asker.repeat("logs", LOGS, { id, fence, no, limit });
    return rows.map(toLogRecord);
  }
}
