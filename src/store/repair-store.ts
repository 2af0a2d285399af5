// What operators ask of a database when something went wrong: mending what a check found, going on after
// a restored backup, and the few figures that tell how it is.

import type { StaleParams } from "./operator-store.js";

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
