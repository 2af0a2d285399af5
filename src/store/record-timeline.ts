// Rows of the timeline as the store's records, the same for both databases.

import { REASONS } from "../schedules/rules/tick.js";
import { statusOf } from "./record.js";
import type { TimelineCell } from "./timeline-store.js";

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
