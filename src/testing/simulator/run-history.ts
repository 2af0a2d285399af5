// Runs and leases as the committed transactions left them, and the promises about them: S1 to S3, S7,
// S8, S10, S14 and S16, judged at every commit from the rows that it changed.

import type { ExchangeParams, Grant, Settlement } from "../../store/store.js";
import type { Chronicle } from "./chronicle.js";
import { type Effects, short } from "./effects.js";
import { ELSEWHERE } from "./elsewhere-names.js";
import { isElsewhere } from "./jobs.js";
import { MONITOR_JOB } from "./monitor-plan.js";
import type { Note } from "./notes.js";
import type { SimulatedProcess } from "./process.js";
import { judgeTold } from "./telling.js";

/** One committed transaction. */
export type Transaction = {
  readonly process: SimulatedProcess;
  readonly verb: string;
  readonly params: unknown;
  /** By the database's clock. */
  readonly now: number;
  /** By no clock of any machine. */
  readonly worldMs: number;
  readonly notes: readonly Note[];
};

export type RunFacts = {
  readonly id: string;
  readonly job: string;
  readonly queue: string;
  readonly mode: number;
  readonly schedule: number | null;
  readonly nominalAt: number | null;
  readonly policy: PolicyFacts;
  /** The tables that it is in. */
  places: number;
  isGated: boolean;
  /** Ready, waiting for time alone, or held, before this transaction. */
  wasActive: boolean;
  fence: number | null;
  lastFence: number;
  attempt: number;
  grants: number;
  refunds: number;
  revives: number;
  status: number | null;
  wakeAt: number;
  readyAt: number;
};

export type PolicyFacts = {
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly isLossFinal: boolean;
};

export type LeaseFacts = {
  readonly fence: number;
  readonly holder: number;
  readonly process: SimulatedProcess | undefined;
  readonly attempt: number;
  until: number;
  ids: readonly string[];
  cancels: Readonly<Record<string, number>>;
};

/** How a grant ended. */
export type GrantEnd = "settled" | "committed" | "reclaimed" | "cancel-enforced";

const READY = 1;
const WAITING = 2;
const HELD = 4;
const ENDED = 8;
const COMPLETED = 1;
const FAILED = 2;
const CANCELLED = 3;
const ATTEMPT_LOST = 1;
const CANCEL_GRACE_MS = 30_000;
/** Verbs that keep an end as an attempt, since the run goes on. */
const REVIVING = ["retry", "retryChildren", "writeSchedules"];
/** Longer than the database is ever away, and than a worker backs off. */
const KEPT_MAX_MS = 300_000;

export class RunHistory {
  readonly runs = new Map<string, RunFacts>();
  readonly leases = new Map<number, LeaseFacts>();
  readonly removed = new Set<string>();
  readonly ends = new Map<string, GrantEnd>();
  /** Of those that were settled, the ones that were cancelled by it. */
  readonly cancelledEnds = new Set<string>();
  readonly processes = new Map<number, SimulatedProcess>();
  readonly #lanes = new Map<number, { readonly queue: string; readonly job: string }>();
  readonly #policies = new Map<number, PolicyFacts>();
  readonly #pausedQueues = new Set<string>();
  readonly #chronicle: Chronicle;
  readonly #effects: Effects;
  #fenceMax = 0;
  // Of the transaction that is being judged.
  #touched = new Map<string, RunFacts>();
  #left = new Map<string, LeaseFacts>();
  #claimed = 0;

  constructor(chronicle: Chronicle, effects: Effects) {
    this.#chronicle = chronicle;
    this.#effects = effects;
  }

