// Groups concurrent calls into batches: calls that arrive while a batch is in flight form the next one. Each caller
// gets its result after the commit of its own batch, and one bad item never fails its neighbours. The batcher never
// delays a call on purpose: a lone call is sent at once.

import { isUnavailable } from "./retry-while-unavailable.js";

const BATCH_MAX = 1_000;
/** A larger batch would block the event loop, or drivers and servers would refuse it. */
const BATCH_CHARS_MAX = 8 * 1024 * 1024;
/** Two batches keep the database busy while a response travels; more would only make the batches smaller. */
const IN_FLIGHT_MAX = 2;

type Pending<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export class Batcher<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #charsOf: (item: Item) => number;
  #pending: Pending<Item, Result>[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(params: {
    /** Returns the results in the order of the items. */
    readonly send: (items: readonly Item[]) => Promise<readonly Result[]>;
    /** The size of an item. */
    readonly charsOf: (item: Item) => number;
  }) {
    this.#send = params.send;
    this.#charsOf = params.charsOf;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= IN_FLIGHT_MAX) return;
    this.#isScheduled = true;
    // A microtask later, so that calls of the same turn form one batch.
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#pending.length > 0 && this.#inFlight < IN_FLIGHT_MAX) void this.#sendNext();
    });
  }

  async #sendNext(): Promise<void> {
    const batch = this.#pending.splice(0, this.#batchLength());
    this.#inFlight += 1;
    try {
      await this.#sendBatch(batch);
    } finally {
      this.#inFlight -= 1;
      if (this.#pending.length > 0) this.#schedule();
    }
  }

  #batchLength(): number {
    let chars = 0;
    let length = 0;
    for (const { item } of this.#pending) {
      if (length === BATCH_MAX || chars >= BATCH_CHARS_MAX) break;
      chars += this.#charsOf(item);
      length += 1;
    }
    return length;
  }

  /** An unavailable database fails the whole batch. Any other error may come from one item, so each is sent again alone. */
  async #sendBatch(batch: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#send(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, at) => {
        resolve(results[at] as Result);
      });
    } catch (error) {
      if (batch.length === 1 || isUnavailable(error)) for (const { reject } of batch) reject(error);
      else for (const pending of batch) await this.#sendBatch([pending]);
    }
  }
}
