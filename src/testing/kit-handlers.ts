// What happens around the handlers of a test: every call is written down, handlers can be replaced,
// and time stands still while one works, unless it says that it waits for time to pass.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Mode, RunId } from "../runs/rules/run.js";
import type { RunContext } from "../worker/handler/context.js";
import type { VirtualClock } from "./virtual-clock.js";

/** One call of a handler: one attempt of one run. */
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
  readonly outcome: "running" | "returned" | "threw";
  /** What it returned. */
  readonly result: unknown;
  /** What it threw. */
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

  /** The handler that an instance gets instead of this one. */
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
    try {
      call.result = await this.#current.run(hold, () => handler(input, ctx));
      call.outcome = "returned";
      return call.result;
    } catch (error) {
      call.outcome = "threw";
      call.error = error;
      throw error;
    } finally {
      call.endedAt = new Date(this.#clock.wallMs());
      hold.end();
      this.#working.delete(hold);
      // Until the next one begins no promise needs to know whose it is, which costs each of them time.
      if (this.#working.size === 0) this.#current.disable();
    }
  }

  /** While this is pending, the handler that asks does not keep time from passing. */
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

  /** Nobody waits for these any more: their process is taken to be dead, or the test is over. */
  abandon(): void {
    for (const hold of this.#working) hold.end();
    this.#working.clear();
  }
}

/** Keeps time where it is while a handler works. */
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
