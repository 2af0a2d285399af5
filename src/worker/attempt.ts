// Runs one attempt for the executor: calls the hooks, the middleware and the handler inside a trace span, watches the
// timeout, and turns every outcome into a report. It never settles a run: executor.ts does. Runs without hooks or
// tracing do not pay for them.

import type { JobDefinition } from "../runs/rules/job.js";
import { ABORT_GRACE_MS, type Ending } from "../runs/rules/run.js";
import type { LogsPolicy } from "../runs/rules/run-logs.js";
import {
  CancelledError,
  PermanentError,
  RetryLater,
  ShutdownError,
  TimeoutError,
} from "../shared/errors.js";
import { describeFailure, OWN_FOLDER, type StoredError } from "../shared/failure.js";
import { encodeResult } from "../shared/json.js";
import type { Clock, Timer } from "../shared/ports.js";
import { validateInput } from "../shared/schema.js";
import type { Claim, ClaimedRun } from "../store/claims.js";
import type { Emit } from "../telemetry/log.js";
import type { TraceSpan, Tracing } from "../telemetry/tracing.js";
import type { AttemptJournal, CommitPhase, StopReason } from "./attempt-view.js";
import { factsOf, type LetGo, type Report, transitionOf } from "./completer.js";
import { type ContextServices, RunContext } from "./handler/context.js";
import type { HandlerServices } from "./handler/services.js";
import { callHooks, type Hook, type HookChain, isBare, throughMiddleware } from "./hooks.js";
import { classifyFailure } from "./rules/classify.js";

/** The parts of a worker that an attempt uses; one object for all runs. */
export type AttemptTools = {
  readonly emit: Emit;
  readonly tracing: Tracing | null;
  readonly services: HandlerServices;
  /** False for an attempt that was lost or abandoned: it no longer has its slot. */
  readonly slots: { isRunning(attempt: ActiveAttempt): boolean };
  readonly wallMs: () => number;
};

/** Runs the handler of an attempt, with everything around it. Never rejects. */
export function runAttempt(attempt: ActiveAttempt, tools: AttemptTools): Promise<Report | LetGo> {
  const { tracing, services, wallMs } = tools;
  if (tracing) return withSpan(attempt, tools, tracing);
  if (isBare(attempt.job.hookChain)) return attempt.perform(services.forContext, wallMs);
  return withHooks(attempt, tools);
}

function withSpan(
  attempt: ActiveAttempt,
  tools: AttemptTools,
  tracing: Tracing,
): Promise<Report | LetGo> {
  const { run, claim, claimedMs, startedMs } = attempt;
  const span = tracing.attempt({
    run: run.id,
    job: claim.job,
    queue: claim.queue,
    mode: run.mode,
    attempt: claim.attempt,
    trace: run.trace,
    claimedAt: tools.wallMs() - (startedMs - claimedMs),
  });
  attempt.span = span;
  return span.within(() => withHooks(attempt, tools));
}

/** Runs the attempt between its hooks. The run is held while they run. */
async function withHooks(attempt: ActiveAttempt, tools: AttemptTools): Promise<Report | LetGo> {
  const { services, slots, wallMs } = tools;
  await callHooksOf(attempt, tools, "onStart", []);
  const report = await attempt.perform(services.forContext, wallMs);
  // A lost attempt neither succeeded nor failed, as far as this instance knows.
  if (!("letGo" in report) && slots.isRunning(attempt)) await callEndHooks(attempt, tools, report);
  return report;
}

function callEndHooks(
  attempt: ActiveAttempt,
  tools: AttemptTools,
  { ending, value }: Report,
): Promise<void> | undefined {
  const { kind } = ending;
  if (kind === "completed") return callHooksOf(attempt, tools, "onSuccess", [value]);
  if (kind !== "failed" && kind !== "timeout") return undefined;
  const willRetry = transitionOf(attempt, ending, () => 0).to === "pending";
  return callHooksOf(attempt, tools, "onFailure", [value, { willRetry }]);
}

function callHooksOf(
  attempt: ActiveAttempt,
  { services, emit }: AttemptTools,
  hook: Hook,
  args: readonly unknown[],
): Promise<void> {
  return callHooks({
    hookChain: attempt.job.hookChain,
    hook,
    args: [attempt.context(services.forContext), ...args] as never,
    onFailed: (error) => {
      const facts = { ...factsOf(attempt), hook, error: describeFailure(error) };
      emit("hook.failed", facts, error);
    },
  });
}

// ── one attempt ────────────────────────────────────────────────────────────────────────────────────
// Every thrown value, every result and every refusal to stop becomes a report. Nothing here uses the
// database.

export type Handler = (input: never, ctx: RunContext) => unknown;
/** Sends an attempt to a remote service. */
export type Dispatch = (attempt: ActiveAttempt) => Promise<Report | LetGo>;
export type RunnableJob = JobDefinition & { readonly hookChain: HookChain } & (
    | { readonly run: Handler }
    | { readonly dispatch: Dispatch }
  );

