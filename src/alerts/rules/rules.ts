// Reads alert rules: for the whole database, and for single schedules, whose members replace the general ones. Reports
// every problem with an example. Pure.

import { type Duration, readDuration, writeDuration } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

/** Alerts that a schedule may have rules of its own for. */
export type ScheduleAlertOptions = {
  /** A running run whose holder was silent for this long. @default "10m" */
  readonly stale?: Duration | false | undefined;
  /** A run was taken from a silent holder and given another attempt within this time. @default off */
  readonly reclaimed?: Duration | false | undefined;
  /**
   * Too many of a job's runs failed: more than the part `above` of those that ended within `over`, if these are at least
   * five. Runs of a schedule with its own rule, or with `false`, do not count for the job. @default { above: 0.2, over: "24h", atLeast: 5 }
   */
  readonly failureRate?: FailureRateOptions | false | undefined;
  /** More than this many runs at the same time. @default off */
  readonly running?: { readonly above: number } | false | undefined;
  /** A running run that takes longer, as a whole or for each of its items. @default off */
  readonly slow?: SlowOptions | false | undefined;
  /** A tick that no instance recorded within this time: the dead-man's switch. @default "5m" */
  readonly silent?: Duration | false | undefined;
  /** A schedule that was stuck although instances polled. @default true */
  readonly stuck?: boolean | undefined;
  /** A schedule that cannot be evaluated. @default true */
  readonly broken?: boolean | undefined;
  /** This many runs of a schedule failed in a row. @default off */
  readonly consecutiveFailures?: number | ConsecutiveFailuresOptions | false | undefined;
  /** This many ticks in a row were skipped, as a run of an earlier tick is live or waits for a worker. @default 3 */
  readonly skipped?: number | false | undefined;
};

export type FailureRateOptions = {
  /** A part from 0 to 1. @default 0.2 */
  readonly above?: number | undefined;
  /** @default "24h" */
  readonly over?: Duration | undefined;
  /** With fewer ended runs there is no alert. @default 5 */
  readonly atLeast?: number | undefined;
};

export type SlowOptions = {
  readonly perItem?: Duration | undefined;
  readonly total?: Duration | undefined;
};

export type ConsecutiveFailuresOptions = {
  /** @default pauseAfter, else 3 */
  readonly after?: number | undefined;
  /** The schedule is paused after this many, with a note. @default never */
  readonly pauseAfter?: number | undefined;
};

export type AlertRuleOptions = ScheduleAlertOptions & {
  /** A job with waiting runs, while no instance that executes it was seen for this long. @default "5m" */
  readonly noWorker?: Duration | false | undefined;
  /** An instance whose clock differs from the database's by more. @default "5s" */
  readonly clockSkew?: Duration | false | undefined;
  /** A transaction that is open for longer, or tables that vacuum cannot clean. @default off */
  readonly slowClaims?: Duration | false | undefined;
  /** A suspended run that has waited for a signal or a called run for longer. Sleeps do not count. @default off */
  readonly waiting_too_long?: Duration | false | undefined;
};

/** Checked rules; null: off. A schedule stores only the members that it sets. */
export type ScheduleAlertRules = {
  readonly stale: number | null;
  readonly reclaimed: number | null;
  readonly failureRate: {
    readonly above: number;
    readonly overMs: number;
    readonly atLeast: number;
  } | null;
  readonly running: { readonly above: number } | null;
  readonly slow: { readonly perItemMs: number | null; readonly totalMs: number | null } | null;
  readonly silent: number | null;
  readonly stuck: true | null;
  readonly broken: true | null;
  readonly consecutiveFailures: {
    readonly after: number;
    readonly pauseAfter: number | null;
  } | null;
  readonly skipped: number | null;
};

export type AlertRules = ScheduleAlertRules & {
  readonly noWorker: number | null;
  readonly clockSkew: number | null;
  readonly slowClaims: number | null;
  readonly waiting_too_long: number | null;
};

export const DEFAULT_RULES: AlertRules = {
  stale: 10 * 60_000,
  reclaimed: null,
  failureRate: { above: 0.2, overMs: 24 * 3_600_000, atLeast: 5 },
  running: null,
  slow: null,
  silent: 5 * 60_000,
  stuck: true,
  broken: true,
  consecutiveFailures: null,
  skipped: 3,
  noWorker: 5 * 60_000,
  clockSkew: 5_000,
  slowClaims: null,
  waiting_too_long: null,
};

export const NO_RULES = Object.fromEntries(
  Object.keys(DEFAULT_RULES).map((kind) => [kind, null]),
) as { readonly [K in keyof AlertRules]: null };

