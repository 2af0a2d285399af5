// Declares the store's verbs for the log lines that are kept with runs, and maps their rows.

import type { RunId } from "../runs/rules/run.js";
import { type Row, textOrNull } from "./rows.js";

/** As the tables store them: by their place. */
export const LOG_LEVELS_KEPT = ["debug", "info", "warn", "error"] as const;
export type KeptLevel = (typeof LOG_LEVELS_KEPT)[number];

export type LogLine = {
  readonly id: RunId;
  readonly fence: number;
  /** Counted by the holder, from 1 for each grant: the same line sent twice is one line. */
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
export type KeptLog = {
  /** The largest number of a line; 0: none is kept. The line about dropped lines does not count. */
  readonly last: number;
  /** Characters of messages, without those lines whose numbers are in the range that was asked for. */
  readonly chars: number;
  /** How many lines were dropped so far, and the largest number among them; 0: none. */
  readonly dropped: number;
  readonly droppedTo: number;
};

/** What came back when a run was sent elsewhere: the line before the first one of its grant. */
export type ReplyLine = Omit<LogLine, "no"> & { readonly attempt: number };

export interface LogStore {
  /**
   * Keeps lines with their runs, as long as they are held under these fences; a line that is there
   * already takes the new words. Answers the grants whose lines were refused, each once.
   */
  appendLogs(params: {
    readonly holder: number;
    readonly lines: readonly LogLine[];
  }): Promise<readonly { readonly id: RunId; readonly fence: number }[]>;
  /**
   * Keeps what came back, also of a run that has ended meanwhile: whoever was sent it may call back before
   * its answer is here, and nobody else ever has this fence.
   */
  keepReply(reply: ReplyLine): Promise<void>;
  /** In the order in which they were sent. */
  replies(id: RunId): Promise<readonly LogRecord[]>;
  /** How much is kept of a grant; `first` to `last` are about to be written again. */
  keptLog(params: {
    readonly id: RunId;
    readonly fence: number;
    readonly first: number;
    readonly last: number;
  }): Promise<KeptLog>;
  /** The oldest first, those after a line. */
  logs(params: {
    readonly id: RunId;
    readonly after: { readonly fence: number; readonly no: number } | null;
    readonly limit: number;
  }): Promise<readonly LogRecord[]>;
}

export function toLogRecord(row: Row): LogRecord {
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

/** `marker`: the fields of the line about dropped lines. */
export function toKeptLog({ last, chars, marker }: Row): KeptLog {
  const { dropped = 0, to = 0 } = JSON.parse(textOrNull(marker) ?? "{}") as {
    readonly dropped?: number;
    readonly to?: number;
  };
  return { last: Number(last), chars: Number(chars), dropped, droppedTo: to };
}
