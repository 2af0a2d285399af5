// Checks named locks: S1 to S3 at every commit from the rows that it changed, and that functions under a lock do not
// overlap.

import type { LockGrant } from "../../../locks/rules/lock.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { Transaction } from "./run-places.js";

type GrantFacts = LockGrant & {
  readonly holder: string;
  readonly grantedMs: number;
  until: number;
  isCurrent: boolean;
  hasBegun: boolean;
};

const STATE_RELEASED = 1;
const STATE_EXPIRED = 2;

export class LockHistory {
  readonly #log: EventLog;
  readonly #grants = new Map<number, GrantFacts>();
  /** Fences of each name, in the order of their grants. */
  readonly #byName = new Map<string, number[]>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  commit(transaction: Transaction): void {
    const gone = new Map<number, GrantFacts>();
    for (const [kind, ...values] of transaction.notes) {
      if (kind === "lock-") this.#went(Number(values[0]), gone);
      else if (kind === "lock_history+") this.#ended(values, gone, transaction);
      else if (kind === "lock~") this.#extended(values, transaction);
      else if (kind === "lock+") this.#granted(values, transaction);
    }
    for (const { name, fence } of gone.values())
      this.#violate("S2", `Grant ${fence} of ${name} is gone, and nobody says how it ended.`);
  }

  #went(fence: number, gone: Map<number, GrantFacts>): void {
    const grant = this.#grants.get(fence);
    if (!grant?.isCurrent) this.#violate("S2", `Grant ${fence} went, and never was.`);
    if (!grant) return;
    grant.isCurrent = false;
    gone.set(fence, grant);
  }

  #ended(
    [first, state, until]: readonly (string | number | null)[],
    gone: Map<number, GrantFacts>,
    { verb, params, now }: Transaction,
  ): void {
    const fence = Number(first);
    const { name = "?" } = gone.get(fence) ?? {};
    if (!gone.delete(fence)) this.#violate("S1", `Grant ${fence} ended twice.`);
    if (state === STATE_EXPIRED) {
      if (Number(until) > now)
        this.#violate("S2", `Grant ${fence} of ${name} was taken before it had run out.`);
      if (verb === "locks.acquire") this.#log.saw("lock-taken-over");
      return;
    }
    const asked = params as Partial<LockGrant>;
    const isOwn = state === STATE_RELEASED && verb === "locks.release" && asked.fence === fence;
    if (!isOwn && verb !== "locks.revoke")
      this.#violate("S3", `Grant ${fence} of ${name} was ended by ${verb} of ${asked.fence}.`);
  }

  #extended(
    [first, name, holder, oldHolder, until]: readonly (string | number | null)[],
    { verb, params, process }: Transaction,
  ): void {
    const fence = Number(first);
    if (holder !== oldHolder) this.#violate("S1", `Grant ${fence} of ${name} has a second holder.`);
    const asked = params as Partial<LockGrant>;
    const isOwn = verb === "locks.extend" && asked.fence === fence && asked.name === name;
    if (!isOwn || process.holdfast.instanceId !== holder)
      this.#violate("S3", `Grant ${fence} of ${name} was extended by ${verb} of ${asked.fence}.`);
    const grant = this.#grants.get(fence);
    if (grant) grant.until = Number(until);
  }

  #granted(
    [first, text, holder, until]: readonly (string | number | null)[],
    { worldMs, verb, params }: Transaction,
  ): void {
    const fence = Number(first);
    const name = String(text);
    if (this.#grants.has(fence)) this.#violate("S1", `Fence ${fence} was granted twice.`);
    const earlier = this.#byName.get(name) ?? [];
    const last = earlier.at(-1);
    if (last !== undefined && last >= fence)
      this.#violate("S2", `${name} was granted under ${fence} after ${last}.`);
    if (last !== undefined && this.#grants.get(last)?.isCurrent)
      this.#violate("S2", `${name} was granted under ${fence} while ${last} stands.`);
    const { waiting } = params as { readonly waiting?: unknown };
    if (verb === "locks.acquire" && waiting && last !== undefined)
      this.#log.saw("lock-waiter-served");
    this.#byName.set(name, [...earlier, fence]);
    this.#grants.set(fence, {
      name,
      fence,
      holder: String(holder),
      grantedMs: worldMs,
      until: Number(until),
      isCurrent: true,
      hasBegun: false,
    });
  }

  answered({ verb, answer }: { readonly verb: string; readonly answer: unknown }): void {
    if (verb === "locks.release" && answer === false) this.#log.saw("lock-stale-release-refused");
  }

  /** A function begins under this fence: once, for its holder, and while the grant is valid. */
  begun(process: SimulatedProcess, fence: number, { isExcused }: { readonly isExcused: boolean }) {
    const grant = this.#grants.get(fence);
    if (!grant || grant.holder !== process.holdfast.instanceId)
      return this.#violate("S1", `${process.label} works under fence ${fence}, not granted to it.`);
    if (grant.hasBegun) this.#violate("E", `A second function began under fence ${fence}.`);
    grant.hasBegun = true;
    if (!grant.isCurrent && !isExcused)
      this.#violate("E", `${process.label} began under fence ${fence}, which was lost by then.`);
  }

  /** The call succeeded: then no other caller had the lock before its function ended. */
  succeeded(
    fence: number,
    params: { readonly endedMs: number; readonly isExcused: boolean },
  ): void {
    const { name = "?" } = this.#grants.get(fence) ?? {};
    const next = (this.#byName.get(name) ?? []).find((each) => each > fence);
    const grantedMs = next === undefined ? undefined : this.#grants.get(next)?.grantedMs;
    if (grantedMs !== undefined && grantedMs < params.endedMs && !params.isExcused)
      this.#violate("E", `${name} had a second holder while ${fence} worked, which was not told.`);
  }

  #violate(promise: string, text: string): void {
    this.#log.violate(promise, text);
  }
}