const COMPLETED: Ending = { kind: "completed" };

export class ActiveAttempt {
  readonly claim: Claim;
  readonly run: ClaimedRun;
  readonly job: RunnableJob;
  /** When its claim was sent, on this instance's monotonic clock; the timeout counts from here. */
  readonly claimedMs: number;
  /** When it entered the buffer, on the same clock. */
  bufferedMs = 0;
  /** When the handler was called, on the same clock; 0 before that. */
  startedMs = 0;
  commitPhase: CommitPhase = "none";
  committing: Promise<unknown> | null = null;
  hasReported = false;
  openCalls = 0;
  hasReturned = false;
  suspension: "none" | "suspending" = "none";
  journal: AttemptJournal | null = null;
  /** Null if runs are not traced. */
  span: TraceSpan | null = null;
  #context: RunContext | null = null;
  #controller: AbortController | null = null;
  #stopReason: StopReason | null = null;
  #outcome: Report | LetGo | null = null;

  constructor(params: {
    readonly claim: Claim;
    readonly run: ClaimedRun;
    readonly job: RunnableJob;
    readonly claimedMs: number;
  }) {
    this.claim = params.claim;
    this.claimedMs = params.claimedMs;
    this.run = params.run;
    this.job = params.job;
  }

  get logs(): LogsPolicy {
    return this.job.hookChain.logs;
  }

  /** The context that the handler, its hooks and its middleware share. */
  context(services: ContextServices): RunContext {
    this.#context ??= new RunContext(this, services);
    return this.#context;
  }

  get stopReason(): StopReason | null {
    return this.#stopReason;
  }

  get isCancelRequested(): boolean {
    return this.#stopReason instanceof CancelledError;
  }

  /** Aborts the signal of the handler; the first reason stays. */
  abort(reason: StopReason): void {
    if (this.#stopReason) return;
    this.#stopReason = reason;
    this.#controller?.abort(reason);
  }

  signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#stopReason) this.#controller.abort(this.#stopReason);
    }
    return this.#controller.signal;
  }

  get isDispatched(): boolean {
    return "dispatch" in this.job;
  }

  async perform(services: ContextServices, wallMs: () => number): Promise<Report | LetGo> {
    try {
      const ctx = this.context(services);
      const { middleware } = this.job.hookChain;
      const value =
        middleware.length === 0
          ? await this.#handle(ctx)
          : await throughMiddleware(middleware, ctx, () => this.#handle(ctx));
      this.hasReturned = true;
      // A commit that the handler did not await still decides how the run ends.
      if (this.#isCommitting) await this.committing;
      return (
        this.#outcome ?? { ending: COMPLETED, result: encodeResult(value), error: null, value }
      );
    } catch (thrown) {
      this.hasReturned = true;
      if (this.#isCommitting) await this.committing?.catch(() => undefined);
      return this.#outcome ?? { ...this.#failed(thrown, services, wallMs), value: thrown };
    }
  }

  get #isCommitting(): boolean {
    return this.commitPhase === "working" || this.commitPhase === "settling";
  }

  /** Not async: an extra turn of the event loop would cost more than a short run. */
  #handle(ctx: RunContext): unknown {
    const { job } = this;
    if ("dispatch" in job) return this.#send(job.dispatch);
    const input = this.#input();
    if (!isPromise(input)) return job.run(input as never, ctx);
    return input.then((checked) => job.run(checked as never, ctx));
  }

  /** Hooks and middleware see the outcome of the remote service, and cannot change it. */
  async #send(dispatch: Dispatch): Promise<unknown> {
    const outcome = await dispatch(this);
    this.#outcome = outcome;
    if ("letGo" in outcome) return undefined;
    if (outcome.ending.kind !== "completed") throw outcome.value;
    return outcome.value;
  }

  /** The input as JSON, upcast and checked, for a remote worker, which parses it itself. */
  async plainInput(): Promise<unknown> {
    await this.#input();
    return this.#current();
  }

  #current(): unknown {
    const { job, run } = this;
    const raw: unknown = JSON.parse(run.input);
    return job.upcast && run.version < job.version ? job.upcast(raw, run.version) : raw;
  }

  /** Parses and checks the stored JSON again: stored runs outlive code. */
  #input(): unknown {
    const { job } = this;
    const current = this.#current();
    return job.schema ? validateInput(job.schema, current, `input of job "${job.name}"`) : current;
  }

  /**
   * A handler that outlives the budget of a pass is handed back once; the second time the run fails, because the next
   * pass would end the same way. An attempt that began late in its pass, or has done an item, is handed back again.
   */
  #handedBack(
    { budgetMs }: ShutdownError,
    { nowMs, hasDoneItems }: ContextServices,
    error: StoredError,
  ): Report {
    const isHopeless =
      budgetMs !== null &&
      this.run.refunds > 0 &&
      nowMs() - this.startedMs >= budgetMs / 2 &&
      !hasDoneItems(this);
    if (!isHopeless) return { ending: { kind: "handed_back" }, result: null, error };
    return {
      ending: { kind: "failed", isTransient: false },
      result: null,
      error: describeFailure(new TimeoutError(budgetMs, "budget")),
    };
  }

  #failed(thrown: unknown, services: ContextServices, wallMs: () => number): Report {
    const error = describeFailure(thrown, OWN_FOLDER);
    if (this.isCancelRequested) return { ending: { kind: "cancelled" }, result: null, error };
    if (this.#stopReason instanceof ShutdownError)
      return this.#handedBack(this.#stopReason, services, error);
    // A handler may say that a retry is pointless; this counts also after its timeout.
    if (this.#stopReason instanceof TimeoutError && !(thrown instanceof PermanentError)) {
      return {
        ending: { kind: "timeout" },
        result: null,
        error: describeFailure(this.#stopReason),
      };
    }
    const laterMs = requestedDelayMs(thrown, wallMs);
    if (laterMs !== null)
      return { ending: { kind: "later", delayMs: laterMs }, result: null, error };
    const { class: failureClass, retryAfterMs } = classifyFailure(thrown);
    const isTransient = failureClass === "transient";
    return {
      ending: {
        kind: "failed",
        isTransient,
        ...(Number.isFinite(retryAfterMs) ? { retryAfterMs: Number(retryAfterMs) } : {}),
        ...(this.job.policy.retry.honoursRetryAfterBeyondMax ? { isBeyondMax: true } : {}),
      },
      result: null,
      error,
    };
  }
}

