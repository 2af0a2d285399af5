// Gives turns of the real event loop to clocks that do not follow it, and shares turns between synchronous work
// and everybody else. The functions come from Node itself and not from the globals, which test frameworks replace
// by fakes that never fire by themselves.

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

/** Timers and I/O wait for no more than this behind synchronous work that gives way. */
const SLICE_MS = 5;

/**
 * Makes the `giveWay` of a clock. A slice begins with the first work of a turn and ends with the turn, so that a
 * lone call never waits. Work that comes when the slice is used up waits for the next turn. There the waiting work
 * goes on one by one, in the order of its calls, until the next slice is used up.
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
      // The work that was let go on has its whole slice before the next one is.
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
