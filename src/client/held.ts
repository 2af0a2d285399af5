// One run that a worker elsewhere holds: what its handler gets to see, what it tells on the way, and how
// it ends. Every call carries the fence; whoever hears that the run is gone stops and says no more.

import { portableClock } from "../shared/adapters/portable-clock.js";
import { LeaseLostError, PermanentError, TimeoutError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type { Timer } from "../shared/ports.js";
import { classifyFailure } from "../worker/rules/classify.js";
import { RequestRefusedError, WorkerStoppedError } from "./errors.js";
import type { AnswerOf, BodyOf, Wire } from "./wire.js";

export type ClaimedRun = AnswerOf<"claimRuns">["runs"][number];
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a handler gets beside its input. */
export type WorkContext = {
  readonly runId: string;
  readonly job: string;
  /** Grows with every attempt: give it to whatever the handler writes to. */
  readonly fence: number;
  readonly attempt: number;
  /** The same for every attempt of the run. */
  readonly idempotencyKey: string;
  /** The tick's own time, ISO 8601; null unless it was scheduled. */
  readonly nominalAt: string | null;
  readonly tags: readonly string[];
  /** The W3C trace context to go on with; null where nobody traced its enqueue. */
  readonly traceparent: string | null;
  /** Aborts when the run is lost or cancelled, has taken too long, or the worker must end. */
  readonly signal: AbortSignal;
  /** How far the run is. */
  progress(told: {
    readonly stage?: string;
    readonly done?: number;
    readonly total?: number;
  }): Promise<void>;
  /** Stores an item; the equal one again changes nothing, another value is a conflict. */
  item(
    key: string,
    value: unknown,
    options?: { readonly outcome?: string; readonly durationMs?: number },
  ): Promise<"stored" | "conflict">;
  /** Keeps a line with the run; it is sent in the background and before the run ends. */
  log(message: string, level?: LogLevel): void;
};

export type Handler = (input: never, ctx: WorkContext) => unknown;

const PLACES = {
  progress: { method: "POST", path: "/api/runs/{id}/progress" },
  items: { method: "POST", path: "/api/runs/{id}/items" },
  logs: { method: "POST", path: "/api/runs/{id}/logs" },
  complete: { method: "POST", path: "/api/runs/{id}/complete" },
  fail: { method: "POST", path: "/api/runs/{id}/fail" },
  release: { method: "POST", path: "/api/runs/{id}/release" },
} as const;
/** An end that was not heard of is said again for about a minute. */
const END_TRIES = 15;
const LINES_MAX = 500;

export class Held {
  readonly run: ClaimedRun;
  readonly #wire: Wire;
  /** What every call about the run says: the name that it was claimed under, and its fence. */
  readonly #grant: { readonly instance?: string; readonly fence: number };
  readonly #stopping = new AbortController();
  readonly #timer: Timer;
  readonly #lines: { readonly at: string; readonly level: LogLevel; readonly message: string }[] =
    [];
  #lineCount = 0;
  #sending: Promise<void> = Promise.resolve();
  #renewedMs: number;
  #leaseMs: number;
  #isLost = false;

  constructor(params: {
    readonly run: ClaimedRun;
    /** Left out: a callback token opens the calls. */
    readonly instance?: string;
    readonly wire: Wire;
    readonly askedMs: number;
  }) {
    this.run = params.run;
    const { instance, run } = params;
    this.#grant = { ...(instance === undefined ? {} : { instance }), fence: run.fence };
    this.#wire = params.wire;
    this.#renewedMs = params.askedMs;
    this.#leaseMs = params.run.leaseMs;
    const { timeoutMs } = params.run;
    this.#timer = portableClock.timer(timeoutMs, () => this.abort(new TimeoutError(timeoutMs)));
  }

  get leaseMs(): number {
    return this.#leaseMs;
  }

  /** `askedMs`: when the renewal was sent; the lease counts from no later than then. */
  renewed(leaseMs: number, askedMs: number): void {
    this.#leaseMs = leaseMs;
    this.#renewedMs = askedMs;
  }

  /**
   * Whoever could not renew for a whole lease must take it that another one is at work. Whether it is,
   * the server knows: how the handler ended is still told to it.
   */
  stopIfSilent(nowMs: number): void {
    const { id, fence } = this.run;
    if (nowMs - this.#renewedMs >= this.#leaseMs) this.abort(new LeaseLostError(id, fence));
  }

  lost(): void {
    this.#isLost = true;
    this.abort(new LeaseLostError(this.run.id, this.run.fence));
  }

  abort(reason: Error): void {
    this.#stopping.abort(reason);
  }

  /** Executes the handler and says how it ended; never rejects because of the handler. */
  async execute(handler: Handler): Promise<void> {
    try {
      const result = await handler(this.run.input as never, this.#context());
      await this.#sending;
      await this.#complete(result);
    } catch (error) {
      // Nothing more is said for a run that another one holds.
      if (this.#isLost) return;
      // Told to stop, it threw: that is no failure of the run.
      if (this.#stopping.signal.reason instanceof WorkerStoppedError) await this.release();
      else await this.#fail(error);
    } finally {
      this.#timer.cancel();
    }
  }

  /** Gives the run back to others, its attempt not burnt. */
  async release(): Promise<void> {
    this.#timer.cancel();
    const asked = { ...this.#ask(PLACES.release, this.#grant), tries: END_TRIES };
    await this.#sending;
    await this.#held(this.#wire.call<"releaseRun">(asked));
  }

  #context(): WorkContext {
    const {
      id: runId,
      job,
      fence,
      attempt,
      idempotencyKey,
      nominalAt,
      tags,
      traceparent,
    } = this.run;
    return {
      ...{ runId, job, fence, attempt, idempotencyKey, nominalAt, tags, traceparent },
      signal: this.#stopping.signal,
      progress: async (told) => {
        const body = { ...this.#grant, ...told };
        await this.#held(this.#wire.call<"tellProgress">(this.#ask(PLACES.progress, body)));
      },
      item: async (key, value, options = {}) => {
        const body = { ...this.#grant, items: [{ key, value, ...options }] };
        const asked = this.#wire.call<"storeItems">(this.#ask(PLACES.items, body));
        return (await this.#held(asked)).items[0]?.status ?? "stored";
      },
      log: (message, level = "info") => this.#log(message, level),
    };
  }

  async #complete(result: unknown): Promise<void> {
    const body: BodyOf<"completeRun"> = {
      ...this.#grant,
      ...(result === undefined ? {} : { result }),
    };
    const asked = { ...this.#ask(PLACES.complete, body), tries: END_TRIES };
    try {
      await this.#held(this.#wire.call<"completeRun">(asked));
    } catch (error) {
      // What the server will never take would be refused the next time too.
      const isForGood = error instanceof RequestRefusedError && error.status < 429;
      if (!isForGood || this.#isLost) throw error;
      throw new PermanentError(`The result was refused: ${error.message}`, { code: error.code });
    }
  }

  async #fail(thrown: unknown): Promise<void> {
    const { code, message, stack } = describeFailure(thrown);
    const { class: kind, retryAfterMs } = classifyFailure(thrown);
    const body: BodyOf<"failRun"> = {
      ...this.#grant,
      error: { code: code.slice(0, 64), message, ...(stack === undefined ? {} : { stack }) },
      permanent: kind === "permanent",
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
    const asked = { ...this.#ask(PLACES.fail, body), tries: END_TRIES };
    await this.#sending;
    await this.#held(this.#wire.call<"failRun">(asked));
  }

  /** Lines are numbered, so that a batch whose answer was lost is there once. */
  #log(message: string, level: LogLevel): void {
    const at = new Date(portableClock.wallMs()).toISOString();
    // No database keeps NUL in a text, and the server refuses it: the line goes without it.
    this.#lines.push({ at, level, message: message.replaceAll("\0", "") });
    if (this.#lines.length > 1) return;
    this.#sending = this.#sending.then(() => this.#sendLines());
  }

  async #sendLines(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.splice(0, LINES_MAX);
      const body = { ...this.#grant, from: this.#lineCount + 1, lines };
      this.#lineCount += lines.length;
      try {
        await this.#held(this.#wire.call<"appendLogs">(this.#ask(PLACES.logs, body)));
      } catch {
        // A line that cannot be kept must not end the run.
      }
    }
  }

  #ask<P, B>(place: P, body: B) {
    return { place, params: { id: this.run.id }, body, isRepeatable: true };
  }

  /** 409 means that the run is another one's. */
  async #held<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof RequestRefusedError && error.error === "lease_lost") this.lost();
      throw error;
    }
  }
}
