// Runs as the committed transactions left them, and the promises about how they wait and end: S3 (what is
// told of them), S7, S8, S10, S11, S14, S16 and E, judged at every commit from the rows that it changed. What
// is granted and taken away is judged by leases.ts, where a run is by run-places.ts.

import type { ExchangeParams, Settlement } from "../../../store/store.js";
import type { EventLog } from "../event-log.js";
import { ELSEWHERE } from "../fleet/remote-names.js";
import { type Effects, short } from "../workload/effects.js";
import { MONITOR_JOB } from "../workload/monitor-plan.js";
import { judgeTold } from "../workload/reporting.js";
import { LeaseHistory } from "./leases.js";
import type { Note } from "./row-changes.js";
import {
  ENDED,
  type GrantEnd,
  isReady,
  isTerminal,
  type LeaseFacts,
  type PolicyFacts,
  placesText,
  READY,
  RunBook,
  type RunFacts,
  type Transaction,
  WAITING,
} from "./run-places.js";

const COMPLETED = 1;
const FAILED = 2;
const CANCELLED = 3;
const ATTEMPT_LOST = 1;
/** Verbs that keep an end as an attempt, since the run goes on. */
const REVIVING = ["retry", "retryChildren", "writeSchedules"];

export class RunHistory {
  readonly #book: RunBook;
  readonly #leases: LeaseHistory;
  readonly #chronicle: EventLog;
  readonly #effects: Effects;
  readonly #lost: { readonly run: RunFacts; readonly hasBegun: boolean }[] = [];

  constructor(chronicle: EventLog, effects: Effects) {
    this.#chronicle = chronicle;
    this.#effects = effects;
    this.#book = new RunBook(chronicle);
    this.#leases = new LeaseHistory(this.#book, chronicle, effects);
  }

  /** Takes in one transaction; answers the runs that it touched. */
  commit(transaction: Transaction): ReadonlyMap<string, RunFacts> {
    this.#book.begin();
    this.#leases.begin();
    for (const note of transaction.notes) this.#take(note, transaction);
    for (const run of this.#book.touched.values()) this.#judgePlace(run, transaction);
    if (transaction.verb === "exchange") this.#judgeExchange(transaction);
    return this.#book.touched;
  }

  get runs(): ReadonlyMap<string, RunFacts> {
    return this.#book.runs;
  }

  get removed(): ReadonlySet<string> {
    return this.#book.removed;
  }

  get leases(): ReadonlyMap<number, LeaseFacts> {
    return this.#leases.leases;
  }

  /** How grants ended, by run and fence. */
  get ends(): ReadonlyMap<string, GrantEnd> {
    return this.#leases.ends;
  }

  /** Of those that were settled, the ones that were cancelled by it. */
  get cancelledEnds(): ReadonlySet<string> {
    return this.#leases.cancelledEnds;
  }

  isQueuePaused(queue: string): boolean {
    return this.#book.pausedQueues.has(queue);
  }

  unended(): RunFacts[] {
    const unended: RunFacts[] = [];
    for (const run of this.runs.values()) if (!isTerminal(run)) unended.push(run);
    return unended;
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
        this.#book.leave(String(first), READY);
        break;
      case "waiting-":
        this.#book.leave(String(first), WAITING);
        break;
      case "lease+":
        this.#leases.granted(note, transaction);
        break;
      case "lease~":
        this.#leases.changed(note, transaction);
        break;
      case "lease-":
        this.#leases.ended(Number(first), JSON.parse(String(note[2])), transaction);
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
        this.#book.lanes.set(Number(first), { queue: String(note[2]), job: String(note[3]) });
        break;
      case "policy+":
        this.#book.policies.set(Number(first), {
          leaseMs: Number(note[2]),
          attempts: Number(note[3]),
          isLossFinal: note[4] === 1,
        });
        break;
      case "instance+":
        // Who works elsewhere is announced by whoever serves it.
        if (String(note[2]).startsWith(ELSEWHERE)) break;
        this.#leases.announced(Number(first), transaction.process);
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
    const isHolder = lease !== undefined && this.#leases.isHolder(lease, transaction);
    judgeTold(note, { fence, isHolder }, transaction.process, this.#chronicle);
  }

