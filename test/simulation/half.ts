// Runs seeds in a process of their own, by half-process.mjs and the sources that test/setup/simulator.ts compiled.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { LEAN } from "../../scripts/lean-node.mjs";
import type { CampaignReport } from "../../src/testing/simulator/index.js";

export type HalfReport = CampaignReport & {
  /** Seeds that were too small to count. */
  readonly few: readonly string[];
  readonly seconds: number;
};

const OUTPUT_MAX = 64 * 1024 * 1024;
/** A seed that never ends is ended this long after the budget. */
const PATIENCE_MS = 100_000;

export async function runHalf(
  request: { readonly from: number; readonly seeds: number; readonly budgetMs: number },
  node = process.execPath,
): Promise<HalfReport> {
  const program = path.join(import.meta.dirname, "half-process.mjs");
  const folder = process.env.HOLDFAST_TEST_SIMULATOR ?? "";
  const args = [...LEAN, program, folder, JSON.stringify(request)];
  const { stdout } = await promisify(execFile)(node, args, {
    maxBuffer: OUTPUT_MAX,
    timeout: request.budgetMs + PATIENCE_MS,
    killSignal: "SIGKILL",
  });
  return JSON.parse(stdout) as HalfReport;
}
