// Does one bounded pass for `holdfast.tick()`: fires due ticks, reclaims runs of silent holders, executes a few runs, and
// once an hour applies retention. For platforms where no process stays alive between two calls, such as a function that
// an outside cron calls.

import { ABORT_GRACE_MS } from "../runs/rules/run.js";
import { type TickerParams, type TickReport, tickOnce } from "../schedules/ticker.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { delay, type Ports } from "../shared/ports.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import type { PollResult } from "../store/work.js";
import type { Emit } from "../telemetry/log.js";
import { enforceCancelsOnce, promoteOnce, reclaimOnce, wakeOnce } from "../worker/passes.js";
import type { Workers } from "../worker/pool.js";
import type { Loop } from "./loop.js";

export type TickOptions = {
  /** How many runs it executes at most; 0 only fires. @default 5 */
  readonly limit?: number | undefined;
  /** The time limit of the call; runs that are still running then are handed back. @default "50s" */
  readonly budget?: Duration | undefined;
};

export type Ticked = {
  readonly ok: true;
  readonly fired: readonly {
    readonly schedule: string;
    readonly tick: Date;
    readonly runId: string;
  }[];
  readonly skipped: readonly {
    readonly schedule: string;
    readonly tick: Date;
    readonly reason: string;
  }[];
  readonly executed: number;
  readonly dispatched: number;
  readonly reclaimed: number;
  /** When a call will have something to do again, as far as is known now. */
  readonly nextWakeAt: Date | null;
};

const LIMIT_DEFAULT = 5;
const LIMIT_MAX = 1_000;
const BUDGET_DEFAULT = "50s";
/** A shorter budget, which any caller may give, never fails a handler that outlives it. */
const OUTLIVED_BUDGET_MIN_MS = 20_000;
const ALERTS_MIN_MS = 1_000;
const RETENTION_EVERY_MS = 60 * 60_000;

export function readTick(options: TickOptions): {
  readonly limit: number;
  readonly budgetMs: number;
} {
  const problems = refuseUnknownMembers(options, ["limit", "budget"], "tick()");
  const { limit = LIMIT_DEFAULT, budget = BUDGET_DEFAULT } = options;
  if (!Number.isInteger(limit) || limit < 0 || limit > LIMIT_MAX) {
    problems.push({
      field: "tick().limit",
      message: `must be a whole number from 0 to ${LIMIT_MAX}, for example ${LIMIT_DEFAULT}`,
    });
  }
  const bounds = { min: 1_000, max: 3_600_000 };
  const budgetMs = gather(problems, () => durationMs(budget, "tick().budget", bounds), 0);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { limit, budgetMs };
}

/** Workers that claim a limited number of runs, with the loop that keeps their leases. */
export type BoundedWorker = {
  readonly worker: Workers;
  readonly loop: Loop;
  /** Resolves when the workers hold nothing and find nothing more to claim, or when the instance stops. */
  readonly over: Promise<void>;
};

export type PassParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly ticker: TickerParams;
  /** Finds the work. Simultaneous passes of an instance share a poll, as each writes the row of the instance. */
  readonly poll: () => Promise<PollResult>;
  readonly emit: Emit;
  readonly jobs: readonly string[];
  readonly limit: number;
  readonly budgetMs: number;
  /** A worker of this instance executes the runs that a pass hands back, within the full time limit of their job. */
  readonly hasWorker: boolean;
  /** Evaluates alerts, unless an instance did so lately. */
  readonly alert: () => Promise<unknown>;
  /** Removes a bounded amount of rows past their retention, and stops when `isTimeUp`. */
  readonly applyRetention: (isTimeUp: () => boolean) => Promise<void>;
  /** Workers for this many runs of these jobs. */
  readonly newWorker: (claimMax: number, jobs: readonly string[]) => Promise<BoundedWorker>;
};

export async function passOnce(params: PassParams): Promise<Ticked> {
  const startedMs = params.ports.clock.monotonicMs();
  const seen = await params.poll();
  let done = NOTHING;
  let after = seen;
  // The end of a run may have opened the gate of the next one of its schedule, which this pass executes too.
  for (let isOver = isQuiet(seen); !isOver; ) {
    const left = { ...params, limit: params.limit - done.executed - done.dispatched };
    const more = await act(left, after, startedMs);
    done = joined(done, more);
    after = await params.poll();
    const hasEnded = more.executed + more.dispatched > 0;
    const hasRoom = done.executed + done.dispatched < params.limit && !isTimeUp(params, startedMs);
    isOver = !(hasEnded && hasRoom && after.hasDueSchedule);
  }
  const nextWakeAt = isQuiet(after) || params.limit === 0 ? after.nextWakeAt : after.now;
  await maintain(params, seen, startedMs);
  const { report, ...counts } = done;
  return {
    ok: true,
    fired: report.fired.map((each) => ({ ...each, tick: new Date(each.tick) })),
    skipped: report.skipped.map((each) => ({ ...each, tick: new Date(each.tick) })),
    ...counts,
    nextWakeAt: nextWakeAt === null ? null : new Date(nextWakeAt),
  };
}

/** Evaluates alerts, and applies retention once an hour, within the rest of the budget. */
export async function maintain(
  params: PassParams,
  seen: PollResult,
  startedMs: number,
): Promise<void> {
  await alert(params, startedMs);
  if (isRetentionDue(seen)) await applyRetention(params, startedMs);
}

type Done = Pick<Ticked, "executed" | "dispatched" | "reclaimed"> & {
  readonly report: Pick<TickReport, "fired" | "skipped">;
};

