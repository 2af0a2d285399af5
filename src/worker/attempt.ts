// Executes one attempt for a worker: calls the hooks, the middleware and the handler inside a trace span, watches the
// timeout, and turns every outcome into a report. Progress and log lines are stored before the end is
// reported. It never settles a run: completer.ts does. Runs without hooks or tracing do not pay for them.

import type { JobDefinition } from "../runs/rules/job.js";
import { ABORT_GRACE_MS, type Ending } from "../runs/rules/run.js";
import type { LogsPolicy } from "../runs/rules/run-logs.js";
import {
  CancelledError,
  type LeaseLostError,
  RetryLater,
  ShutdownError,
  TimeoutError,
} from "../shared/errors.js";
import { describeFailure, OWN_FOLDER } from "../shared/failure.js";
import { encodeResult } from "../shared/json.js";
import type { Clock, Timer } from "../shared/ports.js";
import { validateInput } from "../shared/schema.js";
import type { Claim, ClaimedRun } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { TraceSpan, Tracing } from "../telemetry/tracing.js";
import type { CommitPhase } from "./attempt-view.js";
import { type ContextServices, RunContext } from "./handler/context.js";
import type { HandlerServices } from "./handler/services.js";
import { callHooks, type Hook, type HookChain, isBare, throughMiddleware } from "./hooks.js";
import { classifyFailure } from "./rules/classify.js";
import { factsOf, type Report, transitionOf } from "./settlement.js";

export type AttemptRunnerParams = {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly tracing: Tracing | null;
  readonly services: HandlerServices;
  /** Whether the attempt still has its slot: neither lost nor abandoned. */
  readonly isOurs: (attempt: ActiveAttempt) => boolean;
  readonly onEnded: (attempt: ActiveAttempt, report: Report | LetGo) => void;
};

export class AttemptRunner {
  readonly #params: AttemptRunnerParams;
  readonly #wallMs: () => number;

  constructor(params: AttemptRunnerParams) {
    this.#params = params;
    this.#wallMs = () => params.clock.wallMs();
  }

  begin(attempt: ActiveAttempt): void {
    const { tracing } = this.#params;
    if (tracing) this.#trace(attempt, tracing);
    else if (isBare(attempt.job.hookChain)) void this.#perform(attempt);
    else void this.#withHooks(attempt);
  }

  #trace(attempt: ActiveAttempt, tracing: Tracing): void {
    const { run, claim, claimedMs, startedMs } = attempt;
    const span = tracing.attempt({
      run: run.id,
      job: claim.job,
      queue: claim.queue,
      mode: run.mode,
      attempt: claim.attempt,
      trace: run.trace,
      claimedAt: this.#wallMs() - (startedMs - claimedMs),
    });
    attempt.span = span;
    void span.within(() => this.#withHooks(attempt));
  }

  #perform(attempt: ActiveAttempt): Promise<void> {
    const { services, onEnded } = this.#params;
    return attempt
      .perform(services.forContext, this.#wallMs)
      .then((report) =>
        attempt.hasReported ? this.#end(attempt, report) : onEnded(attempt, report),
      );
  }

  /** Runs the attempt between its hooks. The run is held while they run. */
  async #withHooks(attempt: ActiveAttempt): Promise<void> {
    const { services, isOurs } = this.#params;
    await this.#callHooks(attempt, "onStart", []);
    const report = await attempt.perform(services.forContext, this.#wallMs);
    // A lost attempt neither succeeded nor failed, as far as this instance knows.
    if (!isOurs(attempt)) return;
    if (!("letGo" in report)) await this.#callEndHooks(attempt, report);
    await this.#end(attempt, report);
  }

  async #callEndHooks(attempt: ActiveAttempt, report: Report): Promise<void> {
    const { kind } = report.ending;
    if (kind === "completed") await this.#callHooks(attempt, "onSuccess", [report.value]);
    if (kind === "failed" || kind === "timeout") {
      const willRetry = transitionOf(attempt, report.ending, () => 0).to === "pending";
      await this.#callHooks(attempt, "onFailure", [report.value, { willRetry }]);
    }
  }

  #callHooks(attempt: ActiveAttempt, hook: Hook, args: readonly unknown[]): Promise<void> {
    const { services, emit } = this.#params;
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

  /** Stores progress and log lines first, while the attempt still has its fence. */
  async #end(attempt: ActiveAttempt, report: Report | LetGo): Promise<void> {
    const { services, onEnded } = this.#params;
    if (attempt.hasReported) await services.reportsStored(attempt);
    onEnded(attempt, report);
  }
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

/** A remote service has the run, or may have it: this instance neither settles it nor renews its lease. */
export type LetGo = {
  readonly letGo: "accepted" | "unknown";
  readonly reason: string;
};

const COMPLETED: Ending = { kind: "completed" };

export type StopReason = LeaseLostError | CancelledError | TimeoutError | ShutdownError;

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
      // A commit that the handler did not await still decides how the run ends.
      if (this.#isCommitting) await this.committing;
      return (
        this.#outcome ?? { ending: COMPLETED, result: encodeResult(value), error: null, value }
      );
    } catch (thrown) {
      if (this.#isCommitting) await this.committing?.catch(() => undefined);
      return this.#outcome ?? { ...this.#failed(thrown, wallMs), value: thrown };
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

  #failed(thrown: unknown, wallMs: () => number): Report {
    const error = describeFailure(thrown, OWN_FOLDER);
    if (this.isCancelRequested) return { ending: { kind: "cancelled" }, result: null, error };
    if (this.#stopReason instanceof ShutdownError)
      return { ending: { kind: "handed_back" }, result: null, error };
    if (this.#stopReason instanceof TimeoutError) {
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

export class Deadlines {
  readonly #clock: Clock;
  readonly #running: () => Iterable<ActiveAttempt>;
  readonly #onOverdue: (attempt: ActiveAttempt) => void;
  readonly #graces = new Set<Timer>();
  #next: { readonly atMs: number; readonly timer: Timer } | null = null;

  constructor(params: {
    readonly clock: Clock;
    readonly running: () => Iterable<ActiveAttempt>;
    /** Called when a handler still runs after its timeout and its grace. */
    readonly onOverdue: (attempt: ActiveAttempt) => void;
  }) {
    this.#clock = params.clock;
    this.#running = params.running;
    this.#onOverdue = params.onOverdue;
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
    for (const attempt of this.#running()) {
      if (nowMs < deadlineMs(attempt)) this.watch(attempt);
      else if (!attempt.stopReason) this.#end(attempt);
    }
  }

  #end(attempt: ActiveAttempt): void {
    attempt.abort(new TimeoutError(attempt.claim.policy.timeoutMs));
    const timer = this.#clock.timer(ABORT_GRACE_MS, () => {
      this.#graces.delete(timer);
      this.#onOverdue(attempt);
    });
    this.#graces.add(timer);
  }
}

/** Counts from the claim, as the database does. */
function deadlineMs({ claimedMs, claim }: ActiveAttempt): number {
  return claimedMs + claim.policy.timeoutMs;
}
