// Items of one process travel together: while a batch is on its way, what comes meanwhile makes the
// next one. Storing an item again changes nothing, so a lost answer is asked for once more.

import type { Clock } from "../core/ports.js";
import type { ItemAnswer, ItemWrite } from "../store/item-store.js";
import type { Store } from "../store/store.js";
import { isAbsent, patiently } from "./patience.js";

const BATCH_MAX = 1_000;
const BATCH_CHARS_MAX = 8 * 1024 * 1024;
/** Two keep the database busy while an answer travels. */
const IN_FLIGHT_MAX = 2;

type Asked = {
  readonly item: ItemWrite;
  readonly resolve: (answer: ItemAnswer) => void;
  readonly reject: (error: unknown) => void;
};

export class ItemWriter {
  readonly #store: Store;
  readonly #clock: Clock;
  #asked: Asked[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(params: { readonly store: Store; readonly clock: Clock }) {
    this.#store = params.store;
    this.#clock = params.clock;
  }

  store(item: ItemWrite): Promise<ItemAnswer> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= IN_FLIGHT_MAX) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#asked.length > 0 && this.#inFlight < IN_FLIGHT_MAX) void this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#asked.splice(0, this.#batchLength());
    this.#inFlight += 1;
    try {
      await this.#storeBatch(batch);
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
      chars += (item.value?.length ?? 0) + (item.error?.length ?? 0);
      length += 1;
    }
    return length;
  }

  /** A database that is away is away for all of them; anything else may be the fault of one. */
  async #storeBatch(batch: readonly Asked[]): Promise<void> {
    try {
      const items = batch.map(({ item }) => item);
      const answers = await patiently(this.#clock, () => this.#store.storeItems(items));
      batch.forEach(({ resolve }, at) => {
        resolve(answers[at] as ItemAnswer);
      });
    } catch (error) {
      if (batch.length === 1 || isAbsent(error)) for (const { reject } of batch) reject(error);
      else for (const asked of batch) await this.#storeBatch([asked]);
    }
  }
}
