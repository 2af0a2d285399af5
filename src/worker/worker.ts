// The worker: claims runs into a short local buffer, executes them, and settles what has ended with
// the next claim, so that a round trip carries both. It decides nothing about time or ownership:
// the database does, and every write of a held run carries its fence.
// When it acts is loop.ts's business, but for one thing: it goes on by itself while there is work.
//
// Here is the way of a run through it; each step is a file of its own: claim-planner.ts says how much to claim,
// exchange.ts claims and settles, slots.ts knows where each run is, start-recorder.ts stores that one
// begins, performer.ts runs it, completer.ts sees it off.
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
import { Quarantine } from "./quarantine.js";
import { factsOf, type Report } from "./settlement.js";
import { isLossFinal, Slots, StartRecorder } from "./slots.js";

/** How long a stopping instance waits for a slow database to take what has ended. */
const SETTLE_PATIENCE_MS = 10_000;
/** A stopping instance waits no longer for a database that has failed this often in a row. */
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
  /** Whether anybody hears an event: facts of runs are not even gathered otherwise. */
  readonly listens: (name: EventName) => boolean;
  readonly logger: Logger;
  readonly meter: Meter;
  readonly tracing: Tracing | null;
  readonly fanOut: FanOut;
  /** Counts begins under rates, over all workers of the instance. */
  readonly begins: BeginWindow;
  /** Called when a run that this instance held has reached the database. */
  readonly onSettled: (settlements: readonly Settlement[]) => void;
  /** Called when there is something to renew that was not there before. */
  readonly onClaimed: () => void;
  /** Called when what comes after a batch is ready, for whoever of the instance executes it. */
  readonly onContinued: () => void;
  /** Called when a lease that still stands is no longer to be renewed here. */
  readonly onLetGo: () => void;
  /** Called when a run was put off by this much and has reached the database. */
  readonly onPostponed: (delayMs: number) => void;
  /** Each run gets a lease of its own: a worker elsewhere may take it over. */
  readonly isApart?: boolean;
  /** How many runs it may still claim, perhaps together with others. Left out: no end of them. */
  readonly claimBudget?: ClaimBudget;
  /** How many runs it may hold now, its slots aside. Left out: as many as it likes. */
  readonly room?: () => number;
  /** Called when it holds nothing and claims nothing more unless somebody wakes it. */
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
  /** Aborts when this worker is no more: nothing is sent and nothing waits after it. */
  readonly #over = new AbortController();
  #isPumpScheduled = false;
  /** When those that were put aside are looked at again. */
  #recall: { readonly atMs: number; readonly timer: Timer } | null = null;
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
      // Given back rather than risked.
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
      onDisobeyed: (attempt) => this.#ended(attempt, overTime(attempt.claim.policy.timeoutMs)),
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
      onRenewed: (answer) => this.renewed(answer),
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

  /** There may be something to claim. */
  wake(): void {
    this.#claimPlanner.mayHaveWork();
    this.#schedule();
  }

  executes(job: string): boolean {
    return this.#params.jobs.has(job);
  }

  /** A limit may let a run through. */
  wakeForLimited(): void {
    this.#claimPlanner.mayHaveLimited();
    this.#schedule();
  }

  /** There is a run whose earlier holder fell silent. */
  wakeForSuspect(): void {
    this.#claimPlanner.hasSuspect();
    this.#schedule();
  }

  /** True: nothing new is claimed until this is called with false; what is held goes on. */
  setPaused(isPaused: boolean): void {
    const isNews = this.#claimPlanner.setPaused(isPaused);
    if (isNews && !isPaused) this.wake();
  }

  /** What the heartbeat has to renew. */
  get leases(): Pick<Leases, "fences" | "held" | "shortestMs"> {
    return this.#leases;
  }

  /** How many runs it executes now. */
  get runningCount(): number {
    return this.#slots.runningCount;
  }

  /** The jobs that run here, or ran at this moment or later; jobs of another service are none of them. */
  jobsSince(sinceMs: number): readonly string[] {
    return this.#params.isApart ? [] : this.#slots.jobsSince(sinceMs);
  }

  /** Attempts that have ended here, whatever became of them; those handed back are none. */
  get executedCount(): number {
    return this.#completer.tally.executed;
  }

  /** Attempts that a service elsewhere has received, or may have. */
  get dispatchedCount(): number {
    return this.#completer.tally.dispatched;
  }

  /** Nothing is held, and nothing more is claimed unless somebody wakes it. */
  get isDrained(): boolean {
    const isFree = this.#slots.startedCount === 0 && this.#unsettledCount === 0;
    return isFree && !this.#backoff.isOn && !this.#exchanges.isWanted;
  }

  /** What is on its way to the database or from there, and what waits for it. */
  get #unsettledCount(): number {
    const travelling = this.#exchanges.count + this.#claimPlanner.inFlightCount;
    return this.#settlementBuffer.length + travelling + this.#slots.bufferedCount;
  }

  // ── the pump ───────────────────────────────────────────────────────────────────────────────────

  #schedule(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    // After I/O had its turn, so that what ends together is settled together.
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
    // What a claim brought after the stop began.
    if (!this.#claimPlanner.isOpen) this.#handBackBuffer();
    while (this.#slots.hasRoom) {
      const next = this.#slots.firstBuffered();
      // The heartbeat will renew what is no longer trusted, or take it away.
      if (!next || !this.#isTrusted(next)) return;
      this.#slots.takeFirstBuffered();
      if (isDangerous(next)) this.#quarantine.enter(next);
      if (isLossFinal(next)) this.#startRecorder.add(next);
      else this.#startWithinRate(next);
    }
  }

  /** A claim that waited here is not covered by its turn any more: it waits a little, or goes back to its line. */
  #startWithinRate(attempt: ActiveAttempt): void {
    const isRated = attempt.job.limits.rate !== null;
    const admission = isRated
      ? this.#params.begins.admit(attempt, this.#clock.monotonicMs())
      : "begins";
    if (admission === "begins") this.#start(attempt);
    else if (admission === "late") this.#handBack(attempt);
    else {
      this.#quarantine.leave(attempt);
      this.#slots.putAside(attempt);
      this.#recallWithin(admission.waitMs);
    }
  }

  /** One timer for all that were put aside: those that have to wait on are put aside again. */
  #recallWithin(waitMs: number): void {
    const atMs = this.#clock.monotonicMs() + waitMs;
    if (this.#recall && this.#recall.atMs <= atMs) return;
    this.#recall?.timer.cancel();
    const timer = this.#clock.timer(waitMs, () => {
      this.#recall = null;
      this.#slots.recall();
      this.#schedule();
    });
    this.#recall = { atMs, timer };
  }

  #isTrusted({ claim }: ActiveAttempt): boolean {
    return this.#leases.isTrusted(claim.fence, momentOf(this.#clock));
  }

  // ── the way of a run ───────────────────────────────────────────────────────────────────────────

  /** What a claim brought is held from here on. */
  #adopt(claims: readonly Claim[], { sentAt, claimedMs }: ClaimedSince): void {
    const sinceMs = this.#clock.monotonicMs();
    for (const claim of claims) {
      // Nothing to hold: its lease runs out by itself instead of being renewed for ever.
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

  /** That it begins is stored. The answer may have taken long, and much may have happened meanwhile. */
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
    // Lost, and claimed again before the heartbeat said so: the earlier attempt is a stranger's.
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
    // Lost or given up meanwhile: what the handler says no longer counts.
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
      // There is room again, and perhaps nobody else who says so.
      this.wake();
    } else this.#settle(attempt, report);
    this.#startBuffered();
  }

  #settle(attempt: ActiveAttempt, report: Report): void {
    this.#completer.settle(attempt, report);
    this.#schedule();
  }

  /** These have reached the database, under fences that are let go of. */
  #settled(settlements: readonly Settlement[]): void {
    this.#params.onSettled(settlements);
    for (const settlement of settlements) {
      // What it held of a limit may be the next one's.
      if (settlement.isLimited) this.wakeForLimited();
      if (settlement.to !== "pending") continue;
      if (settlement.delayMs === 0) this.wake();
      else this.#params.onPostponed(settlement.delayMs);
    }
  }

  /** The run is completed already, whatever its handler does from here on. */
  #committed(attempt: ActiveAttempt, settlement: Settlement): void {
    this.#settled([settlement]);
    // Given up meanwhile: what was settled for it then is refused, and lets go of the lease.
    if (this.#slots.isRunning(attempt)) this.#completer.committed(attempt, settlement);
  }

  // ── what comes between ─────────────────────────────────────────────────────────────────────────

  /** The database's answer to a renewal. */
  renewed(params: Renewed): void {
    const unknown = new Set(params.unknown);
    const members = new Map(params.held.map(({ fence, ids }) => [fence, new Set(ids)]));
    for (const renewal of params.held) this.#leases.renewed(renewal, params.sentAt);
    const asked = new Set(params.asked.filter((fence) => !unknown.has(fence)));
    for (const attempt of [...this.#slots]) {
      const { fence } = attempt.claim;
      // Its commit is under way or done: that it is no longer held says nothing.
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

  /** Somebody asked for these to be cancelled. */
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

  /** Gives back what has waited in the buffer for too long, since its slots are taken by long runs. */
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

  /** Stops claiming, waits, aborts, hands back; the caller keeps the heartbeat going meanwhile. */
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

  /** The database that granted its leases is gone: what it holds is lost, and nothing more is sent. */
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

  /** What has ended is settled before the instance goes, as far as the database can be reached. */
  async #untilSettled(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + SETTLE_PATIENCE_MS;
    // With the buffer: what was read back only now is handed back by the next turn of the pump.
    while (this.#unsettledCount > 0 && !this.#over.signal.aborted) {
      const isTimeUp = this.#clock.monotonicMs() >= untilMs;
      if (isTimeUp || this.#backoff.failures > SETTLE_FAILURES_MAX) return;
      this.#schedule();
      await delay(this.#clock, 10);
    }
  }

  /** What abandoned handlers still say is heard by nobody. */
  #close(): void {
    this.#over.abort();
    this.#recall?.timer.cancel();
    this.#slots.drop();
    this.#leases.clear();
    this.#deadlines.close();
    this.#services.close();
    this.#quarantine.close();
  }
}

/** It may have ended the process of its earlier holder; what is done elsewhere ends nobody here. */
function isDangerous({ claim, isDispatched }: ActiveAttempt): boolean {
  return claim.isSuspect && !isDispatched;
}
