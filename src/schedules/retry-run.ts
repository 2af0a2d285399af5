// An operator's retry of a run that a schedule made. It is decided under the schedule's row, like all
// that makes or revives a run of it: where runs must not overlap, it waits for the live one.

import type { AuditEntry } from "../operations/rules/audit.js";
import type { RetryAnswer, RunRecord, Store } from "../store/store.js";
import { liveOf, progressOf } from "./advance.js";
import { refuseMonitor } from "./check-in.js";
import { monitorJob } from "./rules/monitor.js";
import { isRevivalGated } from "./rules/overlap.js";
import { compile } from "./schedule-cache.js";
import type { ScheduleUpdater } from "./updater.js";

export async function reviveUnderSchedule(params: {
  readonly store: Store;
  readonly run: RunRecord;
  readonly schedule: string;
  readonly updater: ScheduleUpdater;
  readonly audit: AuditEntry;
}): Promise<RetryAnswer> {
  const { store, run, schedule, updater, audit } = params;
  const { id, mode, nominalAt } = run;
  const isMonitor = run.job === monitorJob(schedule);
  refuseMonitor({ name: schedule, isMonitor });
  return updater.change<RetryAnswer>(store, schedule, async ({ state }) => {
    const current = await store.run(id);
    if (!state || !current) return { answer: "not_found" };
    if (current.status === "completed") return { answer: "completed" };
    if (current.status !== "failed" && current.status !== "cancelled")
      return { answer: "not_terminal" };
    const { definition } = compile(state);
    const isGated = isRevivalGated(definition.overlap, state.live);
    return {
      answer: "pending",
      change: {
        id: state.id,
        revision: state.revision,
        ticks: [],
        runs: [],
        progress: {
          ...progressOf(state),
          ...liveOf([...state.live, { id, mode, nominalAt, isGated }]),
        },
        revives: { id, isGated },
        audit,
      },
    };
  });
}