const SCHEDULE_KINDS = [
  "stale",
  "reclaimed",
  "failureRate",
  "running",
  "slow",
  "silent",
  "stuck",
  "broken",
  "consecutiveFailures",
  "skipped",
] as const satisfies readonly (keyof ScheduleAlertRules)[];

export const RULE_MEMBERS: readonly string[] = Object.keys(DEFAULT_RULES);

const DAY_MS = 86_400_000;
const COUNT_MAX = 1_000_000;
/** The longest streak that a rule may count. */
export const STREAK_MAX = 100;

type Read = (value: unknown, field: string, problems: Problem[]) => unknown;

const READERS: { readonly [K in keyof AlertRules]: Read } = {
  stale: duration({ min: 1_000, max: 30 * DAY_MS, example: '"10m"' }),
  // Alerts are looked for once a minute: within less, a reclaim would go unnoticed.
  reclaimed: duration({ min: 2 * 60_000, max: 30 * DAY_MS, example: '"1h"' }),
  silent: duration({ min: 1_000, max: 30 * DAY_MS, example: '"5m"' }),
  noWorker: duration({ min: 1_000, max: 30 * DAY_MS, example: '"5m"' }),
  clockSkew: duration({ min: 100, max: DAY_MS, example: '"5s"' }),
  slowClaims: duration({ min: 1_000, max: 30 * DAY_MS, example: '"5m"' }),
  waiting_too_long: duration({ min: 1_000, max: 365 * DAY_MS, example: '"3d"' }),
  stuck: flag,
  broken: flag,
  running: readRunning,
  failureRate: readFailureRate,
  slow: readSlow,
  consecutiveFailures: readConsecutive,
  skipped: (value, field, problems) =>
    number(value, field, { min: 1, max: STREAK_MAX, isWhole: true, example: "3", problems }),
};

/** The rules for everything; members that are left out take their defaults. */
export function readAlertRules(
  options: Readonly<Record<string, unknown>>,
  field: string,
  problems: Problem[],
): AlertRules {
  return { ...DEFAULT_RULES, ...given(options, RULE_MEMBERS, field, problems) };
}

