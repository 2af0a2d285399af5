// The real clock. All timers of the library are made here. They are clamped: Node fires a timer of
// more than 24.8 days at once.

import type { Clock, Timer } from "../core/ports.js";

const TIMER_MAX_MS = 60 * 60_000;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  timer(delayMs: number, callback: () => void): Timer {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), TIMER_MAX_MS));
    return { cancel: () => clearTimeout(handle) };
  },
  soon(callback: () => void): void {
    setImmediate(callback);
  },
};
