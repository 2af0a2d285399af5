// What the engine asks of a database about the log lines that are kept with runs, in domain verbs.

import type { RunId } from "../core/run.js";

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

export interface LogStore {
  /**
   * Keeps lines with their runs, as long as they are held under these fences; a line that is there
   * already takes the new words. Answers the grants whose lines were refused, each once.
   */
  appendLogs(params: {
    readonly holder: number;
    readonly lines: readonly LogLine[];
  }): Promise<readonly { readonly id: RunId; readonly fence: number }[]>;
  /** The oldest first, those after a line. */
  logs(params: {
    readonly id: RunId;
    readonly after: { readonly fence: number; readonly no: number } | null;
    readonly limit: number;
  }): Promise<readonly LogRecord[]>;
}