/** The rules that one schedule sets itself; `false` turns all off. */
export function readScheduleAlerts(value: unknown, field: string): Partial<ScheduleAlertRules> {
  if (value === false) return Object.fromEntries(SCHEDULE_KINDS.map((kind) => [kind, null]));
  const problems: Problem[] = [];
  if (!isPlain(value)) {
    const message = 'must be false or an object such as { stale: "30m", silent: "1h" }';
    throw new ConfigurationError([{ field, message }]);
  }
  problems.push(...refuseUnknownMembers(value, SCHEDULE_KINDS, field));
  const rules = given(value, SCHEDULE_KINDS, field, problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return rules;
}

/** In a fixed order, so that equal rules are equal JSON. */
function given(
  options: Readonly<Record<string, unknown>>,
  kinds: readonly string[],
  field: string,
  problems: Problem[],
): Partial<AlertRules> {
  const rules: Record<string, unknown> = {};
  for (const kind of kinds) {
    const value = options[kind];
    if (value === undefined) continue;
    const read = READERS[kind as keyof AlertRules];
    rules[kind] = value === false ? null : read(value, `${field}.${kind}`, problems);
  }
  return rules;
}

/** Converts the rules of a schedule back to options. */
export function writeScheduleAlerts(rules: Partial<ScheduleAlertRules>): ScheduleAlertOptions {
  const entries = SCHEDULE_KINDS.filter((kind) => rules[kind] !== undefined).map((kind) => [
    kind,
    rules[kind] === null ? false : wordsOf(kind, rules as ScheduleAlertRules),
  ]);
  return Object.fromEntries(entries) as ScheduleAlertOptions;
}

function wordsOf(kind: keyof ScheduleAlertRules, rules: ScheduleAlertRules): unknown {
  const { failureRate, slow, consecutiveFailures: streak } = rules;
  if (kind === "stale" || kind === "reclaimed" || kind === "silent")
    return writeDuration(rules[kind] ?? 0);
  if (kind === "failureRate" && failureRate) {
    const { above, overMs, atLeast } = failureRate;
    return { above, over: writeDuration(overMs), atLeast };
  }
  if (kind === "slow" && slow)
    return {
      ...(slow.perItemMs === null ? {} : { perItem: writeDuration(slow.perItemMs) }),
      ...(slow.totalMs === null ? {} : { total: writeDuration(slow.totalMs) }),
    };
  if (kind === "consecutiveFailures" && streak)
    return {
      after: streak.after,
      ...(streak.pauseAfter === null ? {} : { pauseAfter: streak.pauseAfter }),
    };
  return rules[kind];
}

function duration(limits: {
  readonly min: number;
  readonly max: number;
  readonly example: string;
}): Read {
  return (value, field, problems) => {
    const read = readDuration(value, limits);
    if (typeof read === "number") return read;
    problems.push({ field, message: `${read} For example ${limits.example}, or false for none.` });
    return null;
  };
}

function flag(value: unknown, field: string, problems: Problem[]): true | null {
  if (value === true) return true;
  problems.push({ field, message: "must be true or false" });
  return null;
}

function readRunning(value: unknown, field: string, problems: Problem[]) {
  const members = object(value, { field, problems, known: ["above"], example: "{ above: 5 }" });
  if (!members) return null;
  const range = { min: 0, max: COUNT_MAX, isWhole: true, example: "5" };
  return { above: number(members.above, `${field}.above`, { ...range, problems }) };
}

function readFailureRate(value: unknown, field: string, problems: Problem[]) {
  const example = '{ above: 0.2, over: "24h" }';
  const known = ["above", "over", "atLeast"];
  const members = object(value, { field, problems, known, example });
  if (!members) return null;
  const { above = 0.2, over = "24h", atLeast = 5 } = members;
  const overMs = readDuration(over, { min: 3_600_000, max: 7 * DAY_MS });
  if (typeof overMs === "string")
    problems.push({ field: `${field}.over`, message: `${overMs} For example "24h".` });
  return {
    above: number(above, `${field}.above`, { min: 0, max: 1, example: "0.2", problems }),
    overMs,
    atLeast: number(atLeast, `${field}.atLeast`, {
      ...{ min: 1, max: COUNT_MAX, isWhole: true, example: "5", problems },
    }),
  };
}

function readSlow(value: unknown, field: string, problems: Problem[]) {
  const example = '{ perItem: "3m", total: "30m" }';
  const members = object(value, { field, problems, known: ["perItem", "total"], example });
  if (!members) return null;
  const read = (member: "perItem" | "total") => {
    if (members[member] === undefined) return null;
    const ms = readDuration(members[member], { min: 1 });
    if (typeof ms === "number") return ms;
    problems.push({ field: `${field}.${member}`, message: ms });
    return null;
  };
  if (members.perItem === undefined && members.total === undefined)
    problems.push({ field, message: `needs perItem or total, for example ${example}` });
  return { perItemMs: read("perItem"), totalMs: read("total") };
}

function readConsecutive(value: unknown, field: string, problems: Problem[]) {
  const range = { min: 1, max: STREAK_MAX, isWhole: true, example: "3", problems };
  if (typeof value === "number") return { after: number(value, field, range), pauseAfter: null };
  const example = "3 or { after: 3, pauseAfter: 5 }";
  const members = object(value, { field, problems, known: ["after", "pauseAfter"], example });
  if (!members) return null;
  const pauseAfter =
    members.pauseAfter === undefined
      ? null
      : number(members.pauseAfter, `${field}.pauseAfter`, { ...range, example: "5" });
  const after = number(members.after ?? pauseAfter ?? 3, `${field}.after`, range);
  if (pauseAfter !== null && pauseAfter < after)
    problems.push({
      field: `${field}.pauseAfter`,
      message: `(${pauseAfter}) must not be less than after (${after}): first an alert, then a pause`,
    });
  return { after, pauseAfter };
}

type Members = Readonly<Record<string, unknown>>;

function object(
  value: unknown,
  params: {
    readonly field: string;
    readonly problems: Problem[];
    readonly known: readonly string[];
    readonly example: string;
  },
): Members | null {
  const { field, problems, known, example } = params;
  if (!isPlain(value)) {
    problems.push({ field, message: `must be ${example}, or false for none` });
    return null;
  }
  problems.push(...refuseUnknownMembers(value, known, field));
  return value;
}

function number(
  value: unknown,
  field: string,
  params: {
    readonly min: number;
    readonly max: number;
    readonly isWhole?: boolean;
    readonly example: string;
    readonly problems: Problem[];
  },
): number {
  const { min, max, isWhole = false, example, problems } = params;
  const isRight =
    typeof value === "number" &&
    value >= min &&
    value <= max &&
    (!isWhole || Number.isInteger(value));
  if (isRight) return value + 0;
  const kind = isWhole ? "a whole number" : "a number";
  problems.push({
    field,
    message: `must be ${kind} from ${min} to ${max}, for example ${example}`,
  });
  return min;
}

function isPlain(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
