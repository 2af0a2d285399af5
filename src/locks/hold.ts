// Renews one held lock while its function runs, and aborts the signal when the lock is lost. It trusts the lease for less time
// than the provider granted: a lease counts from the moment the request was sent, and trust ends without a response.

import { LeaseLostError } from "../shared/errors.js";
import {
  type Clock,
  delay,
  elapsedMs,
  type Moment,
  momentOf,
  type Timer,
} from "../shared/ports.js";
import { isTrusted, renewEveryMs, renewTimeoutMs } from "../worker/rules/lease.js";
import type { LockGrant, LockProvider } from "./rules/lock.js";

const RETRY_MS = 250;
/** An abort reason of our own: the platform would create an exception for each call. */
const RESPONDED = "answered";

export type HoldParams = {
  readonly provider: LockProvider;
  readonly clock: Clock;
  readonly grant: LockGrant;
  readonly leaseMs: number;
  /** When the request was sent, and how much of the lease was left then. */
  readonly sentAt: Moment;
  readonly grantedMs: number;
  readonly onLost: () => void;
};

export class Hold {
  readonly #params: HoldParams;
  readonly #lost = new AbortController();
  #trust: { readonly sentAt: Moment; readonly leaseMs: number };
  #timer: Timer | null = null;
  #isOver = false;

  constructor(params: HoldParams) {
    this.#params = params;
    this.#trust = { sentAt: params.sentAt, leaseMs: params.grantedMs };
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  #isLost = false;

  /** Renews first if the grant took as long as its lease. False: the lock is lost. */
  async begin(): Promise<boolean> {
    if (this.isTrusted) this.#again(renewEveryMs(this.#params.leaseMs));
    else await this.#renew();
    return !this.#isLost;
  }

  /** Whether the lease certainly still stands; sends no request. */
  get isTrusted(): boolean {
    const { sentAt, leaseMs } = this.#trust;
    return !this.#isLost && isTrusted(sentAt, this.#moment(), leaseMs);
  }

  /** Stops renewing: the function ended, or nobody waits for it. */
  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** Makes the function end: the instance stops. */
  abort(reason: Error): void {
    this.#lost.abort(reason);
  }

  async #renew(): Promise<void> {
    const sentAt = this.#moment();
    const { leaseMs } = this.#params;
    const isHeld = await this.#extended();
    if (this.#isOver) return;
    if (isHeld) this.#trust = { sentAt, leaseMs };
    if (isHeld === false || !this.isTrusted) return this.#lose();
    this.#again(isHeld ? renewEveryMs(leaseMs) : Math.min(RETRY_MS, renewEveryMs(leaseMs)));
  }

  /** Undefined: no response, or none in time. */
  async #extended(): Promise<boolean | undefined> {
    const { provider, grant, leaseMs, clock } = this.#params;
    const timeoutMs = renewTimeoutMs(leaseMs);
    const responded = new AbortController();
    const extended = provider.extend({ ...grant, leaseMs, timeoutMs }).catch(() => undefined);
    const tooLate = delay(clock, timeoutMs, responded.signal).then(() => undefined);
    const response = await Promise.race([extended, tooLate]);
    responded.abort(RESPONDED);
    return response;
  }

  #lose(): void {
    this.end();
    this.#isLost = true;
    const { grant, onLost } = this.#params;
    onLost();
    this.#lost.abort(new LeaseLostError({ lock: grant.name }, grant.fence));
  }

  #again(delayMs: number): void {
    const { clock } = this.#params;
    const { sentAt, leaseMs } = this.#trust;
    // Renew at the latest when trust ends.
    const leftMs = leaseMs - leaseMs / 4 - elapsedMs(sentAt, this.#moment());
    this.#timer = clock.timer(Math.max(1, Math.min(delayMs, leftMs)), () => void this.#renew());
  }

  #moment(): Moment {
    return momentOf(this.#params.clock);
  }
}
