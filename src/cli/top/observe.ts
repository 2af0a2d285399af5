// One look at everything that goes on, for `top`: a fixed number of questions, each with a bounded answer,
// however much there is.

import type { Holdfast } from "../../holdfast.js";
import type { Instance, Totals } from "../../operations/overview.js";
import type { Pause } from "../../operations/pause.js";
import type { Queue } from "../../operations/queues.js";
import type { Run } from "../../runs/run-view.js";

export type NextTick = { readonly schedule: string; readonly job: string; readonly at: Date };

export type TopLook = {
  readonly at: Date;
  readonly database: string;
  /** The pause of everything, where it is on. */
  readonly paused: Pause | null;
  readonly instances: readonly Instance[];
  readonly queues: readonly Queue[];
  /** The newest of them. */
  readonly running: readonly Run[];
  /** The soonest of the schedules that were looked at. */
  readonly nextTicks: readonly NextTick[];
  /** The last that ended so. */
  readonly failures: readonly Run[];
  /** How runs ended since the hour before this one began. */
  readonly recent: Totals;
};

export const SECTION_ROWS_MAX = 50;
/** Schedules are listed by name: the soonest of so many are shown. */
const SCHEDULES_READ_MAX = 1_000;

export async function lookAtAll(holdfast: Holdfast, nowMs: number): Promise<TopLook> {
  const limit = SECTION_ROWS_MAX;
  const [paused, { instances }, queues, running, { schedules }, failed, { overall }] =
    await Promise.all([
      holdfast.paused(),
      holdfast.instances.list({ limit }),
      holdfast.queues.list(),
      holdfast.runs.list({ status: "running", limit }),
      holdfast.schedules.list({ status: "active", limit: SCHEDULES_READ_MAX }),
      holdfast.runs.list({ status: "failed", limit }),
      holdfast.stats({ since: "1h" }),
    ]);
  return {
    at: new Date(nowMs),
    database: holdfast.settings().database,
    paused,
    instances: instances.filter(({ isLive }) => isLive),
    queues,
    running: running.runs,
    nextTicks: schedules
      .flatMap(({ name, job, nextAt }) =>
        nextAt === null ? [] : [{ schedule: name, job: job ?? "", at: nextAt }],
      )
      .sort((a, b) => a.at.getTime() - b.at.getTime())
      .slice(0, limit),
    failures: failed.runs,
    recent: overall,
  };
}

/** What ended between two looks, for each minute; null where nothing can be said of it. */
export function endedEachMinute(before: TopLook | null, now: TopLook): number | null {
  if (before === null) return null;
  const minutes = (now.at.getTime() - before.at.getTime()) / 60_000;
  const ended = now.recent.total - before.recent.total;
  // An hour that has passed takes its runs out of the count.
  return minutes <= 0 || ended < 0 ? null : ended / minutes;
}
