// One seed from beginning to end.

import type { Counters } from "./checkers/rare-states.js";
import type { Violation } from "./event-log.js";
import { Simulation, type Tamper } from "./simulation.js";
import { makePlan, type Plan } from "./workload/plan.js";

export type SeedOptions = {
  /** Keeps the story; it takes memory and time. */
  readonly isTold?: boolean;
  /** Faults and operations of the plan that are left out. */
  readonly without?: {
    readonly faults?: ReadonlySet<number>;
    readonly operations?: ReadonlySet<number>;
  };
  /** Breaks something on purpose, so that a checker can be seen to notice it. */
  readonly tamper?: Tamper;
};

export type SeedReport = {
  readonly seed: number;
  /** Over everything that happened, in order: the same seed has the same one everywhere. */
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
    isTold: options.isTold ?? false,
    tamper: options.tamper,
  });
  const refused: unknown[] = [];
  const onRefused = (reason: unknown) => void refused.push(reason);
  process.on("unhandledRejection", onRefused);
  // Handlers and the network throw thousands of errors, whose stacks nobody reads.
  const { stackTraceLimit } = Error;
  if (!options.isTold) Error.stackTraceLimit = 0;
  try {
    const result = await simulation.run();
    const { chronicle } = result;
    for (const reason of refused.slice(0, 3))
      chronicle.violate("L", `A promise was rejected and nobody heard: ${String(reason)}`);
    return {
      seed,
      hash: result.hash,
      violations: chronicle.violations,
      story: chronicle.story,
      counters: chronicle.counters,
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
