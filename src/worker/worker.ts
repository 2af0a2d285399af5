// Executes runs for an instance: claims them into a short local buffer, starts each in a free slot, and settles the ended
// ones together with the next claim, so that one round trip carries both. It decides nothing about time or
// ownership: the database does, and every write to a held run carries its fence. loop.ts decides when a worker is
// woken; while there is work, the worker goes on by itself.
//
// A run passes through these parts: claim-planner.ts decides how many runs to claim, exchange.ts sends claims and
// settlements, slots.ts knows where each run is and records a start where a loss would be final, attempt.ts calls the
// handler, completer.ts turns the outcome into a settlement.
// Essays: docs/internals/lease-and-fence.md, docs/internals/shutdown.md.

import { ABORT_GRACE_MS, type RunId } from "../runs/rules/run.js";
import { CancelledError, LeaseLostError, ShutdownError } from "../shared/errors.js";
import { type Clock, delay, momentOf, type Ports, type Timer } from "../shared/ports.js";
import { countOf } from "../store/record.js";
import type { Claim, Settlement, Store } from "../store/store.js";
import type { Emit, EventName, Logger } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import {
  ActiveAttempt,
  AttemptRunner,
  Deadlines,
  type LetGo,
  overTime,
  type RunnableJob,
} from "./attempt.js";
import { Backoff } from "./backoff.js";
import type { BeginWindow } from "./begin-window.js";
import { type ClaimBudget, ClaimPlanner } from "./claim-planner.js";
import { Completer } from "./completer.js";
import { type ClaimedSince, Exchange, SettlementBuffer } from "./exchange.js";
import type { FanOut } from "./handler/fan-out.js";
import { HandlerServices } from "./handler/services.js";
import { Leases, type Renewed } from "./leases.js";
import { factsOf, type Report } from "./settlement.js";
import { isLossFinal, Quarantine, Slots, StartRecorder } from "./slots.js";

/** How long a stopping instance waits for a slow database to store its settlements. */
const SETTLE_PATIENCE_MS = 10_000;
/** A stopping instance gives up on a database that has failed more often than this in a row. */
const SETTLE_FAILURES_MAX = 3;

export type StopReport = { finished: number; handedBack: number; abandoned: number };

export type WorkerParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly concurrency: number;
  readonly queues: readonly string[] | null;
  /** The jobs that this process can run; more may come later. */
  readonly jobs: ReadonlyMap<string, RunnableJob>;
  readonly emit: Emit;
  /** Whether an event has a listener: without one, the facts of a run are not gathered. */
  readonly listens: (name: EventName) => boolean;
  readonly logger: Logger;
  readonly meter: Meter;
  readonly tracing: Tracing | null;
  readonly fanOut: FanOut;
  /** Counts starts under rate limits, over all workers of the instance. */
  readonly begins: BeginWindow;
  /** Called when the database has stored settlements of this worker. */
  readonly onSettled: (settlements: readonly Settlement[]) => void;
  /** Called when a claim brought new leases to renew. */
  readonly onClaimed: () => void;
  /** Called when a batch has ended and its `then` run is ready; any worker of the instance may execute it. */
  readonly onContinued: () => void;
  /** Called when this instance stops renewing a lease that is still valid. */
  readonly onLetGo: () => void;
  /** Called when the database has stored that a run goes on after this delay. */
  readonly onPostponed: (delayMs: number) => void;
  /** Each run gets its own lease: a remote worker may take it over. */
  readonly isApart?: boolean;
  /** How many runs it may still claim; several workers may share one budget. @default no limit */
  readonly claimBudget?: ClaimBudget;
  /** How many runs it may hold now, in addition to the limit of its slots. @default no limit */
  readonly room?: () => number;
  /** Called when it holds nothing and claims nothing until the next wake-up. */
  readonly onDrained?: () => void;
};

export class Worker {
  readonly #params: WorkerParams;
  readonly #clock: Clock;
  readonly #leases = new Leases();
  readonly #settlementBuffer = new SettlementBuffer();
  readonly #backoff: Backoff;
  readonly #startRecorder: StartRecorder;
  readonly #slots: Slots;
  readonly #claimPlanner: ClaimPlanner;
  readonly #exchanges: Exchange;
  readonly #services: HandlerServices;
  readonly #attemptRunner: AttemptRunner;
  readonly #completer: Completer;
  readonly #deadlines: Deadlines;
  readonly #quarantine: Quarantine;
  /** Aborts when this worker is closed: it then sends nothing and waits for nothing. */
  readonly #over = new AbortController();
  #isPumpScheduled = false;
  /** The timer that puts deferred runs back into the buffer. */
  #restore: { readonly atMs: number; readonly timer: Timer } | null = null;
  #idle: (() => void)[] = [];

