// Runs one round of each recurring task of an instance: renew leases, promote due runs, reclaim expired leases, enforce
// cancels. loop.ts decides when to repeat them; retention is in operations/retention.ts.

import { CANCEL_GRACE_MS } from "../runs/rules/run.js";
import { StoreUnavailableError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { type Clock, momentOf } from "../shared/ports.js";
import type { RenewParams, RenewResult } from "../store/leases.js";
import { LOST_ERROR, TIMEOUT_ERROR } from "../store/leases.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { Workers } from "./pool.js";
import { LEASE_DEFAULT_MS, renewTimeoutMs } from "./rules/lease.js";

const PROMOTE_BATCH = 1_000;
const RECLAIM_BATCH = 100;
const WAKE_BATCH = 500;
/** A pass is bounded; the next poll finds the rest. */
const ROUNDS_MAX = 20;

/** As the database stores them. */
const LOST = JSON.parse(LOST_ERROR) as StoredError;
const OVER_TIME = JSON.parse(TIMEOUT_ERROR) as StoredError;

/** Renews every held lease in one statement, and reports lost ones to the workers. */
export async function renewOnce(params: {
  readonly worker: Workers;
  readonly heartbeat: LeaseHeartbeat;
  readonly holder: number;
  readonly clock: Clock;
}): Promise<void> {
  const { worker, heartbeat, holder, clock } = params;
  const asked = worker.leases.fences();
  // A heartbeat thread must not go on for a main thread that has nothing to renew.
  if (asked.length === 0) return heartbeat.changed();
  // Taken before sending: the database may act at once while its answer takes long.
  const sentAt = momentOf(clock);
  const timeoutMs = renewTimeoutMs(worker.leases.shortestMs() ?? LEASE_DEFAULT_MS);
  const result = await within(
    heartbeat.renew({ holder, fences: asked, timeoutMs }),
    clock,
    timeoutMs,
  );
  worker.renewed({ sentAt, asked, ...result });
}

/** Rejects after `timeoutMs`, so that the next renewal does not wait for a stuck one. */
function within<T>(result: Promise<T>, clock: Clock, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(timeoutMs, () => {
      reject(new StoreUnavailableError({ tried: `renew leases, no answer in ${timeoutMs} ms` }));
    });
    result.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Moves due runs from waiting to ready. */
export async function promoteOnce(store: Store): Promise<number> {
  let total = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const count = await store.work.promote({ limit: PROMOTE_BATCH });
    total += count;
    if (count < PROMOTE_BATCH) break;
  }
  return total;
}

/**
 * Looks for the waiters of new signals, and makes sleeping runs due that something happened for. Where a run has ended
 * with open calls, it cancels their runs, each by itself, and then removes the waits.
 */
export async function wakeOnce(store: Store, random: () => number): Promise<number> {
  let total = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const { woken, ended } = await store.signals.wake({ limit: WAKE_BATCH });
    for (const { run, children } of ended) {
      for (const id of children) await store.runs.cancel({ id, random: random() });
      await store.signals.forgetEnded(run);
    }
    total += woken + ended.length;
    if (woken < WAKE_BATCH && ended.length < WAKE_BATCH) break;
  }
  return total;
}

/** Takes over from silent holders; the policy is in the rows. */
export async function reclaimOnce(params: {
  readonly store: Store;
  readonly random: () => number;
  readonly emit: Emit;
}): Promise<{ readonly reclaimed: number; readonly failed: number }> {
  const { store, random, emit } = params;
  let total = 0;
  let failed = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const reclaimed = await store.leases.reclaim({ limit: RECLAIM_BATCH, random: random() });
    for (const { id, job, attempt, holder, end, to } of reclaimed) {
      emit("run.reclaimed", { run: id, job, attempt, holder, end, to });
      if (to === "failed") {
        const error = end === "lost" ? LOST : OVER_TIME;
        emit("run.failed", { run: id, job, attempt, ranMs: null, error, isPermanent: false });
      }
    }
    total += reclaimed.length;
    failed += reclaimed.filter(({ to }) => to === "failed").length;
    // A lease has at least one run: fewer runs than the limit of leases means that none is left.
    if (reclaimed.length < RECLAIM_BATCH) break;
  }
  return { reclaimed: total, failed };
}

/** Ends runs that were cancelled long ago and still run. */
export async function enforceCancelsOnce(store: Store, random: number): Promise<number> {
  return (await store.leases.enforceCancels({ graceMs: CANCEL_GRACE_MS, random })).length;
}

// ── who sends the heartbeat ────────────────────────────────────────────────────────────────────────

/** Sends lease renewals: from the main thread, or from a thread of its own (instance/thread-heartbeat.ts). */
export interface LeaseHeartbeat {
  /** Whether a blocked event loop keeps its heartbeats from being sent. */
  readonly isOnMainThread: boolean;
  /** The set of leases has changed. Called for new leases before any of their runs starts. */
  changed(): void;
  renew(params: RenewParams): Promise<RenewResult>;
  close(): Promise<void>;
}

export function mainThreadHeartbeat(store: Store): LeaseHeartbeat {
  return {
    isOnMainThread: true,
    changed: () => undefined,
    renew: (params) => store.leases.renew(params),
    close: async () => undefined,
  };
}
