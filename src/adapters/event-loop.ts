// Turns of the real event loop, for clocks that do not follow it. Taken from Node itself and not from
// the globals, which test frameworks replace by fakes that never fire by themselves.

import { nextTick } from "node:process";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";

/** Calls back after what is running now has ended and pending I/O had its turn. */
export function nextTurn(callback: () => void): void {
  setImmediate(callback);
}

/** Calls back after every promise that can go on has gone on, without a turn of the event loop. */
export function afterPromises(callback: () => void): void {
  nextTick(callback);
}

/** Calls back after this much real time, unless what is returned is called before. */
export function afterRealMs(delayMs: number, callback: () => void): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}
