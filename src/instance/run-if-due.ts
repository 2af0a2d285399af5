// Executes one schedule if it is due, for `holdfast.runIfDue()`: fires it, executes its run within the call, and returns
// how that run ended. Of simultaneous calls one executes it. It executes no other job, and it does not wait for a
// database that does not respond.

import type { RunDetails } from "../runs/view.js";
import type { Triggered } from "../schedules/trigger.js";
import { type Duration, durationMs } from "../shared/duration.js";
import {
  ConfigurationError,
  RunNotFoundError,
  StoreUnavailableError,
  WaitTimeoutError,
} from "../shared/errors.js";
import { describeFailure, textProp } from "../shared/failure.js";
import type { Ports } from "../shared/ports.js";
import { gather } from "../shared/problems.js";
import { UNREADABLE_CODES } from "../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { PollResult } from "../store/work.js";
import type { Emit } from "../telemetry/log.js";
import { promoteOnce, reclaimOnce } from "../worker/passes.js";
import { execute, isTimeUp, maintain, type PassParams } from "./tick-once.js";

export type RunIfDueOptions = {
  /**
   * The time limit of the call. Shortly before it the signal of the handler aborts; a run that did not end is handed back
   * the first time, and fails the second time. @default "50s"
   */
  readonly deadline?: Duration | undefined;
  /** Ends the wait: a running handler continues to its end, and nothing more begins. */
  readonly signal?: AbortSignal | undefined;
};

export type RanIfDue =
  | {
      readonly ran: true;
      /** How it ended; not ended yet if it is retried later, or was handed back at the deadline. */
      readonly run: RunDetails;
      readonly nextAt: Date | null;
    }
  | {
      readonly ran?: undefined;
      readonly skipped: true;
      /** `schedule_read_error`: the database did not respond in time, and nothing ran. */
      readonly reason: "locked" | "not_due" | "paused" | "schedule_read_error";
      /** The holder of the live run, and the end of that holder's lease. */
      readonly holder: string | null;
      readonly until: Date | null;
      readonly nextAt: Date | null;
    };

const DEADLINE_DEFAULT = "50s";
/** How long the call waits for a response of the database. */
const READ_MAX_MS = 5_000;
/** How often a run that another process executes is read. */
const LOOK_AGAIN_MS = 500;

export function readRunIfDue(options: RunIfDueOptions): number {
  const problems = refuseUnknownMembers(options, ["deadline", "signal"], "runIfDue()");
  const bounds = { min: 1_000, max: 3_600_000 };
  const { deadline = DEADLINE_DEFAULT } = options;
  const deadlineMs = gather(problems, () => durationMs(deadline, "runIfDue().deadline", bounds), 0);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return deadlineMs;
}

export type RunIfDueParams = {
  readonly name: string;
  readonly deadlineMs: number;
  readonly ports: Ports;
  readonly emit: Emit;
  /** Opens the database, and prepares a bounded pass. */
  readonly pass: () => Promise<PassParams>;
  readonly trigger: () => Promise<Triggered>;
  readonly run: (id: string) => Promise<RunDetails | null>;
  /** Whether this process executes runs without being called. */
  readonly isExecutedHere: () => boolean;
  /** Rejects with a `WaitTimeoutError` if the run has not ended by then. */
  readonly whenEnded: (id: string, timeoutMs: number) => Promise<void>;
  /** Aborts when the instance stops, or the caller no longer waits. */
  readonly end: AbortSignal;
};

type Skipped = Extract<RanIfDue, { readonly skipped: true }>;
/** The run to execute, or the reason why there is none. */
type Decided = { readonly pass: PassParams; readonly seen: Seen } & (
  | { readonly id: string; readonly isFired: boolean }
  | { readonly skipped: Skipped }
);
type Seen = PollResult;

export async function runIfDueOnce(params: RunIfDueParams): Promise<RanIfDue> {
  const startedMs = params.ports.clock.monotonicMs();
  const decided = await decideInTime(params);
  if ("reason" in decided) return decided;
  const { pass, seen } = decided;
  if ("skipped" in decided) {
    await maintain(pass, seen, startedMs);
    return decided.skipped;
  }
  const run = await executeUntilEnded(params, decided, startedMs);
  if (run === null) return locked(params, decided.id, pass);
  const nextAt = await nextAtOf(params, pass);
  await maintain(pass, seen, startedMs);
  return { ran: true, run, nextAt };
}

async function locked(params: RunIfDueParams, id: string, pass: PassParams): Promise<Skipped> {
  const run = await params.run(id);
  const isHeld = run?.status === "running";
  return {
    skipped: true,
    reason: "locked",
    holder: isHeld ? run.holder : null,
    until: isHeld ? run.leaseUntil : null,
    nextAt: await nextAtOf(params, pass),
  };
}

