// Checks at every commit, from the changed rows, how runs wait and end: S3 (for progress and log lines), S7, S8, S10,
// S11, S14, S16 and E. leases.ts checks grants and their ends, run-places.ts the table that each run is in.

import type { ExchangeParams, Settlement } from "../../../store/claims.js";
import type { EventLog } from "../event-log.js";
import { REMOTE_WORKER_PREFIX } from "../workload/jobs.js";
import { MONITOR_JOB } from "../workload/plan.js";
import { type Effects, short } from "./effects.js";
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
  type RunFacts,
  RunPlaces,
  type Transaction,
  WAITING,
} from "./run-places.js";

const COMPLETED = 1;
const FAILED = 2;
const CANCELLED = 3;
const ATTEMPT_LOST = 1;
/** Verbs that store an end as an attempt, because the run goes on. */
const REVIVING = ["runs.retry", "batches.retryChildren", "schedules.write"];

export class RunHistory {
  readonly #places: RunPlaces;
  readonly #leases: LeaseHistory;
  readonly #log: EventLog;
  readonly #effects: Effects;
  readonly #lost: { readonly run: RunFacts; readonly hasBegun: boolean }[] = [];

  constructor(log: EventLog, effects: Effects) {
    this.#log = log;
    this.#effects = effects;
    this.#places = new RunPlaces(log);
    this.#leases = new LeaseHistory(this.#places, log, effects);
  }

