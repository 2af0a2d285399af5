// One poll on SQLite, inside of a write transaction: what there is to do, and that this instance is here.

import { CANCEL_GRACE_MS } from "../core/run.js";
import { heeding, toHalt } from "./record-pause.js";
import { POLL, SEE_INSTANCE } from "./sql/sqlite-poll.js";
import type { SqliteFile } from "./sqlite.js";
import type * as store from "./store.js";

/** The answer as SQLite writes it: truth is 0 or 1. */
type Polled = {
  readonly [Member in keyof Omit<
    store.PollAnswer,
    "now" | "halt"
  >]: store.PollAnswer[Member] extends boolean ? 0 | 1 : store.PollAnswer[Member];
} & { readonly nextTickAt: number | null; readonly paused: unknown; readonly quiet: unknown };

export function pollOnce(
  file: SqliteFile,
  { holder, jobs, queues, isScheduler }: store.PollParams,
  now: number,
): store.PollAnswer {
  const row = file.get(POLL, {
    holder,
    now,
    isScheduler,
    cancelGraceMs: CANCEL_GRACE_MS,
    jobs: JSON.stringify(jobs),
    queues: queues && JSON.stringify(queues),
  });
  // Last: who had polled before is part of the answer.
  file.run(SEE_INSTANCE, { holder, isScheduler, now });
  const polled = JSON.parse(String(row?.answer)) as Polled;
  const { cancelRequested, nextWakeAt, lastPolledAt, nextTickAt } = polled;
  const wakeAt = Math.min(nextWakeAt ?? Infinity, nextTickAt ?? Infinity);
  return heeding({
    now,
    halt: toHalt(polled),
    hasReady: polled.hasReady === 1,
    hasSuspect: polled.hasSuspect === 1,
    hasLimited: polled.hasLimited === 1,
    hasDue: polled.hasDue === 1,
    hasExpired: polled.hasExpired === 1,
    hasDueSchedule: polled.hasDueSchedule === 1,
    hasGated: polled.hasGated === 1,
    lastPolledAt,
    hasOverdueCancel: polled.hasOverdueCancel === 1,
    cancelRequested,
    nextWakeAt: wakeAt === Infinity ? null : wakeAt,
  });
}
