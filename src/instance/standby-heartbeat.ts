// Heartbeats in place of a main thread that is blocked. While the main thread shows life this sends what
// it is asked to and nothing else. When it falls silent, the leases that it held last are renewed for it,
// up to ten lengths of each: a handler that computes for long keeps its run, and a process that hangs
// does not keep it for ever. Nor does anybody beyond the time limit of a run, which the database enforces.

import type { Clock, Timer } from "../shared/ports.js";
import type { RenewAnswer, RenewParams, Store } from "../store/store.js";
import { renewEveryMs, renewTimeoutMs } from "../worker/rules/lease.js";

/** For so many lengths of its lease a silent main thread keeps a run. */
export const SILENT_LEASES_MAX = 10;
const RETRY_MS = 250;

export type HeldLease = { readonly fence: number; readonly leaseMs: number };

export class StandbyHeartbeat {
  readonly #store: Pick<Store, "renew">;
  readonly #clock: Clock;
  readonly #holder: number;
  #leases: readonly HeldLease[] = [];
  #seenMs: number;
  #isStandingIn = false;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(params: {
    readonly store: Pick<Store, "renew">;
    readonly clock: Clock;
    readonly holder: number;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#holder = params.holder;
    this.#seenMs = this.#clock.monotonicMs();
  }

  /** The main thread lives and holds these. Answers for how long it was silent, where that mattered. */
  held(leases: readonly HeldLease[]): number | null {
    const nowMs = this.#clock.monotonicMs();
    const silentMs = this.#isStandingIn ? nowMs - this.#seenMs : null;
    this.#leases = leases;
    this.#seenMs = nowMs;
    this.#isStandingIn = false;
    this.#plan(this.#shortestMs() / 2);
    return silentMs;
  }

  renew(params: RenewParams): Promise<RenewAnswer> {
    return this.#store.renew(params);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #shortestMs(): number {
    return Math.min(...this.#leases.map(({ leaseMs }) => leaseMs));
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#isClosed || this.#leases.length === 0) return;
    this.#timer = this.#clock.timer(delayMs, () => void this.#standIn());
  }

  async #standIn(): Promise<void> {
    const seenMs = this.#seenMs;
    const silentMs = this.#clock.monotonicMs() - seenMs;
    this.#leases = this.#leases.filter(({ leaseMs }) => silentMs < leaseMs * SILENT_LEASES_MAX);
    if (this.#leases.length === 0) return;
    this.#isStandingIn = true;
    const shortestMs = this.#shortestMs();
    let nextMs = renewEveryMs(shortestMs);
    try {
      const fences = this.#leases.map(({ fence }) => fence);
      const timeoutMs = renewTimeoutMs(shortestMs);
      await this.#store.renew({ holder: this.#holder, fences, timeoutMs });
    } catch {
      // Nobody is there to be told; the main thread hears of it when it asks by itself again.
      nextMs = RETRY_MS;
    }
    // It may have shown life meanwhile, and then the next look is planned.
    if (this.#seenMs === seenMs) this.#plan(nextMs);
  }
}
