// Keeps log lines with their runs. An append checks the fence of the lease, so each engine has its own code for it; all
// other verbs are written here once.

import type { RunId } from "../runs/rules/run.js";
import { type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";
import { PAGE_BYTES_MAX } from "./sql/list-page.js";

const COLUMNS = "fence, no, attempt, at, level, message, fields";

/** The approximate size of a line beside its texts. */
const LINE_BYTES = 128;

/** The page ends when its lines have its bytes; it has at least one line. */
const LIST = /* sql */ `
select ${COLUMNS} from (
  select w.*, sum(w.weight) over (order by w.fence, w.no) - w.weight as weight_before from (
    select ${COLUMNS}, octet_length(message) + coalesce(octet_length(fields), 0) + ${LINE_BYTES} as weight from {log}
    where run = :id::uuid and (fence, no) > (:fence::bigint, :no::int) and no > 0 order by fence, no limit :limit
  ) w
) p where p.weight_before < ${PAGE_BYTES_MAX} order by fence, no`;

/** The line that reports dropped lines is the one whose fields have their number. */
const KEPT = /* sql */ `
select coalesce(max(no) filter (where not is_marker), 0) as last,
  coalesce(sum(length(message)) filter (where not is_marker and no not between :first::int and :last::int), 0) as chars,
  max(fields) filter (where is_marker) as marker
from (
  select no, message, fields, fields is not null and substr(fields, 1, 11) = '{"dropped":' as is_marker
  from {log} where run = :id::uuid and fence = :fence::bigint and no > 0
) l`;

/** Line 0: distinct from the handler's lines, because a worker counts from 1. */
const KEEP_REPLY = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select id, :fence::bigint, 0, :attempt::smallint, {now} - :agoMs::bigint, :level::smallint, :message::text, :fields::text
from {run} where id = :id::uuid
on conflict (run, fence, no)
do update set at = excluded.at, level = excluded.level, message = excluded.message, fields = excluded.fields`;

const REPLIES = /* sql */ `
select ${COLUMNS} from {log} where run = :id::uuid and no = 0 order by fence`;

/** As the tables store them: by position. */
export const LOG_LEVELS_KEPT = ["debug", "info", "warn", "error"] as const;
export type KeptLevel = (typeof LOG_LEVELS_KEPT)[number];

export type LogLine = {
  readonly id: RunId;
  readonly fence: number;
  /** Counted by the holder, from 1 for each grant: a line that is sent twice is stored once. */
  readonly no: number;
  readonly level: KeptLevel;
  readonly agoMs: number;
  readonly message: string;
  /** JSON text. */
  readonly fields: string | null;
};

export type LogRecord = {
  readonly fence: number;
  readonly no: number;
  readonly attempt: number;
  readonly at: number;
  readonly level: KeptLevel;
  readonly message: string;
  readonly fields: string | null;
};

/** How much of an attempt is kept so far, under one grant. */
type KeptLog = {
  /** The largest number of a line; 0: no line is kept. The line that reports dropped lines does not count. */
  readonly last: number;
  /** Characters of messages, without the lines in the requested range of numbers. */
  readonly chars: number;
  /** How many lines were dropped so far, and the largest number among them; 0: none. */
  readonly dropped: number;
  readonly droppedTo: number;
};

/** The reply to a dispatch: stored as the line before the first one of its grant. */
export type ReplyLine = Omit<LogLine, "no"> & { readonly attempt: number };

/** Lines of held runs, as one holder sends them. */
export type AppendParams = { readonly holder: number; readonly lines: readonly LogLine[] };

export abstract class Logs {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Stores lines with their runs while these fences are current; a line that exists takes the new text. Returns the
   * grants whose lines were refused, each once.
   */
  abstract append(
    params: AppendParams,
  ): Promise<readonly { readonly id: RunId; readonly fence: number }[]>;

  /**
   * Stores the reply to a dispatch, also if the run has ended meanwhile: a remote worker may call back before its reply
   * arrives, and a fence has only one holder.
   */
  async keepReply({ level, ...reply }: ReplyLine): Promise<void> {
    const params = { ...reply, level: LOG_LEVELS_KEPT.indexOf(level) };
    // Not repeated: a second execution would change the time of the line.
    await this.#session.write({
      ...{ verb: "logs.keepReply", sql: KEEP_REPLY, params },
      lost: "report",
    });
  }

  /** In the order in which they were sent. */
  async replies(id: RunId): Promise<readonly LogRecord[]> {
    const found = await this.#session.read({ verb: "logs.replies", sql: REPLIES, params: { id } });
    return found.map(toLogRecord);
  }

  /** How much is kept of a grant; the lines from `first` to `last` will be written again. */
  async kept(params: {
    readonly id: RunId;
    readonly fence: number;
    readonly first: number;
    readonly last: number;
  }): Promise<KeptLog> {
    const [found = {}] = await this.#session.read({ verb: "logs.kept", sql: KEPT, params });
    return toKeptLog(found);
  }

  /** The oldest lines first, after the given line: `limit` of them, or as many as fill the bytes of a page. */
  async list({
    id,
    after,
    limit,
  }: {
    readonly id: RunId;
    readonly after: { readonly fence: number; readonly no: number } | null;
    readonly limit: number;
  }): Promise<readonly LogRecord[]> {
    const { fence, no } = after ?? { fence: 0, no: 0 };
    const params = { id, fence, no, limit };
    return (await this.#session.read({ verb: "logs.list", sql: LIST, params })).map(toLogRecord);
  }
}

/** Whether more lines may follow: these are as many as requested, or they fill a page. */
export function isFullPage(records: readonly LogRecord[], limit: number): boolean {
  const weight = ({ message, fields }: LogRecord) =>
    Buffer.byteLength(message) + Buffer.byteLength(fields ?? "") + LINE_BYTES;
  const bytes = records.reduce((sum, record) => sum + weight(record), 0);
  return records.length === limit || bytes >= PAGE_BYTES_MAX;
}

function toLogRecord(row: Row): LogRecord {
  return {
    fence: Number(row.fence),
    no: Number(row.no),
    attempt: Number(row.attempt),
    at: Number(row.at),
    level: LOG_LEVELS_KEPT[Number(row.level)] as KeptLevel,
    message: String(row.message),
    fields: textOrNull(row.fields),
  };
}

/** `marker`: the fields of the line that reports dropped lines. */
function toKeptLog({ last, chars, marker }: Row): KeptLog {
  const { dropped = 0, to = 0 } = JSON.parse(textOrNull(marker) ?? "{}") as {
    readonly dropped?: number;
    readonly to?: number;
  };
  return { last: Number(last), chars: Number(chars), dropped, droppedTo: to };
}
