// Waits for runs to end, for `runs.wait`: at once if this instance settles them, else by reading all awaited runs together,
// less and less often.

import { StoppedError, WaitTimeoutError } from "../shared/errors.js";
import type { Clock, Timer } from "../shared/ports.js";
import type { Store } from "../store/store.js";
import type { RunId } from "./rules/run.js";

const WAIT_FIRST_MS = 20;
const WAIT_MAX_MS = 500;

export class Waiter {
  readonly #store: () => Promise<Store>;
  readonly #clock: Clock;
  readonly #waiting = new Map<RunId, Set<(error?: Error) => void>>();
  #timer: Timer | null = null;
  #readAtMs = 0;
  #everyMs = WAIT_FIRST_MS;
  #isClosed = false;

  constructor(params: { readonly store: () => Promise<Store>; readonly clock: Clock }) {
    this.#store = params.store;
    this.#clock = params.clock;
  }

  terminal(params: {
    readonly id: RunId;
    readonly timeoutMs: number | null;
    readonly signal: AbortSignal | undefined;
  }): Promise<void> {
    const { id, timeoutMs, signal } = params;
    // The first read of the run may have returned only after the stop.
    if (this.#isClosed) return Promise.reject(new StoppedError("wait"));
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
        waiting.delete(onEnd);
        if (waiting.size === 0) this.#waiting.delete(id);
        settle();
      };
      const onEnd = (error?: Error) => finish(() => (error ? reject(error) : resolve()));
      const onAbort = () => finish(() => reject(signal?.reason));
      const timer =
        timeoutMs === null
          ? null
          : this.#clock.timer(timeoutMs, () =>
              finish(() => reject(new WaitTimeoutError(id, timeoutMs))),
            );
      const waiting = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, waiting.add(onEnd));
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) return onAbort();
      this.#everyMs = WAIT_FIRST_MS;
      this.#readWithin(WAIT_FIRST_MS);
    });
  }

  /** This instance has settled these runs; the next read finds out whether they have ended. */
  settled(runs: readonly { readonly id: RunId }[]): void {
    if (this.#waiting.size > 0 && runs.some(({ id }) => this.#waiting.has(id))) this.#readWithin(0);
  }

  /** Rejects every pending wait: no read follows. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const enders of [...this.#waiting.values()])
      for (const end of [...enders]) end(new StoppedError("wait"));
  }

  /** The earlier read wins: otherwise new waits would postpone the read for ever. */
  #readWithin(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#timer && this.#readAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#readAtMs = atMs;
    this.#timer = this.#clock.timer(delayMs, () => {
      this.#timer = null;
      void this.#readEnded();
    });
  }

  async #readEnded(): Promise<void> {
    if (this.#waiting.size === 0) return;
    try {
      const ended = await (await this.#store()).runs.terminal([...this.#waiting.keys()]);
      for (const id of ended) for (const end of [...(this.#waiting.get(id) ?? [])]) end();
    } catch {
      // The next read tries again; a caller with a timeout gets its error.
    }
    if (this.#waiting.size === 0) return;
    this.#everyMs = Math.min(WAIT_MAX_MS, this.#everyMs * 1.5);
    this.#readWithin(this.#everyMs);
  }
}
