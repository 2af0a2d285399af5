// Settlements that have not reached the database yet, in order, taken in portions that drivers and
// servers accept. What was sent and not answered is put back: repeating it is harmless.

import type { Settlement } from "../store/store.js";

const COUNT_MAX = 2_000;
const CHARS_MAX = 8 * 1024 * 1024;

export class Outbox {
  #settlements: Settlement[] = [];

  get length(): number {
    return this.#settlements.length;
  }

  push(settlement: Settlement): void {
    this.#settlements.push(settlement);
  }

  take(): Settlement[] {
    const all = this.#settlements;
    let count = 0;
    let chars = 0;
    while (count < all.length && count < COUNT_MAX && chars < CHARS_MAX) {
      chars += charsOf(all[count] as Settlement);
      count += 1;
    }
    this.#settlements = count === all.length ? [] : all.slice(count);
    return count === all.length ? all : all.slice(0, count);
  }

  putBack(settlements: readonly Settlement[]): void {
    this.#settlements = [...settlements, ...this.#settlements];
  }
}

function charsOf(settlement: Settlement): number {
  const result = settlement.to === "pending" ? 0 : (settlement.result?.length ?? 0);
  return result + (settlement.error?.length ?? 0);
}
