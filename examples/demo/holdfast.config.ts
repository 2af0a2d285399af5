// The shop of the demo, live: `npm start` runs it on the day that play.ts has played.

import { setTimeout as pause } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { declareShop, PARTNER } from "./shop.js";

const quiet = () => undefined;
const holdfast = new Holdfast({
  app: "demo",
  // The dashboard shows the events; HOLDFAST_LOG_LEVEL=info prints them as well.
  ...(process.env.HOLDFAST_LOG_LEVEL
    ? {}
    : { logger: { debug: quiet, info: quiet, warn: quiet, error: quiet } }),
});
declareShop(holdfast, {
  sleep: (duration, signal) => pause(millisecondsOf(duration), undefined, { signal }),
  chance: Math.random,
  isProviderUp: () => Math.random() > 0.2,
});

// The partner's program reports three minutes after each full hour.
setInterval(() => {
  if (new Date().getMinutes() === 3) holdfast.schedules.ping(PARTNER).catch(quiet);
}, 60_000).unref();

function millisecondsOf(duration: string | number): number {
  return typeof duration === "number" ? duration : Number.parseInt(duration, 10) * 1_000;
}

export default holdfast;
