// Checks for `holdfast.check()` which promises the tables break, together with the application's own checks, and repairs
// broken ones for `holdfast.repair()`.

import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { quoteShort, refuseUnknownMembers } from "../shared/suggest.js";
import type { CheckFinding, OwnCheck } from "../store/checks/checks.js";
import { repairOf } from "../store/checks/repairs.js";
import type { Store } from "../store/store.js";

export type CheckOptions = {
  /** Checks without a result by then are unfinished. @default "1m" */
  readonly timeout?: Duration | undefined;
};

export type CheckResult = {
  /** A statement that holds in a healthy database. */
  readonly name: string;
  /** It was checked and holds. */
  readonly ok: boolean;
  /** How many violations there are. */
  readonly violations: number;
  /** The first ten of them; `what` names the thing. */
  readonly evidence: readonly Readonly<Record<string, unknown>>[];
  /** The promise that it belongs to, such as "S16"; null if it belongs to none, or is a check of your own. */
  readonly promise: string | null;
  /** The time was over before it had a result. */
  readonly unfinished: boolean;
  /** Why it could not be checked. */
  readonly error: string | null;
  readonly tookMs: number;
};

export type CheckReport = {
  /** Every check has a result and holds. */
  readonly ok: boolean;
  readonly checks: readonly CheckResult[];
};

const TIMEOUT_DEFAULT = "1m";
const TIMEOUT_MAX_MS = 3_600_000;
const NAME_LENGTH_MAX = 200;

export function readCheck(options: CheckOptions): { readonly timeLimitMs: number } {
  const problems = refuseUnknownMembers(options, ["timeout"], "check()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const limits = { min: 1, max: TIMEOUT_MAX_MS };
  return {
    timeLimitMs: durationMs(options.timeout ?? TIMEOUT_DEFAULT, "check().timeout", limits),
  };
}

/** Reads the option `checks`; throws one error with every problem. */
export function readOwnChecks(given: unknown): readonly OwnCheck[] {
  if (given === undefined) return [];
  const example = 'for example { "every order has a customer": "select id from orders where …" }';
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new ConfigurationError([{ field: "checks", message: `must be an object, ${example}` }]);
  const problems: Problem[] = [];
  const own = Object.entries(given).map(([name, sql]) => {
    const field = `checks[${quoteShort(name)}]`;
    if (name.trim() === "" || name.length > NAME_LENGTH_MAX)
      problems.push({
        field,
        message: `must have a name of 1 to ${NAME_LENGTH_MAX} characters, ${example}`,
      });
    if (typeof sql !== "string" || !/^\s*(?:--.*\n\s*)*(select|with|values)\b/i.test(sql))
      problems.push({
        field,
        message: `must be one "select …" that returns a row for each violation, ${example}`,
      });
    return { name, sql: String(sql) };
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return own;
}

export function reportOf(findings: readonly CheckFinding[]): CheckReport {
  const checks = findings.map(({ isUnfinished, ...finding }) => ({
    ...finding,
    ok: finding.violations === 0 && !isUnfinished && finding.error === null,
    unfinished: isUnfinished,
    tookMs: Math.round(finding.tookMs),
  }));
  return { ok: checks.every(({ ok }) => ok), checks };
}

// ── repair: fixes what the checks found, by rules that act on the damage only, so that a second repair changes nothing ──

export type RepairOptions = {
  /** Apply the repair; otherwise it is only planned. @default false */
  readonly apply?: boolean | undefined;
};

export type RepairStep = {
  /** The check that is broken. */
  readonly check: string;
  readonly violations: number;
  readonly evidence: CheckResult["evidence"];
  /** The repair; null: there is none. */
  readonly action: string | null;
  /** The steps to take by hand; null if there is a repair. */
  readonly advice: string | null;
  /** How many rows were changed; null if it was only planned. */
  readonly changed: number | null;
};

export type RepairReport = {
  /** Nothing is broken now. */
  readonly ok: boolean;
  readonly applied: boolean;
  readonly steps: readonly RepairStep[];
  /** Checks that are broken now. */
  readonly broken: readonly string[];
};

const TIME_LIMIT_MS = 600_000;
const BY_HAND = "A check of your own: repair what it found in your tables.";

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
  readonly own: Parameters<Store["checks"]["run"]>[0]["own"];
  readonly isApplied: boolean;
  /** Reclaims the runs of ended leases. */
  readonly reclaim: () => Promise<unknown>;
}): Promise<RepairReport> {
  const { store, own, isApplied, reclaim } = params;
  const runChecks = async (): Promise<CheckReport> =>
    reportOf(await store.checks.run({ own, timeLimitMs: TIME_LIMIT_MS }));
  const before = await runChecks();
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
  const repaired = new Map(
    (await store.repairs.apply({ checks })).map(({ name, changed }) => [name, changed]),
  );
  await reclaim();
  const after = await runChecks();
  return {
    ok: after.ok,
    applied: true,
    steps: planned.map((step) => ({ ...step, changed: repaired.get(step.check) ?? null })),
    broken: after.checks.filter(({ ok }) => !ok).map(({ name }) => name),
  };
}

function stepOf({ name, violations, evidence, error, unfinished }: CheckResult): RepairStep {
  const common = { check: name, violations, evidence, changed: null };
  if (unfinished)
    return {
      ...common,
      action: null,
      advice: "The check had no result in time; try again later.",
    };
  if (error !== null)
    return { ...common, action: null, advice: `The check could not run: ${error}` };
  return { ...common, ...(repairOf(name) ?? { action: null, advice: BY_HAND }) };
}
