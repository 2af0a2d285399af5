// Limits how many callers are active at a time, first come first served. It has no timeout of its own: a caller waits
// until another one releases its permit, or until its signal aborts.

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

  /** Resolves with the function that releases the permit, or with null when the signal aborts first. */
  take(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return Promise.resolve(null);
    if (this.#taken < this.#max) return Promise.resolve(this.#taking());
    return new Promise((resolve) => {
      const onAbort = () => {
        this.#waiting.delete(onPermit);
        resolve(null);
      };
      const onPermit = () => {
        signal.removeEventListener("abort", onAbort);
        resolve(this.#taking());
      };
      this.#waiting.add(onPermit);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #taking(): () => void {
    this.#taken += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
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