  #queueChanged(queue: string, isPaused: boolean): void {
    if (isPaused) this.#book.pausedQueues.add(queue);
    else if (this.#book.pausedQueues.delete(queue)) {
      const isHeld = (run: RunFacts) => run.queue === queue && isReady(run);
      if ([...this.runs.values()].some(isHeld)) this.#chronicle.saw("paused-queue-held");
    }
  }

  #born([, id, lane, policy, mode, schedule, nominalAt]: Note): void {
    const where = this.#book.lanes.get(Number(lane)) ?? { queue: "", job: "" };
    const run: RunFacts = {
      id: String(id),
      ...where,
      mode: Number(mode),
      schedule: schedule === null ? null : Number(schedule),
      nominalAt: nominalAt === null ? null : Number(nominalAt),
      policy: this.#book.policies.get(Number(policy)) as PolicyFacts,
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
    this.#book.runs.set(run.id, run);
    this.#book.touched.set(run.id, run);
  }

  #gone(id: string): void {
    const run = this.#book.touch(id);
    if (run && run.places !== 0)
      this.#violate("S11", `Run ${id} was removed, but is still ${placesText(run.places)}.`);
    this.#book.runs.delete(id);
    this.#book.touched.delete(id);
    this.#book.removed.add(id);
  }

  /** A run came from behind a gate, or from the future, to stand in line for a limit. */
  #waits([, id, gate, wakeAt]: Note): void {
    const run = this.#book.touch(String(id));
    if (!run) return;
    run.isGated = gate === "schedule";
    run.wakeAt = Number(wakeAt);
  }

  #pending(note: Note, { verb, now }: Transaction): void {
    const [kind, id, attempt, , , , extra] = note;
    const run = this.#book.touch(String(id));
    if (!run) return;
    const lease = this.#book.left.get(run.id);
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
    this.#book.enter(run, kind === "ready+" ? READY : WAITING);
  }

  // ── ends ───────────────────────────────────────────────────────────────────────────────────────

  /** An end stands. What a monitor was told last is all that holds of it, and was never work of ours. */
  #endChanged([, id, status]: Note, { verb }: Transaction): void {
    const run = this.#book.touch(String(id));
    if (!run) return;
    if (run.job !== MONITOR_JOB)
      this.#violate("S8", `The end of run ${id} was changed by ${verb}.`);
    run.status = Number(status);
  }

  #ended(note: Note, { verb, params }: Transaction): void {
    const [, id, fenceOrNull, status, , , result] = note;
    const run = this.#book.touch(String(id));
    if (!run) return;
    if (run.job === MONITOR_JOB) {
      this.#toldOf(run, note, verb);
      return;
    }
    const lease = this.#book.left.get(run.id);
    const fence = fenceOrNull === null ? null : Number(fenceOrNull);
    if (fence !== (lease?.fence ?? null))
      this.#violate("S8", `Run ${id} ended under fence ${fence}, but left ${lease?.fence}.`);
    run.status = Number(status);
    this.#book.enter(run, ENDED);
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
    this.#book.enter(run, ENDED);
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
    const run = this.#book.touch(String(id));
    if (!run) return;
    this.#book.leave(run.id, ENDED);
    run.status = null;
    if (verb === "remove" || verb === "prune") return;
    if (status === COMPLETED) this.#violate("S8", `Run ${id} was completed, and goes on.`);
    run.revives += 1;
    this.#chronicle.saw("retry-by-operator");
  }

  #attempted([, id, fence, , ended]: Note, { verb }: Transaction): void {
    const run = this.#book.touch(String(id));
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

  // ── judgements ─────────────────────────────────────────────────────────────────────────────────

  #judgePlace(run: RunFacts, { verb }: Transaction): void {
    if (run.places !== 0 && (run.places & (run.places - 1)) === 0) return;
    this.#violate("S16", `After ${verb}, run ${run.id} is ${placesText(run.places)}.`);
  }

  #judgeExchange({ params }: Transaction): void {
    const { limit, wantsSuspect, settlements } = params as ExchangeParams;
    const most = wantsSuspect ? Math.min(1, limit) : limit;
    if (this.#leases.claimed > most)
      this.#violate("S7", `A claim of at most ${most} got ${this.#leases.claimed} runs.`);
    for (const { id, fence } of settlements) {
      if (this.ends.get(`${id} ${fence}`) === "settled" && this.#book.left.get(id)?.fence !== fence)
        this.#chronicle.saw("settle-repeated");
      const run = this.runs.get(id);
      if (run?.fence === fence && this.#book.left.get(id)?.fence !== fence)
        this.#violate("S3", `Run ${id} was settled under its fence ${fence}, without effect.`);
    }
  }

  /** Losses of the last transaction, once all its rows are known. */
  judgeLosses(): void {
    for (const { run, hasBegun } of this.#lost.splice(0)) {
      const lease = this.#book.left.get(run.id);
      if (!lease) continue;
      const isRefund = run.attempt === lease.attempt - 1;
      if (isRefund) this.#chronicle.saw("final-loss-refunded");
      if (isRefund && hasBegun)
        this.#violate("S10", `Run ${run.id} had begun, was lost, and its attempt does not count.`);
      if (run.policy.isLossFinal && hasBegun)
        this.#violate("S10", `Run ${run.id} must not be repeated after a loss, and is.`);
    }
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

function statusText(status: number | null): string {
  return ["", "completed", "failed", "cancelled"][status ?? 0] ?? "";
}
