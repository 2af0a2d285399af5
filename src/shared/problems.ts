// Gathering what is wrong with options, so that a user sees every mistake at once instead of one at a time.

import { ConfigurationError, type Problem } from "./errors.js";

/** What `take` gives; what it refuses is added to the problems instead, and the fallback stands in for it. */
export function gather<T>(problems: Problem[], take: () => T): T | undefined;
export function gather<T>(problems: Problem[], take: () => T, fallback: T): T;
export function gather<T>(problems: Problem[], take: () => T, fallback?: T): T | undefined {
  try {
    return take();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return fallback;
  }
}
