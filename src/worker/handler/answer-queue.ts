// Gives a handler the stored answers of its steps and waits in the order in which they were recorded, so that every execution
// of a run sees the same order. The handler has a turn after each answer. Essay: docs/decisions/0015-durable-waits.md.

import type { Clock } from "../../shared/ports.js";

type Answer = { readonly no: number; readonly settle: () => void };

export class AnswerQueue {
  readonly #clock: Pick<Clock, "soon">;
  readonly #isOver: () => boolean;
  readonly #answers: Answer[] = [];
  /** The number of the answer that comes next, if the handler asks for all of them. */
  #nextNo = 1;
  #isScheduled = false;
  #hasGivenWay = false;

  /** `isOver`: the execution no longer counts, and its handler receives nothing more. */
  constructor(clock: Pick<Clock, "soon">, isOver: () => boolean) {
    this.#clock = clock;
    this.#isOver = isOver;
  }

  /** Whether the handler has received all that it asked for. */
  get isEmpty(): boolean {
    return this.#answers.length === 0;
  }

  add(no: number, settle: () => void): void {
    this.#answers.push({ no, settle });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.soon(() => {
      this.#isScheduled = false;
      this.#deliverFirst();
    });
  }

  #deliverFirst(): void {
    if (this.#isOver()) return;
    this.#answers.sort((a, b) => a.no - b.no);
    const [first] = this.#answers;
    if (!first) return;
    // The handler may ask for a smaller number in its next turn. It gets one turn: a stored name that it never asks for
    // blocks nothing.
    if (first.no > this.#nextNo && !this.#hasGivenWay) {
      this.#hasGivenWay = true;
      this.#schedule();
      return;
    }
    this.#hasGivenWay = false;
    this.#answers.shift();
    this.#nextNo = Math.max(this.#nextNo, first.no + 1);
    first.settle();
    if (this.#answers.length > 0) this.#schedule();
  }
}
