// The cron engine beside the oracle, on a seeded sample of zones and changes of their clocks.
// The whole, every zone and every change from 1990 to 2040, is `node scripts/oracle.mjs`.

import fc from "fast-check";
import { expect, test } from "vitest";
import { cronSchedule, nextTick } from "../src/schedules/cron/cron.js";
import { comparer } from "./oracle/compare.js";
import { EXPRESSIONS, FROM_MS, HARD_ZONES, UNTIL_MS } from "./oracle/cron-cases.js";
import { changesOf, oracleCron, wallClock } from "./oracle/cron-oracle.js";

const SEED = 20_260_308;
const ZONES_DRAWN = 14;
const CHANGES_DRAWN = 6;
const OTHERS_DRAWN = 1;
const DAY = 86_400_000;

test("ticks around changes of the clocks are those of the oracle", { timeout: 60_000 }, () => {
  const all = Intl.supportedValuesOf("timeZone");
  const [drawn = []] = sample(fc.subarray(all, { minLength: ZONES_DRAWN, maxLength: ZONES_DRAWN }));
  let comparedCount = 0;
  for (const zone of [...HARD_ZONES, ...drawn]) {
    const clock = wallClock(zone);
    const compareAround = comparer(zone, clock);
    const changes = changesOf(clock, FROM_MS, UNTIL_MS);
    const count = Math.min(CHANGES_DRAWN, changes.length);
    const [around = []] = sample(fc.subarray(changes, { minLength: count, maxLength: count }));
    const others = sample(fc.integer({ min: FROM_MS, max: UNTIL_MS }), OTHERS_DRAWN);
    for (const atMs of [...around, ...others]) {
      const compared = compareAround(atMs);
      expect(compared.differences).toEqual([]);
      comparedCount += compared.comparedCount;
    }
  }
  expect(comparedCount).toBeGreaterThan(5_000);
});

test("the dates of twenty years are those of the oracle", { timeout: 60_000 }, () => {
  const fromMs = Date.UTC(2020, 0, 1);
  const dates = new Set(EXPRESSIONS.map((text) => text.split(" ").slice(-3).join(" ")));
  for (const date of [...dates, "29 2 */7", "13 * 5", "*/2 * 1#5", "31W * *", "L-30 * *"]) {
    const text = date.startsWith("@") ? date : `0 0 ${date}`;
    const oracle = oracleCron(text);
    const schedule = cronSchedule({ cron: text });
    const expected: number[] = [];
    for (let day = fromMs; day < UNTIL_MS; day += DAY) {
      if (oracle.fitsDate(day)) expected.push(day);
    }
    const found: number[] = [];
    let tick = nextTick(schedule, fromMs - 1);
    while (tick !== null && tick < UNTIL_MS) {
      const day = Math.floor(tick / DAY) * DAY;
      found.push(day);
      tick = nextTick(schedule, day + DAY - 1);
    }
    expect(found, text).toEqual(expected);
  }
});

function sample<T>(values: fc.Arbitrary<T>, count = 1): T[] {
  return fc.sample(values, { seed: SEED, numRuns: count });
}