  /** Takes in one transaction; answers the runs that it touched. */
  commit(transaction: Transaction): ReadonlyMap<string, RunFacts> {
    this.#touched = new Map();
    this.#left = new Map();
    this.#claimed = 0;
    for (const note of transaction.notes) this.#take(note, transaction);
    for (const run of this.#touched.values()) this.#judgePlace(run, transaction);
    if (transaction.verb === "exchange") this.#judgeExchange(transaction);
    return this.#touched;
  }

  isQueuePaused(queue: string): boolean {
    return this.#pausedQueues.has(queue);
  }

  isActive({ places, isGated }: RunFacts): boolean {
    return (places & (READY | HELD)) !== 0 || ((places & WAITING) !== 0 && !isGated);
  }

  isReady({ places }: RunFacts): boolean {
    return places === READY;
  }

  isTerminal({ places }: RunFacts): boolean {
    return places === ENDED;
  }

  isWaiting({ places }: RunFacts): boolean {
    return (places & WAITING) !== 0;
  }

  // ── rows ───────────────────────────────────────────────────────────────────────────────────────

  #take(note: Note, transaction: Transaction): void {
    const [kind, first] = note;
    switch (kind) {
      case "run+":
        this.#born(note);
        break;
      case "run-":
        this.#gone(String(first));
        break;
      case "waiting~":
        this.#waits(note);
        break;
      case "ready+":
      case "waiting+":
        this.#pending(note, transaction);
        break;
      case "ready-":
        this.#leave(String(first), READY);
        break;
      case "waiting-":
        this.#leave(String(first), WAITING);
        break;
      case "lease+":
        this.#granted(note, transaction);
        break;
      case "lease~":
        this.#leaseChanged(note, transaction);
        break;
      case "lease-":
        this.#leaseEnded(Number(first), JSON.parse(String(note[2])), transaction);
        break;
      case "outcome+":
        this.#ended(note, transaction);
        break;
      case "outcome~":
        this.#endChanged(note, transaction);
        break;
      case "outcome-":
        this.#revived(note, transaction);
        break;
      case "attempt+":
        this.#attempted(note, transaction);
        break;
      case "progress+":
      case "progress~":
      case "log+":
      case "log~":
        this.#told(note, transaction);
        break;
      case "queue+":
      case "queue~":
        this.#queueChanged(String(first), note[2] !== null);
        break;
      case "lane+":
        this.#lanes.set(Number(first), { queue: String(note[2]), job: String(note[3]) });
        break;
      case "policy+":
        this.#policies.set(Number(first), {
          leaseMs: Number(note[2]),
          timeoutMs: Number(note[3]),
          attempts: Number(note[4]),
          isLossFinal: note[5] === 1,
        });
        break;
      case "instance+":
        // Who works elsewhere is announced by whoever serves it.
        if (String(note[2]).startsWith(ELSEWHERE)) break;
        transaction.process.holder = Number(first);
        this.processes.set(Number(first), transaction.process);
        break;
      default:
        break;
    }
  }

  #told(note: Note, transaction: Transaction): void {
    // What came back of a dispatch is told of a grant that may be over, and of no other.
    const isReply = note[0].startsWith("log") && note[3] === 0;
    if (isReply && (this.runs.get(String(note[1]))?.lastFence ?? 0) >= Number(note[2])) return;
    const fence = this.runs.get(String(note[1]))?.fence;
    const lease = this.leases.get(Number(note[2]));
    const isHolder = lease !== undefined && this.#isHolder(lease, transaction);
    judgeTold(note, { fence, isHolder }, transaction.process, this.#chronicle);
  }

  #queueChanged(queue: string, isPaused: boolean): void {
    if (isPaused) this.#pausedQueues.add(queue);
    else if (this.#pausedQueues.delete(queue)) {
      const isHeld = (run: RunFacts) => run.queue === queue && run.places === READY;
      if ([...this.runs.values()].some(isHeld)) this.#chronicle.saw("paused-queue-held");
    }
  }

  #born([, id, lane, policy, mode, schedule, nominalAt]: Note): void {
    const where = this.#lanes.get(Number(lane)) ?? { queue: "", job: "" };
    const run: RunFacts = {
      id: String(id),
      ...where,
      mode: Number(mode),
      schedule: schedule === null ? null : Number(schedule),
      nominalAt: nominalAt === null ? null : Number(nominalAt),
      policy: this.#policies.get(Number(policy)) as PolicyFacts,
      places: 0,
      isGated: false,
      wasActive: false,
      fence: null,
      lastFence: 0,
      attempt: 0,
      grants: 0,
      refunds: 0,
      revives: 0,
      status: null,
      wakeAt: 0,
      readyAt: 0,
    };
    if (this.runs.has(run.id)) this.#violate("S16", `Run ${run.id} was stored twice.`);
    this.runs.set(run.id, run);
    this.#touched.set(run.id, run);
  }

  #gone(id: string): void {
    const run = this.#touch(id);
    if (run && run.places !== 0)
      this.#violate("S11", `Run ${id} was removed, but is still ${placesText(run.places)}.`);
    this.runs.delete(id);
    this.#touched.delete(id);
    this.removed.add(id);
  }

  /** A run came from behind a gate, or from the future, to stand in line for a limit. */
  #waits([, id, gate, wakeAt]: Note): void {
    const run = this.#touch(String(id));
    if (!run) return;
    run.isGated = gate === "schedule";
    run.wakeAt = Number(wakeAt);
  }

  #pending(note: Note, { verb, now }: Transaction): void {
    const [kind, id, attempt, , , , extra] = note;
    const run = this.#touch(String(id));
    if (!run) return;
    const lease = this.#left.get(run.id);
    if (lease && Number(attempt) === lease.attempt - 1) run.refunds += 1;
    else if (lease && Number(attempt) !== lease.attempt)
      this.#violate("S10", `Run ${run.id} went from attempt ${lease.attempt} to ${attempt}.`);
    if (Number(extra) > run.revives)
      this.#violate("S10", `Run ${run.id} has ${extra} more attempts, but ${run.revives} retries.`);
    run.attempt = Number(attempt);
    if (run.isGated && kind === "ready+" && verb === "writeSchedules") {
      this.#chronicle.saw("gate-opened");
      this.#chronicle.tell(() => `run ${short(run.id)} no longer waits for the one before it`);
    }
    run.isGated = kind === "waiting+" && note[8] === "schedule";
    run.wakeAt = kind === "waiting+" ? Number(note[9]) : 0;
    run.readyAt = now;
    this.#enter(run, kind === "ready+" ? READY : WAITING);
  }

  // ── leases ─────────────────────────────────────────────────────────────────────────────────────

  #granted(note: Note, transaction: Transaction): void {
    const { process, verb, now } = transaction;
    const [, fence, holder, laneId, policy, attempt, , extra, until, ids, suspect] = note;
    const members = JSON.parse(String(ids)) as string[];
    const lane = this.#lanes.get(Number(laneId));
    const lease: LeaseFacts = {
      fence: Number(fence),
      holder: Number(holder),
      process: this.processes.get(Number(holder)),
      attempt: Number(attempt),
      until: Number(until),
      ids: members,
      cancels: {},
    };
    if (lease.fence <= this.#fenceMax)
      this.#violate("S1", `Fence ${fence} was granted although ${this.#fenceMax} was before it.`);
    this.#fenceMax = Math.max(this.#fenceMax, lease.fence);
    this.leases.set(lease.fence, lease);
    if (verb !== "exchange" || !this.#isHolder(lease, transaction))
      this.#violate("S1", `Fence ${fence} was granted to ${lease.process?.label} by ${verb}.`);
    if (lane && this.#pausedQueues.has(lane.queue))
      this.#violate("S14", `Fence ${fence} was granted from the paused queue ${lane.queue}.`);
    const { attempts = 0, leaseMs = 0 } = this.#policies.get(Number(policy)) ?? {};
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
    const run = this.#touch(id);
    if (!run) return undefined;
    if (lease.fence <= run.lastFence)
      this.#violate("S2", `Run ${id} was granted fence ${lease.fence} after ${run.lastFence}.`);
    run.fence = lease.fence;
    run.lastFence = lease.fence;
    run.grants += 1;
    const allowed = run.policy.attempts + run.revives + run.refunds;
    if (run.grants > allowed)
      this.#violate("S10", `Run ${id} was granted ${run.grants} times, of ${allowed} allowed.`);
    this.#enter(run, HELD);
    return run;
  }

  #leaseChanged(note: Note, transaction: Transaction): void {
    const [, fence, holderBefore, holder, untilBefore, until, idsBefore, ids, , cancels] = note;
    const { verb, process, now } = transaction;
    const lease = this.leases.get(Number(fence));
    if (!lease) return;
    if (holderBefore !== holder)
      this.#violate("S1", `Fence ${fence} passed from holder ${holderBefore} to ${holder}.`);
    if (until !== untilBefore) {
      if ((verb !== "renew" && verb !== "progress") || !this.#isHolder(lease, transaction))
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

  #leaseEnded(fence: number, ids: readonly string[], transaction: Transaction): void {
    const lease = this.leases.get(fence);
    if (!lease) return;
    for (const id of ids) this.#released(id, lease, transaction);
    this.leases.delete(fence);
  }

  /**
   * Whether it is the holder that acts. For workers elsewhere any instance does, in their name; and for
   * a dispatched run in the name of the one that sent it.
   */
  #isHolder({ process: holder, holder: no, ids }: LeaseFacts, acting: Transaction): boolean {
    const job = this.runs.get(ids[0] ?? "")?.job ?? "";
    if (holder && (holder === acting.process || !isElsewhere(job)))
      return holder === acting.process;
    return (acting.params as { readonly holder?: number }).holder === no;
  }

  /** A run leaves its holder: only by the holder's word, by expiry, or by a cancel that is overdue. */
  #released(id: string, lease: LeaseFacts, transaction: Transaction): void {
    const { verb, process, params, now } = transaction;
    const run = this.#touch(id);
    if (!run) return;
    this.#leave(id, HELD);
    run.fence = null;
    this.#left.set(id, lease);
    const key = `${id} ${lease.fence}`;
    const who = lease.process?.label ?? "nobody";
    switch (verb) {
      case "exchange": {
        const asked = (params as ExchangeParams).settlements.find(
          (each) => each.id === id && each.fence === lease.fence,
        );
        if (asked?.to === "cancelled") this.cancelledEnds.add(key);
        if (!asked || !this.#isHolder(lease, transaction))
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

  // ── ends ───────────────────────────────────────────────────────────────────────────────────────

  /** An end stands. What a monitor was told last is all that holds of it, and was never work of ours. */
  #endChanged([, id, status]: Note, { verb }: Transaction): void {
    const run = this.#touch(String(id));
    if (!run) return;
    if (run.job !== MONITOR_JOB)
      this.#violate("S8", `The end of run ${id} was changed by ${verb}.`);
    run.status = Number(status);
  }

  #ended(note: Note, { verb, params }: Transaction): void {
    const [, id, fenceOrNull, status, , , result] = note;
    const run = this.#touch(String(id));
    if (!run) return;
    if (run.job === MONITOR_JOB) {
      this.#toldOf(run, note, verb);
      return;
    }
    const lease = this.#left.get(run.id);
    const fence = fenceOrNull === null ? null : Number(fenceOrNull);
    if (fence !== (lease?.fence ?? null))
      this.#violate("S8", `Run ${id} ended under fence ${fence}, but left ${lease?.fence}.`);
    run.status = Number(status);
    this.#enter(run, ENDED);
    const settlement = verb === "exchange" ? settlementOf(params, run.id, fence) : undefined;
    this.#chronicle.tell(
      () => `run ${short(run.id)} (${run.job}) is ${statusText(run.status)} under fence ${fence}`,
    );
    if (status === COMPLETED) {
      if (settlement?.to !== "completed" && verb !== "commit")
        this.#violate("S8", `Run ${id} is completed, but ${verb} did not say so.`);
      this.#judgeEffect(run, fence, result);
    }
    if (status === CANCELLED) {
      if (fence === null) this.#chronicle.saw("cancel-pending");
      else if (verb === "exchange") this.#chronicle.saw("cancel-obeyed");
    }
    if (status === FAILED && verb === "reclaim") {
      this.#chronicle.saw(run.job === "poison" ? "poison-died" : "final-loss");
    }
  }

  /** A run that ended elsewhere: it is told of as a whole, by a change of its schedule. */
  #toldOf(run: RunFacts, [, , fence, status]: Note, verb: string): void {
    if (verb !== "writeSchedules" || fence !== null || run.grants > 0)
      this.#violate("S8", `The check-in ${run.id} ended by ${verb} under fence ${fence}.`);
    run.status = Number(status);
    this.#enter(run, ENDED);
  }

  /** A completed run has done its work, under the very fence that completed it. */
  #judgeEffect(run: RunFacts, fence: number | null, result: Note[number] | undefined): void {
    const told = JSON.parse(String(result ?? "null")) as { fence?: number } | null;
    if (told?.fence !== fence)
      this.#violate("S3", `Run ${run.id} ended under ${fence} with a result of ${told?.fence}.`);
    if (fence !== null && !this.#effects.hasEnded(run.id, fence))
      this.#violate("E", `Run ${run.id} is completed, but its handler did not end under ${fence}.`);
  }

  #revived(note: Note, { verb }: Transaction): void {
    const [, id, , status] = note;
    const run = this.#touch(String(id));
    if (!run) return;
    this.#leave(run.id, ENDED);
    run.status = null;
    if (verb === "remove" || verb === "prune") return;
    if (status === COMPLETED) this.#violate("S8", `Run ${id} was completed, and goes on.`);
    run.revives += 1;
    this.#chronicle.saw("retry-by-operator");
  }

  #attempted([, id, fence, , ended]: Note, { verb }: Transaction): void {
    const run = this.#touch(String(id));
    if (!run || REVIVING.includes(verb)) return;
    const hasBegun = this.#effects.hasBegun(run.id, Number(fence));
    const name = ["failed", "lost", "timeout", "later", "handed_back", "cancelled"][Number(ended)];
    this.#chronicle.tell(() => `run ${short(run.id)} (${run.job}): attempt ended as ${name}`);
    if (name === "failed" && run.job === "wrong")
      this.#violate("S14", `Run ${id} failed for good, and is tried again.`);
    if (name === "timeout") this.#chronicle.saw("timed-out");
    if (name === "later") this.#chronicle.saw("postponed");
    if (name === "handed_back") this.#chronicle.saw("handed-back");
    if (ended !== ATTEMPT_LOST) return;
    // The rows of attempts are written before those of the pending run: judged when both are known.
    this.#lost.push({ run, hasBegun });
  }

  readonly #lost: { readonly run: RunFacts; readonly hasBegun: boolean }[] = [];

  // ── judgements ─────────────────────────────────────────────────────────────────────────────────

  #judgePlace(run: RunFacts, { verb }: Transaction): void {
    if (run.places !== 0 && (run.places & (run.places - 1)) === 0) return;
    this.#violate("S16", `After ${verb}, run ${run.id} is ${placesText(run.places)}.`);
  }

  #judgeExchange({ params }: Transaction): void {
    const { limit, wantsSuspect, settlements } = params as ExchangeParams;
    const most = wantsSuspect ? Math.min(1, limit) : limit;
    if (this.#claimed > most)
      this.#violate("S7", `A claim of at most ${most} got ${this.#claimed} runs.`);
    for (const { id, fence } of settlements) {
      if (this.ends.get(`${id} ${fence}`) === "settled" && this.#left.get(id)?.fence !== fence)
        this.#chronicle.saw("settle-repeated");
      const run = this.runs.get(id);
      if (run?.fence === fence && this.#left.get(id)?.fence !== fence)
        this.#violate("S3", `Run ${id} was settled under its fence ${fence}, without effect.`);
    }
  }

  /** Losses of the last transaction, once all its rows are known. */
  judgeLosses(): void {
    for (const { run, hasBegun } of this.#lost.splice(0)) {
      const lease = this.#left.get(run.id);
      if (!lease) continue;
      const isRefund = run.attempt === lease.attempt - 1;
      if (isRefund) this.#chronicle.saw("final-loss-refunded");
      if (isRefund && hasBegun)
        this.#violate("S10", `Run ${run.id} had begun, was lost, and its attempt does not count.`);
      if (run.policy.isLossFinal && hasBegun)
        this.#violate("S10", `Run ${run.id} must not be repeated after a loss, and is.`);
    }
  }

  #touch(id: string): RunFacts | undefined {
    const known = this.#touched.get(id);
    if (known) return known;
    const run = this.runs.get(id);
    if (!run) {
      this.#violate("S13", `Rows speak of run ${id}, which does not exist.`);
      return undefined;
    }
    run.wasActive = this.isActive(run);
    this.#touched.set(id, run);
    return run;
  }

  #enter(run: RunFacts, place: number): void {
    if ((run.places & place) !== 0)
      this.#violate("S16", `Run ${run.id} is twice ${placesText(place)}.`);
    run.places |= place;
  }

  #leave(id: string, place: number): void {
    const run = this.#touch(id);
    if (!run) return;
    if ((run.places & place) === 0)
      this.#violate("S16", `Run ${id} left a place that it was not in: ${placesText(place)}.`);
    run.places &= ~place;
  }

  #violate(promise: string, text: string): void {
    this.#chronicle.violate(promise, text);
  }
}

function settlementOf(params: unknown, id: string, fence: number | null): Settlement | undefined {
  return (params as ExchangeParams).settlements.find(
    (each) => each.id === id && each.fence === fence,
  );
}

function placesText(places: number): string {
  const names = ["ready", "waiting", "held", "ended"].filter((_, at) => (places >> at) & 1);
  return names.join(" and ") || "nowhere";
}

function statusText(status: number | null): string {
  return ["", "completed", "failed", "cancelled"][status ?? 0] ?? "";
}
