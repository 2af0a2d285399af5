// Decides for an instance when to renew a lease, and how long to believe that it still holds one. Pure. The database
// decides who holds a run; this file only decides how long to trust its last answer.

import { elapsedMs, type Moment } from "../../shared/ports.js";

/** Shorter leases would be lost to ordinary pauses of a process. */
export const LEASE_MIN_MS = 1_000;
export const LEASE_DEFAULT_MS = 30_000;
export const TIMEOUT_DEFAULT_MS = 2 * 60 * 60_000;

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
