// Executes one run for a remote worker: calls the handler with its context, sends progress, items and log lines, and reports how
// the run ended. Every call carries the fence. After the server says that the run is lost, the handler is aborted and nothing more
// is sent.

import { portableClock } from "../shared/adapters/portable-clock.js";
import { LeaseLostError, PermanentError, TimeoutError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type { Timer } from "../shared/ports.js";
import { classifyFailure } from "../worker/rules/classify.js";
import { RequestRefusedError, WorkerStoppedError } from "./errors.js";
import { HeldSteps } from "./held-steps.js";
import type { BodyOf, ClaimedRun, Wire } from "./wire.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** The second argument of a handler. */
export type WorkContext = {
  readonly runId: string;
  readonly job: string;
  /** Grows with every attempt: pass it to the systems that the handler writes to. */
  readonly fence: number;
  readonly attempt: number;
  /** The same for every attempt of the run. */
  readonly idempotencyKey: string;
  /** The time of the tick, ISO 8601; null unless the run was scheduled. */
  readonly nominalAt: string | null;
  readonly tags: readonly string[];
  /** The W3C trace context to continue; null if the enqueue was not traced. */
  readonly traceparent: string | null;
  /** Aborts when the run is lost, cancelled or out of time, or when the worker must stop. */
  readonly signal: AbortSignal;
  /** Stores how far the run is. */
  progress(progress: {
    readonly stage?: string;
    readonly done?: number;
    readonly total?: number;
  }): Promise<void>;
  /** Stores an item. The same item again changes nothing; another value for its key is a conflict. */
  item(
    key: string,
    value: unknown,
    options?: { readonly outcome?: string; readonly durationMs?: number },
  ): Promise<"stored" | "conflict">;
  /** Stores a log line with the run; it is sent in the background, and before the run ends. */
  log(message: string, level?: LogLevel): void;
} & HeldSteps["methods"];

export type Handler = (input: never, ctx: WorkContext) => unknown;

const ROUTES = {
  progress: { method: "POST", path: "/api/runs/{id}/progress" },
  items: { method: "POST", path: "/api/runs/{id}/items" },
  logs: { method: "POST", path: "/api/runs/{id}/logs" },
  complete: { method: "POST", path: "/api/runs/{id}/complete" },
  fail: { method: "POST", path: "/api/runs/{id}/fail" },
  release: { method: "POST", path: "/api/runs/{id}/release" },
  steps: { method: "POST", path: "/api/runs/{id}/steps" },
  wait: { method: "POST", path: "/api/runs/{id}/wait" },
} as const;
/** The end of a run is sent again for about a minute if no response arrives. */
const END_TRIES = 15;
const LINES_MAX = 500;

export class HeldRun {
  readonly run: ClaimedRun;
  readonly #wire: Wire;
  /** Sent with every call about the run: the name that it was claimed under, and its fence. */
  readonly #grant: { readonly instance?: string; readonly fence: number };
  readonly #stopping = new AbortController();
  readonly #timer: Timer;
  readonly #steps: HeldSteps;
  #suspended: (giving: Promise<void>) => void = () => undefined;
  readonly #lines: { readonly at: string; readonly level: LogLevel; readonly message: string }[] =
    [];
  #lineCount = 0;
  #sending: Promise<void> = Promise.resolve();
  #renewedMs: number;
  #leaseMs: number;
  #isLost = false;

  constructor(params: {
    readonly run: ClaimedRun;
    /** Missing: a callback token opens the calls. */
    readonly instance?: string;
    readonly wire: Wire;
    readonly sentMs: number;
  }) {
    this.run = params.run;
    const { instance, run } = params;
    this.#grant = { ...(instance === undefined ? {} : { instance }), fence: run.fence };
    this.#wire = params.wire;
    this.#renewedMs = params.sentMs;
    this.#leaseMs = params.run.leaseMs;
    this.#steps = this.#newSteps();
    const { timeoutMs } = params.run;
    this.#timer = portableClock.timer(timeoutMs, () => this.abort(new TimeoutError(timeoutMs)));
  }

  get leaseMs(): number {
    return this.#leaseMs;
  }

  /** `sentMs`: when the renewal was sent; the lease counts from no later than then. */
  renewed(leaseMs: number, sentMs: number): void {
    this.#leaseMs = leaseMs;
    this.#renewedMs = sentMs;
  }

  /**
   * Aborts the handler if nothing was renewed for a full lease: another worker may have the run by now. The end is still sent,
   * since only the server knows whether it does.
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

  /** Executes the handler and reports how it ended; never rejects because of the handler. A suspension ends it too. */
  async execute(handler: Handler): Promise<void> {
    const suspended = new Promise<void>((resolve) => {
      this.#suspended = resolve;
    });
    try {
      await Promise.race([this.#execute(handler), suspended]);
    } finally {
      this.#timer.cancel();
    }
  }

  async #execute(handler: Handler): Promise<void> {
    try {
      const result = await handler(this.run.input as never, this.#context());
      if (!this.#returned()) return;
      await this.#sending;
      await this.#complete(result);
    } catch (error) {
      if (!this.#returned()) return;
      // Another worker holds the run: nothing more is sent.
      if (this.#isLost) return;
      // The handler threw because the worker stops: that is no failure of the run.
      if (this.#stopping.signal.reason instanceof WorkerStoppedError) await this.release();
      else await this.#fail(error);
    }
  }

  /** False: the run was suspended, and its handler no longer counts. */
  #returned(): boolean {
    this.#steps.hasReturned = true;
    return this.#steps.suspension === "none";
  }

  #newSteps(): HeldSteps {
    const { run } = this;
    return new HeldSteps({
      run,
      signal: this.#stopping.signal,
      store: (body) =>
        this.#whileHeld(
          this.#wire.call<"storeSteps">(
            this.#callWhileHeld(ROUTES.steps, { ...this.#grant, ...body }),
          ),
        ),
      wait: (body) =>
        this.#whileHeld(
          this.#wire.call<"waitRun">(this.#callWhileHeld(ROUTES.wait, { ...this.#grant, ...body })),
        ),
      abort: (reason) => this.abort(reason),
      suspend: (retries) => this.#suspended(this.#suspend(retries)),
    });
  }

  /** Gives the run back until one of its waits ends. If no response arrives the lease runs out, and the waits stay. */
  async #suspend(retries: readonly string[]): Promise<void> {
    await this.#sending;
    const body = { ...this.#grant, retries: [...retries] };
    const call = { ...this.#callAbout(ROUTES.wait, body), tries: END_TRIES };
    await this.#whileHeld(this.#wire.call<"waitRun">(call));
  }

  /** Hands the run back to other workers; its attempt does not count. */
  async release(): Promise<void> {
    this.#timer.cancel();
    const call = { ...this.#callAbout(ROUTES.release, this.#grant), tries: END_TRIES };
    await this.#sending;
    await this.#whileHeld(this.#wire.call<"releaseRun">(call));
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
      progress: (progress) =>
        this.#steps.open(async () => {
          const body = { ...this.#grant, ...progress };
          await this.#whileHeld(
            this.#wire.call<"tellProgress">(this.#callWhileHeld(ROUTES.progress, body)),
          );
        }),
      item: (key, value, options = {}) =>
        this.#steps.open(async () => {
          const body = { ...this.#grant, items: [{ key, value, ...options }] };
          const stored = this.#wire.call<"storeItems">(this.#callWhileHeld(ROUTES.items, body));
          return (await this.#whileHeld(stored)).items[0]?.status ?? "stored";
        }),
      log: (message, level = "info") => this.#log(message, level),
      ...this.#steps.methods,
    };
  }

  async #complete(result: unknown): Promise<void> {
    const body: BodyOf<"completeRun"> = {
      ...this.#grant,
      ...(result === undefined ? {} : { result }),
    };
    const call = { ...this.#callAbout(ROUTES.complete, body), tries: END_TRIES };
    try {
      await this.#whileHeld(this.#wire.call<"completeRun">(call));
    } catch (error) {
      // A result that the server refuses for good would be refused in the next attempt too.
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
    const call = { ...this.#callAbout(ROUTES.fail, body), tries: END_TRIES };
    await this.#sending;
    await this.#whileHeld(this.#wire.call<"failRun">(call));
  }

  /** Lines are numbered, so that a batch whose response was lost is stored once. */
  #log(message: string, level: LogLevel): void {
    const at = new Date(portableClock.wallMs()).toISOString();
    // No database stores NUL in text and the server refuses it, so the line is sent without it.
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
        await this.#whileHeld(this.#wire.call<"appendLogs">(this.#callAbout(ROUTES.logs, body)));
      } catch {
        // A line that cannot be stored must not end the run.
      }
    }
  }

  #callAbout<P, B>(place: P, body: B) {
    return { place, params: { id: this.run.id }, body, isRepeatable: true };
  }

  /** Repeated until the handler's signal aborts, which it does at the latest when the lease ends: a server may restart. */
  #callWhileHeld<P, B>(place: P, body: B) {
    const { signal } = this.#stopping;
    return { ...this.#callAbout(place, body), tries: Number.MAX_SAFE_INTEGER, signal };
  }

  /** A call about the run; the code lease_lost means that another worker holds it. */
  async #whileHeld<T>(response: Promise<T>): Promise<T> {
    try {
      return await response;
    } catch (error) {
      if (error instanceof RequestRefusedError && error.error === "lease_lost") this.lost();
      throw error;
    }
  }
}
