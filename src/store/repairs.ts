// Declares the store's verbs for repair after damage: repairing what a check found, continuing after a restored backup,
// and a few figures about the database's state.

import type { StaleParams } from "./operators.js";
import { MENDS } from "./sql/mends.js";

/** What became of one check's damage. */
export type Mended = { readonly name: string; readonly changed: number };

/** What a restored backup has of those who were there when it was made. */
export type Remains = {
  /** Leases of holders that are gone, and the runs in them. */
  readonly leases: number;
  readonly runs: number;
  readonly locks: number;
  /** Deliveries of alerts that wait; some may have been sent since the backup was made. */
  readonly deliveries: number;
  /** Named keys as the backup has them; one that was revoked since works again. */
  readonly keys: number;
  /** Instances that were seen lately: nobody should be. */
  readonly liveInstances: number;
  readonly jobs: readonly {
    readonly job: string;
    readonly ready: number;
    readonly waiting: number;
    readonly held: number;
  }[];
};

export type Vitals = {
  readonly now: number;
  readonly running: number;
  /** Running, but their lease is over and nobody took them yet. */
  readonly silent: number;
  /** Silent or running for as long as was asked about. */
  readonly stale: number;
  /** When an instance with the scheduler on polled last. */
  readonly polledAt: number | null;
  /** Schedules that have a next tick. */
  readonly schedules: number;
  /** Up to when ticks are recorded; later than now only if the database's clock went back. */
  readonly recordedUntil: number | null;
  /** The live instance whose clock is furthest off, as it found itself. */
  readonly skew: { readonly instance: string; readonly skewMs: number } | null;
};

export interface RepairStore {
  /** Mends the damage of these checks, all in one transaction; nobody claims or settles meanwhile. */
  mend(params: { readonly checks: readonly string[] }): Promise<readonly Mended[]>;
  remains(): Promise<Remains>;
  /** Raises every fence by so much, and ends the leases and locks of holders that are gone, and all sessions of the page. */
  recover(params: { readonly jump: number }): Promise<{
    readonly leases: number;
    readonly locks: number;
  }>;
  vitals(params: StaleParams): Promise<Vitals>;
  /** Roles that own the schema or a part of it and are not this one; none on SQLite. */
  strangers(): Promise<readonly string[]>;
}

// Chooses the statements that repair a check's damage, and maps their rows; the same for both databases.

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
    keys: Number(gone.keys),
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
