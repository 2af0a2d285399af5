// Leases as the committed transactions left them: fences only grow (S1), a run leaves its holder only by
// the holder's word, by expiry or by an overdue cancel (S2), and nobody else speaks for it (S3). A grant is
// judged as a whole: how many (S7), how often (S10), from where (S14); so is one that is kept for no reason (L).

import type { ExchangeParams, Grant } from "../../../store/store.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import { type Effects, short } from "../workload/effects.js";
import { isElsewhere } from "../workload/jobs.js";
import type { Note } from "./row-changes.js";
import {
  type GrantEnd,
  HELD,
  type LeaseFacts,
  type RunBook,
  type RunFacts,
  type Transaction,
} from "./run-places.js";

const CANCEL_GRACE_MS = 30_000;
/** Longer than the database is ever away, and than a worker backs off. */
const KEPT_MAX_MS = 300_000;

export class LeaseHistory {
  readonly leases = new Map<number, LeaseFacts>();
  readonly ends = new Map<string, GrantEnd>();
  /** Of those that were settled, the ones that were cancelled by it. */
  readonly cancelledEnds = new Set<string>();
  readonly #book: RunBook;
  readonly #chronicle: EventLog;
  readonly #effects: Effects;
  /** By the number under which they hold leases. */
  readonly #processes = new Map<number, SimulatedProcess>();
  #fenceMax = 0;
  #claimed = 0;

  constructor(book: RunBook, chronicle: EventLog, effects: Effects) {
    this.#book = book;
    this.#chronicle = chronicle;
    this.#effects = effects;
  }

  /** How many runs the transaction that is being judged has claimed. */
  get claimed(): number {
    return this.#claimed;
  }

  begin(): void {
    this.#claimed = 0;
  }

  /** A process has its number. */
  announced(holder: number, process: SimulatedProcess): void {
    process.holder = holder;
    this.#processes.set(holder, process);
  }

  granted(note: Note, transaction: Transaction): void {
    const { process, verb, now } = transaction;
    const [, fence, holder, laneId, policy, attempt, , extra, until, ids, suspect] = note;
    const members = JSON.parse(String(ids)) as string[];
    const lane = this.#book.lanes.get(Number(laneId));
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
    if (verb !== "exchange" || !this.isHolder(lease, transaction))
      this.#violate("S1", `Fence ${fence} was granted to ${lease.process?.label} by ${verb}.`);
    if (lane && this.#book.pausedQueues.has(lane.queue))
      this.#violate("S14", `Fence ${fence} was granted from the paused queue ${lane.queue}.`);
    const { attempts = 0, leaseMs = 0 } = this.#book.policies.get(Number(policy)) ?? {};
    if (lease.attempt > attempts + Number(extra))
      this.#violate("S10", `Attempt ${attempt} of at most ${attempts} + ${extra} was granted.`);
    if (lease.until > now + leaseMs)
      this.#violate("S2", `Fence ${fence} was granted for longer than its lease.`);
    if (suspect === 1) {
      this.#chronicle.saw("suspect-claimed");
      if (members.length !== 1) this.#violate("S7", `Suspects were claimed together: ${members}.`);
    }
    this.#claimed += members.length;
    for (const id of members) {
      const run = this.#held(id, lease);
      if (run?.job === "rare" && now > run.readyAt) this.#chronicle.saw("unknown-job-waited");
    }
    this.#chronicle.tell(
      () => `${process.label} claims ${members.map(short).join(", ")} under fence ${fence}`,
    );
  }

  #held(id: string, lease: LeaseFacts): RunFacts | undefined {
    const run = this.#book.touch(id);
    if (!run) return undefined;
    if (lease.fence <= run.lastFence)
      this.#violate("S2", `Run ${id} was granted fence ${lease.fence} after ${run.lastFence}.`);
    run.fence = lease.fence;
    run.lastFence = lease.fence;
    run.grants += 1;
    const allowed = run.policy.attempts + run.revives + run.refunds;
    if (run.grants > allowed)
      this.#violate("S10", `Run ${id} was granted ${run.grants} times, of ${allowed} allowed.`);
    this.#book.enter(run, HELD);
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
      if ((verb !== "renew" && verb !== "progress") || !this.isHolder(lease, transaction))
        this.#violate("S3", `Fence ${fence} was extended by ${verb} of ${process.label}.`);
      if (Number(untilBefore) <= now) this.#chronicle.saw("expired-lease-renewed");
      lease.until = Number(until);
      this.#judgeKept(lease, transaction);
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

  /** Who can renew can settle: a run that was done long ago is not held on to. */
  #judgeKept({ fence, ids }: LeaseFacts, { process, worldMs }: Transaction): void {
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
   * Whether it is the holder that acts. For workers elsewhere any instance does, in their name; and for
   * a dispatched run in the name of the one that sent it.
   */
  isHolder({ process: holder, holder: no, ids }: LeaseFacts, acting: Transaction): boolean {
    const job = this.#book.runs.get(ids[0] ?? "")?.job ?? "";
    if (holder && (holder === acting.process || !isElsewhere(job)))
      return holder === acting.process;
    return (acting.params as { readonly holder?: number }).holder === no;
  }

  /** A run leaves its holder: only by the holder's word, by expiry, or by a cancel that is overdue. */
  #released(id: string, lease: LeaseFacts, transaction: Transaction): void {
    const { verb, process, params, now } = transaction;
    const run = this.#book.touch(id);
    if (!run) return;
    this.#book.leave(id, HELD);
    run.fence = null;
    this.#book.left.set(id, lease);
    const key = `${id} ${lease.fence}`;
    const who = lease.process?.label ?? "nobody";
    switch (verb) {
      case "exchange": {
        const asked = (params as ExchangeParams).settlements.find(
          (each) => each.id === id && each.fence === lease.fence,
        );
        if (asked?.to === "cancelled") this.cancelledEnds.add(key);
        if (!asked || !this.isHolder(lease, transaction))
          this.#violate("S3", `${process.label} settled run ${id}, which ${who} holds.`);
        this.ends.set(key, "settled");
        return;
      }
      case "commit": {
        const grant = params as Grant;
        if (grant.id !== id || grant.fence !== lease.fence || lease.process !== process)
          this.#violate("S3", `${process.label} completed run ${id}, which ${who} holds.`);
        this.ends.set(key, "committed");
        return;
      }
      case "reclaim":
        if (lease.until > now)
          this.#violate(
            "S2",
            `Run ${id} was taken from ${who} ${lease.until - now} ms before its lease ran out.`,
          );
        this.ends.set(key, "reclaimed");
        if (!lease.process) this.#chronicle.saw("remote-taken-over");
        this.#chronicle.saw(
          lease.process && !lease.process.isDead
            ? "takeover-from-the-living"
            : "takeover-from-the-dead",
        );
        this.#chronicle.tell(() => `${process.label} takes run ${short(id)} from ${who}`);
        return;
      case "enforceCancels": {
        const requestedAt = lease.cancels[id];
        if (requestedAt === undefined || requestedAt + CANCEL_GRACE_MS > now)
          this.#violate("S2", `Run ${id} was taken from ${who} without an overdue cancel.`);
        this.ends.set(key, "cancel-enforced");
        this.#chronicle.saw("cancel-enforced");
        return;
      }
      default:
        this.#violate("S2", `Run ${id} was taken from ${who} by ${verb}.`);
    }
  }

  #violate(promise: string, text: string): void {
    this.#chronicle.violate(promise, text);
  }
}
