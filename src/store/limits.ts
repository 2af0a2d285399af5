// Declares the store's verbs for limits and queues, besides those that claim and settle apply: why a run does not
// start, and how long the queues are.

import type { RunId } from "../runs/rules/run.js";
import type { Audited } from "./audit.js";

/** What keeps a pending run. `key` is the JSON text of a value, or empty for the whole job. */
export type Waiting =
  | { readonly reason: "time"; readonly until: number }
  | { readonly reason: "schedule" }
  /** Everything is paused. */
  | { readonly reason: "paused"; readonly since: number; readonly note: string | null }
  | {
      readonly reason: "paused_queue";
      readonly queue: string;
      readonly since: number;
      readonly note: string | null;
    }
  | {
      readonly reason: "concurrency";
      readonly key: string;
      readonly limit: number;
      readonly held: number;
      /** How many of the same key go first. */
      readonly ahead: number;
    }
  | {
      readonly reason: "rate";
      readonly key: string;
      readonly limit: number;
      readonly perMs: number;
      /** When the next one may begin. */
      readonly until: number;
      readonly ahead: number;
    }
  /** Nothing keeps it: it is next for an instance that knows the job and has room. */
  | { readonly reason: "worker"; readonly instances: number };

export type QueueRecord = {
  readonly name: string;
  readonly ready: number;
  readonly waiting: number;
  readonly running: number;
  readonly pausedAt: number | null;
  readonly pauseNote: string | null;
};

export interface LimitStore {
  /** Null where the run is not pending. */
  waitingFor(id: RunId): Promise<Waiting | null>;
  /** Every queue that a run was ever sent to or that was paused, by name. */
  queues(): Promise<readonly QueueRecord[]>;
  pauseQueue(
    params: {
      readonly queue: string;
      readonly isPaused: boolean;
      readonly note?: string | null;
    } & Audited,
  ): Promise<void>;
}
