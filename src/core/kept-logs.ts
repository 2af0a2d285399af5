// Which log lines are kept with a run, and in what form: every line fits every database, however it
// came to be. Pure and total: what a handler logs never fails its run.

import { ConfigurationError, type Problem } from "./errors.js";
import { describeFailure } from "./failure.js";
import { encodeResult, storableText } from "./json.js";
import { refuseUnknownMembers } from "./suggest.js";

export type LogsOptions = {
  /** Which lines of `ctx.log` are kept with the run. @default "all" */
  readonly keep?: "all" | "warn" | "none";
  /** How many lines of an attempt are kept; the rest is counted. @default 1000 */
  readonly max?: number;
};

export type LogsPolicy = Required<LogsOptions>;

export const LOGS_DEFAULT: LogsPolicy = { keep: "all", max: 1_000 };
/** Of one attempt, whatever the number of its lines. */
export const LOG_CHARS_MAX = 512 * 1024;
const MESSAGE_LENGTH_MAX = 8 * 1024;
const FIELDS_LENGTH_MAX = 4 * 1024;
const LINES_MAX = 100_000;
const KEEP = ["all", "warn", "none"] as const;

/** Members left out take what the instance says, one by one. */
export function readLogs(
  options: LogsOptions | undefined,
  defaults: LogsPolicy,
  field: string,
): LogsPolicy {
  if (options === undefined) return defaults;
  const problems: Problem[] =
    typeof options === "object" && options !== null
      ? refuseUnknownMembers(options, ["keep", "max"], field)
      : [{ field, message: 'must be like { keep: "warn", max: 1000 }' }];
  const { keep = defaults.keep, max = defaults.max } = options ?? {};
  if (!KEEP.includes(keep))
    problems.push({ field: `${field}.keep`, message: 'must be one of "all", "warn", "none"' });
  if (!Number.isInteger(max) || max < 1 || max > LINES_MAX)
    problems.push({
      field: `${field}.max`,
      message: `must be a whole number from 1 to ${LINES_MAX}, for example 1000`,
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { keep, max };
}

export function keptMessage(message: unknown): string {
  return storableText(
    typeof message === "string" ? message : encodeResult(message),
    MESSAGE_LENGTH_MAX,
  );
}

/** JSON text; null where there are none. Errors among them say what they are. */
export function keptFields(fields: object): string | null {
  const text = encodeResult(readable(fields));
  if (text === "{}") return null;
  if (text.length <= FIELDS_LENGTH_MAX) return text;
  return JSON.stringify({ $truncated: storableText(text, FIELDS_LENGTH_MAX) });
}

function readable(fields: object): unknown {
  try {
    const members = Object.entries(fields).map(([name, value]) => {
      const isError = value instanceof Error;
      return [name, isError ? describeFailure(value) : value] as const;
    });
    return Object.fromEntries(members);
  } catch {
    // A Proxy may throw at any question; the encoder says that it could not be read.
    return fields;
  }
}
