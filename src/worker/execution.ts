// One attempt of one run, from its start to how it ended. Any thrown value, any result and any
// refusal to stop end in a plain answer; nothing in here talks to the database.

import type { JobDefinition } from "../runs/rules/job.js";
import type { Ending } from "../runs/rules/run.js";
import type { LogsPolicy } from "../runs/rules/run-logs.js";
import {
  CancelledError,
  type LeaseLostError,
  RetryLater,
  ShutdownError,
  TimeoutError,
} from "../shared/errors.js";
import { describeFailure, OWN_FOLDER, type StoredError } from "../shared/failure.js";
import { encodeResult } from "../shared/json.js";
import { validateInput } from "../shared/schema.js";
import type { Claim, ClaimedRun } from "../store/store.js";
import type { TraceSpan } from "../telemetry/tracing.js";
import { type ContextServices, RunContext } from "./handler/context.js";
import type { CommitPhase } from "./handler/work-options.js";
import { type Around, throughMiddleware } from "./hooks.js";
import { classifyFailure } from "./rules/classify.js";

export type Handler = (input: never, ctx: RunContext) => unknown;
/** Has an attempt carried out by a service elsewhere. */
export type Dispatch = (execution: Execution) => Promise<Report | LetGo>;
export type RunnableJob = JobDefinition & { readonly around: Around } & (
    | { readonly run: Handler }
    | { readonly dispatch: Dispatch }
  );

/** How the attempt ended, with what there is to store. */
export type Report = {
  readonly ending: Ending;
  readonly result: string | null;
  readonly error: StoredError | null;
  /** What the handler returned or threw, as it is. */
  readonly value?: unknown;
};

/** The run is in other hands, or may be: nothing is settled, and its lease is renewed here no more. */
export type LetGo = {
  readonly letGo: "accepted" | "unknown";
  readonly reason: string;
};

const COMPLETED: Ending = { kind: "completed" };

export type StopReason = LeaseLostError | CancelledError | TimeoutError | ShutdownError;

export class Execution {
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
  hasTold = false;
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
    return this.job.around.logs;
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
      const { middleware } = this.job.around;
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
