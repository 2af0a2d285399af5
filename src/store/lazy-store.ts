// Opens the database of an instance once, when the first verb needs it. After a failed opening the next verb tries
// again; after a stop every verb is refused.

import { StoppedError, StoreGoneError, StoreUnavailableError } from "../shared/errors.js";
import { type Clock, delay } from "../shared/ports.js";
import type { Store } from "./store.js";

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 1_000;
/** A waiting start logs this at once, and then at this interval. */
const SAY_EVERY_MS = 5_000;

export class LazyStore {
  readonly #store: Store;
  readonly #stopped = new AbortController();
  #opening: Promise<Store> | null = null;
  #isOpen = false;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Aborts when a stop begins. */
  get stopSignal(): AbortSignal {
    return this.#stopped.signal;
  }

  requireRunning(verb: string): void {
    if (this.#stopped.signal.aborted) throw this.#refusal(verb);
  }

  #refusal(verb: string): Error {
    const { reason } = this.#stopped.signal;
    return reason instanceof StoreGoneError ? reason : new StoppedError(verb);
  }

  /** The store, open. */
  for(verb: string): Promise<Store> {
    if (this.#stopped.signal.aborted) return Promise.reject(this.#refusal(verb));
    this.#opening ??= this.#store.open().then(
      () => {
        this.#isOpen = true;
        return this.#store;
      },
      (error: unknown) => {
        this.#opening = null;
        throw error;
      },
    );
    return this.#opening;
  }

  /** The open store. Retries an unavailable database until `timeoutMs` have passed. */
  async waitFor(
    verb: string,
    params: {
      readonly clock: Clock;
      readonly timeoutMs: number;
      readonly onWaiting: (error: unknown, waitedMs: number) => void;
    },
  ): Promise<Store> {
    const { clock, timeoutMs, onWaiting } = params;
    const startedMs = clock.monotonicMs();
    let saidMs = Number.NEGATIVE_INFINITY;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.for(verb);
      } catch (error) {
        const waitedMs = clock.monotonicMs() - startedMs;
        const isWorthIt = error instanceof StoreUnavailableError && error.isTemporary;
        if (!isWorthIt || waitedMs >= timeoutMs) throw error;
        if (waitedMs - saidMs >= SAY_EVERY_MS) {
          saidMs = waitedMs;
          onWaiting(error, Math.round(waitedMs));
        }
        const retryInMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(tries - 1, 10));
        await delay(clock, Math.min(retryInMs, timeoutMs - waitedMs), this.stopSignal);
      }
    }
  }

  /** Throws after a stop; returns whether the store can be used without waiting. */
  isOpenFor(verb: string): boolean {
    this.requireRunning(verb);
    return this.#isOpen;
  }

  /**
   * From now on verbs are refused, with this error if one is given; verbs in progress continue until the store is
   * closed.
   */
  stop(why?: StoreGoneError): void {
    this.#stopped.abort(why);
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.#store.close({ releasesFiles: true });
  }
}
