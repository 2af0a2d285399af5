// Asking again what may be asked again, while the database does not answer: an attempt that has done
// its work should not be thrown away for a lost packet.

import { OutcomeUnknownError, StoreReadOnlyError, StoreUnavailableError } from "./errors.js";
import { type Clock, delay } from "./ports.js";

const TRIES_MAX = 8;
const FIRST_WAIT_MS = 50;
const WAIT_MAX_MS = 5_000;

/** For what changes nothing more when it is repeated. The last failure comes out. */
export async function patiently<T>(clock: Clock, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (tries >= TRIES_MAX || !isUnavailable(error)) throw error;
      await delay(clock, Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** (tries - 1)));
    }
  }
}

export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof StoreUnavailableError ||
    error instanceof StoreReadOnlyError ||
    error instanceof OutcomeUnknownError
  );
}
