// The campaign of CI: two processes, one for each processor, each with half of the seeds and within one
// time budget. What the two have seen together is what must have been seen.

import { expect, test } from "vitest";
import { missing } from "../../src/testing/simulator/index.js";
import { type HalfReport, runHalf } from "./half.js";

/** HOLDFAST_SIMULATION_SEEDS and HOLDFAST_SIMULATION_SECONDS: whichever is used up first. */
const SEEDS = Number(process.env.HOLDFAST_SIMULATION_SEEDS ?? 1_000);
const BUDGET_MS = Number(process.env.HOLDFAST_SIMULATION_SECONDS ?? 170) * 1_000;
/** Fewer seeds than these cannot be expected to have seen everything. */
const ENOUGH_SEEDS = 1_000;

test("no seed breaks a promise, and the rare states are reached", {
  timeout: BUDGET_MS + 120_000,
}, async () => {
  const share = Math.ceil(SEEDS / 2);
  const halves = await Promise.all([
    runHalf({ from: 1, seeds: share, budgetMs: BUDGET_MS }),
    runHalf({ from: 1 + share, seeds: SEEDS - share, budgetMs: BUDGET_MS }),
  ]);
  const sum = (name: "seeds" | "virtualMs" | "faults" | "operations" | "calls") =>
    halves.reduce((total, half) => total + half[name], 0);
  const seconds = Math.max(...halves.map((half) => half.seconds));
  console.log(
    `${sum("seeds")} seeds in ${seconds.toFixed(0)} s (${(sum("seeds") / seconds).toFixed(1)} a second), ` +
      `${Math.round(sum("virtualMs") / 3_600_000)} virtual hours, ${sum("faults")} faults, ` +
      `${sum("operations")} operations, ${sum("calls")} store calls`,
  );
  expect(halves.flatMap(({ violations }) => violations)).toEqual([]);
  expect(halves.flatMap(({ few }) => few)).toEqual([]);
  if (sum("seeds") >= ENOUGH_SEEDS) expect(missing(countersOf(halves))).toEqual([]);
});

function countersOf(halves: readonly HalfReport[]): HalfReport["counters"] {
  const counters: Record<string, number> = {};
  for (const half of halves) {
    for (const [name, count] of Object.entries(half.counters))
      counters[name] = (counters[name] ?? 0) + count;
  }
  return counters as HalfReport["counters"];
}
