// Turns of the real event loop, for clocks that do not follow it. Taken from Node itself and not from
// the globals, which test frameworks replace by fakes that never fire by themselves.

import { clearTimeout, setImmediate, setTimeout } from "node:timers";

/** Calls back after what is running now has ended and pending I/O had its turn. */
export function nextTurn(callback: () => void): void {
  setImmediate(callback);
}

/** Calls back after this much real time, unless what is returned is called before. */
export function afterRealMs(delayMs: number, callback: () => void): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}
