// From a seed that breaks a promise to the few faults and operations that it takes: they are left out,
// half of them first and then ever fewer, for as long as the same promise is still broken.

import { runSeed, type SeedOptions, type SeedReport } from "./seed.js";
import { makePlan } from "./workload/plan.js";

export type Shrunk = {
  /** The same violation with what is left, and its story. */
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
  const report = await runSeed(seed, { ...rest, without, isTold: true });
  return { report, faultsLeft, operationsLeft, tries };
}
