// How many runs may still be claimed, by workers that share it. What one asked for and did not get is
// there for the others, who are told: they may have looked while it was asked for.

export class Allowance {
  readonly #listeners: (() => void)[] = [];
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  get left(): number {
    return this.#left;
  }

  /** Negative: it is given back. */
  take(count: number): void {
    this.#left -= count;
    if (count < 0) for (const listener of this.#listeners) listener();
  }

  onReturned(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
