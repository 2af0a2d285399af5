// The timers of a virtual clock: the soonest first, and of two at one time the one that was set first.
// A binary heap: a year of a schedule sets and takes back millions of them.

import type { Timer } from "../shared/ports.js";

export type Scheduled = {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
};

/** Cancelled timers stay until they come up, or until there are this many more than live ones. */
const CANCELLED_MAX = 64;

export class TimerHeap {
  #heap: Scheduled[] = [];
  #order = 0;
  #cancelled = 0;

  add(at: number, callback: () => void): Timer {
    this.#order += 1;
    const scheduled: Scheduled = { at, order: this.#order, callback, isCancelled: false };
    this.#heap.push(scheduled);
    this.#rise(this.#heap.length - 1);
    return { cancel: () => this.#cancel(scheduled) };
  }

  /** Takes the next timer out, if it is due by then. */
  take(until: number): Scheduled | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first) return null;
      if (!first.isCancelled && first.at > until) return null;
      this.#removeFirst();
      if (first.isCancelled) {
        this.#cancelled -= 1;
        continue;
      }
      // Cancelling what has fired must not be counted.
      first.isCancelled = true;
      return first;
    }
  }

  #cancel(scheduled: Scheduled): void {
    if (scheduled.isCancelled) return;
    scheduled.isCancelled = true;
    this.#cancelled += 1;
    if (this.#cancelled > CANCELLED_MAX + this.#heap.length / 2) this.#sweep();
  }

  #sweep(): void {
    this.#heap = this.#heap.filter((each) => !each.isCancelled).sort(compare);
    this.#cancelled = 0;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (!last || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(from: number): void {
    const heap = this.#heap;
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfBefore(heap, at, parent)) return;
      at = parent;
    }
  }

  #sink(from: number): void {
    const heap = this.#heap;
    for (let at = from; ; ) {
      const left = 2 * at + 1;
      const right = left + 1;
      if (left >= heap.length) return;
      const child = right < heap.length && isBefore(heap, right, left) ? right : left;
      if (!this.#swapIfBefore(heap, child, at)) return;
      at = child;
    }
  }

  #swapIfBefore(heap: Scheduled[], child: number, parent: number): boolean {
    if (!isBefore(heap, child, parent)) return false;
    const moved = heap[child] as Scheduled;
    heap[child] = heap[parent] as Scheduled;
    heap[parent] = moved;
    return true;
  }
}

function isBefore(heap: readonly Scheduled[], a: number, b: number): boolean {
  return compare(heap[a] as Scheduled, heap[b] as Scheduled) < 0;
}

function compare(a: Scheduled, b: Scheduled): number {
  return a.at - b.at || a.order - b.order;
}
