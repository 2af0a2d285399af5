// Computes how many runs of each job ended how, for the alert about failures. A schedule with a rule of its own, or with
// `alerts: false`, takes its runs out of the rate of its job. Pure.

import type { ObservedApart, ObservedRate, ObservedSchedule } from "./observation.js";

const HOUR_MS = 3_600_000;
/** How many ticks of such schedules one look reads, all of them together. */
const APART_MAX = 30_000;

/** The schedules whose runs do not count for their job, of jobs with failures: nothing else needs to be read. */
export function apartOf(
  schedules: readonly Pick<ObservedSchedule, "name" | "rules" | "job">[],
  rates: readonly ObservedRate[],
): { readonly schedules: readonly string[]; readonly limit: number } {
  const failing = new Set(rates.flatMap(({ name, failed }) => (failed > 0 ? [name] : [])));
  const names = schedules
    .filter(({ rules, job }) => rules?.failureRate !== undefined && failing.has(job))
    .map(({ name }) => name);
  return { schedules: names, limit: Math.max(1, Math.floor(APART_MAX / names.length)) };
}

/**
 * The whole hour from which on all runs of these schedules were read, job by job. Null: from the beginning of the
 * window. A schedule with more ticks than were read can be told from the rest of its job only for the newest ones.
 */
export function hoursRead(
  rows: readonly ObservedApart[],
  { limit, sinceAt }: { readonly limit: number; readonly sinceAt: number },
): ReadonlyMap<string, number | null> {
  const read = new Map<string, { job: string; ticks: number; oldestAt: number }>();
  for (const { schedule, job, ticks, oldestAt } of rows) {
    const sum = read.get(schedule) ?? { job, ticks: 0, oldestAt };
    sum.ticks += ticks;
    sum.oldestAt = Math.min(sum.oldestAt, oldestAt);
    read.set(schedule, sum);
  }
  const hours = new Map<string, number | null>();
  for (const { job, ticks, oldestAt } of read.values()) {
    const before = hours.get(job) ?? null;
    const isWhole = ticks < limit || oldestAt <= sinceAt;
    const hourAt = isWhole ? null : Math.ceil(oldestAt / HOUR_MS) * HOUR_MS;
    hours.set(
      job,
      before === null || hourAt === null ? (before ?? hourAt) : Math.max(before, hourAt),
    );
  }
  return hours;
}

/** The rate of a job from this hour on, without those runs. */
export function withoutApart(
  rate: ObservedRate,
  rows: readonly ObservedApart[],
  sinceHourAt: number,
): ObservedRate {
  let { completed, failed } = rate;
  for (const row of rows) {
    if (row.job !== rate.name || row.hourAt === null || row.hourAt < sinceHourAt) continue;
    completed -= row.completed;
    failed -= row.failed;
  }
  // A run that was revived has ended twice, and has one outcome.
  return { name: rate.name, completed: Math.max(0, completed), failed: Math.max(0, failed) };
}
