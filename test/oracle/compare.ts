// Lays the ticks of the product beside those of the oracle, around one instant of one zone.

import { type CronSchedule, cronSchedule, nextTick } from "../../src/schedules/cron/cron.js";
import { EXPRESSIONS, POLICIES } from "./cron-cases.js";
import { fitsOf, oracleCron, oracleTicks, type WallClock, walk } from "./cron-oracle.js";

const HOUR = 3_600_000;
const MINUTE = 60_000;
/** No step may take more work than this; the hundred-year searches of never-ending gaps included. */
const STEPS_MAX = 500;

const CORPUS = EXPRESSIONS.map((text) => {
  const oracle = oracleCron(text);
  return { text, oracle, policies: oracle.isWildcard ? POLICIES.slice(0, 1) : POLICIES };
});

export type Comparison = {
  readonly tickCount: number;
  readonly comparedCount: number;
  readonly stepsMax: number;
  readonly differences: readonly string[];
};

/** Compares every expression under every policy that matters, in the day around an instant. */
export function comparer(zone: string, clock: WallClock): (atMs: number) => Comparison {
  const corpus = CORPUS.map((each) => ({
    ...each,
    schedules: each.policies.map((dst) => ({
      dst,
      schedule: cronSchedule({ cron: each.text, timezone: zone, dst }),
    })),
  }));
  return (atMs) => {
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
    for (const { text, oracle, schedules } of corpus) {
      const fits = fitsOf(oracle, walked);
      for (const { dst, schedule } of schedules) {
        const expected = oracleTicks(oracle, dst, walked, fits);
        const found = productTicks(schedule, fromMs, untilMs);
        stepsMax = Math.max(stepsMax, found.stepsMax);
        comparedCount++;
        tickCount += expected.length;
        const { ticks } = found;
        if (expected.length === ticks.length && expected.every((tick, i) => tick === ticks[i])) {
          continue;
        }
        const name = `${zone} "${text}" gap ${dst.gap}, overlap ${dst.overlap}`;
        differences.push(`${name}: ${ticks.map(iso)} instead of ${expected.map(iso)}`);
      }
    }
    if (stepsMax > STEPS_MAX) differences.push(`${zone}: a step took ${stepsMax} units of work`);
    return { tickCount, comparedCount, stepsMax, differences };
  };
}

function productTicks(schedule: CronSchedule, fromMs: number, untilMs: number) {
  const ticks: number[] = [];
  let stepsMax = 0;
  let afterMs = fromMs - 1;
  for (;;) {
    const work = { steps: 0 };
    const tick = nextTick(schedule, afterMs, work);
    stepsMax = Math.max(stepsMax, work.steps);
    if (tick === null || tick >= untilMs) return { ticks, stepsMax };
    if (tick <= afterMs) throw new Error(`The tick ${iso(tick)} is not after ${iso(afterMs)}`);
    ticks.push(tick);
    afterMs = tick;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}
