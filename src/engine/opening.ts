// The database of an instance, opened once, when the first verb needs it. A failed opening is tried again
// by the next verb; after a stop every verb is refused.

import { StoppedError, StoreGoneError } from "../core/errors.js";
import type { Store } from "../store/store.js";

export class Opening {
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

  /** Throws after a stop; answers whether the store can be used without waiting. */
  isOpenFor(verb: string): boolean {
    this.requireRunning(verb);
    return this.#isOpen;
  }

  /** From here on verbs are refused, with this error if there is one; those under way go on until it is closed. */
  stop(why?: StoreGoneError): void {
    this.#stopped.abort(why);
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.#store.close({ releasesFiles: true });
  }
}
