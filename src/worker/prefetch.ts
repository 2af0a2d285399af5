// How many runs to claim: enough for the free slots, and a buffer as deep as runs are short, so that
// a claimed run is expected to wait for no longer than a moment. Decides by averages, touches nothing.

import type { Claim } from "../store/store.js";

const CLAIM_MAX = 1_000;
/** As many claims as may be on their way at once. */
const BUFFER_MAX = 3_000;
/** What the inputs in the buffer may weigh: large ones would fill the memory and stop the event loop. */
const BUFFER_CHARS_MAX = 16 * 1024 * 1024;
/** How long a claimed run may be expected to wait in the buffer. */
const BUFFER_WAIT_MS = 200;
/** Runs shorter than this are as good as instant. */
const RUN_MIN_MS = 0.05;

export class Pace {
  readonly #concurrency: number;
  #averageMs = 0;
  #averageChars = 0;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** A run has taken this long. */
  ran(ranMs: number): void {
    this.#averageMs =
      this.#averageMs === 0 ? Math.max(ranMs, 0.01) : this.#averageMs * 0.9 + ranMs * 0.1;
  }

  /** Notes how large inputs are; the last claim says as much as all before it. */
  claimed(claims: readonly Claim[]): void {
    let count = 0;
    let chars = 0;
    for (const { runs } of claims) {
      count += runs.length;
      for (const { input } of runs) chars += input.length;
    }
    if (count > 0) this.#averageChars = (this.#averageChars + chars / count) / 2;
  }

  /** `have` counts runs in slots, in the buffer and on their way; `slow` slots are taken for long. */
  wanted({ have, slow }: { readonly have: number; readonly slow: number }): number {
    const concurrency = this.#concurrency;
    const depth = this.#depth(Math.max(0, concurrency - slow));
    const missing = concurrency + depth - have;
    // A buffer that is still half full is left alone: small claims cost as much as large ones.
    const isWorthIt = missing >= Math.min(CLAIM_MAX, Math.ceil(depth / 2)) || have < concurrency;
    return isWorthIt ? Math.max(0, Math.min(CLAIM_MAX, missing)) : 0;
  }

  /** Nothing is buffered before it is known how long runs take. */
  #depth(slots: number): number {
    if (this.#averageMs === 0) return 0;
    const expected = (slots / Math.max(this.#averageMs, RUN_MIN_MS)) * BUFFER_WAIT_MS;
    const affordable = BUFFER_CHARS_MAX / Math.max(this.#averageChars, 1);
    return Math.floor(Math.min(BUFFER_MAX, affordable, expected));
  }
}
