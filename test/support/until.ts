// Waits until something outside this process has happened: a line of another process, a row, a file.
// It looks often and gives up at a deadline with what it was waiting for.

import { setTimeout as pause } from "node:timers/promises";

/** Ends a test that hangs. It is far more than any wait takes, so that no test fails because a machine is slow. */
export const PATIENCE_MS = 300_000;

/** Answers with the first truthy value of `look`. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  {
    withinMs = PATIENCE_MS,
    everyMs = 10,
  }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}.`);
    await pause(everyMs);
  }
}
