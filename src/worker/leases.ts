// Tracks the leases that a worker holds: which fences to renew, how long each may be trusted, and when the last
// run of a lease is gone. It never trusts a lease for longer than the database granted.

import type { Moment } from "../shared/ports.js";
import type { Claim, Settlement } from "../store/claims.js";
import type { RenewResult } from "../store/leases.js";
import { isTrusted } from "./rules/lease.js";

/** `open` counts the runs of a lease that this worker still holds. */
type Lease = {
  readonly runs: Claim["runs"];
  sentAt: Moment;
  leaseMs: number;
  open: number;
  readonly fullMs: number;
};

/** The result of a renewal that was sent at `sentAt` for the fences `asked`. */
export type Renewed = RenewResult & {
  readonly sentAt: Moment;
  readonly asked: readonly number[];
};

export class Leases {
  readonly #leases = new Map<number, Lease>();

  has(fence: number): boolean {
    return this.#leases.has(fence);
  }

  /** The fences that have to be renewed. */
  fences(): number[] {
    return [...this.#leases.keys()];
  }

  /** The same fences, each with the full length of its lease. */
  held(): { readonly fence: number; readonly leaseMs: number }[] {
    return [...this.#leases].map(([fence, { fullMs }]) => ({ fence, leaseMs: fullMs }));
  }

  /** The length of the shortest lease, which sets the interval of the heartbeat. */
  shortestMs(): number | null {
    let shortest: number | null = null;
    for (const { fullMs } of this.#leases.values()) {
      if (shortest === null || fullMs < shortest) shortest = fullMs;
    }
    return shortest;
  }

  granted({ fence, leaseMs, runs, policy }: Claim, sentAt: Moment): void {
    const { length: open } = runs;
    this.#leases.set(fence, { runs, sentAt, leaseMs, open, fullMs: policy.leaseMs });
  }

  renewed(
    { fence, leaseMs }: { readonly fence: number; readonly leaseMs: number },
    sentAt: Moment,
  ): void {
    const lease = this.#leases.get(fence);
    if (lease) this.#leases.set(fence, { ...lease, sentAt, leaseMs });
  }

  isTrusted(fence: number, now: Moment): boolean {
    const lease = this.#leases.get(fence);
    return lease !== undefined && isTrusted(lease.sentAt, now, lease.leaseMs);
  }

  /** Returns the settlements in the order of their lease if they are exactly its runs, else null. */
  asWhole(settlements: readonly Settlement[]): readonly Settlement[] | null {
    const [first] = settlements;
    const runs = first && this.#leases.get(first.fence)?.runs;
    if (!runs || runs.length !== settlements.length) return null;
    const { fence } = first;
    if (runs.every(({ id }, at) => settlements[at]?.id === id && settlements[at]?.fence === fence))
      return settlements;
    const byId = new Map(settlements.map((settlement) => [settlement.id, settlement]));
    const inOrder = runs.flatMap(({ id }) => byId.get(id) ?? []);
    const isWhole = inOrder.length === runs.length && inOrder.every((each) => each.fence === fence);
    return isWhole ? inOrder : null;
  }

  /** One run of the lease is settled or lost; the lease is renewed while another run is left. */
  letGo(fence: number): void {
    const lease = this.#leases.get(fence);
    if (!lease) return;
    lease.open -= 1;
    if (lease.open === 0) this.#leases.delete(fence);
  }

  lost(fence: number): void {
    this.#leases.delete(fence);
  }

  clear(): void {
    this.#leases.clear();
  }
}
