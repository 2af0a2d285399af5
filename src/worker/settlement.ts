// Turns the end of an attempt into the settlement to store and the events to emit. Stores nothing itself.

import { type Ending, settle, type Transition } from "../runs/rules/run.js";
import type { StoredError } from "../shared/failure.js";
import type { Claim, ClaimedRun, Settlement } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";

/** A run with the claim that it is held under. */
type Held = { readonly run: ClaimedRun; readonly claim: Claim };

export function transitionOf(
  held: Held & { readonly isCancelRequested: boolean },
  ending: Ending,
  random: () => number,
): Transition {
  const { run, claim, isCancelRequested } = held;
  return settle(
    {
      attempt: claim.attempt,
      attemptsMax: claim.policy.retry.attempts + run.extraAttempts,
      refunds: run.refunds,
      laters: run.laters,
      retry: claim.policy.retry,
      isCancelRequested,
    },
    ending,
    random,
  );
}

export function settlementOf(params: {
  readonly held: Held;
  readonly report: Pick<Report, "result" | "error">;
  readonly transition: Transition;
  readonly ranMs: number;
}): Settlement {
  const { report, transition, ranMs } = params;
  const { id, mode, schedule, batch } = params.held.run;
  const { fence, isLimited } = params.held.claim;
  const error = report.error === null ? null : JSON.stringify(report.error);
  // Written out, not spread: every run makes one, and spreading copies members by name, which is slow.
  if (transition.to === "pending") {
    const { to, end, delayMs, isRefund } = transition;
    return {
      id,
      fence,
      mode,
      schedule,
      batch,
      isLimited,
      ranMs,
      error,
      to,
      end,
      delayMs,
      isRefund,
    };
  }
  const { to } = transition;
  const { result } = report;
  return { id, fence, mode, schedule, batch, isLimited, ranMs, error, to, result };
}

export function isHandBack(transition: Transition): boolean {
  return transition.to === "pending" && transition.end === "handed_back";
}

/** Emits and counts an ending. Facts of completed runs, by far the most, are gathered only for a listener. */
export function emitEnding(params: {
  readonly attempt: Held;
  readonly report: Report;
  readonly transition: Transition;
  readonly ranMs: number;
  readonly emit: Emit;
  readonly listens: (name: EventName) => boolean;
  readonly meter: Meter;
  /** Items that this attempt recorded as failed. */
  readonly failedItems?: number;
}): void {
  const { attempt, report, transition, emit, failedItems = 0 } = params;
  const ranMs = Math.round(params.ranMs);
  count(params.meter, attempt, transition, ranMs);
  if (transition.to === "completed") {
    if (params.listens("run.completed")) emit("run.completed", { ...factsOf(attempt), ranMs });
    if (failedItems > 0) emit("run.partial", { ...factsOf(attempt), failedItems });
    return;
  }
  const facts = factsOf(attempt);
  const error = report.error ?? { code: "UNKNOWN", name: "Error", message: "unknown" };
  if (transition.to === "cancelled") emit("run.cancelled", facts);
  else if (transition.to === "failed") {
    const isPermanent = report.ending.kind === "failed" && !report.ending.isTransient;
    emit("run.failed", { ...facts, ranMs, error, isPermanent });
  } else if (transition.to === "pending") {
    const { end, delayMs } = transition;
    if (end === "handed_back") emit("run.handed_back", facts);
    else if (end === "later") emit("run.postponed", { ...facts, delayMs });
    else emit("run.retrying", { ...facts, delayMs, error });
  }
}

function count(meter: Meter, { run, claim }: Held, transition: Transition, ranMs: number): void {
  const { job } = claim;
  const { to } = transition;
  if (to === "pending") meter.attemptEnded(job, transition.end);
  else meter.runEnded({ job, schedule: run.schedule, outcome: to, ranMs });
}

export function factsOf({ run, claim }: Held) {
  const facts = { run: run.id, job: claim.job, attempt: claim.attempt };
  return run.tags.length === 0 ? facts : { ...facts, tags: run.tags };
}

/** How an attempt ended, with the values to store. */
export type Report = {
  readonly ending: Ending;
  readonly result: string | null;
  readonly error: StoredError | null;
  /** The value that the handler returned or threw, unchanged. */
  readonly value?: unknown;
};
