// The campaign of CI: two processes, one for each processor, with half of a thousand seeds each, or as many as
// there is time for. What the two have seen together is what that many seeds must have seen.

import { expect, test } from "vitest";
import { missing } from "../../src/testing/simulator/index.js";
import { type HalfReport, runHalf } from "./half.js";

/** How long it goes on at most; a slower machine does fewer seeds, and says how many. */
const BUDGET_MS = Number(process.env.HOLDFAST_SIMULATION_SECONDS ?? 180) * 1_000;
const SEEDS = Number(process.env.HOLDFAST_SIMULATION_SEEDS ?? 1_000);

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
  expect(missing({ seeds: sum("seeds"), counters: countersOf(halves) })).toEqual([]);
});

function countersOf(halves: readonly HalfReport[]): HalfReport["counters"] {
  const counters: Record<string, number> = {};
  for (const half of halves) {
    for (const [name, count] of Object.entries(half.counters))
      counters[name] = (counters[name] ?? 0) + count;
  }
  return counters as HalfReport["counters"];
}