function joined(done: Done, more: Done): Done {
  return {
    report: {
      fired: [...done.report.fired, ...more.report.fired],
      skipped: [...done.report.skipped, ...more.report.skipped],
    },
    executed: done.executed + more.executed,
    dispatched: done.dispatched + more.dispatched,
    reclaimed: done.reclaimed + more.reclaimed,
  };
}

/** Whether too little of the budget is left to execute anything more. */
export function isTimeUp({ ports: { clock }, budgetMs }: PassParams, startedMs: number): boolean {
  return clock.monotonicMs() - startedMs >= usableMs(budgetMs);
}

/** After this time the signal of running handlers aborts; they have the rest of the budget to end. */
function usableMs(budgetMs: number): number {
  return Math.max(budgetMs * 0.8, budgetMs - ABORT_GRACE_MS);
}

const NOTHING: Done = {
  report: { fired: [], skipped: [] },
  executed: 0,
  dispatched: 0,
  reclaimed: 0,
};

/** Nothing to fire, reclaim, promote or claim: the normal case for calls of a cron. */
function isQuiet(seen: PollResult): boolean {
  const { hasDueSchedule, hasDue, hasExpired, hasOverdueCancel, hasWakes } = seen;
  const hasWork = seen.hasReady || seen.hasSuspect || seen.hasLimited;
  return !(hasDueSchedule || hasDue || hasExpired || hasOverdueCancel || hasWakes || hasWork);
}

async function act(params: PassParams, seen: PollResult, startedMs: number): Promise<Done> {
  const { store, ports, emit, ticker, limit, jobs } = params;
  const report = seen.hasDueSchedule
    ? await tickOnce(ticker, { lastPolledAt: seen.lastPolledAt })
    : NOTHING.report;
  const random = () => ports.random.next();
  const hasWoken = seen.hasWakes && (await wakeOnce(store, random)) > 0;
  if (seen.hasDue || hasWoken) await promoteOnce(store);
  const { reclaimed } = seen.hasExpired ? await reclaimOnce({ store, random, emit }) : NOTHING;
  if (seen.hasOverdueCancel) await enforceCancelsOnce(store, random());
  const mayExecute = limit > 0 && jobs.length > 0 && seen.pause === null;
  const hasSuspect = seen.hasSuspect || reclaimed > 0;
  const { executed, dispatched } = mayExecute
    ? await execute(params, { startedMs, hasSuspect })
    : NOTHING;
  return { report, reclaimed, executed, dispatched };
}

/** Runs last, so that work which this pass is about to do raises no alert. Slow receivers get the rest of the budget. */
async function alert(
  { alert: evaluateAlerts, ports: { clock }, budgetMs, emit }: PassParams,
  startedMs: number,
): Promise<void> {
  const leftMs = Math.max(ALERTS_MIN_MS, startedMs + budgetMs - clock.monotonicMs());
  const over = new AbortController();
  const evaluating = evaluateAlerts().catch((error: unknown) => {
    const facts = { what: "alerts", error: describeFailure(error), retryInMs: 0 };
    emit("store.failed", facts, error);
  });
  await Promise.race([evaluating, delay(clock, leftMs, over.signal)]);
  over.abort();
}

/** The first pass of an hour applies retention: so no table has to keep when it was last applied. */
function isRetentionDue({ now, lastPolledAt }: PollResult): boolean {
  const hourOf = (at: number) => Math.floor(at / RETENTION_EVERY_MS);
  return lastPolledAt === null || hourOf(lastPolledAt) !== hourOf(now);
}

/** A failure leaves rows for the next hour; nothing is lost. */
async function applyRetention(
  { applyRetention: applyOnce, ports: { clock }, budgetMs, emit }: PassParams,
  startedMs: number,
): Promise<void> {
  try {
    await applyOnce(() => clock.monotonicMs() >= startedMs + budgetMs);
  } catch (error) {
    const facts = {
      what: "retention",
      error: describeFailure(error),
      retryInMs: RETENTION_EVERY_MS,
    };
    emit("store.failed", facts, error);
  }
}

/**
 * When the budget ends, running handlers are aborted and their runs handed back without using up an attempt. A run that
 * outlives the budget a second time fails, unless this instance has a worker, which gives it more time.
 */
export async function execute(
  { ports: { clock }, limit, jobs, budgetMs, hasWorker, newWorker }: PassParams,
  { startedMs, hasSuspect }: { readonly startedMs: number; readonly hasSuspect: boolean },
): Promise<{ readonly executed: number; readonly dispatched: number }> {
  const { worker, loop, over } = await newWorker(limit, jobs);
  const timeUp = new Promise<"time up">((resolve) => {
    const leftMs = Math.max(0, startedMs + usableMs(budgetMs) - clock.monotonicMs());
    const timer = clock.timer(leftMs, () => resolve("time up"));
    void over.then(() => timer.cancel());
  });
  worker.start();
  // The first poll would wake them as well, but they might have found no work and ended by then.
  if (hasSuspect) worker.wakeForSuspect();
  loop.start();
  const end = await Promise.race([over, timeUp]);
  loop.stopPolling();
  const isOutlived = end === "time up" && !hasWorker && budgetMs >= OUTLIVED_BUDGET_MIN_MS;
  await worker.stop({ graceMs: 0, budgetMs: isOutlived ? budgetMs : null });
  loop.stopHeartbeat();
  return { executed: worker.executedCount, dispatched: worker.dispatchedCount };
}
