// One attempt from its start to what its handler answers: within its span, between the hooks of instance
// and job, and with what it told stored before anybody hears of its end. Holds nothing; short runs without
// hooks or tracing pay for none of it.

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
  /** Whether it was neither lost nor given up meanwhile. */
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
    else void this.#surround(attempt);
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
    void span.within(() => this.#surround(attempt));
  }

  #perform(attempt: ActiveAttempt): Promise<void> {
    const { services, onEnded } = this.#params;
    return attempt
      .perform(services.forContext, this.#wallMs)
      .then((report) =>
        attempt.hasReported ? this.#end(attempt, report) : onEnded(attempt, report),
      );
  }

  /** The hooks belong to the attempt: it is held while they run. */
  async #surround(attempt: ActiveAttempt): Promise<void> {
    const { services, isOurs } = this.#params;
    await this.#callHooks(attempt, "onStart", []);
    const report = await attempt.perform(services.forContext, this.#wallMs);
    // Otherwise it neither succeeded nor failed, as far as this instance knows.
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

  /** What the attempt told is stored first, under the fence that it still has. */
  async #end(attempt: ActiveAttempt, report: Report | LetGo): Promise<void> {
    const { services, onEnded } = this.#params;
    if (attempt.hasReported) await services.reportsStored(attempt);
    onEnded(attempt, report);
  }
}

// One attempt of one run, from its start to how it ended. Any thrown value, any result and any
// refusal to stop end in a plain answer; nothing in here talks to the database.

export type Handler = (input: never, ctx: RunContext) => unknown;
/** Has an attempt carried out by a service elsewhere. */
export type Dispatch = (attempt: ActiveAttempt) => Promise<Report | LetGo>;
export type RunnableJob = JobDefinition & { readonly hookChain: HookChain } & (
    | { readonly run: Handler }
    | { readonly dispatch: Dispatch }
  );

/** The run is in other hands, or may be: nothing is settled, and its lease is renewed here no more. */
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
  /** When its claim was sent, on this instance's monotonic clock: its timeout counts from here. */
  readonly claimedMs: number;
  /** Since when it has waited for a slot, on the same clock. */
  bufferedMs = 0;
  /** When the handler began, on the same clock. */
  startedMs = 0;
  commitPhase: CommitPhase = "none";
  committing: Promise<unknown> | null = null;
  hasReported = false;
  /** Where runs are traced. */
  span: TraceSpan | null = null;
  #context: RunContext | null = null;
  #controller: AbortController | null = null;
  #stopReason: StopReason | null = null;
  #answer: Report | LetGo | null = null;

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

  /** What the handler and all that surrounds it hold; one for the attempt. */
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

  /** Tells the handler to stop; the first reason stays. */
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
      // A commit that nobody waited for decides how the run ends.
      if (this.#isCommitting) await this.committing;
      return this.#answer ?? { ending: COMPLETED, result: encodeResult(value), error: null, value };
    } catch (thrown) {
      if (this.#isCommitting) await this.committing?.catch(() => undefined);
      return this.#answer ?? { ...this.#failed(thrown, wallMs), value: thrown };
    }
  }

  get #isCommitting(): boolean {
    return this.commitPhase === "working" || this.commitPhase === "settling";
  }

  /** Not async: a turn of the event loop for every run would cost more than short runs do. */
  #handle(ctx: RunContext): unknown {
    const { job } = this;
    if ("dispatch" in job) return this.#send(job.dispatch);
    const input = this.#input();
    if (!isPromise(input)) return job.run(input as never, ctx);
    return input.then((checked) => job.run(checked as never, ctx));
  }

  /** What surrounds it hears the answer of whoever received it, and changes nothing about it. */
  async #send(dispatch: Dispatch): Promise<unknown> {
    const answer = await dispatch(this);
    this.#answer = answer;
    if ("letGo" in answer) return undefined;
    if (answer.ending.kind !== "completed") throw answer.value;
    return answer.value;
  }

  /** The input as JSON, of the job's version, checked; a worker elsewhere reads it by itself. */
  async plainInput(): Promise<unknown> {
    await this.#input();
    return this.#current();
  }

  #current(): unknown {
    const { job, run } = this;
    const raw: unknown = JSON.parse(run.input);
    return job.upcast && run.version < job.version ? job.upcast(raw, run.version) : raw;
  }

  /** The raw JSON is parsed and checked again: stored runs outlive code. */
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
    const laterMs = askedDelayMs(thrown, wallMs);
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

/** A wait for what is there already would cost a turn of the event loop for every run. */
function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}

/**
 * By how much the handler put its run off, or null if it did not. A Proxy may throw when it is asked
 * for its class or a member, and a member may have been changed to what is no time.
 */
function askedDelayMs(thrown: unknown, wallMs: () => number): number | null {
  try {
    if (!(thrown instanceof RetryLater)) return null;
    const delayMs = thrown.at ? thrown.at.getTime() - wallMs() : (thrown.delayMs ?? 0);
    return Number.isFinite(delayMs) ? Math.max(0, delayMs) : null;
  } catch {
    return null;
  }
}

/** What is stored for an attempt whose handler did not stop when its time was over. */
export function overTime(timeoutMs: number): Report {
  return {
    ending: { kind: "timeout" },
    result: null,
    error: describeFailure(new TimeoutError(timeoutMs)),
  };
}

// Watches that attempts end in time: one timer for the earliest deadline, since a timer for every run
// would cost more than short runs do. A handler that does not stop when told has a few seconds more.

export class Deadlines {
  readonly #clock: Clock;
  readonly #running: () => Iterable<ActiveAttempt>;
  readonly #onDisobeyed: (attempt: ActiveAttempt) => void;
  readonly #graces = new Set<Timer>();
  #next: { readonly atMs: number; readonly timer: Timer } | null = null;

  constructor(params: {
    readonly clock: Clock;
    readonly running: () => Iterable<ActiveAttempt>;
    /** The handler goes on although its time and its grace are over. */
    readonly onDisobeyed: (attempt: ActiveAttempt) => void;
  }) {
    this.#clock = params.clock;
    this.#running = params.running;
    this.#onDisobeyed = params.onDisobeyed;
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
      this.#onDisobeyed(attempt);
    });
    this.#graces.add(timer);
  }
}

/** Counted from the claim, as the database counts it. */
function deadlineMs({ claimedMs, claim }: ActiveAttempt): number {
  return claimedMs + claim.policy.timeoutMs;
}
