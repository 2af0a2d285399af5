// Several processes of a shop import prices. Only one may do so at a time; its writes carry the fence, so that a
// process that was asleep cannot overwrite the work of its successor.

import type { Holdfast, LockResult } from "holdfast";

export type Prices = { fence: number; text: string };

/** The receiver: refuses the writes of a holder that has lost its lock. */
export class PriceList {
  #prices: Prices = { fence: 0, text: "none" };

  get text(): string {
    return this.#prices.text;
  }

  write(prices: Prices): boolean {
    if (prices.fence < this.#prices.fence) return false;
    this.#prices = prices;
    return true;
  }
}

export function importPrices(
  holdfast: Holdfast,
  list: PriceList,
  fetchPrices: (signal: AbortSignal) => Promise<string>,
): Promise<LockResult<boolean>> {
  return holdfast.lock("import-prices", { lease: "5m" }, async ({ fence, signal }) => {
    const text = await fetchPrices(signal);
    signal.throwIfAborted();
    // The fence is null only if locking was turned off for everybody.
    return list.write({ fence: fence ?? 0, text });
  });
}
