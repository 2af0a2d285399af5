// Makes OpenTelemetry spans for the work of an instance. The user passes `@opentelemetry/api`; it is not imported here, and
// without it nothing here runs. The trace context is stored with the run as text, so that every attempt in any process
// continues the same trace.

import type { Problem } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { formatTraceparent, parseTraceparent } from "../shared/trace-context.js";

type Context = unknown;
type SpanContext = {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
};
type Attributes = Record<string, string | number | boolean>;
type ApiSpan = {
  spanContext(): { readonly traceId: string; readonly spanId: string; readonly traceFlags: number };
  setAttribute(name: string, value: string | number | boolean): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: { name: string; message: string; stack?: string }): unknown;
  end(endTime?: number): void;
};

/** The part of `@opentelemetry/api` that is used; pass the module itself. */
export type OpenTelemetry = {
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options?: { kind?: number; attributes?: Attributes; startTime?: number },
        context?: never,
      ): ApiSpan;
    };
    setSpan(context: never, span: never): Context;
    setSpanContext(context: never, spanContext: SpanContext): Context;
    getSpanContext(context: never): unknown;
  };
  readonly context: {
    active(): Context;
    with(context: never, fn: () => unknown): unknown;
  };
  readonly ROOT_CONTEXT: unknown;
};

/** Constants of the API, which never change. */
const KIND = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const;
const ERROR = 2;

type Described = {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
};
type NewRun = { readonly id: string; readonly job: string; readonly trace?: string | undefined };

/** A started span. */
export class TraceSpan {
  readonly #api: OpenTelemetry;
  readonly #span: ApiSpan;
  readonly #context: Context;
  #isEnded = false;

  constructor(api: OpenTelemetry, span: ApiSpan, parent: Context) {
    this.#api = api;
    this.#span = span;
    this.#context = api.trace.setSpan(parent as never, span as never);
  }

  /** The context as text. */
  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return formatTraceparent({ traceId, spanId, isSampled: (traceFlags & 1) === 1 });
  }

  get context(): Context {
    return this.#context;
  }

  /** Runs work inside the span, its later continuations included. */
  within<T>(fn: () => T): T {
    return this.#api.context.with(this.#context as never, fn) as T;
  }

  /** The first end counts. */
  end(outcome: string | null = null, error: Described | null = null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (outcome !== null) this.#span.setAttribute("holdfast.outcome", outcome);
    if (error !== null) {
      const { name, message, code, stack } = error;
      // The code is a separate attribute: the API would use it as the type of the exception.
      if (code !== undefined) this.#span.setAttribute("holdfast.error.code", code);
      this.#span.recordException({ name, message, ...(stack === undefined ? {} : { stack }) });
      this.#span.setStatus({ code: ERROR, message });
    }
    this.#span.end();
  }
}

export class Tracing {
  readonly #api: OpenTelemetry;

  constructor(api: OpenTelemetry) {
    this.#api = api;
  }

  /** New runs carry the span of their enqueue. */
  async enqueue<Run extends NewRun, Answer>(
    runs: readonly Run[],
    store: (traced: readonly Run[]) => Promise<Answer>,
  ): Promise<Answer> {
    const span = this.#enqueueSpan(runs);
    return this.#ended(span, () => store(traced(runs, span)));
  }

  enqueueSync<Run extends NewRun, Answer>(
    runs: readonly Run[],
    store: (traced: readonly Run[]) => Answer,
  ): Answer {
    const span = this.#enqueueSpan(runs);
    try {
      const result = span.within(() => store(traced(runs, span)));
      span.end();
      return result;
    } catch (error) {
      span.end(null, describeFailure(error));
      throw error;
    }
  }

