// Lease arithmetic: when to renew, and how long an instance may believe that it still holds a run.
// Pure. The database decides who holds a run; this file only decides how long to trust its last answer.

/** Shorter leases would be lost to ordinary pauses of a process. */
export const LEASE_MIN_MS = 1_000;
export const LEASE_DEFAULT_MS = 30_000;
export const TIMEOUT_DEFAULT_MS = 2 * 60 * 60_000;

/** A moment on both clocks of an instance. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

/**
 * How much time passed between two moments: the larger of what the two clocks say, since a wall
 * clock may step back and a monotonic clock may stand still while the machine sleeps.
 */
export function elapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs, 0);
}

/** Counted from the sending of the request, not from its answer: the database may have acted at once. */
export function isTrusted(sentAt: Moment, now: Moment, leaseMs: number): boolean {
  return elapsedMs(sentAt, now) < leaseMs - leaseMs / 4;
}

export function renewEveryMs(leaseMs: number): number {
  return Math.floor(leaseMs / 3);
}

export function renewTimeoutMs(leaseMs: number): number {
  return Math.min(5_000, Math.floor(leaseMs / 4));
}
