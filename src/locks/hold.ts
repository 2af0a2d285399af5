// One held lock: renewed while its function runs, and the signal that tells when it is lost.
// What it believes only ever shortens what the provider granted: an answer that is late counts from
// the moment of asking, and without answers trust runs out by itself.

import { LeaseLostError } from "../shared/errors.js";
import { elapsedMs, type Moment } from "../shared/moment.js";
import { type Clock, delay, momentOf, type Timer } from "../shared/ports.js";
import { isTrusted, renewEveryMs, renewTimeoutMs } from "../worker/rules/lease.js";
import type { LockProvider } from "./provider.js";
import type { LockGrant } from "./rules/lock.js";

const RETRY_MS = 250;
/** A reason of our own, since the platform would make an exception for each. */
const ANSWERED = "answered";

export type HoldParams = {
  readonly provider: LockProvider;
  readonly clock: Clock;
  readonly grant: LockGrant;
  readonly leaseMs: number;
  /** When the grant was asked for, and how much of its lease was left then. */
  readonly askedAt: Moment;
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
    this.#trust = { sentAt: params.askedAt, leaseMs: params.grantedMs };
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  #isLost = false;

  /** Nothing begins under a grant whose answer took as long as its lease; false: it is gone. */
  async begin(): Promise<boolean> {
    if (this.isTrusted) this.#again(renewEveryMs(this.#params.leaseMs));
    else await this.#renew();
    return !this.#isLost;
  }

  /** Whether the lease certainly still stands, without asking. */
  get isTrusted(): boolean {
    const { sentAt, leaseMs } = this.#trust;
    return !this.#isLost && isTrusted(sentAt, this.#moment(), leaseMs);
  }

  /** The function has ended, or nobody waits for it any more. */
  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** The surroundings want the function to end. */
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

  /** Undefined: there was no answer, or none in time. */
  async #extended(): Promise<boolean | undefined> {
    const { provider, grant, leaseMs, clock } = this.#params;
    const timeoutMs = renewTimeoutMs(leaseMs);
    const answered = new AbortController();
    const extended = provider.extend({ ...grant, leaseMs, timeoutMs }).catch(() => undefined);
    const tooLate = delay(clock, timeoutMs, answered.signal).then(() => undefined);
    const answer = await Promise.race([extended, tooLate]);
    answered.abort(ANSWERED);
    return answer;
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
    // Past the end of trust nothing may go on unasked.
    const leftMs = leaseMs - leaseMs / 4 - elapsedMs(sentAt, this.#moment());
    this.#timer = clock.timer(Math.max(1, Math.min(delayMs, leftMs)), () => void this.#renew());
  }

  #moment(): Moment {
    return momentOf(this.#params.clock);
  }
}
