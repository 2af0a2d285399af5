// Executes the runs that a worker holds. Read from top to bottom, this is the way of a run: claimed into the buffer,
// started in a free slot, ended, settled. Below that are the ways in which a run leaves early: its lease is lost, it is
// cancelled, or it is handed back.
//
// The executor never talks to the database about claims and settlements: exchange.ts does. It only records a start
// there if a loss would be final. It never decides where a run goes: runs/rules/run.ts does.
// Essay: docs/internals/lease-and-fence.md.

import type { Locking } from "../locks/locking.js";
import type { RunId } from "../runs/rules/run.js";
import { CancelledError, LeaseLostError, ShutdownError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { type Clock, momentOf, type Ports } from "../shared/ports.js";
import { type Claim, countOf, type Settlement } from "../store/claims.js";
import type { Store } from "../store/store.js";
import type { Emit, EventName, Logger } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import {
  ActiveAttempt,
  type AttemptTools,
  Deadlines,
  overTime,
  type RunnableJob,
  runAttempt,
} from "./attempt.js";
import type { ClaimPlanner } from "./claim-planner.js";
import { Completer, factsOf, type LetGo, type Report, type Tally } from "./completer.js";
import type {
  Backoff,
  ClaimedSince,
  ExchangeReceiver,
  SettlementBuffer,
  WorkerSignals,
} from "./exchange.js";
import type { FanOut } from "./handler/fan-out.js";
import { HandlerServices, type ServicesExecutor } from "./handler/services.js";
import type { Leases, Renewed } from "./leases.js";
import type { BeginWindow, Slots } from "./slots.js";

export type ExecutorParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  readonly emit: Emit;
  /** Whether an event has a listener: without one, the facts of a run are not gathered. */
  readonly listens: (name: EventName) => boolean;
  readonly logger: Logger;
  readonly meter: Meter;
  readonly tracing: Tracing | null;
  readonly fanOut: FanOut;
  readonly locking: Pick<Locking, "lock">;
  /** Counts starts under rate limits, over all workers of the instance. */
  readonly begins: BeginWindow;
  readonly signals: WorkerSignals;
  readonly slots: Slots;
  readonly leases: Leases;
  readonly claimPlanner: ClaimPlanner;
  readonly settlementBuffer: SettlementBuffer;
  readonly backoff: Backoff;
  /** Aborts when the worker is closed. */
  readonly over: AbortSignal;
  /** Lets the worker send settlements and claims soon. */
  readonly schedule: () => void;
};

export class Executor implements ExchangeReceiver, ServicesExecutor {
  readonly #params: ExecutorParams;
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #leases: Leases;
  readonly #claimPlanner: ClaimPlanner;
  readonly #services: HandlerServices;
  readonly #tools: AttemptTools;
  readonly #deadlines: Deadlines;
  readonly #completer: Completer;

  constructor(params: ExecutorParams) {
    const { ports, slots } = params;
    const { clock } = ports;
    this.#params = params;
    this.#clock = clock;
    this.#slots = slots;
    this.#leases = params.leases;
    this.#claimPlanner = params.claimPlanner;
    const services = new HandlerServices({ ...params, executor: this });
    this.#services = services;
    this.#tools = { ...params, services, wallMs: () => clock.wallMs() };
    this.#deadlines = new Deadlines({ clock, slots, executor: this });
    this.#completer = new Completer({ ...params, services });
  }

  /** Counts of attempts since the start, by how they ended. */
  get tally(): Readonly<Tally> {
    return this.#completer.tally;
  }

  // ── claimed ────────────────────────────────────────────────────────────────────────────────────

  /** Takes the runs of a claim into the buffer; they are held from here on. */
  claimed(claims: readonly Claim[], { sentAt, claimedMs }: ClaimedSince): void {
    const sinceMs = this.#clock.monotonicMs();
    for (const claim of claims) {
      // An empty claim is not held: its lease expires instead of being renewed for ever.
      if (claim.runs.length === 0) continue;
      this.#leases.granted(claim, sentAt);
      this.#claimPlanner.charge(claim);
      const job = this.#params.jobs.get(claim.job);
      if (!job) continue;
      for (const run of claim.runs)
        this.#slots.buffer(new ActiveAttempt({ claim, run, job, claimedMs }), sinceMs);
    }
    if (countOf(claims) > 0) this.#params.signals.claimed();
    this.startBuffered();
  }

