// Lays the ticks of the product beside those of the oracle, around one instant of one zone.

import { cronSchedule } from "../../src/core/cron.js";
import { nextTick } from "../../src/core/cron-next.js";
import { EXPRESSIONS, POLICIES } from "./cron-cases.js";
import { oracleCron, oracleTicks, type WallClock, walk } from "./cron-oracle.js";

const HOUR = 3_600_000;
const MINUTE = 60_000;
/** No step may take more work than this; the hundred-year searches of never-ending gaps included. */
const STEPS_MAX = 2_000;

const CORPUS = EXPRESSIONS.map((text) => ({ text, oracle: oracleCron(text) }));

export type Comparison = {
  readonly tickCount: number;
  readonly comparedCount: number;
  readonly stepsMax: number;
  readonly differences: readonly string[];
};

/** Compares every expression under every policy that matters, in the day around the instant. */
export function compareAround(zone: string, clock: WallClock, atMs: number): Comparison {
  const minuteMs = Math.floor(atMs / MINUTE) * MINUTE;
  // A skipped or repeated day reaches a day back.
  const shiftMs = Math.abs(clock(minuteMs) - clock(minuteMs - MINUTE) - MINUTE);
  const fromMs = minuteMs - Math.max(5 * HOUR, shiftMs + HOUR);
  const untilMs = minuteMs + Math.max(25 * HOUR, shiftMs + HOUR);
  const walked = walk(clock, fromMs, untilMs);
  const differences: string[] = [];
  let tickCount = 0;
  let comparedCount = 0;
  let stepsMax = 0;
  for (const { text, oracle } of CORPUS) {
    for (const dst of oracle.isWildcard ? POLICIES.slice(0, 1) : POLICIES) {
      const expected = oracleTicks(oracle, dst, walked);
      const schedule = cronSchedule({ cron: text, timezone: zone, dst });
      const found: number[] = [];
      let afterMs = fromMs - 1;
      for (;;) {
        const work = { steps: 0 };
        const tick = nextTick(schedule, afterMs, work);
        stepsMax = Math.max(stepsMax, work.steps);
        if (tick === null || tick >= untilMs) break;
        if (tick <= afterMs) differences.push(`${zone} "${text}" went back at ${iso(tick)}`);
        found.push(tick);
        afterMs = Math.max(tick, afterMs + 1);
      }
      comparedCount++;
      tickCount += expected.length;
      if (expected.length !== found.length || expected.some((tick, i) => tick !== found[i])) {
        const name = `${zone} "${text}" gap ${dst.gap}, overlap ${dst.overlap}`;
        differences.push(`${name}: ${found.map(iso)} instead of ${expected.map(iso)}`);
      }
    }
  }
  if (stepsMax > STEPS_MAX) differences.push(`${zone}: a step took ${stepsMax} units of work`);
  return { tickCount, comparedCount, stepsMax, differences };
}

function iso(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}
