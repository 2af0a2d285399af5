// Checks leases after each commit: fences only increase (S1), a run leaves its holder only by the holder's settlement,
// by expiry or by an overdue cancel (S2), and no other process writes for it (S3). It checks each grant as a whole: the
// number of runs (S7), the attempts (S10), the queue (S14), and whether it is kept without a reason (L).

import type { ExchangeParams, Grant } from "../../../store/claims.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import { isRemote } from "../workload/jobs.js";
import { type Effects, short } from "./effects.js";
import type { Note } from "./row-changes.js";
import {
  type GrantEnd,
  HELD,
  type LeaseFacts,
  type RunFacts,
  type RunPlaces,
  type Transaction,
} from "./run-places.js";

const CANCEL_GRACE_MS = 30_000;
/** Longer than any outage of the database and any backoff of a worker. */
const KEPT_MAX_MS = 300_000;

export class LeaseHistory {
  readonly leases = new Map<number, LeaseFacts>();
  readonly ends = new Map<string, GrantEnd>();
  /** Settled grants whose settlement cancelled the run. */
  readonly cancelledEnds = new Set<string>();
  readonly #places: RunPlaces;
  readonly #log: EventLog;
  readonly #effects: Effects;
  /** Processes by the number under which they hold leases. */
  readonly #processes = new Map<number, SimulatedProcess>();
  #fenceMax = 0;
  #claimed = 0;

  constructor(places: RunPlaces, log: EventLog, effects: Effects) {
    this.#places = places;
    this.#log = log;
    this.#effects = effects;
  }

  /** How many runs the current transaction has claimed. */
  get claimed(): number {
    return this.#claimed;
  }

  begin(): void {
    this.#claimed = 0;
  }

  /** A process got its number. */
  announced(holder: number, process: SimulatedProcess): void {
    process.holder = holder;
    this.#processes.set(holder, process);
  }

  granted(note: Note, transaction: Transaction): void {
    const { process, verb, now } = transaction;
    const [, fence, holder, laneId, policy, attempt, , extra, until, ids, suspect] = note;
    const members = JSON.parse(String(ids)) as string[];
    const lane = this.#places.lanes.get(Number(laneId));
    const lease: LeaseFacts = {
      fence: Number(fence),
      holder: Number(holder),
      process: this.#processes.get(Number(holder)),
      attempt: Number(attempt),
      until: Number(until),
      ids: members,
      cancels: {},
    };
    if (lease.fence <= this.#fenceMax)
      this.#violate("S1", `Fence ${fence} was granted although ${this.#fenceMax} was before it.`);
    this.#fenceMax = Math.max(this.#fenceMax, lease.fence);
    this.leases.set(lease.fence, lease);
    if (verb !== "claims.exchange" || !this.isHolder(lease, transaction))
      this.#violate("S1", `Fence ${fence} was granted to ${lease.process?.label} by ${verb}.`);
    if (lane && this.#places.pausedQueues.has(lane.queue))
      this.#violate("S14", `Fence ${fence} was granted from the paused queue ${lane.queue}.`);
    const { attempts = 0, leaseMs = 0 } = this.#places.policies.get(Number(policy)) ?? {};
    if (lease.attempt > attempts + Number(extra))
      this.#violate("S10", `Attempt ${attempt} of at most ${attempts} + ${extra} was granted.`);
    if (lease.until > now + leaseMs)
      this.#violate("S2", `Fence ${fence} was granted for longer than its lease.`);
    if (suspect === 1) {
      this.#log.saw("suspect-claimed");
      if (members.length !== 1) this.#violate("S7", `Suspects were claimed together: ${members}.`);
    }
    this.#claimed += members.length;
    for (const id of members) {
      const run = this.#held(id, lease);
      if (run?.job === "rare" && now > run.readyAt) this.#log.saw("unknown-job-waited");
    }
    this.#log.narrate(
      () => `${process.label} claims ${members.map(short).join(", ")} under fence ${fence}`,
    );
  }

  #held(id: string, lease: LeaseFacts): RunFacts | undefined {
    const run = this.#places.touch(id);
    if (!run) return undefined;
    if (lease.fence <= run.lastFence)
      this.#violate("S2", `Run ${id} was granted fence ${lease.fence} after ${run.lastFence}.`);
    run.fence = lease.fence;
    run.lastFence = lease.fence;
    run.grants += 1;
    const allowed = run.policy.attempts + run.revives + run.refunds;
    if (run.grants > allowed)
      this.#violate("S10", `Run ${id} was granted ${run.grants} times, of ${allowed} allowed.`);
    this.#places.enter(run, HELD);
    return run;
  }

