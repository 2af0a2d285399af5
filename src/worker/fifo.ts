// A queue whose head can be taken in constant time: `Array.shift` moves all that is behind it.

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  first(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.length === 0) return undefined;
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head > 1_000 && this.#head * 2 > this.#items.length) this.#compact();
    return item;
  }

  /** Takes out what fits and answers with it, in order. */
  remove(fits: (item: T) => boolean): T[] {
    this.#compact();
    const items = this.#items as T[];
    const removed = items.filter(fits);
    if (removed.length > 0) this.#items = items.filter((item) => !fits(item));
    return removed;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at += 1) yield this.#items[at] as T;
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
