// Wraps the handlers of a test: it records every call, can replace handlers, and stops virtual time while a handler
// works, unless the handler waits for time to pass. A suspended handler never ends; its suspension ends the call.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Mode, RunId } from "../runs/rules/run.js";
import { SuspendedError } from "../shared/errors.js";
import type { RunContext } from "../worker/handler/context.js";
import type { VirtualClock } from "./virtual-clock.js";

/** One call of a handler: one execution of one run. */
export type Call = {
  readonly job: string;
  readonly runId: RunId;
  readonly input: unknown;
  readonly attempt: number;
  readonly fence: number;
  readonly mode: Mode;
  readonly nominalAt: Date | null;
  readonly lateMs: number | null;
  readonly startedAt: Date;
  /** Null while it runs. */
  readonly endedAt: Date | null;
  /** Suspended: it waits durably, and begins again at the top in another call. */
  readonly outcome: "running" | "returned" | "threw" | "suspended";
  /** The return value. */
  readonly result: unknown;
  /** The thrown value. */
  readonly error: unknown;
};

export type AnyHandler = (input: never, ctx: RunContext) => unknown;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export class KitHandlers {
  readonly calls: Call[] = [];
  readonly #clock: VirtualClock;
  readonly #declared = new Set<string>();
  readonly #replaced = new Map<string, AnyHandler>();
  readonly #current = new AsyncLocalStorage<Hold>();
  readonly #working = new Set<Hold>();

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get declared(): readonly string[] {
    return [...this.#declared].sort();
  }

  get isAnyAtWork(): boolean {
    return this.#working.size > 0;
  }

  replace(job: string, handler: AnyHandler): void {
    this.#replaced.set(job, handler);
  }

  restore(job: string): void {
    this.#replaced.delete(job);
  }

  /** Returns the handler that an instance gets instead of this one. */
  around(job: string, handler: AnyHandler): AnyHandler {
    this.#declared.add(job);
    return (input, ctx) => this.#call(job, this.#replaced.get(job) ?? handler, input, ctx);
  }

  async #call(job: string, handler: AnyHandler, input: never, ctx: RunContext): Promise<unknown> {
    const { runId, attempt, fence, mode, nominalAt, lateMs } = ctx;
    const call: Writable<Call> = {
      job,
      runId,
      input,
      attempt,
      fence,
      mode,
      nominalAt,
      lateMs,
      startedAt: new Date(this.#clock.wallMs()),
      endedAt: null,
      outcome: "running",
      result: undefined,
      error: undefined,
    };
    this.calls.push(call);
    const hold = new Hold(this.#clock, () => `the handler of "${job}" (run ${runId})`);
    this.#working.add(hold);
    const end = (how: Partial<Call>) => {
      if (call.endedAt !== null) return;
      Object.assign(call, how, { endedAt: new Date(this.#clock.wallMs()) });
      hold.end();
      this.#working.delete(hold);
      // Until the next handler begins, no promise needs its context, which costs time for each promise.
      if (this.#working.size === 0) this.#current.disable();
    };
    const { signal } = ctx;
    const onAbort = () => {
      if (signal.reason instanceof SuspendedError) end({ outcome: "suspended" });
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const result = await this.#current.run(hold, () => handler(input, ctx));
      end({ outcome: "returned", result });
      return result;
    } catch (error) {
      end({ outcome: "threw", error });
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** While the promise is pending, the calling handler does not stop time. */
  async letTimePass<T>(promise: Promise<T>): Promise<T> {
    const hold = this.#current.getStore();
    hold?.loosen();
    try {
      return await promise;
    } finally {
      hold?.tighten();
    }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    const hold = this.#current.getStore();
    hold?.loosen();
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal?.removeEventListener("abort", onAbort);
        hold?.tighten();
        settle();
      };
      const onAbort = () => end(() => reject(signal?.reason));
      const timer = this.#clock.timer(delayMs, () => end(resolve));
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
  }

  /** Forgets the working handlers: their process counts as dead, or the test is over. */
  abandon(): void {
    for (const hold of this.#working) hold.end();
    this.#working.clear();
  }
}

/** Stops virtual time while a handler works. */
class Hold {
  readonly #clock: VirtualClock;
  readonly #what: () => string;
  #release: (() => void) | null;
  #loosened = 0;
  #isOver = false;

  constructor(clock: VirtualClock, what: () => string) {
    this.#clock = clock;
    this.#what = what;
    this.#release = clock.hold(what);
  }

  loosen(): void {
    this.#loosened += 1;
    this.#release?.();
    this.#release = null;
  }

  tighten(): void {
    this.#loosened -= 1;
    if (this.#loosened === 0 && !this.#isOver) this.#release = this.#clock.hold(this.#what);
  }

  end(): void {
    this.#isOver = true;
    this.#release?.();
    this.#release = null;
  }
}
