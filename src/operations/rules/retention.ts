// Reads the option `retention` of a job: how long, or how many of its ended runs are kept. Pure.

import { type Duration, durationMs } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type RetentionOptions = {
  /** Older runs are removed. */
  readonly for?: Duration;
  /** Only this many stay, the newest ones. */
  readonly count?: number;
};

/** The limit that is reached first applies. */
export type Retention = { readonly keepMs: number | null; readonly keepCount: number | null };

/** The search for the oldest run that stays is limited to this many. */
export const RETENTION_COUNT_MAX = 100_000;

export function readRetention(
  given: Duration | RetentionOptions | undefined,
  field: string,
): Retention | null {
  if (given === undefined) return null;
  if (typeof given !== "object" || given === null)
    return { keepMs: durationMs(given, field, { min: 1 }), keepCount: null };
  const problems: Problem[] = refuseUnknownMembers(given, ["for", "count"], field);
  const { count } = given;
  if (
    count !== undefined &&
    !(Number.isInteger(count) && count >= 0 && count <= RETENTION_COUNT_MAX)
  )
    problems.push({
      field: `${field}.count`,
      message: `must be a whole number from 0 to ${RETENTION_COUNT_MAX}, for example 1000`,
    });
  if (given.for === undefined && count === undefined)
    problems.push({ field, message: 'must say something, for example "7d" or { count: 1000 }' });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    keepMs: given.for === undefined ? null : durationMs(given.for, `${field}.for`, { min: 1 }),
    keepCount: count ?? null,
  };
}
