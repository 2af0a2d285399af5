// Compares a few figures with thresholds for `holdfast.health()`: the success rate, heartbeats, stale runs, the last poll
// of a scheduler, and clocks.

import { type Duration, durationMs, formatDuration } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { type Clock, momentOf } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import { CLOCK_TOLERANCE_MS, skewOf } from "../telemetry/clock-watch.js";
import type { CheckReport } from "./check.js";
import { readStats, statsOf } from "./statistics.js";

export type HealthOptions = {
  /** The share of completed and failed runs that must have completed, from 0 to 1. @default 0.8 */
  readonly successRate?: number | undefined;
  /** Counts runs that ended within this time. @default "24h" */
  readonly over?: Duration | undefined;
  /** How many running runs may have an expired lease. @default 0 */
  readonly silent?: number | undefined;
  /** How many runs may be stale, as `cleanup` defines it. @default 0 */
  readonly stale?: number | undefined;
  /** A scheduler must have polled within this time, if any schedule is active. @default "1m" */
  readonly polled?: Duration | undefined;
  /** Also check the tables. @default false */
  readonly check?: boolean | undefined;
};

export type HealthFigure = {
  readonly name:
    | "success rate"
    | "heartbeats"
    | "stale runs"
    | "scheduler"
    | "clocks"
    | "schema owner"
    | "check";
  readonly ok: boolean;
  /** The present value, in words. */
  readonly found: string;
  /** The wanted value, in words. */
  readonly wanted: string;
};

export type HealthReport = { readonly ok: boolean; readonly figures: readonly HealthFigure[] };

export type HealthConfig = {
  readonly successRate: number;
  readonly overMs: number;
  readonly silent: number;
  readonly stale: number;
  readonly polledMs: number;
  readonly isChecked: boolean;
};

const MEMBERS = ["successRate", "over", "silent", "stale", "polled", "check"];
/** As in `cleanup`. */
const STALE = { silentMs: 600_000, ranMs: 7_200_000 };

export function readHealth(options: HealthOptions): HealthConfig {
  const problems: Problem[] = refuseUnknownMembers(options, MEMBERS, "health()");
  const { successRate = 0.8, silent = 0, stale = 0, check = false } = options;
  if (typeof successRate !== "number" || !(successRate >= 0 && successRate <= 1))
    problems.push({
      field: "health().successRate",
      message: "must be from 0 to 1, for example 0.8",
    });
  for (const [name, value] of Object.entries({ silent, stale }))
    if (!Number.isInteger(value) || value < 0)
      problems.push({ field: `health().${name}`, message: "must be a whole number from 0" });
  if (typeof check !== "boolean")
    problems.push({ field: "health().check", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    successRate,
    overMs: durationMs(options.over ?? "24h", "health().over", { min: 1 }),
    silent,
    stale,
    polledMs: durationMs(options.polled ?? "1m", "health().polled", { min: 1 }),
    isChecked: check,
  };
}

export async function healthOf(
  store: Store,
  wanted: HealthConfig,
  { check, clock }: { readonly check: () => Promise<CheckReport>; readonly clock: Clock },
): Promise<HealthReport> {
  const { overall } = await statsOf(store, readStats({ since: wanted.overMs }));
  const sentAt = momentOf(clock);
  const vitals = await store.repairs.vitals(STALE);
  const skewMs = skewOf({ sentAt, gotAt: momentOf(clock), now: vitals.now });
  const figures: HealthFigure[] = [
    successFigure(overall.successRate, wanted),
    {
      name: "heartbeats",
      ok: vitals.silent <= wanted.silent,
      found: `${vitals.running} running, ${vitals.silent} of them silent`,
      wanted: `at most ${wanted.silent} silent`,
    },
    {
      name: "stale runs",
      ok: vitals.stale <= wanted.stale,
      found: String(vitals.stale),
      wanted: `at most ${wanted.stale}`,
    },
    schedulerFigure(vitals, wanted),
    clockFigure(vitals, skewMs),
  ];
  const strangers = await store.repairs.strangers();
  if (strangers.length > 0)
    figures.push({
      name: "schema owner",
      ok: false,
      found: `${strangers.join(", ")} owns the schema or a part of it`,
      wanted: "the role of the instances, or the owner of the database",
    });
  if (wanted.isChecked) figures.push(checkFigure(await check()));
  return { ok: figures.every(({ ok }) => ok), figures };
}

function successFigure(rate: number | null, wanted: HealthConfig): HealthFigure {
  return {
    name: "success rate",
    ok: rate === null || rate > wanted.successRate,
    found: rate === null ? "no run has ended" : percent(rate),
    wanted: `above ${percent(wanted.successRate)} over ${formatDuration(wanted.overMs)}`,
  };
}

function schedulerFigure(
  { now, polledAt, schedules }: Awaited<ReturnType<Store["repairs"]["vitals"]>>,
  { polledMs }: HealthConfig,
): HealthFigure {
  const agoMs = polledAt === null ? null : Math.max(0, now - polledAt);
  return {
    name: "scheduler",
    ok: schedules === 0 || (agoMs !== null && agoMs <= polledMs),
    found:
      schedules === 0
        ? "no schedule is active"
        : agoMs === null
          ? "no scheduler has polled"
          : `polled ${formatDuration(agoMs)} ago`,
    wanted: `polled within ${formatDuration(polledMs)}`,
  };
}

/** The database's clock decides what is due: if it went back, no tick fires until it has caught up. */
function clockFigure(
  { now, recordedUntil, skew }: Awaited<ReturnType<Store["repairs"]["vitals"]>>,
  ownMs: number,
): HealthFigure {
  const off = (who: string, skewMs: number) =>
    Math.abs(skewMs) > CLOCK_TOLERANCE_MS
      ? [
          `${who} is ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? "ahead of" : "behind"} the database`,
        ]
      : [];
  const steppedMs = recordedUntil === null ? 0 : recordedUntil - now;
  const stepped =
    recordedUntil !== null && steppedMs > CLOCK_TOLERANCE_MS
      ? [
          `the database's clock went back by ${formatDuration(steppedMs)} or more, no schedule fires before ${new Date(recordedUntil).toISOString()}`,
        ]
      : [];
  const troubles = [
    ...stepped,
    ...off("this process", ownMs),
    ...(skew === null ? [] : off(`instance ${skew.instance}`, skew.skewMs)),
  ];
  return {
    name: "clocks",
    ok: troubles.length === 0,
    found: troubles.length === 0 ? "agree" : troubles.join("; "),
    wanted: `within ${formatDuration(CLOCK_TOLERANCE_MS)} of the database's, which never goes back`,
  };
}

function checkFigure({ ok, checks }: CheckReport): HealthFigure {
  const broken = checks.filter((each) => !each.ok).length;
  return {
    name: "check",
    ok,
    found: ok ? `${checks.length} checks passed` : `${broken} of ${checks.length} failed`,
    wanted: "all pass",
  };
}

function percent(rate: number): string {
  return `${Math.round(rate * 1_000) / 10} %`;
}
