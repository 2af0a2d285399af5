// Tells an instance the real time, and shares turns of Node's event loop between its synchronous work and
// everybody else.

import type { Clock } from "../ports.js";
import { nextTurn, slicesOf } from "./event-loop.js";
import { portableClock } from "./portable-clock.js";

export const systemClock: Clock = {
  ...portableClock,
  // One for the process: all its stores share its one event loop.
  giveWay: slicesOf({ monotonicMs: portableClock.monotonicMs, soon: nextTurn }),
};
