// Runs seeds: one seed from beginning to end, a campaign of many, and the search for the few faults and operations
// that a seed needs to break a promise.

import { createHash } from "node:crypto";
import {
  type Counters,
  noCounters,
  SOMETIMES,
  type Sometimes,
  seedsToSee,
} from "./checkers/rare-states.js";
import type { Violation } from "./event-log.js";
import { Simulation, type Tamper } from "./simulation.js";
import { makePlan, type Plan } from "./workload/plan.js";

export type SeedOptions = {
  /** Keeps the story; it takes memory and time. */
  readonly hasStory?: boolean;
  /** Faults and operations of the plan that are left out. */
  readonly without?: {
    readonly faults?: ReadonlySet<number>;
    readonly operations?: ReadonlySet<number>;
  };
  /** Breaks something on purpose, so that a test can show that a checker notices it. */
  readonly tamper?: Tamper;
};

export type SeedReport = {
  readonly seed: number;
  /** The hash over all events in their order: the same seed has the same hash on every machine. */
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly story: readonly string[];
  readonly counters: Counters;
  readonly virtualMs: number;
  readonly instances: number;
  readonly faults: number;
  readonly operations: number;
  readonly calls: number;
};

export async function runSeed(seed: number, options: SeedOptions = {}): Promise<SeedReport> {
  const plan = leaveOut(makePlan(seed), options.without ?? {});
  const simulation = new Simulation({
    plan,
    hasStory: options.hasStory ?? false,
    tamper: options.tamper,
  });
  const refused: unknown[] = [];
  const onRefused = (reason: unknown) => void refused.push(reason);
  process.on("unhandledRejection", onRefused);
  // Handlers and the network throw thousands of errors; nobody reads their stacks.
  const { stackTraceLimit } = Error;
  if (!options.hasStory) Error.stackTraceLimit = 0;
  try {
    const result = await simulation.run();
    const { log } = result;
    for (const reason of refused.slice(0, 3))
      log.violate("L", `A promise was rejected and nobody heard: ${String(reason)}`);
    return {
      seed,
      hash: result.hash,
      violations: log.violations,
      story: log.story,
      counters: log.counters,
      virtualMs: result.virtualMs,
      instances: plan.placeCount,
      faults: result.faultCount,
      operations: result.operationCount,
      calls: result.callCount,
    };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    process.off("unhandledRejection", onRefused);
  }
}

function leaveOut(plan: Plan, without: NonNullable<SeedOptions["without"]>): Plan {
  return {
    ...plan,
    faults: plan.faults.filter(({ id }) => !without.faults?.has(id)),
    operations: plan.operations.filter(({ id }) => !without.operations?.has(id)),
  };
}

// ── a campaign of many seeds ───────────────────────────────────────────────────────────────────────

export type CampaignParams = {
  /** The first seed. @default 1 */
  readonly from?: number;
  readonly seeds: number;
  /** Called after every seed; false stops the campaign. */
  readonly onProgress?: (report: SeedReport, done: number) => boolean | undefined;
};

export type CampaignReport = {
  readonly from: number;
  /** How many seeds were run. */
  readonly seeds: number;
  readonly violations: readonly (Violation & { readonly seed: number })[];
  /** The hash over the hashes of all event logs. */
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

/** Returns the states that this number of seeds must reach, but did not. */
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

// ── shrinking ──────────────────────────────────────────────────────────────────────────────────────

export type Shrunk = {
  /** The report of the shrunk seed, with the same violation and its story. */
  readonly report: SeedReport;
  readonly faultsLeft: readonly number[];
  readonly operationsLeft: readonly number[];
  /** How many simulations it took. */
  readonly tries: number;
};

const TRIES_MAX = 300;

export async function shrinkSeed(
  seed: number,
  options: Pick<SeedOptions, "tamper"> & { readonly triesMax?: number } = {},
): Promise<Shrunk | null> {
  const { triesMax = TRIES_MAX, ...rest } = options;
  const plan = makePlan(seed);
  const first = await runSeed(seed, rest);
  const promise = first.violations[0]?.promise;
  if (promise === undefined) return null;
  let tries = 1;
  const without = { faults: new Set<number>(), operations: new Set<number>() };
  const breaks = async (faults: ReadonlySet<number>, operations: ReadonlySet<number>) => {
    tries += 1;
    const report = await runSeed(seed, { ...rest, without: { faults, operations } });
    return report.violations.some((each) => each.promise === promise);
  };
  const shrinkOne = async (kind: "faults" | "operations", ids: readonly number[]) => {
    let left = ids;
    for (let size = Math.ceil(left.length / 2); size >= 1 && tries < triesMax; ) {
      let isSmaller = false;
      for (let from = 0; from < left.length && tries < triesMax; ) {
        const dropped = left.slice(from, from + size);
        const tried = new Set([...without[kind], ...dropped]);
        const all = { ...without, [kind]: tried };
        if (await breaks(all.faults, all.operations)) {
          without[kind] = tried;
          left = left.filter((id) => !tried.has(id));
          isSmaller = true;
        } else from += size;
      }
      if (size === 1 && !isSmaller) break;
      size = size === 1 ? 1 : Math.ceil(size / 2);
    }
    return left;
  };
  const faultIds = plan.faults.map(({ id }) => id);
  const operationIds = plan.operations.map(({ id }) => id);
  await shrinkOne("faults", faultIds);
  const operationsLeft = await shrinkOne("operations", operationIds);
  const faultsLeft = await shrinkOne(
    "faults",
    faultIds.filter((id) => !without.faults.has(id)),
  );
  const report = await runSeed(seed, { ...rest, without, hasStory: true });
  return { report, faultsLeft, operationsLeft, tries };
}
