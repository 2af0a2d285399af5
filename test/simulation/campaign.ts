// A campaign within a time budget. There are two, in files of their own, for two processors.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type CampaignReport, missing } from "../../src/testing/simulator/index.js";

/** HOLDFAST_SIMULATION_SEEDS and HOLDFAST_SIMULATION_SECONDS: whichever is used up first. */
const SEEDS = Number(process.env.HOLDFAST_SIMULATION_SEEDS ?? 1_000) / 2;
const BUDGET_MS = Number(process.env.HOLDFAST_SIMULATION_SECONDS ?? 150) * 1_000;
/** Fewer seeds than these cannot be expected to have seen everything. */
const ENOUGH_SEEDS = 300;
const OUTPUT_MAX = 64 * 1024 * 1024;

type HalfReport = CampaignReport & {
  /** Seeds that were too small to count. */
  readonly few: readonly string[];
  readonly seconds: number;
};

export function campaign(half: 0 | 1): void {
  test("no seed breaks a promise, and the rare states are reached", {
    timeout: BUDGET_MS + 120_000,
  }, async () => {
    const report = await run({ from: 1 + half * SEEDS, seeds: SEEDS, budgetMs: BUDGET_MS });
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

async function run(request: {
  readonly from: number;
  readonly seeds: number;
  readonly budgetMs: number;
}): Promise<HalfReport> {
  const program = path.join(import.meta.dirname, "half.mjs");
  const folder = process.env.HOLDFAST_TEST_SIMULATOR ?? "";
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, folder, JSON.stringify(request)],
    { maxBuffer: OUTPUT_MAX, timeout: BUDGET_MS + 100_000, killSignal: "SIGKILL" },
  );
  return JSON.parse(stdout) as HalfReport;
}
