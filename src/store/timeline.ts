// Declares the store's verb for the timeline, and maps its rows: ticks of several schedules over a span of time. Equal
// ticks within a short time share one cell, which shows the status of their runs.

import type { RunId, RunStatus } from "../runs/rules/run.js";
import { REASONS, type Reason } from "../schedules/rules/tick.js";
import { statusOf } from "./rows.js";

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

// Row mapper, the same for both databases.

export function toTimelineCell(row: Readonly<Record<string, unknown>>): TimelineCell {
  const reason = REASONS[Number(row.reason)];
  if (reason === undefined) throw new Error(`A tick has the unknown reason ${row.reason}.`);
  return {
    schedule: String(row.schedule),
    firstAt: Number(row.first_at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    reason,
    status: row.status === null ? null : statusOf(Number(row.status)),
    lateMs: Number(row.late_ms),
    run: row.run === null ? null : String(row.run),
  };
}
