// Gives an instance the real time, and shares the event loop of Node between its synchronous work and all other code.

import type { Clock } from "../ports.js";
import { nextTurn, slicesOf } from "./event-loop.js";
import { portableClock } from "./portable-clock.js";

export const systemClock: Clock = {
  ...portableClock,
  // One for the process, because all its stores share one event loop.
  giveWay: slicesOf({ monotonicMs: portableClock.monotonicMs, soon: nextTurn }),
};
