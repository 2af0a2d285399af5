// A moment on both clocks of an instance, and how much time passed between two of them.

/** A moment on both clocks of an instance. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

/**
 * How much time passed between two moments: the larger of what the two clocks say, since a wall
 * clock may step back and a monotonic clock may stand still while the machine sleeps.
 */
export function elapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs, 0);
}
