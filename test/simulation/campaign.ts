// A campaign within a time budget. There are two, in files of their own, for two processors.

import { expect, test } from "vitest";
import { missing } from "../../src/testing/simulator/index.js";
import { runHalf } from "./half.js";

/** HOLDFAST_SIMULATION_SEEDS and HOLDFAST_SIMULATION_SECONDS: whichever is used up first. */
const SEEDS = Number(process.env.HOLDFAST_SIMULATION_SEEDS ?? 1_000) / 2;
const BUDGET_MS = Number(process.env.HOLDFAST_SIMULATION_SECONDS ?? 130) * 1_000;
/** Fewer seeds than these cannot be expected to have seen everything. */
const ENOUGH_SEEDS = 400;

export function campaign(half: 0 | 1): void {
  test("no seed breaks a promise, and the rare states are reached", {
    timeout: BUDGET_MS + 120_000,
  }, async () => {
    const report = await runHalf({ from: 1 + half * SEEDS, seeds: SEEDS, budgetMs: BUDGET_MS });
    const { seeds, seconds } = report;
    console.log(
      `${seeds} seeds in ${seconds.toFixed(0)} s (${(seeds / seconds).toFixed(1)} a second), ` +
        `${Math.round(report.virtualMs / 3_600_000)} virtual hours, ${report.faults} faults, ` +
        `${report.operations} operations, ${report.calls} store calls`,
    );
    expect(report.violations).toEqual([]);
    expect(report.few).toEqual([]);
    if (seeds >= ENOUGH_SEEDS) expect(missing(report.counters)).toEqual([]);
  });
}