  // ── started ────────────────────────────────────────────────────────────────────────────────────

  /** Starts buffered runs while there are free slots. */
  startBuffered(): void {
    // A claim may return runs after the stop began.
    if (!this.#claimPlanner.isOpen) this.handBackBuffer();
    while (this.#slots.hasRoom) {
      const next = this.#slots.firstBuffered();
      // The lease is no longer trusted: the next heartbeat renews it or reports it lost.
      if (!next || !this.#isTrusted(next)) return;
      this.#slots.takeFirstBuffered();
      if (isDangerous(next)) this.#slots.quarantine.enter(next);
      if (isLossFinal(next)) this.#recordStart(next);
      else this.#startWithinRate(next);
    }
  }

  #isTrusted({ claim }: ActiveAttempt): boolean {
    return this.#leases.isTrusted(claim.fence, momentOf(this.#clock));
  }

  /**
   * Where a loss would be final, the start is recorded before the handler is called: the instance that reclaims the run
   * must know whether it began. Starts of the same moment share one statement.
   */
  #recordStart(attempt: ActiveAttempt): void {
    if (this.#slots.awaitRecord(attempt) === 1) queueMicrotask(() => void this.#recordStarts());
  }

  async #recordStarts(): Promise<void> {
    const { store, backoff, schedule } = this.#params;
    const attempts = this.#slots.takeUnrecorded();
    const grants = attempts.map(({ run, claim }) => ({ id: run.id, fence: claim.fence }));
    try {
      const held = await store.leases.markStarted(grants);
      const isHeld = new Set(held.map(({ id, fence }) => `${id} ${fence}`));
      this.#slots.recorded(attempts.length);
      for (const attempt of attempts)
        this.#startRecorded(attempt, isHeld.has(`${attempt.run.id} ${attempt.claim.fence}`));
    } catch (error) {
      this.#slots.recorded(attempts.length);
      // Nobody knows whether the starts are stored: the runs are handed back.
      for (const attempt of attempts) this.#handBack(attempt);
      await backoff.failed("mark a start", error);
    }
    schedule();
  }