  changed(note: Note, transaction: Transaction): void {
    const [, fence, holderBefore, holder, untilBefore, until, idsBefore, ids, , cancels] = note;
    const { verb, process, now } = transaction;
    const lease = this.leases.get(Number(fence));
    if (!lease) return;
    if (holderBefore !== holder)
      this.#violate("S1", `Fence ${fence} passed from holder ${holderBefore} to ${holder}.`);
    if (until !== untilBefore) {
      if (
        (verb !== "leases.renew" && verb !== "progress.write") ||
        !this.isHolder(lease, transaction)
      )
        this.#violate("S3", `Fence ${fence} was extended by ${verb} of ${process.label}.`);
      if (Number(untilBefore) <= now) this.#log.saw("expired-lease-renewed");
      lease.until = Number(until);
      this.#checkKept(lease, transaction);
    }
    lease.cancels = JSON.parse(String(cancels ?? "{}")) as Record<string, number>;
    if (ids === idsBefore) return;
    const left = new Set(JSON.parse(String(ids)) as string[]);
    const gone = (JSON.parse(String(idsBefore)) as string[]).filter((id) => !left.has(id));
    if (left.size + gone.length > lease.ids.length)
      this.#violate("S7", `Runs were added to the lease under fence ${fence}.`);
    for (const id of gone) this.#released(id, lease, transaction);
    lease.ids = [...left];
  }

  /** A process that can renew can also settle: it must not hold a run that ended long ago. */
  #checkKept({ fence, ids }: LeaseFacts, { process, worldMs }: Transaction): void {
    for (const id of ids) {
      const endedMs = this.#effects.endedMs(id, fence);
      if (endedMs !== null && worldMs - endedMs > KEPT_MAX_MS)
        this.#violate("L", `${process.label} renews run ${id}, which it ended long ago.`);
    }
  }

  ended(fence: number, ids: readonly string[], transaction: Transaction): void {
    const lease = this.leases.get(fence);
    if (!lease) return;
    for (const id of ids) this.#released(id, lease, transaction);
    this.leases.delete(fence);
  }

  /**
   * Whether the holder acts. Any instance may act for a remote worker, and for the instance that dispatched a run.
   */
  isHolder({ process: holder, holder: no, ids }: LeaseFacts, acting: Transaction): boolean {
    const job = this.#places.runs.get(ids[0] ?? "")?.job ?? "";
    if (holder && (holder === acting.process || !isRemote(job))) return holder === acting.process;
    return (acting.params as { readonly holder?: number }).holder === no;
  }

  /** A run leaves its holder only by the holder's settlement, by expiry, or by an overdue cancel. */
  #released(id: string, lease: LeaseFacts, transaction: Transaction): void {
    const { verb, process, params, now } = transaction;
    const run = this.#places.touch(id);
    if (!run) return;
    this.#places.leave(id, HELD);
    run.fence = null;
    this.#places.left.set(id, lease);
    const key = `${id} ${lease.fence}`;
    const who = lease.process?.label ?? "nobody";
    switch (verb) {
      case "claims.exchange": {
        const asked = (params as ExchangeParams).settlements.find(
          (each) => each.id === id && each.fence === lease.fence,
        );
        if (asked?.to === "cancelled") this.cancelledEnds.add(key);
        if (!asked || !this.isHolder(lease, transaction))
          this.#violate("S3", `${process.label} settled run ${id}, which ${who} holds.`);
        this.ends.set(key, "settled");
        return;
      }
      case "commits.run": {
        const grant = params as Grant;
        if (grant.id !== id || grant.fence !== lease.fence || lease.process !== process)
          this.#violate("S3", `${process.label} completed run ${id}, which ${who} holds.`);
        this.ends.set(key, "committed");
        return;
      }
      case "steps.suspend": {
        const grant = params as Grant;
        if (grant.id !== id || grant.fence !== lease.fence || !this.isHolder(lease, transaction))
          this.#violate("S3", `${process.label} suspended run ${id}, which ${who} holds.`);
        this.ends.set(key, "suspended");
        return;
      }
      case "leases.reclaim":
        if (lease.until > now)
          this.#violate(
            "S2",
            `Run ${id} was taken from ${who} ${lease.until - now} ms before its lease ran out.`,
          );
        this.ends.set(key, "reclaimed");
        if (!lease.process) this.#log.saw("remote-taken-over");
        this.#log.saw(
          lease.process && !lease.process.isDead
            ? "takeover-from-the-living"
            : "takeover-from-the-dead",
        );
        this.#log.narrate(() => `${process.label} takes run ${short(id)} from ${who}`);
        return;
      case "leases.enforceCancels": {
        const requestedAt = lease.cancels[id];
        if (requestedAt === undefined || requestedAt + CANCEL_GRACE_MS > now)
          this.#violate("S2", `Run ${id} was taken from ${who} without an overdue cancel.`);
        this.ends.set(key, "cancel-enforced");
        this.#log.saw("cancel-enforced");
        return;
      }
      default:
        this.#violate("S2", `Run ${id} was taken from ${who} by ${verb}.`);
    }
  }

  #violate(promise: string, text: string): void {
    this.#log.violate(promise, text);
  }
}
