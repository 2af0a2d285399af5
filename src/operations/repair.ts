// `holdfast.repair()`: mends what `check()` found, by rules that act on the damage alone, so that twice is
// once. It tells first what it would do; what no rule can mend comes with advice.

import { ConfigurationError } from "../shared/errors.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { mendOf } from "../store/repairs.js";
import type { Store } from "../store/store.js";
import { type CheckReport, type CheckResult, reportOf } from "./check.js";

export type RepairOptions = {
  /** Do it; else it is only told. @default false */
  readonly apply?: boolean | undefined;
};

export type RepairStep = {
  /** The check that is broken. */
  readonly check: string;
  readonly violations: number;
  readonly evidence: CheckResult["evidence"];
  /** What mends it; null: nothing does. */
  readonly action: string | null;
  /** What to do about it by hand; null where there is an action. */
  readonly advice: string | null;
  /** How many rows were changed; null where it was only planned. */
  readonly changed: number | null;
};

export type RepairReport = {
  /** Nothing is broken, or nothing any more. */
  readonly ok: boolean;
  readonly applied: boolean;
  readonly steps: readonly RepairStep[];
  /** Checks that are still broken after it; before it, where it was only planned. */
  readonly broken: readonly string[];
};

const TIME_LIMIT_MS = 600_000;
const BY_HAND = "A check of your own: mend what it found in your tables.";

export function readRepair(options: RepairOptions): { readonly isApplied: boolean } {
  const problems = refuseUnknownMembers(options, ["apply"], "repair()");
  const { apply = false } = options;
  if (typeof apply !== "boolean")
    problems.push({ field: "repair().apply", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { isApplied: apply };
}

export async function repairOnce(params: {
  readonly store: Store;
  readonly own: Parameters<Store["check"]>[0]["own"];
  readonly isApplied: boolean;
  /** Leases that were ended are taken back at once. */
  readonly reap: () => Promise<unknown>;
}): Promise<RepairReport> {
  const { store, own, isApplied, reap } = params;
  const look = async (): Promise<CheckReport> =>
    reportOf(await store.check({ own, timeLimitMs: TIME_LIMIT_MS }));
  const before = await look();
  const broken = before.checks.filter(({ ok }) => !ok);
  const planned = broken.map(stepOf);
  const checks = planned.filter(({ action }) => action !== null).map(({ check }) => check);
  if (!isApplied || checks.length === 0)
    return {
      ok: before.ok,
      applied: isApplied,
      steps: planned,
      broken: broken.map(({ name }) => name),
    };
  const mended = new Map(
    (await store.mend({ checks })).map(({ name, changed }) => [name, changed]),
  );
  await reap();
  const after = await look();
  return {
    ok: after.ok,
    applied: true,
    steps: planned.map((step) => ({ ...step, changed: mended.get(step.check) ?? null })),
    broken: after.checks.filter(({ ok }) => !ok).map(({ name }) => name),
  };
}

function stepOf({ name, violations, evidence, error, unfinished }: CheckResult): RepairStep {
  const common = { check: name, violations, evidence, changed: null };
  if (unfinished)
    return {
      ...common,
      action: null,
      advice: "The check had no answer in time; look again later.",
    };
  if (error !== null)
    return { ...common, action: null, advice: `The check could not be asked: ${error}` };
  return { ...common, ...(mendOf(name) ?? { action: null, advice: BY_HAND }) };
}