  /** The write may have taken long: the lease may be lost, or the worker stopping. */
  #startRecorded(attempt: ActiveAttempt, isHeld: boolean): void {
    if (this.#params.over.aborted) return;
    if (!isHeld || !this.#leases.has(attempt.claim.fence)) this.#lose(attempt);
    else if (!this.#claimPlanner.isOpen) this.#handBack(attempt);
    else if (this.#isTrusted(attempt)) this.#startWithinRate(attempt);
    else {
      this.#slots.quarantine.leave(attempt);
      this.#slots.buffer(attempt, this.#clock.monotonicMs());
    }
  }

  /** A run that waited in the buffer may exceed its rate by now: it then waits a little longer, or is handed back. */
  #startWithinRate(attempt: ActiveAttempt): void {
    const isRated = attempt.job.limits.rate !== null;
    const admission = isRated
      ? this.#params.begins.admit(attempt, this.#clock.monotonicMs())
      : "begins";
    if (admission === "begins") this.#start(attempt);
    else if (admission === "late") this.#handBack(attempt);
    else {
      this.#slots.quarantine.leave(attempt);
      this.#slots.defer(attempt, admission.waitMs);
    }
  }

  #start(attempt: ActiveAttempt): void {
    const { run, claim } = attempt;
    const { meter, listens, emit } = this.#params;
    // The run was lost and claimed again before a heartbeat noticed: the earlier attempt has no lease.
    const earlier = this.#slots.runningOf(run.id);
    if (earlier) this.#lose(earlier);
    attempt.startedMs = this.#clock.monotonicMs();
    this.#slots.run(attempt);
    this.#deadlines.watch(attempt);
    if (isDangerous(attempt)) this.#slots.quarantine.begun(attempt);
    // The lateness of a run that has slept is known only when the wait that woke it is known.
    if (run.laters === 0)
      meter.runStarted({ job: claim.job, dueAt: run.dueAt, wallMs: this.#clock.wallMs() });
    if (listens("run.started")) emit("run.started", factsOf(attempt));
    void runAttempt(attempt, this.#tools).then((report) =>
      attempt.hasReported ? this.#endedAfterReports(attempt, report) : this.#ended(attempt, report),
    );
  }

  // ── ended ──────────────────────────────────────────────────────────────────────────────────────

  /** The instant at which a wait of the run ended: its lateness counts from there. */
  woken(attempt: ActiveAttempt, at: number): void {
    const { clock, meter } = { clock: this.#clock, meter: this.#params.meter };
    const wallMs = clock.wallMs() - (clock.monotonicMs() - attempt.startedMs);
    meter.runStarted({ job: attempt.claim.job, dueAt: at, wallMs });
  }

  /** Progress and log lines are stored first, while the attempt still has its fence. */
  async #endedAfterReports(attempt: ActiveAttempt, report: Report | LetGo): Promise<void> {
    await this.#services.reportsStored(attempt);
    this.#ended(attempt, report);
  }

  /** The handler ignored its timeout and its grace: the run ends without it. */
  overdue(attempt: ActiveAttempt): void {
    this.#ended(attempt, overTime(attempt.claim.policy.timeoutMs));
  }

  #ended(attempt: ActiveAttempt, report: Report | LetGo): void {
    // Suspended, lost or abandoned meanwhile: the outcome no longer counts.
    if (attempt.suspension !== "none" || !this.#slots.leave(attempt)) return;
    this.#claimPlanner.ran(this.#clock.monotonicMs() - attempt.startedMs);
    this.#services.forget(attempt);
    this.#slots.quarantine.leave(attempt);
    if (attempt.commitPhase === "done") {
      this.#completer.endedAfterCommit(attempt, report);
      this.#params.schedule();
    } else if ("letGo" in report) {
      this.#completer.letGo(attempt, report);
      this.#params.signals.letGo();
      // A slot is free again, and no settlement will wake this worker.
      this.#claimMore();
    } else this.#settle(attempt, report);
    this.startBuffered();
  }

  #claimMore(): void {
    this.#claimPlanner.mayHaveWork();
    this.#params.schedule();
  }

  // ── suspended ──────────────────────────────────────────────────────────────────────────────────

  /** The database has released the run: it sleeps until one of its waits ends, or is due again at once. */
  suspended(attempt: ActiveAttempt, wakeInMs: number | null): void {
    if (!this.#slots.leave(attempt)) return;
    this.#services.forget(attempt);
    this.#slots.quarantine.leave(attempt);
    this.#leases.letGo(attempt.claim.fence);
    this.#completer.suspended(attempt, wakeInMs);
    if (wakeInMs !== null) this.#params.signals.postponed(Math.max(1, wakeInMs));
    if (attempt.claim.isLimited) this.#claimPlanner.mayHaveLimited();
    this.#claimMore();
    this.startBuffered();
  }

  /**
   * The run was taken away meanwhile, or its state is unknown: its lease expires, and its next holder finds its waits.
   */
  lostWhileSuspending(attempt: ActiveAttempt, error: unknown): void {
    if (!this.#slots.isRunning(attempt)) return;
    if (error !== null) {
      const failure = describeFailure(error);
      this.#params.emit("store.failed", { what: "suspend a run", error: failure, retryInMs: 0 });
    }
    this.#lose(attempt);
    this.startBuffered();
  }

  // ── settled ────────────────────────────────────────────────────────────────────────────────────

  /** The settlement waits in the buffer for the next exchange. */
  #settle(attempt: ActiveAttempt, report: Report): void {
    this.#completer.settle(attempt, report);
    this.#params.schedule();
  }

  /** `ctx.commit` has completed the run; its handler may still be running. */
  committed(attempt: ActiveAttempt, settlement: Settlement): void {
    this.settled([settlement]);
    // Abandoned meanwhile: its other settlement will be refused, and releases the lease.
    if (this.#slots.isRunning(attempt)) this.#completer.committed(attempt, settlement);
  }

  /** The database has stored these settlements; their leases are no longer renewed. */
  settled(settlements: readonly Settlement[]): void {
    const { signals } = this.#params;
    signals.settled(settlements);
    for (const settlement of settlements) {
      // The next run under the same limit may start.
      if (settlement.isLimited) {
        this.#claimPlanner.mayHaveLimited();
        this.#params.schedule();
      }
      if (settlement.to !== "pending") continue;
      if (settlement.delayMs === 0) this.#claimMore();
      else signals.postponed(settlement.delayMs);
    }
  }

  // ── lost ───────────────────────────────────────────────────────────────────────────────────────

  /** Applies the result of a renewal: extends leases, and drops runs that are no longer held. */
  renewed(params: Renewed): void {
    const unknown = new Set(params.unknown);
    const members = new Map(params.held.map(({ fence, ids }) => [fence, new Set(ids)]));
    for (const renewal of params.held) this.#leases.renewed(renewal, params.sentAt);
    const asked = new Set(params.asked.filter((fence) => !unknown.has(fence)));
    for (const attempt of [...this.#slots]) {
      const { fence } = attempt.claim;
      // Its commit is in flight or done: a missing lease does not mean a loss.
      if (attempt.commitPhase === "settling" || attempt.commitPhase === "done") continue;
      if (attempt.suspension !== "none") continue;
      if (asked.has(fence) && !members.get(fence)?.has(attempt.run.id)) this.#lose(attempt);
    }
    for (const fence of asked) if (!members.has(fence)) this.#leases.lost(fence);
    this.#params.schedule();
  }

  #lose(attempt: ActiveAttempt): void {
    const { run, claim } = attempt;
    attempt.abort(new LeaseLostError(run.id, claim.fence));
    attempt.span?.end("lost");
    this.#slots.leave(attempt);
    this.#slots.unbuffer((buffered) => buffered === attempt);
    this.#services.forget(attempt);
    if (attempt.commitPhase !== "done") this.#leases.letGo(claim.fence);
    this.#slots.quarantine.leave(attempt);
    this.#params.emit("run.lost", { ...factsOf(attempt), fence: claim.fence });
  }

  /** The database that granted the leases is gone. */
  loseAll(): void {
    for (const attempt of [...this.#slots]) this.#lose(attempt);
  }

  // ── cancelled or handed back ───────────────────────────────────────────────────────────────────

  /** Aborts these runs, or settles them as cancelled if they have not started. */
  cancel(ids: readonly RunId[]): void {
    for (const id of ids) {
      const attempt = this.#slots.runningOf(id);
      if (attempt) {
        attempt.abort(new CancelledError(id));
        continue;
      }
      for (const buffered of this.#slots.unbuffer(({ run }) => run.id === id))
        this.#settle(buffered, { ending: { kind: "cancelled" }, result: null, error: null });
    }
  }

  /** Aborts every running handler because the instance stops, or because the budget of its pass is used up. */
  abortAll(budgetMs: number | null): void {
    for (const attempt of this.#slots.running()) attempt.abort(new ShutdownError(budgetMs));
  }

  handBackBuffer(): void {
    if (this.#slots.bufferedCount === 0) return;
    for (const attempt of this.#slots.unbuffer(() => true)) this.#handBack(attempt);
  }

  #handBack(attempt: ActiveAttempt): void {
    this.#slots.quarantine.leave(attempt);
    this.#settle(attempt, { ending: { kind: "handed_back" }, result: null, error: null });
  }

  /** From here on, the outcomes of abandoned handlers are ignored. */
  close(): void {
    this.#slots.close();
    this.#deadlines.close();
    this.#services.close();
  }
}

/** A suspect may have killed the process of its earlier holder; a dispatched run cannot kill this one. */
function isDangerous({ claim, isDispatched }: ActiveAttempt): boolean {
  return claim.isSuspect && !isDispatched;
}

/** Whether a loss of this attempt would end the run: the reclaim must then know whether it started. */
function isLossFinal({ claim, run }: ActiveAttempt): boolean {
  const attemptsMax = claim.policy.retry.attempts + run.extraAttempts;
  return claim.policy.onLost === "fail" || claim.attempt >= attemptsMax;
}
