// `holdfast.check()`: asks the database which promises its tables break, together with the checks that the
// application brought along.

import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { quoteShort, refuseUnknownMembers } from "../shared/suggest.js";
import type { CheckFinding, OwnCheck } from "../store/checks.js";

export type CheckOptions = {
  /** What has no answer by then is unfinished. @default "1m" */
  readonly timeout?: Duration | undefined;
};

export type CheckResult = {
  /** What is true of a healthy database. */
  readonly name: string;
  /** It was asked, and nothing breaks it. */
  readonly ok: boolean;
  /** How many things break it. */
  readonly violations: number;
  /** The first ten of them; `what` names the thing. */
  readonly evidence: readonly Readonly<Record<string, unknown>>[];
  /** The promise that it is part of, such as "S16"; null where it is none of those, or a check of your own. */
  readonly promise: string | null;
  /** The time was over before it had its answer. */
  readonly unfinished: boolean;
  /** Why it could not be asked. */
  readonly error: string | null;
  readonly tookMs: number;
};

export type CheckReport = {
  /** Every check has its answer, and nothing breaks any of them. */
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

/** The option `checks`, or one error with everything that is wrong with it. */
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
        message: `must be one "select …" that answers a row for each violation, ${example}`,
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
