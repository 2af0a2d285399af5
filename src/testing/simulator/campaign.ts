// Many seeds, one after the other, and what they add up to.

import { createHash } from "node:crypto";
import {
  type Counters,
  noCounters,
  SOMETIMES,
  type Sometimes,
  seedsToSee,
} from "./checkers/rare-states.js";
import type { Violation } from "./event-log.js";
import { runSeed, type SeedReport } from "./seed.js";

export type CampaignParams = {
  /** The first seed. @default 1 */
  readonly from?: number;
  readonly seeds: number;
  /** After every seed; false stops the campaign there. */
  readonly onProgress?: (report: SeedReport, done: number) => boolean | undefined;
};

export type CampaignReport = {
  readonly from: number;
  /** How many were run. */
  readonly seeds: number;
  readonly violations: readonly (Violation & { readonly seed: number })[];
  /** Over the hashes of all event logs. */
  readonly hash: string;
  readonly counters: Counters;
  readonly virtualMs: number;
  readonly faults: number;
  readonly operations: number;
  readonly calls: number;
};

export async function runCampaign(params: CampaignParams): Promise<CampaignReport> {
  const { from = 1, onProgress } = params;
  const hash = createHash("sha256");
  const counters = noCounters();
  const violations: (Violation & { readonly seed: number })[] = [];
  const sum = { virtualMs: 0, faults: 0, operations: 0, calls: 0 };
  let seeds = 0;
  while (seeds < params.seeds) {
    const report = await runSeed(from + seeds);
    seeds += 1;
    hash.update(report.hash);
    for (const violation of report.violations) violations.push({ ...violation, seed: report.seed });
    for (const name of Object.keys(counters) as Sometimes[])
      counters[name] += report.counters[name];
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += report[name];
    if (onProgress?.(report, seeds) === false) break;
  }
  return { from, seeds, violations, hash: hash.digest("hex").slice(0, 32), counters, ...sum };
}

/** States that so many seeds must have reached, and did not. */
export function missing({
  seeds,
  counters,
}: {
  readonly seeds: number;
  readonly counters: Partial<Counters>;
}): Sometimes[] {
  return (Object.keys(SOMETIMES) as Sometimes[]).filter(
    (name) => !counters[name] && seeds >= seedsToSee(name),
  );
}
