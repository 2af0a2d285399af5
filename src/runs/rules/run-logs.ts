// Decides which log lines are kept with a run, and in what form: every stored line fits every database. Pure and total: a
// log call never fails its run.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { describeFailure } from "../../shared/failure.js";
import { encodeResult, storableText } from "../../shared/json.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type LogsOptions = {
  /** Which lines of `ctx.log` are kept with the run. @default "all" */
  readonly keep?: "all" | "warn" | "none" | undefined;
  /** How many lines of an attempt are kept; the rest is counted. @default 1000 */
  readonly max?: number | undefined;
};

export type LogsPolicy = {
  readonly keep: "all" | "warn" | "none";
  readonly max: number;
};

export const LOGS_DEFAULT: LogsPolicy = { keep: "all", max: 1_000 };
/** The characters of one attempt, over all its lines. */
export const LOG_CHARS_MAX = 512 * 1024;
const MESSAGE_LENGTH_MAX = 8 * 1024;
const FIELDS_LENGTH_MAX = 4 * 1024;
const LINES_MAX = 100_000;
const KEEP = ["all", "warn", "none"] as const;

/** Members left out take the values of the instance. */
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

/** The lines of an attempt that are already kept. */
type KeptSoFar = {
  readonly last: number;
  readonly chars: number;
  readonly dropped: number;
  readonly droppedTo: number;
};
type Numbered = { readonly no: number; readonly level: string; readonly message: string };

/**
 * The lines within the limits of an attempt, and the number of dropped ones so far. Repeated lines keep their number and
 * count once.
 */
export function linesWithin<L extends Numbered>(
  lines: readonly L[],
  kept: KeptSoFar,
  policy: LogsPolicy,
): { readonly lines: readonly L[]; readonly last: number; readonly dropped: DroppedLines | null } {
  const within: L[] = [];
  let { last, chars, dropped, droppedTo } = kept;
  for (const line of lines.filter(({ level }) => isKept(level, policy))) {
    const isNew = line.no > kept.last;
    const isFull = line.no > policy.max || chars >= LOG_CHARS_MAX;
    if (isFull || (isNew && dropped > 0)) {
      if (!isNew || line.no <= droppedTo) continue;
      dropped += 1;
      droppedTo = line.no;
      continue;
    }
    chars += line.message.length;
    last = Math.max(last, line.no);
    within.push(line);
  }
  return { lines: within, last, dropped: dropped > 0 ? { dropped, to: droppedTo } : null };
}

/** Whether the policy of a job keeps lines of this level. */
export function isKept(level: string, { keep }: Pick<LogsPolicy, "keep">): boolean {
  if (keep === "none") return false;
  return keep === "all" || level === "warn" || level === "error";
}

/** The fields of the line about dropped lines; `to` is the largest number among them. */
export type DroppedLines = { readonly dropped: number; readonly to?: number };

/** The last line of an attempt with dropped lines. */
export function droppedLine(facts: DroppedLines): { message: string; fields: string } {
  const { dropped } = facts;
  const lines = dropped === 1 ? "line was" : "lines were";
  return {
    message: `${dropped} more ${lines} not kept: the limit of this attempt was reached`,
    fields: JSON.stringify(facts),
  };
}

export function keptMessage(message: unknown): string {
  return storableText(
    typeof message === "string" ? message : encodeResult(message),
    MESSAGE_LENGTH_MAX,
  );
}

/** JSON text; null if there are none. Errors are written with their message. */
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
    // A Proxy may throw on any access; the encoder reports that it could not be read.
    return fields;
  }
}