async function nextAtOf({ name }: RunIfDueParams, { store }: PassParams): Promise<Date | null> {
  const { schedules } = await store.schedules.states({ names: [name] });
  const nextAt = schedules[0]?.nextAt ?? null;
  return nextAt === null ? null : new Date(nextAt);
}

// ── deciding ───────────────────────────────────────────────────────────────────────────────────────

async function decideInTime(params: RunIfDueParams): Promise<Decided | Skipped> {
  const { name, deadlineMs, ports, emit } = params;
  const late = new AbortController();
  const readMs = Math.min(READ_MAX_MS, deadlineMs);
  const timeUp = new Promise<never>((_, reject) => {
    const timer = ports.clock.timer(readMs, () => {
      late.abort();
      const tried = `read the schedule "${name}", no answer in ${readMs} ms`;
      reject(new StoreUnavailableError({ tried }));
    });
    late.signal.addEventListener("abort", () => timer.cancel());
  });
  const deciding = decide(params, late.signal);
  // A result that arrives after the deadline is ignored.
  deciding.catch(() => undefined);
  try {
    return await Promise.race([deciding, timeUp]);
  } catch (error) {
    const code = textProp(error, "code") ?? "";
    if (!UNREADABLE_CODES.includes(code) && code !== "OUTCOME_UNKNOWN") throw error;
    emit("trigger.unread", { schedule: name, error: describeFailure(error) }, error);
    const nothing = { holder: null, until: null, nextAt: null };
    return { skipped: true, reason: "schedule_read_error", ...nothing };
  } finally {
    late.abort();
  }
}

/** Reclaims expired runs, then fires the schedule. Begins nothing more after `late` has aborted. */
async function decide(params: RunIfDueParams, late: AbortSignal): Promise<Decided> {
  const pass = await params.pass();
  const { store, ports, emit } = pass;
  late.throwIfAborted();
  const seen = await pass.poll();
  late.throwIfAborted();
  if (seen.hasExpired) await reclaimOnce({ store, random: () => ports.random.next(), emit });
  if (seen.hasDue) await promoteOnce(store);
  late.throwIfAborted();
  const triggered = await params.trigger();
  if (!triggered.skipped) return { pass, seen, id: triggered.runId, isFired: true };
  const left = triggered.reason === "locked" ? await leftBehind(pass, params.name) : null;
  if (left !== null) return { pass, seen, id: left, isFired: false };
  const { reason, holder, until, nextAt } = triggered;
  return { pass, seen, skipped: { skipped: true, reason, holder, until, nextAt } };
}

/** A run of the schedule that an earlier caller made, and that no process executes. */
async function leftBehind({ store, jobs }: PassParams, name: string): Promise<string | null> {
  const { schedules, now } = await store.schedules.states({ names: [name] });
  const live = schedules[0]?.live.find(({ isGated }) => !isGated);
  const run = live ? await store.runs.get(live.id) : null;
  const isLeft = run?.status === "pending" && run.dueAt <= now && jobs.includes(run.job);
  return isLeft ? run.id : null;
}

// ── executing ──────────────────────────────────────────────────────────────────────────────────────

/** Null: another process has the run, and this call ignores it. */
async function executeUntilEnded(
  params: RunIfDueParams,
  {
    pass,
    id,
    isFired,
  }: { readonly pass: PassParams; readonly id: string; readonly isFired: boolean },
  startedMs: number,
): Promise<RunDetails | null> {
  const { ports, end } = params;
  let isMine = false;
  for (;;) {
    const run = await params.run(id);
    if (!run) throw new RunNotFoundError(id);
    if (run.finishedAt !== null || isTimeUp(pass, startedMs) || end.aborted) return run;
    const mayExecute = pass.jobs.includes(run.job) && !params.isExecutedHere();
    if (mayExecute && !isMine && run.status === "running") return null;
    // The worker of this instance executes the run of an earlier call as soon as it can: no caller has to wait for it
    // here.
    if (!isFired && params.isExecutedHere()) return null;
    if (mayExecute && run.status === "pending" && Number(run.dueAt) <= ports.clock.wallMs()) {
      const only = { ...pass, jobs: [run.job] };
      const { executed, dispatched } = await execute(only, { startedMs, hasSuspect: true });
      isMine ||= executed + dispatched > 0;
      if (executed + dispatched > 0) continue;
      // An obstacle keeps the run from starting; a call that did not make it leaves it to later calls.
      if (!isFired && !isMine && !isTimeUp(pass, startedMs)) return null;
    }
    // A worker that was started executes it, or it waits for its next attempt.
    await params.whenEnded(id, LOOK_AGAIN_MS).catch((error: unknown) => {
      if (!(error instanceof WaitTimeoutError) && !end.aborted) throw error;
    });
    await promoteOnce(pass.store);
  }
}
