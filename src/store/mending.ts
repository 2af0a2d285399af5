// Mending, what is the same on both engines: which statements a check's damage takes, and rows to records.

import type { Remains, Vitals } from "./repair-store.js";
import { MENDS } from "./sql/mends.js";

type Row = Readonly<Record<string, unknown>>;

export function statementsFor(check: string, engine: "postgres" | "sqlite"): readonly string[] {
  const mend = MENDS[check];
  if (!mend || !("sql" in mend)) return [];
  return "postgres" in mend.sql ? mend.sql[engine] : mend.sql;
}

/** What mends the damage of a check, or what to do about it by hand; null: nobody of us knows it. */
export function mendOf(check: string): {
  readonly action: string | null;
  readonly advice: string | null;
} | null {
  const mend = MENDS[check];
  if (!mend) return null;
  return "says" in mend
    ? { action: mend.says, advice: null }
    : { action: null, advice: mend.advice };
}

export function toRemains(gone: Row, jobs: readonly Row[]): Remains {
  return {
    leases: Number(gone.leases),
    runs: Number(gone.runs),
    locks: Number(gone.locks),
    deliveries: Number(gone.deliveries),
    liveInstances: Number(gone.live_instances),
    jobs: jobs.map((row) => ({
      job: String(row.job),
      ready: Number(row.ready),
      waiting: Number(row.waiting),
      held: Number(row.held),
    })),
  };
}

export function toVitals(row: Row): Vitals {
  return {
    now: Number(row.now),
    running: Number(row.running),
    silent: Number(row.silent),
    stale: Number(row.stale),
    polledAt: row.polled_at === null ? null : Number(row.polled_at),
    schedules: Number(row.schedules),
    recordedUntil: row.recorded_until === null ? null : Number(row.recorded_until),
    skew:
      row.skewed === null ? null : { instance: String(row.skewed), skewMs: Number(row.skew_ms) },
  };
}
