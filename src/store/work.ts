// Declares the verbs that find work: a poll, which says what there is to do, and the promotion of due runs.

import type { RunId } from "../runs/rules/run.js";
import type { ClaimScope } from "./instances.js";
import type { GlobalPause } from "./pause.js";
import { NEVER_MS } from "./schema/waits.js";

export type PollParams = ClaimScope & {
  readonly holder: number;
  /** Whether this instance fires schedules. */
  readonly isScheduler: boolean;
  /** Whether `lastPolledAt` is needed even if no schedule is due. @default false */
  readonly wantsLastPoll?: boolean;
};

export type PollResult = {
  readonly now: number;
  readonly hasReady: boolean;
  readonly hasSuspect: boolean;
  /** A limit may let a run through. */
  readonly hasLimited: boolean;
  readonly hasDue: boolean;
  readonly hasExpired: boolean;
  /** There is a new signal, or something happened for a run that may be asleep. */
  readonly hasWakes: boolean;
  /** A tick is due, or a schedule must be looked at. Always false if the scheduler is off. */
  readonly hasDueSchedule: boolean;
  /**
   * A gate is free, a run has to be replaced or a backfill continues. Any instance may do this, since it fires no tick.
   * Always false if the scheduler is on: then it is part of `hasDueSchedule`.
   */
  readonly hasFreeGate: boolean;
  /** Runs wait behind gates of schedules: an instance that ends a run of a schedule should poll again. */
  readonly hasGated: boolean;
  /**
   * When an instance with the scheduler on last polled before this poll. Null if no schedule is due and `wantsLastPoll`
   * is off: the statement would read all past instances, and most polls do not use the time.
   */
  readonly lastPolledAt: number | null;
  /** A holder did not obey a cancel in time. */
  readonly hasOverdueCancel: boolean;
  /** Held runs with a cancel request. */
  readonly cancelRequested: readonly RunId[];
  /** When the next waiting run or tick becomes due, by the database's clock. */
  readonly nextWakeAt: number | null;
  /** The pause that keeps this instance from claiming and firing; then nothing is reported as ready or due. */
  readonly pause: GlobalPause | null;
};

export interface WorkVerbs {
  /** Reads what there is to do and records that this instance is alive, in one statement. */
  poll(params: PollParams): Promise<PollResult>;
  /** Moves due runs from waiting to ready; returns how many. */
  promote(params: { readonly limit: number }): Promise<number>;
}

/** When the next waiting run wakes; a run that waits without a deadline has a time that never comes. */
export function wakeAtOf(wakeAt: number | null): number | null {
  return wakeAt === null || wakeAt >= NEVER_MS ? null : wakeAt;
}

/** Hides all work from an instance that is paused or quiet. */
export function withoutPausedWork(polled: PollResult): PollResult {
  if (polled.pause === null) return polled;
  return {
    ...polled,
    hasReady: false,
    hasSuspect: false,
    hasLimited: false,
    hasDueSchedule: false,
    hasFreeGate: false,
  };
}
