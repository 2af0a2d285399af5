// Ends attempts for a worker: makes the settlement to store and the events to emit, and counts each ending once. The
// settlement waits in the settlement buffer; exchange.ts stores it. Remote workers use the functions below the class:
// their runs end the same way.

import { type Ending, settle, type Transition } from "../runs/rules/run.js";
import type { StoredError } from "../shared/failure.js";
import type { Ports } from "../shared/ports.js";
import type { Claim, ClaimedRun, Settlement } from "../store/claims.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { TraceSpan } from "../telemetry/tracing.js";
import { type AttemptJournal, type AttemptView, isFirstGrant } from "./attempt-view.js";
import type { Leases } from "./leases.js";

/** A run with the claim that it is held under. */
type Held = { readonly run: ClaimedRun; readonly claim: Claim };

/** How an attempt ended, with the values to store. */
export type Report = {
  readonly ending: Ending;
  readonly result: string | null;
  readonly error: StoredError | null;
  /** The value that the handler returned or threw, unchanged. */
  readonly value?: unknown;
};

/** A remote service has the run, or may have it: this instance neither settles it nor renews its lease. */
export type LetGo = {
  readonly letGo: "accepted" | "unknown";
  readonly reason: string;
};

type EndedAttempt = AttemptView & {
  readonly isCancelRequested: boolean;
  readonly isDispatched: boolean;
  readonly span: TraceSpan | null;
};

const COMMITTED: Report = { ending: { kind: "completed" }, result: null, error: null };

export type CompleterParams = {
  readonly ports: Ports;
  readonly emit: Emit;
  readonly listens: (name: EventName) => boolean;
  readonly meter: Meter;
  readonly services: { failedItems(attempt: AttemptView): number };
  readonly leases: Pick<Leases, "letGo">;
  readonly settlementBuffer: { push(settlement: Settlement): void };
};

/** Counts of attempts since the start, by how they ended. */
export type Tally = {
  /** Ended in this process or by the answer of a remote service; runs that were handed back do not count. */
  finished: number;
  /** Finished attempts that this process executed. */
  executed: number;
  /** Attempts that a remote service has received, or may have received. */
  dispatched: number;
  /** Dispatched attempts without an answer: the service may have received them or not. */
  unknown: number;
  handedBack: number;
};

export class Completer {
  readonly #params: CompleterParams;
  readonly #tally: Tally = { finished: 0, executed: 0, dispatched: 0, unknown: 0, handedBack: 0 };

  constructor(params: CompleterParams) {
    this.#params = params;
  }

  get tally(): Readonly<Tally> {
    return this.#tally;
  }

  settle(attempt: EndedAttempt, report: Report): void {
    const { emit, listens, meter, services, ports, settlementBuffer } = this.#params;
    const transition = transitionOf(attempt, report.ending, () => ports.random.next());
    const ranMs = attempt.startedMs === 0 ? 0 : ports.clock.monotonicMs() - attempt.startedMs;
    if (isHandBack(transition)) this.#tally.handedBack += 1;
    else this.#countFinished(attempt);
    const failedItems = services.failedItems(attempt);
    emitEnding({ attempt, report, transition, ranMs, emit, listens, meter, failedItems });
    attempt.span?.end(
      transition.to === "pending" ? transition.end : transition.to,
      transition.to === "completed" ? null : report.error,
    );
    settlementBuffer.push(settlementOf({ held: attempt, report, transition, ranMs }));
  }

  /** `ctx.commit` has completed the run while its handler still runs. */
  committed(attempt: EndedAttempt, { ranMs }: Settlement): void {
    const { emit, listens, meter, services, leases } = this.#params;
    leases.letGo(attempt.claim.fence);
    this.#countFinished(attempt);
    const failedItems = services.failedItems(attempt);
    const transition = { to: "completed" } as const;
    const report = COMMITTED;
    emitEnding({ attempt, report, transition, ranMs, emit, listens, meter, failedItems });
  }

  /** The handler has ended after its commit; the run stays completed. */
  endedAfterCommit(attempt: EndedAttempt, report: Report | LetGo): void {
    const error = "letGo" in report ? null : report.error;
    attempt.span?.end("completed", error);
    if (error) this.#params.emit("run.after_commit", { ...factsOf(attempt), error });
  }

  /** The execution ends here, and its run goes on later: this is neither a success nor a failure. */
  suspended(attempt: EndedAttempt, wakeInMs: number | null): void {
    const { emit, meter } = this.#params;
    this.#countFinished(attempt);
    meter.attemptEnded(attempt.claim.job, "suspended");
    attempt.span?.end("suspended");
    emit("run.suspended", { ...factsOf(attempt), wakeInMs });
  }

  /** The remote service holds the run now, under the same fence: this instance neither renews nor settles it. */
  letGo(attempt: EndedAttempt, { letGo, reason }: LetGo): void {
    const { emit, leases } = this.#params;
    const { fence } = attempt.claim;
    leases.letGo(fence);
    this.#tally.dispatched += 1;
    if (letGo === "unknown") this.#tally.unknown += 1;
    attempt.span?.end(letGo);
    const facts = { ...factsOf(attempt), fence };
    if (letGo === "accepted") emit("run.accepted", facts);
    else emit("run.unknown", { ...facts, reason });
  }

  #countFinished({ isDispatched }: EndedAttempt): void {
    this.#tally.finished += 1;
    if (isDispatched) this.#tally.dispatched += 1;
    else this.#tally.executed += 1;
  }
}

// ── the end of an attempt as a settlement and as events ─────────────────────────────────────────

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
  const mayWait = mayHaveWaits(params.held);
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
      mayWait,
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
  return { id, fence, mode, schedule, batch, isLimited, mayWait, ranMs, error, to, result };
}

/** A remote worker may have stored waits that this instance knows nothing of. */
function mayHaveWaits(held: Held & { readonly journal?: AttemptJournal | null }): boolean {
  return held.journal !== null || !isFirstGrant(held);
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
