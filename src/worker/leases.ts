// The leases in an instance's hands: which fences to renew, how long each may be trusted, and when the
// last run of one is gone. What it believes only ever shortens what the database granted.

import type { Moment } from "../shared/moment.js";
import type { Claim, RenewAnswer, Settlement } from "../store/store.js";
import { isTrusted } from "./rules/lease.js";

/** `open` counts the runs of a lease that are still in our hands. */
type Lease = {
  readonly runs: Claim["runs"];
  sentAt: Moment;
  leaseMs: number;
  open: number;
  readonly fullMs: number;
};

/** The database's answer to a renewal that was sent at `sentAt` for these fences. */
export type Renewed = RenewAnswer & {
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

  /** The same with the whole length of each. */
  held(): { readonly fence: number; readonly leaseMs: number }[] {
    return [...this.#leases].map(([fence, { fullMs }]) => ({ fence, leaseMs: fullMs }));
  }

  /** The shortest lease held, which sets the pace of the heartbeat. */
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

  /** These in the order of their lease, if they are all the runs of one; null: they are not. */
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

  /** One run of it is settled or lost; a lease is renewed for as long as one is left. */
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
