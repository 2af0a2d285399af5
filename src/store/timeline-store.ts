// The ledger seen from afar: ticks of several schedules over a stretch of time, equal ones of a short
// while together, each with how its run stands.

import type { RunId, RunStatus } from "../runs/rules/run.js";
import type { Reason } from "../schedules/rules/tick.js";

export type TimelineParams = {
  /** Names of schedules. */
  readonly names: readonly string[];
  readonly fromAt: number;
  readonly toAt: number;
  /** Ticks within so long, counted from `fromAt`, are told together where they are alike. */
  readonly cellMs: number;
};

export type TimelineCell = {
  readonly schedule: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly reason: Reason;
  /** How their runs stand; null: there is none, or it was removed. */
  readonly status: RunStatus | null;
  /** The largest of them. */
  readonly lateMs: number;
  /** One of their runs. */
  readonly run: RunId | null;
};

export interface TimelineStore {
  /** By schedule and time. A stretch counts where it touches the time that is asked for. */
  timeline(params: TimelineParams): Promise<readonly TimelineCell[]>;
}
