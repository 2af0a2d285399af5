// Computes how often a run is retried, and how long each wait is. Pure: returns durations, to which the database adds its
// own now; randomness is a parameter.

import { type Duration, formatDuration, readDuration } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type RetryPolicy = {
  readonly attempts: number;
  readonly delayMs: number;
  readonly factor: number;
  readonly maxMs: number;
  readonly jitter: number;
  /** A server's Retry-After may be longer than `maxMs`. Known only where the job's code is; not stored. */
  readonly honoursRetryAfterBeyondMax?: true;
};

export type RetryOptions = {
  /** How many tries there are, the first included; 1 … 1000. @default 5 */
  readonly attempts?: number | undefined;
  /** The wait after the first failed try. @default "10s" */
  readonly delay?: Duration | undefined;
  /** The factor between one wait and the next; 1 … 100. @default 2 */
  readonly factor?: number | undefined;
  /** The longest wait, also where a server asks for a longer one with `Retry-After`. @default "10m" */
  readonly max?: Duration | undefined;
  /**
   * The part of a wait, 0 … 1, that chance may take off. 0.5 spreads runs that failed together over half of the wait;
   * 1 (full jitter) spreads them over the whole wait. If a server asks for a longer wait with
   * `Retry-After`, chance lengthens that wait by as much, up to `max`. @default 0.5
   */
  readonly jitter?: number | undefined;
  /** "beyond-max": waits as long as a server asks for with `Retry-After`, up to a day. @default "up-to-max" */
  readonly honourRetryAfter?: "up-to-max" | "beyond-max" | undefined;
};

/** Waits of up to 10, 20, 40 and 80 s: long enough for a deploy or a restart of what the handler calls. */
export const DEFAULT_RETRY: RetryPolicy = Object.freeze({
  attempts: 5,
  delayMs: 10_000,
  factor: 2,
  maxMs: 600_000,
  jitter: 0.5,
});

const MEMBERS = ["attempts", "delay", "factor", "max", "jitter", "honourRetryAfter"] as const;

/** Members left out take their defaults; reports all problems at once. */
export function resolveRetry(options: RetryOptions | undefined, field: string): RetryPolicy {
  if (options === undefined) return DEFAULT_RETRY;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const message = 'must be an object such as { attempts: 4, delay: "10s" }.';
    throw new ConfigurationError([{ field, message }]);
  }
  const problems: Problem[] = refuseUnknownMembers(options, MEMBERS, field);
  const number = (name: "attempts" | "factor" | "jitter", range: Range): number => {
    const value: unknown = options[name];
    if (value === undefined) return DEFAULT_RETRY[name];
    if (isWithin(value, range)) return value;
    const kind = range.isInteger ? "a whole number" : "a number";
    const shown = typeof value === "number" ? value : typeof value;
    const message = `must be ${kind} from ${range.min} to ${range.max}, but is ${shown}.`;
    problems.push({ field: `${field}.${name}`, message });
    return DEFAULT_RETRY[name];
  };
  const duration = (name: "delay" | "max", defaultMs: number): number => {
    const value: unknown = options[name];
    if (value === undefined) return defaultMs;
    const read = readDuration(value);
    if (typeof read === "number") return read;
    problems.push({ field: `${field}.${name}`, message: read });
    return defaultMs;
  };
  const { honourRetryAfter = "up-to-max" } = options;
  if (honourRetryAfter !== "up-to-max" && honourRetryAfter !== "beyond-max") {
    const message = 'must be "up-to-max" or "beyond-max".';
    problems.push({ field: `${field}.honourRetryAfter`, message });
  }
  const maxMs = duration("max", DEFAULT_RETRY.maxMs);
  const policy = {
    attempts: number("attempts", { min: 1, max: 1_000, isInteger: true }),
    // `{ max: "5s" }` alone is a complete policy: the default delay is never longer than the given maximum.
    delayMs: duration("delay", Math.min(DEFAULT_RETRY.delayMs, maxMs)),
    factor: number("factor", { min: 1, max: 100 }),
    maxMs,
    jitter: number("jitter", { min: 0, max: 1 }),
    ...(honourRetryAfter === "beyond-max" ? { honoursRetryAfterBeyondMax: true as const } : {}),
  };
  if (problems.length === 0 && policy.delayMs > policy.maxMs) {
    const origin = options.max === undefined ? ", the default" : "";
    const delay = `${field}.delay (${formatDuration(policy.delayMs)})`;
    const max = `${field}.max (${formatDuration(policy.maxMs)}${origin})`;
    const message = `${delay} is longer than ${max}; raise max or shorten delay.`;
    problems.push({ field: `${field}.delay`, message });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return policy;
}

type Range = { readonly min: number; readonly max: number; readonly isInteger?: boolean };

function isWithin(value: unknown, { min, max, isInteger = false }: Range): value is number {
  if (typeof value !== "number" || !(value >= min && value <= max)) return false;
  return !isInteger || Number.isInteger(value);
}

/**
 * The wait after try number `attempt` (from 1) has failed. Jitter only shortens, so that a wait is
 * never longer than what the policy says; jitter 0 is exact.
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: () => number): number {
  if (policy.delayMs === 0) return 0; // 0 × an overflowed Infinity would be NaN.
  const delayMs = Math.min(policy.maxMs, policy.delayMs * policy.factor ** (attempt - 1));
  return Math.round(delayMs * (1 - policy.jitter * random()));
}

/**
 * The same if the server said when it wants to be called again. It may give many runs the same time. To spread them,
 * chance adds to that time the part that it takes off the policy's own wait, up to the longest wait.
 */
export function delayAfterMs(
  params: {
    readonly retry: RetryPolicy;
    readonly attempt: number;
    readonly retryAfterMs?: number;
    /** The server's time applies even if it is longer than the policy's longest wait. */
    readonly isBeyondMax?: boolean;
  },
  random: () => number,
): number {
  const { retry, attempt, retryAfterMs = 0, isBeyondMax = false } = params;
  const backoffMs = retryDelayMs(retry, attempt, random);
  if (retryAfterMs <= backoffMs) return backoffMs;
  const spreadMs = retryDelayMs({ ...retry, jitter: 0 }, attempt, random) - backoffMs;
  const longestMs = isBeyondMax ? Number.POSITIVE_INFINITY : retry.maxMs;
  return Math.max(backoffMs, Math.min(retryAfterMs + spreadMs, longestMs));
}
