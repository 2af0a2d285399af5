// Gives turns of the real event loop to virtual clocks, and shares turns between synchronous work and all other code.
// The functions come from Node itself and not from the globals, because test frameworks replace the globals by fakes
// that never fire by themselves.

import { nextTick } from "node:process";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";

/** Calls back after the current work has ended and pending I/O had its turn. */
export function nextTurn(callback: () => void): void {
  setImmediate(callback);
}

/** Calls back after all settled promises have continued, without a turn of the event loop. */
export function afterPromises(callback: () => void): void {
  nextTick(callback);
}

/** Calls back after this much real time. Returns a function that cancels the call. */
export function afterRealMs(delayMs: number, callback: () => void): () => void {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
}

/** Timers and I/O wait at most this long behind synchronous work that gives way. */
const SLICE_MS = 5;

/**
 * Makes the `giveWay` of a clock. A slice begins with the first work of a turn and ends with the turn, so that a
 * lone call never waits. Work that arrives when the slice is used up waits for the next turn. There the waiting work
 * continues one by one, in the order of its calls, until the next slice is used up.
 */
export function slicesOf({
  monotonicMs,
  soon,
}: {
  readonly monotonicMs: () => number;
  readonly soon: (callback: () => void) => void;
}): () => Promise<void> | null {
  /** When the first work of this turn began; null: no work has begun yet. */
  let sinceMs: number | null = null;
  const waiting: (() => void)[] = [];
  const isUsedUp = () => sinceMs !== null && monotonicMs() - sinceMs >= SLICE_MS;

  function begin(): void {
    sinceMs = monotonicMs();
    soon(() => {
      sinceMs = null;
      if (waiting.length > 0) void release();
    });
  }

  async function release(): Promise<void> {
    begin();
    let released = 0;
    while (released < waiting.length && !isUsedUp()) {
      waiting[released]?.();
      released += 1;
      // The released work runs to its first await before the next one is released.
      await undefined;
    }
    waiting.splice(0, released);
  }

  return () => {
    if (waiting.length > 0 || isUsedUp()) return new Promise((resolve) => waiting.push(resolve));
    if (sinceMs === null) begin();
    return null;
  };
}
