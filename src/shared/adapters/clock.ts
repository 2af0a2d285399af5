// The real clock. All timers of the library are made here. They are clamped: Node fires a timer of
// more than 24.8 days at once.

import type { Clock, Timer } from "../ports.js";
import { nextTurn, slicesOf } from "./event-loop.js";

const TIMER_MAX_MS = 60 * 60_000;

const monotonicMs = () => performance.now();

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs,
  timer(delayMs: number, callback: () => void): Timer {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), TIMER_MAX_MS));
    return { cancel: () => clearTimeout(handle) };
  },
  soon(callback: () => void): void {
    setImmediate(callback);
  },
  // One for the process: all its stores share its one event loop.
  giveWay: slicesOf({ monotonicMs, soon: nextTurn }),
};
