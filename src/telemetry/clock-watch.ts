// Compares the clocks for the loop at each poll: the offset of this process's clock from the database's, and whether
// the database's clock went back. Emits each finding once, with its size.

import type { Moment } from "../shared/ports.js";
import type { Emit } from "./log.js";

/** The loop reports an offset or a step back beyond this. */
export const CLOCK_TOLERANCE_MS = 5_000;

export type Observed = {
  readonly sentAt: Moment;
  readonly gotAt: Moment;
  /** By the database's clock, at some instant between the two. */
  readonly now: number;
};

/**
 * By how much the clock of this process is certainly ahead of the database's (negative: behind); the round trip
 * explains the rest.
 */
export function skewOf({ sentAt, gotAt, now }: Observed): number {
  const tookMs = gotAt.monotonicMs - sentAt.monotonicMs;
  const offMs = sentAt.wallMs + tookMs / 2 - now;
  return Math.round(Math.sign(offMs) * Math.max(0, Math.abs(offMs) - tookMs / 2));
}

export class ClockWatch {
  readonly #emit: Emit;
  readonly #instance: string;
  #last: Observed | null = null;
  #saidSkewMs = 0;

  constructor({ emit, instance }: { readonly emit: Emit; readonly instance: string }) {
    this.#emit = emit;
    this.#instance = instance;
  }

  observe(observed: Observed): void {
    const before = this.#last;
    this.#last = observed;
    const steppedMs = before ? steppedBackMs(before, observed) : 0;
    if (steppedMs > CLOCK_TOLERANCE_MS)
      this.#emit("clock.stepped", { steppedMs: Math.round(steppedMs), now: observed.now });
    const skewMs = skewOf(observed);
    if (Math.abs(skewMs - this.#saidSkewMs) <= CLOCK_TOLERANCE_MS) return;
    this.#saidSkewMs = Math.abs(skewMs) > CLOCK_TOLERANCE_MS ? skewMs : 0;
    if (this.#saidSkewMs !== 0) this.#emit("clock.skewed", { instance: this.#instance, skewMs });
  }
}

/**
 * Whether the database's clock shows less than it must, at whichever moment between sending and arrival it was read.
 */
function steppedBackMs(before: Observed, after: Observed): number {
  const leastMs = after.sentAt.monotonicMs - before.gotAt.monotonicMs;
  return before.now + leastMs - after.now;
}
