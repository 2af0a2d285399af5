// Calls of one process that travel together: while a batch is on its way, what comes meanwhile makes the
// next one. Each caller is answered after the commit of its own batch, and one bad item never fails its
// neighbours. Nothing is delayed on purpose: a lone call goes out at once.

import { isUnavailable } from "./retry-while-unavailable.js";

const BATCH_MAX = 1_000;
/** Larger batches would keep the event loop, or be refused by drivers and servers. */
const BATCH_CHARS_MAX = 8 * 1024 * 1024;
/** Two keep the database busy while an answer travels; more would only make smaller batches. */
const IN_FLIGHT_MAX = 2;

type Asked<Item, Answer> = {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
};

export class Batcher<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #charsOf: (item: Item) => number;
  #asked: Asked<Item, Answer>[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(params: {
    /** Answers in the order of the items. */
    readonly send: (items: readonly Item[]) => Promise<readonly Answer[]>;
    /** How much an item weighs. */
    readonly charsOf: (item: Item) => number;
  }) {
    this.#send = params.send;
    this.#charsOf = params.charsOf;
  }

  one(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= IN_FLIGHT_MAX) return;
    this.#isScheduled = true;
    // A microtask later, so that calls made together travel together.
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#asked.length > 0 && this.#inFlight < IN_FLIGHT_MAX) void this.#sendNext();
    });
  }

  async #sendNext(): Promise<void> {
    const batch = this.#asked.splice(0, this.#batchLength());
    this.#inFlight += 1;
    try {
      await this.#sendBatch(batch);
    } finally {
      this.#inFlight -= 1;
      if (this.#asked.length > 0) this.#schedule();
    }
  }

  #batchLength(): number {
    let chars = 0;
    let length = 0;
    for (const { item } of this.#asked) {
      if (length === BATCH_MAX || chars >= BATCH_CHARS_MAX) break;
      chars += this.#charsOf(item);
      length += 1;
    }
    return length;
  }

  /** A database that is away is away for all of them; anything else may be the fault of one. */
  async #sendBatch(batch: readonly Asked<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, at) => {
        resolve(answers[at] as Answer);
      });
    } catch (error) {
      if (batch.length === 1 || isUnavailable(error)) for (const { reject } of batch) reject(error);
      else for (const asked of batch) await this.#sendBatch([asked]);
    }
  }
}
