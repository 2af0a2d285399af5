// Reads the limits of a job: how many of its runs may be held at once, and how many may begin within a stretch of time,
// for all runs or for each value at a path of the input. Pure: checks options and reads keys from inputs. The database
// decides which run may begin, under the key's row.

import { type Duration, durationMs } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { gather } from "../../shared/problems.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type ConcurrencyOptions = {
  /** At most this many runs are held at once, over all instances. */
  readonly limit: number;
  /** A path into the input, such as "account.id": the limit is for each value there. @default none: for the job */
  readonly key?: string | undefined;
};

export type RateOptions = {
  /**
   * At most this many runs are claimed within any stretch of `per` over all instances, and begin within it in one instance.
   * A claimed run begins up to half of `per` later (at least 250 ms, at most 2 s), or goes back.
   */
  readonly limit: number;
  readonly per: Duration;
  /** A path into the input, such as "account.id": the limit is for each value there. @default none: for the job */
  readonly key?: string | undefined;
};

/** The limits of a job as an instance announces them; null means no limit. */
export type Limits = {
  readonly concurrency: { readonly limit: number; readonly key: string | null } | null;
  readonly rate: {
    readonly limit: number;
    readonly perMs: number;
    readonly key: string | null;
  } | null;
};

export const NO_LIMITS: Limits = { concurrency: null, rate: null };

/** The key of a limit for the whole job; no value has an empty JSON text. */
export const WHOLE_JOB = "";

/** A larger limit is a mistake: every held run is counted when one more may begin. */
const CONCURRENCY_LIMIT_MAX = 10_000;
const RATE_LIMIT_MAX = 1_000_000;
const RATE_PER_MAX_MS = 366 * 86_400_000;
const PATH_LENGTH_MAX = 200;
/** Longer values are cut: two long values may then share a limit, but one value never has two. */
const LIMIT_KEY_LENGTH_MAX = 200;
const PATH = /^[A-Za-z_$][\w$-]*(\.[A-Za-z_$][\w$-]*)*$/;

type Field = (member: string) => string;

export function isLimited({ concurrency, rate }: Limits): boolean {
  return concurrency !== null || rate !== null;
}

/** The path that keys are read from; null if every limit is for the whole job. */
export function keyPathOf({ concurrency, rate }: Limits): string | null {
  return concurrency?.key ?? rate?.key ?? null;
}

export function resolveLimits(
  options: {
    readonly concurrency?: ConcurrencyOptions | undefined;
    readonly rate?: RateOptions | undefined;
  },
  field: Field,
): Limits {
  const problems: Problem[] = [];
  const { concurrency, rate } = options;
  const limits: Limits = {
    concurrency:
      concurrency === undefined
        ? null
        : readConcurrency(concurrency, field("concurrency"), problems),
    rate: rate === undefined ? null : readRate(rate, field("rate"), problems),
  };
  const keys = [limits.concurrency?.key ?? null, limits.rate?.key ?? null];
  if (keys[0] !== null && keys[1] !== null && keys[0] !== keys[1]) {
    problems.push({
      field: `${field("concurrency")}.key and ${field("rate")}.key`,
      message: `must be the same path, or one of them left out; here they are "${keys[0]}" and "${keys[1]}"`,
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return limits;
}

function readConcurrency(
  options: ConcurrencyOptions,
  field: string,
  problems: Problem[],
): NonNullable<Limits["concurrency"]> {
  const example = '{ limit: 3, key: "account.id" }';
  if (!isOptions(options, field, example, problems)) return { limit: 1, key: null };
  problems.push(...refuseUnknownMembers(options, ["limit", "key"], field));
  return {
    limit: readLimit(options.limit, `${field}.limit`, CONCURRENCY_LIMIT_MAX, problems),
    key: readPath(options.key, `${field}.key`, problems),
  };
}

function readRate(
  options: RateOptions,
  field: string,
  problems: Problem[],
): NonNullable<Limits["rate"]> {
  const example = '{ limit: 100, per: "1m" }';
  if (!isOptions(options, field, example, problems)) return { limit: 1, perMs: 1, key: null };
  problems.push(...refuseUnknownMembers(options, ["limit", "per", "key"], field));
  return {
    limit: readLimit(options.limit, `${field}.limit`, RATE_LIMIT_MAX, problems),
    perMs: readPer(options.per, `${field}.per`, problems),
    key: readPath(options.key, `${field}.key`, problems),
  };
}

function isOptions(value: unknown, field: string, example: string, problems: Problem[]): boolean {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject) problems.push({ field, message: `must be an object such as ${example}` });
  return isObject;
}

function readLimit(value: unknown, field: string, max: number, problems: Problem[]): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max)
    return value as number;
  problems.push({ field, message: `must be a whole number from 1 to ${max}, for example 3` });
  return 1;
}

function readPer(value: unknown, field: string, problems: Problem[]): number {
  if (value === undefined) {
    problems.push({ field, message: 'must be given: a stretch of time such as "1m"' });
    return 1;
  }
  return gather(problems, () => durationMs(value, field, { min: 1, max: RATE_PER_MAX_MS }), 1);
}

function readPath(value: unknown, field: string, problems: Problem[]): string | null {
  if (value === undefined) return null;
  if (typeof value === "string" && value.length <= PATH_LENGTH_MAX && PATH.test(value))
    return value;
  problems.push({
    field,
    message: 'must be a path into the input: names with dots between them, such as "account.id"',
  });
  return null;
}

/**
 * The key that a run of a limited job waits under: the JSON text of the value at the path. A
 * missing value counts as null, as in SQL: all such runs share one key.
 */
export function limitKeyOf(limits: Limits, inputJson: string): string {
  const path = keyPathOf(limits);
  if (path === null) return WHOLE_JOB;
  let value: unknown = JSON.parse(inputJson);
  for (const name of path.split(".")) {
    // Members of arrays are never a key, nor is their length: SQL would not find them either.
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const isThere = isObject && Object.hasOwn(value as object, name);
    value = isThere ? (value as Readonly<Record<string, unknown>>)[name] : null;
  }
  const text = JSON.stringify(value);
  return text.length <= LIMIT_KEY_LENGTH_MAX
    ? text
    : [...text].slice(0, LIMIT_KEY_LENGTH_MAX).join("");
}

/** A key for people: the value itself, cut if it is long. */
export function shownLimitKey(key: string): unknown {
  if (key === WHOLE_JOB) return null;
  try {
    return JSON.parse(key);
  } catch {
    return key;
  }
}
