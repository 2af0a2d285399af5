// Items of one process, stored together. Storing an item again changes nothing, so a lost answer is asked
// for once more.

import { Together } from "../../shared/batcher.js";
import type { Clock } from "../../shared/ports.js";
import { patiently } from "../../shared/retry-while-unavailable.js";
import type { ItemAnswer, ItemWrite } from "../../store/item-store.js";
import type { Store } from "../../store/store.js";

export class ItemWriter {
  readonly #together: Together<ItemWrite, ItemAnswer>;

  constructor({ store, clock }: { readonly store: Store; readonly clock: Clock }) {
    this.#together = new Together({
      send: (items) => patiently(clock, () => store.storeItems(items)),
      charsOf: ({ value, error }) => (value?.length ?? 0) + (error?.length ?? 0),
    });
  }

  store(item: ItemWrite): Promise<ItemAnswer> {
    return this.#together.one(item);
  }
}
