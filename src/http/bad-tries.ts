// Slows down whoever guesses secrets: after a burst of wrong ones from one address, the next wrong
// ones are answered 429 for a while. A right secret is never held up, so a guesser cannot lock out
// the real caller. Bounded in memory.

const BURST = 20;
const REFILL_MS = 3_000;
const ADDRESSES_MAX = 10_000;

type Bucket = { tries: number; atMs: number };

export class BadTries {
  readonly #buckets = new Map<string, Bucket>();

  /** A wrong secret came from there. Answers how many seconds to wait, or 0. */
  note(address: string, nowMs: number): number {
    const bucket = this.#buckets.get(address) ?? { tries: 0, atMs: nowMs };
    const healed = Math.floor(Math.max(0, nowMs - bucket.atMs) / REFILL_MS);
    const tries = Math.max(0, bucket.tries - healed) + 1;
    this.#buckets.delete(address);
    this.#buckets.set(address, {
      tries: Math.min(tries, 2 * BURST),
      atMs: bucket.atMs + healed * REFILL_MS,
    });
    // The one that was heard of longest ago makes room.
    if (this.#buckets.size > ADDRESSES_MAX) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return tries <= BURST ? 0 : Math.ceil(((tries - BURST) * REFILL_MS) / 1_000);
  }
}
