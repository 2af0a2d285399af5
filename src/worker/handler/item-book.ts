// What one attempt knows of its run's items: those that earlier attempts have done are read once, a
// bounded amount of them; the others are asked for when they come up, those that come together at once.

import type { RunId } from "../../runs/rules/run.js";
import type { Clock } from "../../shared/ports.js";
import { patiently } from "../../shared/retry-while-unavailable.js";
import type { Store } from "../../store/store.js";

const LOADED_MAX = 1_000;
const CHARS_MAX = 4 * 1024 * 1024;

export class ItemBook {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #id: RunId;
  /** JSON by key; null: done, but too much to be kept here. */
  readonly #done = new Map<string, string | null>();
  #chars = 0;
  /** Whether every item that is done is in here. */
  #isAll: boolean;
  #loading: Promise<void> | null = null;
  #asking: { readonly keys: Set<string>; readonly found: Promise<Map<string, string>> } | null =
    null;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly id: RunId;
    /** Nobody has held the run before, so there is nothing to read. */
    readonly isFresh: boolean;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#id = params.id;
    this.#isAll = params.isFresh;
  }

  add(key: string, value: string): void {
    if (this.#done.has(key)) return;
    const isKept = this.#chars + value.length <= CHARS_MAX;
    if (isKept) this.#chars += value.length;
    this.#done.set(key, isKept ? value : null);
  }

  /** Whether it is known without asking that nothing was done under this key. */
  isNew(key: string): boolean {
    return this.#isAll && !this.#done.has(key);
  }

  /** JSON of what was done under this key, or undefined. */
  async find(key: string): Promise<string | undefined> {
    if (!this.#isAll && !this.#done.has(key)) {
      this.#loading ??= this.#load();
      await this.#loading;
    }
    const known = this.#done.get(key);
    if (typeof known === "string") return known;
    return this.#isAll && known === undefined ? undefined : this.#ask(key);
  }

  async #load(): Promise<void> {
    try {
      const { items, isAll } = await patiently(this.#clock, () =>
        this.#store.doneItems({
          id: this.#id,
          keys: null,
          limit: LOADED_MAX,
          charsMax: CHARS_MAX,
        }),
      );
      for (const { key, value } of items) this.add(key, value);
      this.#isAll = isAll;
    } catch (error) {
      this.#loading = null;
      throw error;
    }
  }

  /** A microtask later, so that keys that come up together are asked for together. */
  async #ask(key: string): Promise<string | undefined> {
    if (!this.#asking) {
      const keys = new Set<string>();
      const found = Promise.resolve().then(async () => {
        this.#asking = null;
        const { items } = await patiently(this.#clock, () =>
          this.#store.doneItems({
            id: this.#id,
            keys: [...keys],
            limit: keys.size,
            charsMax: CHARS_MAX,
          }),
        );
        return new Map(items.map((item) => [item.key, item.value]));
      });
      this.#asking = { keys, found };
    }
    this.#asking.keys.add(key);
    return (await this.#asking.found).get(key);
  }
}
