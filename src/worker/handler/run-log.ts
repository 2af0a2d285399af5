// `ctx.log`: every line goes to the instance's logger, and is kept with the run where that is wanted.
// Takes what people write: a message, fields and a message, an error and a message.

import { hideSecrets, hideSecretsIn } from "../../shared/known-secrets.js";
import type { Logger } from "../../telemetry/log.js";

export type RunLogLine = {
  (message: string): void;
  (fields: object, message?: string): void;
};

/** The logger of one attempt. */
export type RunLog = {
  readonly debug: RunLogLine;
  readonly info: RunLogLine;
  readonly warn: RunLogLine;
  readonly error: RunLogLine;
};

export type RunLogLevel = keyof RunLog;

export function runLog(params: {
  readonly logger: Logger;
  /** What every line to the logger carries. */
  readonly fields: object;
  readonly keep: (level: RunLogLevel, fields: object, message: string) => void;
}): RunLog {
  const { logger, keep } = params;
  const at = (level: RunLogLevel): RunLogLine => {
    return (first: string | object, second?: string) => {
      const { fields, message } = lineOf(first, second);
      keep(level, fields, message);
      try {
        logger[level]({ ...params.fields, ...hideSecretsIn(fields) }, hideSecrets(message));
      } catch {
        // A logger that fails must not take the run down with it.
      }
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** As pino reads it: an error alone is its own message. */
function lineOf(first: unknown, second: unknown): { fields: object; message: string } {
  if (typeof first !== "object" || first === null) return { fields: {}, message: String(first) };
  const fields = first instanceof Error ? { err: first } : first;
  if (second !== undefined) return { fields, message: String(second) };
  return { fields, message: first instanceof Error ? String(first.message) : "" };
}
