// Decides about runs that a caller requests from a schedule: a trigger by hand or by an external cron, the atomic "due and
// not locked" of `ifDue` for serverless callers, and an operator's retry.

import type { AuditEntry } from "../operations/rules/audit.js";
import type { RunId } from "../runs/rules/run.js";
import { DeliveryConflictError } from "../shared/errors.js";
import type { RetryResult, RunRecord } from "../store/runs/runs.js";
import type { ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { Store } from "../store/store.js";
import { advance, isActive, liveOf, progressOf, requestedRun } from "./advance.js";
import { refuseMonitor } from "./check-in.js";
import { audited, type ChangeAuthor, existing } from "./edit.js";
import { monitorJob } from "./rules/monitor.js";
import { admitTrigger, isRevivalGated, type Overlap } from "./rules/overlap.js";
import { compile, type ScheduleCache } from "./schedule-cache.js";
import type { Decision, Read, ScheduleUpdater } from "./updater.js";

export type Triggered =
  | { readonly runId: RunId; readonly skipped?: undefined }
  | {
      readonly skipped: true;
      readonly reason: "locked" | "paused" | "not_due";
      /** The holder of the blocking run, and the end of that holder's lease; null while that run waits. */
      readonly holder: string | null;
      readonly until: Date | null;
      readonly nextAt: Date | null;
      readonly runId?: undefined;
    };

export type TriggerParams = {
  readonly name: string;
  readonly mode: "manual" | "test";
  /** JSON instead of the schedule's own, with its hash. */
  readonly input: string | null;
  readonly isIfDue: boolean;
  readonly delivery: { readonly id: string; readonly hashOf: (input: string) => string } | null;
  readonly author: ChangeAuthor;
};

export async function triggerDecision(
  read: Read,
  params: TriggerParams,
  { store, cache }: { readonly store: Store; readonly cache: ScheduleCache },
): Promise<Decision<Triggered>> {
  const state = existing(read, params.name);
  const { delivery } = params;
  // The hash covers only the caller's input: the schedule's own input may have changed since.
  const inputHash = delivery && params.input !== null ? delivery.hashOf(params.input) : "";
  if (delivery) {
    const made = await store.schedules.delivery({ schedule: state.id, id: delivery.id });
    if (made && made.inputHash !== inputHash)
      throw new DeliveryConflictError(delivery.id, made.run);
    if (made) return { result: { runId: made.run } };
  }
  const decision = params.isIfDue
    ? await ifDue(read, state, params, { store, cache })
    : await byHand(state, params, { store, cache });
  if ("first" in decision || !delivery || decision.result.skipped || !decision.change)
    return decision;
  const made = { id: delivery.id, inputHash, run: decision.result.runId };
  return { ...decision, change: { ...decision.change, delivery: made } };
}

async function byHand(
  state: ScheduleState,
  { name, mode, input, author }: TriggerParams,
  { store, cache }: { readonly store: Store; readonly cache: ScheduleCache },
): Promise<Decision<Triggered>> {
  const overlap = overlapOf(state, cache);
  const admission = admitTrigger(overlap, state.live);
  if (!admission.isAdmitted) return { result: await locked(store, state, admission.run) };
  const { isGated, cancels } = admission;
  const { run, live } = requestedRun({ id: author.newId(), mode, isGated, input });
  const change: ScheduleChange = {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [run],
    ...audited(author, { verb: "trigger", name, change: `${mode} run ${run.id}` }),
    progress: {
      ...progressOf(state),
      ...liveOf([...state.live, live]),
      isReplacing: state.isReplacing || cancels.length > 0,
    },
  };
  return { result: { runId: run.id }, change };
}

/** Fires like a poll: of two concurrent calls one fires, and the other finds its run. */
async function ifDue(
  { now }: Read,
  state: ScheduleState,
  { author }: TriggerParams,
  { store, cache }: { readonly store: Store; readonly cache: ScheduleCache },
): Promise<Decision<Triggered>> {
  const isDue = isActive(state) && state.nextAt !== null && state.nextAt <= now;
  const isAllPaused = state.pauses.some(({ until }) => until === null);
  if (isDue && !isAllPaused) {
    const { change, isComplete } = advance(state, cache.of(state), {
      ...author,
      now,
      lastPolledAt: null,
    });
    const [first] = change.runs;
    if (!isComplete || !first) return { first: change };
    return { result: { runId: first.id }, change };
  }
  const inTheWay = state.live.find(({ isGated }) => !isGated) ?? state.live[0];
  if (inTheWay) return { result: await locked(store, state, inTheWay.id) };
  const reason = state.pausedAt === null && !isAllPaused ? "not_due" : "paused";
  return { result: { skipped: true, reason, holder: null, until: null, nextAt: nextOf(state) } };
}

async function locked(store: Store, state: ScheduleState, id: RunId): Promise<Triggered> {
  const run = await store.runs.get(id);
  const isHeld = run?.status === "running";
  return {
    skipped: true,
    reason: "locked",
    holder: isHeld ? run.holder : null,
    until: isHeld && run.leaseUntil !== null ? new Date(run.leaseUntil) : null,
    nextAt: nextOf(state),
  };
}

function overlapOf(state: ScheduleState, cache: ScheduleCache): Overlap {
  try {
    return cache.of(state).definition.overlap;
  } catch {
    return "skip"; // A broken schedule can still be triggered, under the strictest policy.
  }
}

function nextOf(state: ScheduleState): Date | null {
  return state.nextAt === null ? null : new Date(state.nextAt);
}

/**
 * Retries a run that a schedule made. The decision is written with the schedule's row, like everything that makes or
 * revives a run of it: if runs must not overlap, the retried run waits for the live one.
 */
export async function reviveUnderSchedule(params: {
  readonly store: Store;
  readonly run: RunRecord;
  readonly schedule: string;
  readonly updater: ScheduleUpdater;
  readonly audit: AuditEntry;
}): Promise<RetryResult> {
  const { store, run, schedule, updater, audit } = params;
  const { id, mode, nominalAt } = run;
  const isMonitor = run.job === monitorJob(schedule);
  refuseMonitor({ name: schedule, isMonitor });
  return updater.change<RetryResult>(store, schedule, async ({ state }) => {
    const current = await store.runs.get(id);
    if (!state || !current) return { result: "not_found" };
    if (current.status === "completed") return { result: "completed" };
    if (current.status !== "failed" && current.status !== "cancelled")
      return { result: "not_terminal" };
    const { definition } = compile(state);
    const isGated = isRevivalGated(definition.overlap, state.live);
    return {
      result: "pending",
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
