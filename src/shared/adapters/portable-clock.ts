// Gives the real time and timers to code that also runs outside of Node: the client and receivers of dispatches. It
// must never import a built-in module. Timers are clamped, because Node fires a timer of more than 24.8 days at once.

import type { Clock, Timer } from "../ports.js";

const TIMER_MAX_MS = 60 * 60_000;

export const portableClock: Clock = {
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