/** Awaiting a plain value would cost every run a turn of the event loop. */
function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}

/**
 * The delay that the handler requested with `RetryLater`, or null. A thrown Proxy may throw when its class or a
 * member is read, and a member may have been overwritten with a value that is not a time.
 */
function requestedDelayMs(thrown: unknown, wallMs: () => number): number | null {
  try {
    if (!(thrown instanceof RetryLater)) return null;
    const delayMs = thrown.at ? thrown.at.getTime() - wallMs() : (thrown.delayMs ?? 0);
    return Number.isFinite(delayMs) ? Math.max(0, delayMs) : null;
  } catch {
    return null;
  }
}

/** The report for an attempt whose handler did not stop at its timeout. */
export function overTime(timeoutMs: number): Report {
  return {
    ending: { kind: "timeout" },
    result: null,
    error: describeFailure(new TimeoutError(timeoutMs)),
  };
}

// ── deadlines ──────────────────────────────────────────────────────────────────────────────────────
// Aborts attempts at their timeout. One timer serves the earliest deadline, because a timer for every run would
// cost more than a short run. A handler that ignores its signal gets 5 s more.

type DeadlinesParams = {
  readonly clock: Clock;
  readonly slots: { running(): Iterable<ActiveAttempt> };
  readonly executor: {
    /** The handler still runs after its timeout and its grace. */
    overdue(attempt: ActiveAttempt): void;
  };
};

export class Deadlines {
  readonly #clock: Clock;
  readonly #slots: DeadlinesParams["slots"];
  readonly #executor: DeadlinesParams["executor"];
  readonly #graces = new Set<Timer>();
  #next: { readonly atMs: number; readonly timer: Timer } | null = null;

  constructor(params: DeadlinesParams) {
    this.#clock = params.clock;
    this.#slots = params.slots;
    this.#executor = params.executor;
  }

  watch(attempt: ActiveAttempt): void {
    const atMs = deadlineMs(attempt);
    if (this.#next && this.#next.atMs <= atMs) return;
    this.#next?.timer.cancel();
    const timer = this.#clock.timer(atMs - this.#clock.monotonicMs(), () => this.#enforce());
    this.#next = { atMs, timer };
  }

  close(): void {
    this.#next?.timer.cancel();
    for (const timer of this.#graces) timer.cancel();
  }

  #enforce(): void {
    this.#next = null;
    const nowMs = this.#clock.monotonicMs();
    for (const attempt of this.#slots.running()) {
      if (nowMs < deadlineMs(attempt)) this.watch(attempt);
      else if (!attempt.stopReason) this.#end(attempt);
    }
  }

  #end(attempt: ActiveAttempt): void {
    attempt.abort(new TimeoutError(attempt.claim.policy.timeoutMs));
    const timer = this.#clock.timer(ABORT_GRACE_MS, () => {
      this.#graces.delete(timer);
      this.#executor.overdue(attempt);
    });
    this.#graces.add(timer);
  }
}

/** Counts from the claim, as the database does. */
function deadlineMs({ claimedMs, claim }: ActiveAttempt): number {
  return claimedMs + claim.policy.timeoutMs;
}