  #enqueueSpan(runs: readonly NewRun[]): TraceSpan {
    const [first] = runs;
    return this.#begin(`enqueue ${first?.job ?? "nothing"}`, {
      kind: KIND.producer,
      attributes: {
        "holdfast.job": first?.job ?? "",
        ...(runs.length === 1 ? { "holdfast.run": first?.id ?? "" } : {}),
        "holdfast.runs": runs.length,
      },
    });
  }

  /** The span of a tick that is about to be fired; ended when the tick is written. */
  tick(schedule: string, run: string): TraceSpan {
    return this.#begin(`tick ${schedule}`, {
      kind: KIND.producer,
      attributes: { "holdfast.schedule": schedule, "holdfast.run": run },
      parent: this.#api.ROOT_CONTEXT,
    });
  }

  /** Begins an attempt: a span for the time since its claim, then its own span. */
  attempt(facts: {
    readonly run: NewRun["id"];
    readonly job: string;
    readonly queue: string;
    readonly mode: string;
    readonly attempt: number;
    readonly trace: string | undefined;
    readonly claimedAt: number;
  }): TraceSpan {
    const parent = this.contextOf(facts.trace);
    const attributes = {
      "holdfast.run": facts.run,
      "holdfast.job": facts.job,
      "holdfast.queue": facts.queue,
      "holdfast.mode": facts.mode,
      "holdfast.attempt": facts.attempt,
    };
    const span = this.#begin(`run ${facts.job}`, { kind: KIND.consumer, attributes, parent });
    // Under the run if the caller has no trace of its own, so that both are in one trace.
    this.#begin(`claim ${facts.job}`, {
      kind: KIND.consumer,
      attributes,
      parent: facts.trace === undefined ? span.context : parent,
      startTime: facts.claimedAt,
    }).end();
    return span;
  }

  /** The request to a service, which gets the span as text. */
  dispatch<Answer>(
    facts: { readonly target: string; readonly run: string; readonly job: string },
    send: (traceparent: string) => Promise<Answer>,
  ): Promise<Answer> {
    const span = this.#begin(`dispatch ${facts.target}`, {
      kind: KIND.client,
      attributes: {
        "holdfast.target": facts.target,
        "holdfast.run": facts.run,
        "holdfast.job": facts.job,
      },
    });
    return this.#ended(span, () => send(span.traceparent));
  }

  /** A remote worker ends its run. */
  ending<Answer>(
    facts: {
      readonly verb: "complete" | "fail";
      readonly run: string;
      readonly job: string;
      readonly trace: string | undefined;
    },
    store: () => Promise<Answer>,
  ): Promise<Answer> {
    const span = this.#begin(`${facts.verb} ${facts.job}`, {
      kind: KIND.server,
      attributes: { "holdfast.run": facts.run, "holdfast.job": facts.job },
      parent: this.contextOf(facts.trace),
    });
    return this.#ended(span, store);
  }

  /** A part of the present work, such as waiting for, holding and releasing a lock. */
  part<Answer>(
    name: string,
    attributes: Attributes,
    work: (span: TraceSpan) => Promise<Answer>,
  ): Promise<Answer> {
    const span = this.#begin(name, { kind: KIND.internal, attributes });
    return this.#ended(span, () => work(span));
  }

  /** Runs work as part of the trace in this text, unless a trace is already active here. */
  continued<T>(traceparent: string | null, fn: () => T): T {
    const active = this.#api.context.active();
    const isTraced = this.#api.trace.getSpanContext(active as never) !== undefined;
    if (isTraced || parseTraceparent(traceparent) === null) return fn();
    return this.#api.context.with(this.contextOf(traceparent) as never, fn) as T;
  }

  contextOf(traceparent: string | null | undefined): Context {
    const parsed = parseTraceparent(traceparent);
    const root = this.#api.ROOT_CONTEXT;
    if (parsed === null) return root;
    const { traceId, spanId, isSampled } = parsed;
    return this.#api.trace.setSpanContext(root as never, {
      traceId,
      spanId,
      traceFlags: isSampled ? 1 : 0,
      isRemote: true,
    });
  }

  #begin(
    name: string,
    options: {
      readonly kind: number;
      readonly attributes: Attributes;
      readonly parent?: Context;
      readonly startTime?: number;
    },
  ): TraceSpan {
    const { kind, attributes, startTime } = options;
    const parent = options.parent ?? this.#api.context.active();
    const given = startTime === undefined ? { kind, attributes } : { kind, attributes, startTime };
    // Read each time, to find a provider that was registered later.
    const tracer = this.#api.trace.getTracer("holdfast");
    return new TraceSpan(this.#api, tracer.startSpan(name, given, parent as never), parent);
  }

  async #ended<Answer>(span: TraceSpan, work: () => Promise<Answer>): Promise<Answer> {
    try {
      const result = await span.within(work);
      span.end();
      return result;
    } catch (error) {
      span.end(null, describeFailure(error));
      throw error;
    }
  }
}

function traced<Run extends NewRun>(runs: readonly Run[], span: TraceSpan): readonly Run[] {
  const trace = span.traceparent;
  return runs.map((run) => ({ ...run, trace }));
}

// ── the option `telemetry` of an instance ──

export type TelemetryOptions = {
  /** The module `@opentelemetry/api`; spans use the provider that it is set up with. */
  readonly opentelemetry?: OpenTelemetry | undefined;
};

export function telemetryProblems(options: unknown): readonly Problem[] {
  const example = 'for example { opentelemetry: await import("@opentelemetry/api") }';
  if (typeof options !== "object" || options === null)
    return [{ field: "telemetry", message: `must be an object, ${example}` }];
  const problems: Problem[] = refuseUnknownMembers(options, ["opentelemetry"], "telemetry");
  const { opentelemetry } = options as { readonly opentelemetry?: Partial<OpenTelemetry> };
  const isApi =
    typeof opentelemetry?.trace?.getTracer === "function" &&
    typeof opentelemetry.trace.setSpanContext === "function" &&
    typeof opentelemetry.context?.with === "function" &&
    opentelemetry.ROOT_CONTEXT !== undefined;
  if (opentelemetry !== undefined && !isApi)
    problems.push({
      field: "telemetry.opentelemetry",
      message: `must be the module "@opentelemetry/api", ${example}`,
    });
  return problems;
}
