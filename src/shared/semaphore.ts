// So many at a time, in the order in which they came. Waits for no time of its own: a turn is free when
// somebody gives theirs back, and whoever stops waiting is forgotten.

export class Semaphore {
  readonly #max: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get takenCount(): number {
    return this.#taken;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Resolves with how to give the turn back, or with null when the signal aborts first. */
  take(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return Promise.resolve(null);
    if (this.#taken < this.#max) return Promise.resolve(this.#taking());
    return new Promise((resolve) => {
      const onAbort = () => {
        this.#waiting.delete(onTurn);
        resolve(null);
      };
      const onTurn = () => {
        signal.removeEventListener("abort", onAbort);
        resolve(this.#taking());
      };
      this.#waiting.add(onTurn);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #taking(): () => void {
    this.#taken += 1;
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#taken -= 1;
      this.#next();
    };
  }

  #next(): void {
    const [first] = this.#waiting;
    if (!first || this.#taken >= this.#max) return;
    this.#waiting.delete(first);
    first();
  }
}