  constructor(params: WorkerParams) {
    this.#params = params;
    this.#clock = params.ports.clock;
    const clock = this.#clock;
    const [leases, settlementBuffer, over] = [
      this.#leases,
      this.#settlementBuffer,
      this.#over.signal,
    ];
    const schedule = () => this.#schedule();
    params.claimBudget?.onReturned(schedule);

    this.#backoff = new Backoff({ clock, emit: params.emit, over });
    const backoff = this.#backoff;
    this.#startRecorder = new StartRecorder({
      store: params.store,
      backoff,
      onRecorded: (attempt, isHeld) => this.#startRecorded(attempt, isHeld),
      // Its start may not be stored: the run is handed back.
      onFailed: (attempt) => this.#handBack(attempt),
      onDone: schedule,
    });
    this.#quarantine = new Quarantine({ clock, onOver: schedule });
    const quarantine = this.#quarantine;
    const { concurrency } = params;
    this.#slots = new Slots({ clock, concurrency, quarantine, startRecorder: this.#startRecorder });
    this.#deadlines = new Deadlines({
      clock,
      running: () => this.#slots.running(),
      onOverdue: (attempt) => this.#ended(attempt, overTime(attempt.claim.policy.timeoutMs)),
    });

    this.#claimPlanner = new ClaimPlanner({ ...params, slots: this.#slots, quarantine });
    const claimPlanner = this.#claimPlanner;
    this.#exchanges = new Exchange({
      ...params,
      isApart: params.isApart ?? false,
      claimPlanner,
      settlementBuffer,
      leases,
      backoff,
      over,
      onClaims: (claims, since) => this.#adopt(claims, since),
      onSettled: (settlements) => this.#settled(settlements),
      onLimitedIn: params.onPostponed,
      onOver: schedule,
    });

    this.#services = new HandlerServices({
      ...params,
      onCommitted: (attempt, settlement) => this.#committed(attempt as ActiveAttempt, settlement),
      onRenewed: (renewed) => this.renewed(renewed),
    });
    const services = this.#services;
    this.#attemptRunner = new AttemptRunner({
      ...params,
      clock,
      services,
      isOurs: (attempt) => this.#slots.isRunning(attempt),
      onEnded: (attempt, report) => this.#ended(attempt, report),
    });
    this.#completer = new Completer({ ...params, services, leases, settlementBuffer });
  }

  start(): void {
    this.#claimPlanner.open();
    this.wake();
  }

  /** Looks for work: there may be a run to claim. */
  wake(): void {
    this.#claimPlanner.mayHaveWork();
    this.#schedule();
  }

  executes(job: string): boolean {
    return this.#params.jobs.has(job);
  }

  /** Looks for work: a limit may let another run start. */
  wakeForLimited(): void {
    this.#claimPlanner.mayHaveLimited();
    this.#schedule();
  }

  /** Looks for work: there is a suspect, a run whose earlier holder fell silent. */
  wakeForSuspect(): void {
    this.#claimPlanner.hasSuspect();
    this.#schedule();
  }

  /** Stops or resumes claiming. Held runs go on. */
  setPaused(isPaused: boolean): void {
    const hasChanged = this.#claimPlanner.setPaused(isPaused);
    if (hasChanged && !isPaused) this.wake();
  }

  /** The leases that the heartbeat renews. */
  get leases(): Pick<Leases, "fences" | "held" | "shortestMs"> {
    return this.#leases;
  }

  /** How many runs are in slots now. */
  get runningCount(): number {
    return this.#slots.runningCount;
  }

  /** The jobs that run in this process now, or ran at `sinceMs` or later; remote jobs do not count. */
  jobsSince(sinceMs: number): readonly string[] {
    return this.#params.isApart ? [] : this.#slots.jobsSince(sinceMs);
  }

  /** Attempts that have ended in this process, with any outcome; runs that were handed back do not count. */
  get executedCount(): number {
    return this.#completer.tally.executed;
  }

  /** Attempts that a remote service has received, or may have received. */
  get dispatchedCount(): number {
    return this.#completer.tally.dispatched;
  }

  /** It holds nothing, and claims nothing until the next wake-up. */
  get isDrained(): boolean {
    const isFree = this.#slots.startedCount === 0 && this.#unsettledCount === 0;
    return isFree && !this.#backoff.isOn && !this.#exchanges.isWanted;
  }

  /** Settlements and claims in flight or waiting to be sent, and claimed runs without a slot. */
  get #unsettledCount(): number {
    const inFlight = this.#exchanges.count + this.#claimPlanner.inFlightCount;
    return this.#settlementBuffer.length + inFlight + this.#slots.bufferedCount;
  }

  // ── the pump ───────────────────────────────────────────────────────────────────────────────────

  #schedule(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    // After pending I/O, so that runs that end together are settled together.
    this.#clock.soon(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    this.#startBuffered();
    while (this.#exchanges.isWanted) void this.#exchanges.send();
    this.#noteIdle();
  }

  #startBuffered(): void {
    // A claim may return runs after the stop began.
    if (!this.#claimPlanner.isOpen) this.#handBackBuffer();
    while (this.#slots.hasRoom) {
      const next = this.#slots.firstBuffered();
      // The lease is no longer trusted: the next heartbeat renews it or reports it lost.
      if (!next || !this.#isTrusted(next)) return;
      this.#slots.takeFirstBuffered();
      if (isDangerous(next)) this.#quarantine.enter(next);
      if (isLossFinal(next)) this.#startRecorder.add(next);
      else this.#startWithinRate(next);
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
      this.#quarantine.leave(attempt);
      this.#slots.defer(attempt);
      this.#restoreWithin(admission.waitMs);
    }
  }

  /** One timer for all deferred runs; a run that has to wait longer is deferred again. */
  #restoreWithin(waitMs: number): void {
    const atMs = this.#clock.monotonicMs() + waitMs;
    if (this.#restore && this.#restore.atMs <= atMs) return;
    this.#restore?.timer.cancel();
    const timer = this.#clock.timer(waitMs, () => {
      this.#restore = null;
      this.#slots.restoreDeferred();
      this.#schedule();
    });
    this.#restore = { atMs, timer };
  }

  #isTrusted({ claim }: ActiveAttempt): boolean {
    return this.#leases.isTrusted(claim.fence, momentOf(this.#clock));
  }

  // ── one run, from claim to settlement ──────────────────────────────────────────────────────────

  /** Takes the runs of a claim into the buffer; they are held from here on. */
  #adopt(claims: readonly Claim[], { sentAt, claimedMs }: ClaimedSince): void {
    const sinceMs = this.#clock.monotonicMs();
    for (const claim of claims) {
      // An empty claim is not held: its lease expires instead of being renewed for ever.
      if (claim.runs.length === 0) continue;
      this.#leases.granted(claim, sentAt);
      this.#claimPlanner.got(claim);
      const job = this.#params.jobs.get(claim.job);
      if (!job) continue;
      for (const run of claim.runs)
        this.#slots.buffer(new ActiveAttempt({ claim, run, job, claimedMs }), sinceMs);
    }
    if (countOf(claims) > 0) this.#params.onClaimed();
    this.#startBuffered();
  }

  /** The start is stored. The write may have taken long: the lease may be lost, or the worker stopping. */
  #startRecorded(attempt: ActiveAttempt, isHeld: boolean): void {
    if (this.#over.signal.aborted) return;
    if (!isHeld || !this.#leases.has(attempt.claim.fence)) this.#lose(attempt);
    else if (!this.#claimPlanner.isOpen) this.#handBack(attempt);
    else if (this.#isTrusted(attempt)) this.#startWithinRate(attempt);
    else {
      this.#quarantine.leave(attempt);
      this.#slots.buffer(attempt, this.#clock.monotonicMs());
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
    if (isDangerous(attempt)) this.#quarantine.begun(attempt);
    meter.runStarted({ job: claim.job, dueAt: run.dueAt, wallMs: this.#clock.wallMs() });
    if (listens("run.started")) emit("run.started", factsOf(attempt));
    this.#attemptRunner.begin(attempt);
  }

  #ended(attempt: ActiveAttempt, report: Report | LetGo): void {
    // Lost or abandoned meanwhile: the outcome no longer counts.
    if (!this.#slots.leave(attempt)) return;
    this.#claimPlanner.ran(this.#clock.monotonicMs() - attempt.startedMs);
    this.#services.forget(attempt);
    this.#quarantine.leave(attempt);
    if (attempt.commitPhase === "done") {
      this.#completer.endedAfterCommit(attempt, report);
      this.#schedule();
    } else if ("letGo" in report) {
      this.#completer.letGo(attempt, report);
      this.#params.onLetGo();
      // A slot is free again, and no settlement will wake this worker.
      this.wake();
    } else this.#settle(attempt, report);
    this.#startBuffered();
  }

  #settle(attempt: ActiveAttempt, report: Report): void {
    this.#completer.settle(attempt, report);
    this.#schedule();
  }

  /** The database has stored these settlements; their leases are no longer renewed. */
  #settled(settlements: readonly Settlement[]): void {
    this.#params.onSettled(settlements);
    for (const settlement of settlements) {
      // The next run under the same limit may start.
      if (settlement.isLimited) this.wakeForLimited();
      if (settlement.to !== "pending") continue;
      if (settlement.delayMs === 0) this.wake();
      else this.#params.onPostponed(settlement.delayMs);
    }
  }

  /** `ctx.commit` has completed the run; its handler may still be running. */
  #committed(attempt: ActiveAttempt, settlement: Settlement): void {
    this.#settled([settlement]);
    // Abandoned meanwhile: its other settlement will be refused, and releases the lease.
    if (this.#slots.isRunning(attempt)) this.#completer.committed(attempt, settlement);
  }

  // ── lost leases, cancels, hand-backs ───────────────────────────────────────────────────────────

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
      if (asked.has(fence) && !members.get(fence)?.has(attempt.run.id)) this.#lose(attempt);
    }
    for (const fence of asked) if (!members.has(fence)) this.#leases.lost(fence);
    this.#schedule();
  }

  #lose(attempt: ActiveAttempt): void {
    const { run, claim } = attempt;
    attempt.abort(new LeaseLostError(run.id, claim.fence));
    attempt.span?.end("lost");
    this.#slots.leave(attempt);
    this.#slots.unbuffer((buffered) => buffered === attempt);
    this.#services.forget(attempt);
    if (attempt.commitPhase !== "done") this.#leases.letGo(claim.fence);
    this.#quarantine.leave(attempt);
    this.#params.emit("run.lost", { ...factsOf(attempt), fence: claim.fence });
  }

  /** Aborts these runs, or settles them as cancelled if they have not started. */
  cancelRequested(ids: readonly RunId[]): void {
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

  /** Hands back the buffer if it has waited too long because long runs occupy the slots. */
  relieve(): void {
    this.#claimPlanner.slow(this.#slots.slowCount());
    if (this.#slots.isStale) this.#handBackBuffer();
    this.#schedule();
  }

  #handBackBuffer(): void {
    if (this.#slots.bufferedCount === 0) return;
    for (const attempt of this.#slots.unbuffer(() => true)) this.#handBack(attempt);
  }

  #handBack(attempt: ActiveAttempt): void {
    this.#quarantine.leave(attempt);
    this.#settle(attempt, { ending: { kind: "handed_back" }, result: null, error: null });
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  /** Stops claiming, waits for handlers, aborts the rest, settles. The caller keeps the heartbeat going. */
  async stop({ graceMs }: { readonly graceMs: number }): Promise<StopReport> {
    this.#claimPlanner.close();
    const before = { ...this.#completer.tally };
    this.#handBackBuffer();
    await this.#untilIdle(graceMs);
    for (const attempt of this.#slots.running()) attempt.abort(new ShutdownError());
    await this.#untilIdle(ABORT_GRACE_MS);
    await this.#untilSettled();
    const { finished, handedBack, unknown } = this.#completer.tally;
    const open = [...this.#slots.running()].filter(({ commitPhase }) => commitPhase !== "done");
    this.#close();
    return {
      finished: finished - before.finished,
      handedBack: handedBack - before.handedBack,
      abandoned: open.length + unknown - before.unknown,
    };
  }

  /** The database that granted the leases is gone: every held run is lost, and nothing more is sent. */
  abandon(): void {
    for (const attempt of [...this.#slots]) this.#lose(attempt);
    this.#close();
  }

  #noteIdle(): void {
    if (this.#slots.startedCount > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const resolve of waiting) resolve();
    if (this.#params.onDrained && this.isDrained) this.#params.onDrained();
  }

  async #untilIdle(timeoutMs: number): Promise<void> {
    const done = new AbortController();
    const idle = new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#schedule();
    await Promise.race([idle, delay(this.#clock, timeoutMs, done.signal)]);
    done.abort();
  }

  /** Waits until every settlement is stored, or the database cannot be reached. */
  async #untilSettled(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + SETTLE_PATIENCE_MS;
    // The buffer counts too: the next pump hands back runs that were read back only now.
    while (this.#unsettledCount > 0 && !this.#over.signal.aborted) {
      const isTimeUp = this.#clock.monotonicMs() >= untilMs;
      if (isTimeUp || this.#backoff.failures > SETTLE_FAILURES_MAX) return;
      this.#schedule();
      await delay(this.#clock, 10);
    }
  }

  /** From here on, the outcomes of abandoned handlers are ignored. */
  #close(): void {
    this.#over.abort();
    this.#restore?.timer.cancel();
    this.#slots.drop();
    this.#leases.clear();
    this.#deadlines.close();
    this.#services.close();
    this.#quarantine.close();
  }
}

/** A suspect may have killed the process of its earlier holder; a dispatched run cannot kill this one. */
function isDangerous({ claim, isDispatched }: ActiveAttempt): boolean {
  return claim.isSuspect && !isDispatched;
}