  /** Checks one transaction and returns the runs that it touched. */
  commit(transaction: Transaction): ReadonlyMap<string, RunFacts> {
    this.#places.begin();
    this.#leases.begin();
    for (const note of transaction.notes) this.#take(note, transaction);
    for (const run of this.#places.touched.values()) this.#checkPlace(run, transaction);
    if (transaction.verb === "claims.exchange") this.#checkExchange(transaction);
    return this.#places.touched;
  }

  get runs(): ReadonlyMap<string, RunFacts> {
    return this.#places.runs;
  }

  get removed(): ReadonlySet<string> {
    return this.#places.removed;
  }

  get leases(): ReadonlyMap<number, LeaseFacts> {
    return this.#leases.leases;
  }

  /** How grants ended, by run and fence. */
  get ends(): ReadonlyMap<string, GrantEnd> {
    return this.#leases.ends;
  }

  /** Settled grants whose settlement cancelled the run. */
  get cancelledEnds(): ReadonlySet<string> {
    return this.#leases.cancelledEnds;
  }

  isQueuePaused(queue: string): boolean {
    return this.#places.pausedQueues.has(queue);
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
        this.#places.leave(String(first), READY);
        break;
      case "waiting-":
        this.#places.leave(String(first), WAITING);
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
        this.#places.lanes.set(Number(first), { queue: String(note[2]), job: String(note[3]) });
        break;
      case "policy+":
        this.#places.policies.set(Number(first), {
          leaseMs: Number(note[2]),
          attempts: Number(note[3]),
          isLossFinal: note[4] === 1,
        });
        break;
      case "instance+":
        // The instance that serves a remote worker announces it.
        if (String(note[2]).startsWith(REMOTE_WORKER_PREFIX)) break;
        this.#leases.announced(Number(first), transaction.process);
        break;
      default:
        break;
    }
  }

  #told(note: Note, transaction: Transaction): void {
    // The reply to a dispatch may be stored after its grant is over, but only for that grant.
    const isReply = note[0].startsWith("log") && note[3] === 0;
    if (isReply && (this.runs.get(String(note[1]))?.lastFence ?? 0) >= Number(note[2])) return;
    const fence = this.runs.get(String(note[1]))?.fence;
    const lease = this.leases.get(Number(note[2]));
    const isHolder = lease !== undefined && this.#leases.isHolder(lease, transaction);
    checkTold(note, { fence, isHolder }, transaction.process, this.#log);
  }

  #queueChanged(queue: string, isPaused: boolean): void {
    if (isPaused) this.#places.pausedQueues.add(queue);
    else if (this.#places.pausedQueues.delete(queue)) {
      const isHeld = (run: RunFacts) => run.queue === queue && isReady(run);
      if ([...this.runs.values()].some(isHeld)) this.#log.saw("paused-queue-held");
    }
  }

  #born([, id, lane, policy, mode, schedule, nominalAt]: Note): void {
    const where = this.#places.lanes.get(Number(lane)) ?? { queue: "", job: "" };
    const run: RunFacts = {
      id: String(id),
      ...where,
      mode: Number(mode),
      schedule: schedule === null ? null : Number(schedule),
      nominalAt: nominalAt === null ? null : Number(nominalAt),
      policy: this.#places.policies.get(Number(policy)) as PolicyFacts,
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
    this.#places.runs.set(run.id, run);
    this.#places.touched.set(run.id, run);
  }

  #gone(id: string): void {
    const run = this.#places.touch(id);
    if (run && run.places !== 0)
      this.#violate("S11", `Run ${id} was removed, but is still ${placesText(run.places)}.`);
    this.#places.runs.delete(id);
    this.#places.touched.delete(id);
    this.#places.removed.add(id);
  }

  /** A run that waited for a gate or for its time now waits for a limit. */
  #waits([, id, gate, wakeAt]: Note): void {
    const run = this.#places.touch(String(id));
    if (!run) return;
    run.isGated = gate === "schedule";
    run.wakeAt = Number(wakeAt);
  }

  #pending(note: Note, { verb, now }: Transaction): void {
    const [kind, id, attempt, , , , extra] = note;
    const run = this.#places.touch(String(id));
    if (!run) return;
    const lease = this.#places.left.get(run.id);
    if (lease && Number(attempt) === lease.attempt - 1) run.refunds += 1;
    else if (lease && Number(attempt) !== lease.attempt)
      this.#violate("S10", `Run ${run.id} went from attempt ${lease.attempt} to ${attempt}.`);
    if (Number(extra) > run.revives)
      this.#violate("S10", `Run ${run.id} has ${extra} more attempts, but ${run.revives} retries.`);
    run.attempt = Number(attempt);
    if (run.isGated && kind === "ready+" && verb === "schedules.write") {
      this.#log.saw("gate-opened");
      this.#log.narrate(() => `run ${short(run.id)} no longer waits for the one before it`);
    }
    run.isGated = kind === "waiting+" && note[8] === "schedule";
    run.wakeAt = kind === "waiting+" ? Number(note[9]) : 0;
    run.readyAt = now;
    this.#places.enter(run, kind === "ready+" ? READY : WAITING);
  }

  // ── ends ───────────────────────────────────────────────────────────────────────────────────────

  /** An end is final. Only a check-in of a monitor may replace an earlier one, because it records no work of ours. */
  #endChanged([, id, status]: Note, { verb }: Transaction): void {
    const run = this.#places.touch(String(id));
    if (!run) return;
    if (run.job !== MONITOR_JOB)
      this.#violate("S8", `The end of run ${id} was changed by ${verb}.`);
    run.status = Number(status);
  }

  #ended(note: Note, { verb, params }: Transaction): void {
    const [, id, fenceOrNull, status, , , result] = note;
    const run = this.#places.touch(String(id));
    if (!run) return;
    if (run.job === MONITOR_JOB) {
      this.#toldOf(run, note, verb);
      return;
    }
    const lease = this.#places.left.get(run.id);
    const fence = fenceOrNull === null ? null : Number(fenceOrNull);
    if (fence !== (lease?.fence ?? null))
      this.#violate("S8", `Run ${id} ended under fence ${fence}, but left ${lease?.fence}.`);
    run.status = Number(status);
    this.#places.enter(run, ENDED);
    const settlement = verb === "claims.exchange" ? settlementOf(params, run.id, fence) : undefined;
    this.#log.narrate(
      () => `run ${short(run.id)} (${run.job}) is ${statusText(run.status)} under fence ${fence}`,
    );
    if (status === COMPLETED) {
      if (settlement?.to !== "completed" && verb !== "commits.run")
        this.#violate("S8", `Run ${id} is completed, but ${verb} did not say so.`);
      this.#checkEffect(run, fence, result);
    }
    if (status === CANCELLED) {
      if (fence === null) this.#log.saw("cancel-pending");
      else if (verb === "claims.exchange") this.#log.saw("cancel-obeyed");
    }
    if (status === FAILED && verb === "leases.reclaim") {
      this.#log.saw(run.job === "poison" ? "poison-died" : "final-loss");
    }
  }

  /** A check-in stores an ended run of a monitor as a whole, with a change of its schedule. */
  #toldOf(run: RunFacts, [, , fence, status]: Note, verb: string): void {
    if (verb !== "schedules.write" || fence !== null || run.grants > 0)
      this.#violate("S8", `The check-in ${run.id} ended by ${verb} under fence ${fence}.`);
    run.status = Number(status);
    this.#places.enter(run, ENDED);
  }

  /** A completed run has done its work, under the fence that completed it. */
  #checkEffect(run: RunFacts, fence: number | null, result: Note[number] | undefined): void {
    const told = JSON.parse(String(result ?? "null")) as { fence?: number } | null;
    if (told?.fence !== fence)
      this.#violate("S3", `Run ${run.id} ended under ${fence} with a result of ${told?.fence}.`);
    if (fence !== null && !this.#effects.hasEnded(run.id, fence))
      this.#violate("E", `Run ${run.id} is completed, but its handler did not end under ${fence}.`);
  }

  #revived(note: Note, { verb }: Transaction): void {
    const [, id, , status] = note;
    const run = this.#places.touch(String(id));
    if (!run) return;
    this.#places.leave(run.id, ENDED);
    run.status = null;
    if (verb === "runs.remove" || verb === "retention.prune") return;
    if (status === COMPLETED) this.#violate("S8", `Run ${id} was completed, and goes on.`);
    run.revives += 1;
    this.#log.saw("retry-by-operator");
  }

  #attempted([, id, fence, , ended]: Note, { verb }: Transaction): void {
    const run = this.#places.touch(String(id));
    if (!run || REVIVING.includes(verb)) return;
    const hasBegun = this.#effects.hasBegun(run.id, Number(fence));
    const name = ["failed", "lost", "timeout", "later", "handed_back", "cancelled", "suspended"][
      Number(ended)
    ];
    this.#log.narrate(() => `run ${short(run.id)} (${run.job}): attempt ended as ${name}`);
    if (name === "failed" && run.job === "wrong")
      this.#violate("S14", `Run ${id} failed for good, and is tried again.`);
    if (name === "timeout") this.#log.saw("timed-out");
    if (name === "later") this.#log.saw("postponed");
    if (name === "handed_back") this.#log.saw("handed-back");
    if (ended !== ATTEMPT_LOST) return;
    // The rows of attempts are written before those of the pending run: checked when both are known.
    this.#lost.push({ run, hasBegun });
  }

  // ── judgements ─────────────────────────────────────────────────────────────────────────────────

  #checkPlace(run: RunFacts, { verb }: Transaction): void {
    if (run.places !== 0 && (run.places & (run.places - 1)) === 0) return;
    this.#violate("S16", `After ${verb}, run ${run.id} is ${placesText(run.places)}.`);
  }

  #checkExchange({ params }: Transaction): void {
    const { limit, wantsSuspect, settlements } = params as ExchangeParams;
    const most = wantsSuspect ? Math.min(1, limit) : limit;
    if (this.#leases.claimed > most)
      this.#violate("S7", `A claim of at most ${most} got ${this.#leases.claimed} runs.`);
    for (const { id, fence } of settlements) {
      if (
        this.ends.get(`${id} ${fence}`) === "settled" &&
        this.#places.left.get(id)?.fence !== fence
      )
        this.#log.saw("settle-repeated");
      const run = this.runs.get(id);
      if (run?.fence === fence && this.#places.left.get(id)?.fence !== fence)
        this.#violate("S3", `Run ${id} was settled under its fence ${fence}, without effect.`);
    }
  }

  /** Losses of the last transaction, once all its rows are known. */
  checkLosses(): void {
    for (const { run, hasBegun } of this.#lost.splice(0)) {
      const lease = this.#places.left.get(run.id);
      if (!lease) continue;
      const isRefund = run.attempt === lease.attempt - 1;
      if (isRefund) this.#log.saw("final-loss-refunded");
      if (isRefund && hasBegun)
        this.#violate("S10", `Run ${run.id} had begun, was lost, and its attempt does not count.`);
      if (run.policy.isLossFinal && hasBegun)
        this.#violate("S10", `Run ${run.id} must not be repeated after a loss, and is.`);
    }
  }

  #violate(promise: string, text: string): void {
    this.#log.violate(promise, text);
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

/** Checks (S3) that only the holder under the current fence adds progress or log lines to a run. */
function checkTold(
  [kind, run, fence]: Note,
  known: {
    /** The current fence of the run. */
    readonly fence: number | null | undefined;
    /** Whether the writer is the holder. */
    readonly isHolder: boolean;
  },
  process: { readonly label: string },
  log: EventLog,
): void {
  if (known.fence !== Number(fence) || !known.isHolder)
    log.violate("S3", `${process.label} told of run ${run} under fence ${fence} (${kind}).`);
  log.saw(kind.startsWith("log") ? "log-kept" : "progress-told");
}
