// Retries repeatable calls while the database is unavailable, so that an attempt that has done its work does not fail
// because of a lost packet.

import { OutcomeUnknownError, StoreReadOnlyError, StoreUnavailableError } from "./errors.js";
import { type Clock, delay } from "./ports.js";

const TRIES_MAX = 8;
const FIRST_WAIT_MS = 50;
const WAIT_MAX_MS = 5_000;

/** Only for calls that may be repeated. Throws the last error when the tries are used up. */
export async function retryWhileUnavailable<T>(clock: Clock, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (tries >= TRIES_MAX || !isUnavailable(error)) throw error;
      await delay(clock, Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** (tries - 1)));
    }
  }
}

/** Codes of errors after which certainly nothing was done: the database was not reached, or its tables are not ours. */
export const UNREADABLE_CODES: readonly string[] = [
  "STORE_UNAVAILABLE",
  "STORE_READ_ONLY",
  "STORE_GONE",
  "STORE_UNSUPPORTED",
  "MIGRATION_REFUSED",
];

export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof StoreUnavailableError ||
    error instanceof StoreReadOnlyError ||
    error instanceof OutcomeUnknownError
  );
}
