// The worker: claims runs into a short local buffer, executes them, and settles what has ended with
// the next claim, so that a round trip carries both. It decides nothing about time or ownership:
// the database does, and every write of a held run carries its fence.
// When it acts is loop.ts's business, but for one thing: it goes on by itself while there is work.
// Essays: docs/internals/lease-and-fence.md, docs/internals/shutdown.md.

import { CancelledError, LeaseLostError, ShutdownError } from "../core/errors.js";
import { describeFailure } from "../core/failure.js";
import { type Moment, renewTimeoutMs } from "../core/lease.js";
import { type Clock, delay, type Ports } from "../core/ports.js";
import { ABORT_GRACE_MS, type RunId } from "../core/run.js";
import type { Claim, ExchangeAnswer, Grant, Renewal, Settlement, Store } from "../store/store.js";
import type { Emit, EventName, Logger } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { Allowance } from "./allowance.js";
import { callHooks, type Hook, isBare } from "./around.js";
import type { Attempted } from "./attempted.js";
import { Commits } from "./commits.js";
import type { ContextServices } from "./context.js";
import { Deadlines } from "./deadlines.js";
import { factsOf, isHandBack, settlementOf, tellEnding, transitionOf } from "./ending.js";
import { Execution, type LetGo, overTime, type Report, type RunnableJob } from "./execution.js";
import type { FanOut } from "./fan-out.js";
import { Fifo } from "./fifo.js";
import { Items } from "./items.js";
import { Leases } from "./leases.js";
import { LimitedTurn } from "./limited-turn.js";
import { LogKeeper } from "./log-keeper.js";
import { Outbox } from "./outbox.js";
import { Pace } from "./pace.js";
import { isAbsent } from "./patience.js";
import { ProgressBoard } from "./progress-board.js";
import { Quarantine } from "./quarantine.js";

/** Two exchanges at a time: one is on its way while the runs of the other are executed. */
const EXCHANGES_MAX = 2;
/** A second exchange beside the first one is worth it only for this much work. */
const SECOND_EXCHANGE_MIN = 100;
/** A run that waited this long in the buffer is given back: others may have a free slot. */
const BUFFER_STALE_MS = 2_000;
const BACKOFF_MAX_MS = 5_000;
/** How long a stopping instance waits for a slow database to take what has ended. */
const SETTLE_PATIENCE_MS = 10_000;
/** How long an attempt that has ended waits for what it told to be stored, before it is settled anyway. */
const TOLD_PATIENCE_MS = 5_000;

type Buffered = { readonly execution: Execution; readonly sinceMs: number };

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
  readonly allowance?: Allowance;
  /** How many runs it may hold now, its slots aside. Left out: as many as it likes. */
  readonly room?: () => number;
  /** Called when it holds nothing and claims nothing more unless somebody wakes it. */
  readonly onDrained?: () => void;
};

export class Worker {
  readonly #params: WorkerParams;
  readonly #clock: Clock;
  readonly #services: ContextServices;
  readonly #wallMs: () => number;
  readonly #leases = new Leases();
  readonly #outbox = new Outbox();
  readonly #pace: Pace;
  readonly #deadlines: Deadlines;
  readonly #quarantine: Quarantine;
  readonly #progress: ProgressBoard;
  readonly #logs: LogKeeper;
  readonly #limited: LimitedTurn;
  readonly #items: Items;
  readonly #running = new Map<RunId, Execution>();
  readonly #buffer = new Fifo<Buffered>();
  #asked = 0;
  #exchanges = 0;
  #marking = 0;
  #hints = 0;
  #mayHaveWork = false;
  #mayHaveSuspect = false;
  /** The last claim brought as many as it asked for: there is more than one claim's worth. */
  #hasMore = false;
  #isPumpScheduled = false;
  #isClaiming = false;
  #isHalted = false;
  #failures = 0;
  #isBackingOff = false;
  /** Runs that have been in their slots for so long that no buffer will be served by these. */
  #slowCount = 0;
  /** Aborts when this worker is no more: nothing is sent and nothing waits after it. */
  readonly #over = new AbortController();
  #finishedCount = 0;
  #executedCount = 0;
  #dispatchedCount = 0;
  #unknownCount = 0;
  #handedBackCount = 0;
  #idle: (() => void)[] = [];

  constructor(params: WorkerParams) {
    this.#params = params;
    this.#clock = params.ports.clock;
    this.#wallMs = () => this.#clock.wallMs();
    this.#pace = new Pace(params.concurrency);
    this.#deadlines = new Deadlines({
      clock: this.#clock,
      running: () => this.#running.values(),
      onDisobeyed: (execution) =>
        this.#ended(execution, overTime(execution.claim.policy.timeoutMs)),
    });
    this.#quarantine = new Quarantine({ clock: this.#clock, onOver: () => this.#schedule() });
    params.allowance?.onReturned(() => this.#schedule());
    this.#limited = new LimitedTurn(params.jobs);
    const { store, ports, holder, emit, fanOut } = params;
    this.#items = new Items({ store, clock: this.#clock, emit });
    const onCommitted = (attempted: Attempted, settlement: Settlement) =>
      this.#committed(attempted as Execution, settlement);
    const commits = new Commits({ store, ports, holder, emit, onCommitted });
    const shared = { store, holder, clock: this.#clock };
    const onFailed = (what: string) => (error: unknown, retryInMs: number) => {
      const facts = { what, error: describeFailure(error), retryInMs };
      emit("store.failed", facts, error);
    };
    const onRenewed = (answer: Parameters<Worker["renewed"]>[0]) => this.renewed(answer);
    this.#progress = new ProgressBoard({ ...shared, onRenewed, onFailed: onFailed("progress") });
    this.#logs = new LogKeeper({ ...shared, onFailed: onFailed("log lines of runs") });
    this.#services = {
      log: params.logger,
      fanOut,
      heartbeat: (attempted) => this.#beatNow(attempted),
      progress: (attempted, told) => this.#progress.tell(attempted, told),
      keepLine: (attempted, ...line) => this.#logs.keep(attempted, ...line),
      item: (asked) => this.#items.item(asked),
      commit: (attempted, fn, options) => commits.commit(attempted, fn, options),
    };
  }

  start(): void {
    this.#isClaiming = true;
    this.wake();
  }

  /** There may be something to claim. */
  wake(): void {
    this.#hints += 1;
    this.#mayHaveWork = true;
    this.#limited.mayBe();
    this.#schedule();
  }

  /** True: nothing new is claimed until this is called with false; what is held goes on. */
  halt(isHalted: boolean): void {
    if (this.#isHalted && !isHalted) this.wake();
    this.#isHalted = isHalted;
  }

  /** A limit may let a run through. */
  wakeForLimited(): void {
    this.#limited.is();
    this.wake();
  }

  /** There is a run whose earlier holder fell silent. */
  wakeForSuspect(): void {
    this.#mayHaveSuspect = true;
    this.#schedule();
  }

  /** What the heartbeat has to renew. */
  get leases(): Pick<Leases, "fences" | "held" | "shortestMs"> {
    return this.#leases;
  }

  /** How many runs it executes now. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Attempts that have ended here, whatever became of them; those handed back are none. */
  get executedCount(): number {
    return this.#executedCount;
  }

  /** Attempts that a service elsewhere has received, or may have. */
  get dispatchedCount(): number {
    return this.#dispatchedCount;
  }

  /** Nothing is held, and nothing more is claimed unless somebody wakes it. */
  get isDrained(): boolean {
    const isBusy = this.#buffer.length + this.#outbox.length + this.#exchanges + this.#asked > 0;
    const isRunning = this.#running.size + this.#marking > 0;
    return !isRunning && !isBusy && !this.#isBackingOff && !this.#wantsExchange();
  }

  /** The database's answer to a renewal that was sent at `sentAt` for these fences. */
  renewed(params: {
    readonly sentAt: Moment;
    readonly asked: readonly number[];
    readonly held: readonly Renewal[];
    readonly unknown: readonly number[];
  }): void {
    const unknown = new Set(params.unknown);
    const members = new Map(params.held.map(({ fence, ids }) => [fence, new Set(ids)]));
    for (const renewal of params.held) this.#leases.renewed(renewal, params.sentAt);
    const asked = new Set(params.asked.filter((fence) => !unknown.has(fence)));
    for (const execution of [...this.#held()]) {
      const { fence } = execution.claim;
      // Its commit is under way or done: that it is no longer held says nothing.
      if (execution.commitPhase === "settling" || execution.commitPhase === "done") continue;
      if (asked.has(fence) && !members.get(fence)?.has(execution.run.id)) this.#lose(execution);
    }
    for (const fence of asked) if (!members.has(fence)) this.#leases.lost(fence);
    this.#schedule();
  }

  /** Somebody asked for these to be cancelled. */
  cancelRequested(ids: readonly RunId[]): void {
    for (const id of ids) {
      const execution = this.#running.get(id);
      if (execution) {
        execution.abort(new CancelledError(id));
        continue;
      }
      const [buffered] = this.#buffer.remove(({ execution: { run } }) => run.id === id);
      if (buffered)
        this.#settle(buffered.execution, {
          ending: { kind: "cancelled" },
          result: null,
          error: null,
        });
    }
  }

  /** Gives back what has waited in the buffer for too long, since its slots are taken by long runs. */
  relieve(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#slowCount = 0;
    for (const { startedMs } of this.#running.values())
      if (nowMs - startedMs > BUFFER_STALE_MS) this.#slowCount += 1;
    const oldest = this.#buffer.first();
    if (oldest && nowMs - oldest.sinceMs > BUFFER_STALE_MS) this.#handBackBuffer();
    this.#schedule();
  }

  /** Stops claiming, waits, aborts, hands back; the caller keeps the heartbeat going meanwhile. */
  async stop({ graceMs }: { readonly graceMs: number }): Promise<StopReport> {
    this.#isClaiming = false;
    const before = {
      finished: this.#finishedCount,
      handedBack: this.#handedBackCount,
      unknown: this.#unknownCount,
    };
    this.#handBackBuffer();
    await this.#untilIdle(graceMs);
    for (const execution of this.#running.values()) execution.abort(new ShutdownError());
    await this.#untilIdle(ABORT_GRACE_MS);
    await this.#untilSettled();
    const handedBack = this.#handedBackCount - before.handedBack;
    const finished = this.#finishedCount - before.finished;
    const isOpen = ({ commitPhase }: Execution) => commitPhase !== "done";
    const open = [...this.#running.values()].filter(isOpen).length;
    const abandoned = open + this.#unknownCount - before.unknown;
    this.#close();
    return { finished, handedBack, abandoned };
  }

  /** What abandoned handlers still say is heard by nobody. */
  #close(): void {
    this.#over.abort();
    this.#running.clear();
    this.#leases.clear();
    this.#deadlines.close();
    this.#progress.close();
    this.#logs.close();
    this.#quarantine.close();
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
    while (this.#wantsExchange()) void this.#exchange();
    this.#noteIdle();
  }

  #startBuffered(): void {
    // What a claim brought after the stop began.
    if (!this.#isClaiming) this.#handBackBuffer();
    while (this.#mayStart()) {
      const next = this.#buffer.first();
      // The heartbeat will renew what is no longer trusted, or take it away.
      if (!next || !this.#isTrusted(next.execution)) return;
      this.#buffer.shift();
      if (isDangerous(next.execution)) this.#quarantine.enter(next.execution);
      if (isLossFinal(next.execution)) this.#markAndStart(next.execution);
      else this.#start(next.execution);
    }
  }

  #mayStart(): boolean {
    return !this.#quarantine.isOn && this.#running.size + this.#marking < this.#params.concurrency;
  }

  #wantsExchange(): boolean {
    if (this.#isBackingOff || this.#exchanges >= EXCHANGES_MAX) return false;
    if (this.#over.signal.aborted) return false;
    const wanted = this.#wanted();
    if (this.#exchanges === 0) return this.#outbox.length > 0 || wanted > 0 || this.#wantsSuspect();
    // A second claim beside the first is worth it only where the one before brought all it asked for.
    const isBehind = this.#hasMore && wanted >= SECOND_EXCHANGE_MIN;
    return isBehind || this.#outbox.length >= SECOND_EXCHANGE_MIN;
  }

  #wantsSuspect(): boolean {
    return (
      this.#isClaiming &&
      !this.#isHalted &&
      this.#params.jobs.size > 0 &&
      this.#isSuspectsTurn() &&
      this.#buffer.length === 0 &&
      this.#asked === 0 &&
      this.#claimsLeft() > 0 &&
      this.#mayStart()
    );
  }

  #claimsLeft(): number {
    const { allowance, room } = this.#params;
    const roomLeft = room ? room() - this.#heldCount() : Number.POSITIVE_INFINITY;
    return Math.min(allowance?.left ?? Number.POSITIVE_INFINITY, roomLeft);
  }

  #heldCount(): number {
    return this.#running.size + this.#marking + this.#buffer.length + this.#asked;
  }

  /** Negative: they are given back. */
  #ask(count: number): void {
    this.#asked += count;
    this.#params.allowance?.take(count);
  }

  #isSuspectsTurn(): boolean {
    return this.#mayHaveSuspect && (!this.#mayHaveWork || this.#quarantine.isSuspectsTurn);
  }

  #wanted(): number {
    const mayClaim = this.#isClaiming && this.#mayHaveWork && this.#params.jobs.size > 0;
    if (!mayClaim || this.#isHalted || this.#isSuspectsTurn() || this.#quarantine.isOn) return 0;
    const have = this.#heldCount();
    const wanted = this.#pace.wanted({ have, slow: this.#slowCount });
    return Math.max(0, Math.min(wanted, this.#claimsLeft()));
  }

  // ── exchange ───────────────────────────────────────────────────────────────────────────────────

  async #exchange(): Promise<void> {
    const wanted = this.#wantsSuspect() ? 1 : this.#wanted();
    const settlements = this.#outbox.take({ hasClaim: wanted > 0 });
    // What may be refused again would take the claim with it.
    const limit = this.#outbox.isDoubtful(settlements) ? 0 : wanted;
    const wantsSuspect = limit > 0 && this.#wantsSuspect();
    const sentAt = this.#moment();
    const hints = this.#hints;
    const token = this.#params.ports.ids.unique();
    this.#exchanges += 1;
    this.#ask(limit);
    try {
      const { store, holder, queues, jobs, isApart = false } = this.#params;
      const names = [...jobs.keys()];
      const answer = await store.exchange({
        holder,
        token,
        settlements,
        limit,
        wantsSuspect,
        queues,
        jobs: names,
        chance: this.#params.ports.chance.next(),
        apart: isApart ? names : [],
        ...this.#limited.take(limit, wantsSuspect),
      });
      this.#ask(-limit);
      this.#recovered();
      this.#settled(settlements, answer);
      if (limit > 0) this.#claimed(answer.claims, { sentAt, limit, wantsSuspect, hints });
      if (answer.limitedInMs != null) this.#params.onPostponed(Math.max(1, answer.limitedInMs));
    } catch (error) {
      // Whether it took effect is unknown: settlements are repeated under the same fence, which is
      // harmless if they did, and the claim is read back by its token.
      if (isAbsent(error)) this.#outbox.putBack(settlements);
      else this.#refused(settlements, error);
      await this.#backOff("exchange", error);
      if (limit > 0) void this.#readBack({ token, limit, claimedMs: sentAt.monotonicMs });
    } finally {
      this.#exchanges -= 1;
      this.#schedule();
    }
  }

  #settled(settlements: readonly Settlement[], { stale, hasContinued }: ExchangeAnswer): void {
    for (const { id, fence } of stale) this.#params.emit("run.stale", { run: id, fence });
    if (hasContinued) {
      this.#params.onContinued();
      this.#params.store.wake();
    }
    if (settlements.length === 0) return;
    this.#outbox.taken(settlements);
    this.#params.onSettled(settlements);
    for (const settlement of settlements) {
      // Renewed until now: while its settlement travelled, the run was still ours.
      this.#leases.letGo(settlement.fence);
      // What it held of a limit may be the next one's.
      if (settlement.isLimited) this.wakeForLimited();
      if (settlement.to !== "pending") continue;
      if (settlement.delayMs === 0) this.wake();
      else this.#params.onPostponed(settlement.delayMs);
    }
  }

  #refused(settlements: readonly Settlement[], error: unknown): void {
    const givenUp = this.#outbox.refused(settlements, error);
    if (givenUp === null) return;
    const { settlement, becomes } = givenUp;
    if (becomes === "let_go") this.#leases.letGo(settlement.fence);
    const facts = { run: settlement.id, fence: settlement.fence, becomes };
    this.#params.emit("run.unsettled", { ...facts, error: describeFailure(error) }, error);
  }

  #claimed(
    claims: readonly Claim[],
    asked: { sentAt: Moment; limit: number; wantsSuspect: boolean; hints: number },
  ): void {
    const count = claims.reduce((sum, { runs }) => sum + runs.length, 0);
    this.#pace.claimed(claims);
    this.#params.meter.claimed(count);
    if (!asked.wantsSuspect) this.#hasMore = count >= asked.limit;
    if (asked.wantsSuspect) this.#mayHaveSuspect = count > 0;
    else if (count < asked.limit && this.#hints === asked.hints) {
      this.#mayHaveWork = false;
      this.#limited.wasEnough();
    }
    this.#adopt(claims, { sentAt: asked.sentAt, claimedMs: asked.sentAt.monotonicMs });
    if (count > 0) this.#params.onClaimed();
    this.#startBuffered();
  }

  #adopt(
    claims: readonly Claim[],
    { sentAt, claimedMs }: { readonly sentAt: Moment; readonly claimedMs: number },
  ): void {
    const sinceMs = this.#clock.monotonicMs();
    for (const claim of claims) {
      // Nothing to hold: its lease runs out by itself instead of being renewed for ever.
      if (claim.runs.length === 0) continue;
      this.#leases.granted(claim, sentAt);
      this.#params.allowance?.take(claim.runs.length);
      const job = this.#params.jobs.get(claim.job);
      for (const run of claim.runs) {
        if (job)
          this.#buffer.push({ execution: new Execution({ claim, run, job, claimedMs }), sinceMs });
      }
    }
  }

  /**
   * Whatever was claimed under this token and still stands is ours. It is asked for until there is an
   * answer: what is not read back waits for its lease to expire and has burnt an attempt.
   */
  async #readBack(asked: {
    readonly token: string;
    readonly limit: number;
    readonly claimedMs: number;
  }): Promise<void> {
    const { store, holder } = this.#params;
    const { token, limit, claimedMs } = asked;
    for (let isKnown = false; !isKnown && !this.#over.signal.aborted; ) {
      try {
        // Counted from now: the answer says what is left of the lease now.
        const sentAt = this.#moment();
        const claims = await store.claimsByToken({ holder, token });
        const fresh = claims.filter(({ fence }) => !this.#leases.has(fence));
        this.#adopt(fresh, { sentAt, claimedMs });
        isKnown = true;
        if (fresh.length > 0) this.#params.onClaimed();
      } catch (error) {
        await this.#backOff("read back a claim", error);
      }
    }
    this.#ask(-limit);
    this.#schedule();
  }

  async #backOff(what: string, error: unknown): Promise<void> {
    this.#failures += 1;
    const retryInMs = Math.min(BACKOFF_MAX_MS, 50 * 2 ** Math.min(this.#failures, 10));
    this.#isBackingOff = true;
    this.#params.emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
    await delay(this.#clock, retryInMs, this.#over.signal);
    this.#isBackingOff = false;
  }

  #recovered(): void {
    if (this.#failures > 0) this.#params.emit("store.recovered", { what: "exchange" });
    this.#failures = 0;
  }

  // ── executing ──────────────────────────────────────────────────────────────────────────────────

  /** Where a loss would be final, that the handler begins is stored before it does. */
  #markAndStart(execution: Execution): void {
    const grant: Grant = { id: execution.run.id, fence: execution.claim.fence };
    this.#marking += 1;
    this.#toMark.push({ execution, grant });
    if (this.#toMark.length === 1) queueMicrotask(() => void this.#mark());
  }

  #toMark: { readonly execution: Execution; readonly grant: Grant }[] = [];

  async #mark(): Promise<void> {
    const batch = this.#toMark;
    this.#toMark = [];
    try {
      const held = await this.#params.store.markStarted(batch.map(({ grant }) => grant));
      const isHeld = new Set(held.map(({ id, fence }) => `${id} ${fence}`));
      this.#marking -= batch.length;
      for (const { execution, grant } of batch) {
        this.#marked(execution, isHeld.has(`${grant.id} ${grant.fence}`));
      }
    } catch (error) {
      // Not begun, or not known to be: given back rather than risked.
      this.#marking -= batch.length;
      for (const { execution } of batch) this.#handBack(execution);
      await this.#backOff("mark a start", error);
    }
    this.#schedule();
  }

  /** The answer may have taken long, and much may have happened meanwhile. */
  #marked(execution: Execution, isHeld: boolean): void {
    if (this.#over.signal.aborted) return;
    if (!isHeld || !this.#leases.has(execution.claim.fence)) this.#lose(execution);
    else if (!this.#isClaiming) this.#handBack(execution);
    else if (this.#isTrusted(execution)) this.#start(execution);
    else {
      this.#quarantine.leave(execution);
      this.#buffer.push({ execution, sinceMs: this.#clock.monotonicMs() });
    }
  }

  #start(execution: Execution): void {
    const { run } = execution;
    // Lost, and claimed again before the heartbeat said so: the earlier execution is a stranger's.
    const earlier = this.#running.get(run.id);
    if (earlier) this.#lose(earlier);
    execution.startedMs = this.#clock.monotonicMs();
    this.#running.set(run.id, execution);
    this.#deadlines.watch(execution);
    if (isDangerous(execution)) this.#quarantine.begun(execution);
    const { meter } = this.#params;
    const { job } = execution.claim;
    meter.runStarted({ job, dueAt: run.dueAt, wallMs: this.#clock.wallMs() });
    if (this.#params.listens("run.started")) this.#params.emit("run.started", factsOf(execution));
    const { tracing } = this.#params;
    if (tracing) this.#startTraced(execution, tracing);
    else if (isBare(execution.job.around)) void this.#perform(execution);
    else void this.#surround(execution);
  }

  #startTraced(execution: Execution, tracing: Tracing): void {
    const { run, claim, claimedMs, startedMs } = execution;
    const span = tracing.attempt({
      run: run.id,
      job: claim.job,
      queue: claim.queue,
      mode: run.mode,
      attempt: claim.attempt,
      trace: run.trace,
      claimedAt: this.#clock.wallMs() - (startedMs - claimedMs),
    });
    execution.span = span;
    void span.within(() => this.#surround(execution));
  }

  #perform(execution: Execution): Promise<void> {
    return execution
      .perform(this.#services, this.#wallMs)
      .then((report) =>
        execution.hasTold ? this.#afterTold(execution, report) : this.#ended(execution, report),
      );
  }

  /** With the hooks of instance and job, which belong to the attempt: it is held while they run. */
  async #surround(execution: Execution): Promise<void> {
    await this.#callHooks(execution, "onStart", []);
    const report = await execution.perform(this.#services, this.#wallMs);
    // Lost or given up meanwhile: neither succeeded nor failed, as far as this instance knows.
    if (this.#running.get(execution.run.id) !== execution) return;
    if (!("letGo" in report)) await this.#callEndHooks(execution, report);
    await this.#afterTold(execution, report);
  }

  async #callEndHooks(execution: Execution, report: Report): Promise<void> {
    const { kind } = report.ending;
    if (kind === "completed") await this.#callHooks(execution, "onSuccess", [report.value]);
    if (kind === "failed" || kind === "timeout") {
      const willRetry = transitionOf(execution, report, () => 0).to === "pending";
      await this.#callHooks(execution, "onFailure", [report.value, { willRetry }]);
    }
  }

  #callHooks(execution: Execution, hook: Hook, args: readonly unknown[]): Promise<void> {
    return callHooks({
      around: execution.job.around,
      hook,
      args: [execution.context(this.#services), ...args] as never,
      onFailed: (error) => {
        const facts = { ...factsOf(execution), hook, error: describeFailure(error) };
        this.#params.emit("hook.failed", facts, error);
      },
    });
  }

  /** What the attempt told is stored before its end, under the fence that it still has. */
  async #afterTold(execution: Execution, report: Report | LetGo): Promise<void> {
    if (execution.hasTold) {
      const done = new AbortController();
      const stored = Promise.all([
        this.#progress.finish(execution),
        this.#logs.finish(execution),
      ]).catch(() => undefined);
      await Promise.race([stored, delay(this.#clock, TOLD_PATIENCE_MS, done.signal)]);
      done.abort();
      this.#forgetTold(execution);
    }
    this.#ended(execution, report);
  }

  #forgetTold(execution: Execution): void {
    if (!execution.hasTold) return;
    this.#progress.forget(execution);
    this.#logs.forget(execution);
  }

  #ended(execution: Execution, report: Report | LetGo): void {
    const { run } = execution;
    // Lost or given up meanwhile: what the handler says no longer counts.
    if (this.#running.get(run.id) !== execution) return;
    const ranMs = this.#clock.monotonicMs() - execution.startedMs;
    this.#pace.ran(ranMs);
    this.#running.delete(run.id);
    this.#forgetTold(execution);
    this.#quarantine.leave(execution);
    if (execution.commitPhase === "done") this.#endedAfterCommit(execution, report);
    else if ("letGo" in report) this.#letGo(execution, report);
    else this.#settle(execution, report);
    this.#startBuffered();
  }

  /** The run is completed already, whatever its handler does from here on. */
  #committed(execution: Execution, settlement: Settlement): void {
    const { emit, listens, meter } = this.#params;
    this.#params.onSettled([settlement]);
    if (settlement.isLimited) this.wakeForLimited();
    // Given up meanwhile: what was settled for it then is refused, and lets go of the lease.
    if (this.#running.get(execution.run.id) !== execution) return;
    this.#leases.letGo(execution.claim.fence);
    this.#countFinished(execution);
    const report: Report = { ending: { kind: "completed" }, result: null, error: null };
    const { ranMs } = settlement;
    const failedItems = this.#items.failedCount(execution);
    const transition = { to: "completed" } as const;
    tellEnding({ execution, report, transition, ranMs, emit, listens, meter, failedItems });
  }

  #endedAfterCommit(execution: Execution, report: Report | LetGo): void {
    const error = "letGo" in report ? null : report.error;
    execution.span?.end("completed", error);
    if (error) this.#params.emit("run.after_commit", { ...factsOf(execution), error });
    this.#schedule();
  }

  /** Under the same fence, but no longer ours to renew or to end. */
  #letGo(execution: Execution, { letGo, reason }: LetGo): void {
    const { fence } = execution.claim;
    this.#leases.letGo(fence);
    this.#params.onLetGo();
    this.#dispatchedCount += 1;
    if (letGo === "unknown") this.#unknownCount += 1;
    execution.span?.end(letGo);
    const facts = { ...factsOf(execution), fence };
    if (letGo === "accepted") this.#params.emit("run.accepted", facts);
    else this.#params.emit("run.unknown", { ...facts, reason });
    // There is room again, and perhaps nobody else who says so.
    this.wake();
  }

  #settle(execution: Execution, report: Report): void {
    const { emit, listens, meter, ports } = this.#params;
    const transition = transitionOf(execution, report, () => ports.chance.next());
    const ranMs = execution.startedMs === 0 ? 0 : this.#clock.monotonicMs() - execution.startedMs;
    if (isHandBack(transition)) this.#handedBackCount += 1;
    else this.#countFinished(execution);
    const failedItems = this.#items.failedCount(execution);
    tellEnding({ execution, report, transition, ranMs, emit, listens, meter, failedItems });
    execution.span?.end(
      transition.to === "pending" ? transition.end : transition.to,
      transition.to === "completed" ? null : report.error,
    );
    this.#outbox.push(settlementOf({ execution, report, transition, ranMs }));
    this.#schedule();
  }

  #countFinished({ isDispatched }: Execution): void {
    this.#finishedCount += 1;
    if (isDispatched) this.#dispatchedCount += 1;
    else this.#executedCount += 1;
  }

  *#held(): Generator<Execution> {
    yield* this.#running.values();
    for (const { execution } of this.#buffer) yield execution;
    for (const { execution } of this.#toMark) yield execution;
  }

  #lose(execution: Execution): void {
    const { run, claim } = execution;
    execution.abort(new LeaseLostError(run.id, claim.fence));
    execution.span?.end("lost");
    if (this.#running.get(run.id) === execution) this.#running.delete(run.id);
    this.#forgetTold(execution);
    this.#buffer.remove((buffered) => buffered.execution === execution);
    if (execution.commitPhase !== "done") this.#leases.letGo(claim.fence);
    this.#quarantine.leave(execution);
    this.#params.emit("run.lost", { ...factsOf(execution), fence: claim.fence });
  }

  #handBackBuffer(): void {
    if (this.#buffer.length === 0) return;
    for (const { execution } of this.#buffer.remove(() => true)) this.#handBack(execution);
  }

  #handBack(execution: Execution): void {
    this.#quarantine.leave(execution);
    this.#settle(execution, { ending: { kind: "handed_back" }, result: null, error: null });
  }

  async #beatNow({ run, claim }: Attempted): Promise<void> {
    const sentAt = this.#moment();
    const answer = await this.#params.store.renew({
      holder: this.#params.holder,
      fences: [claim.fence],
      timeoutMs: renewTimeoutMs(claim.policy.leaseMs),
    });
    this.renewed({ sentAt, asked: [claim.fence], ...answer });
    const isHeld = answer.held.some(
      ({ fence, ids }) => fence === claim.fence && ids.includes(run.id),
    );
    if (!isHeld && !answer.unknown.includes(claim.fence))
      throw new LeaseLostError(run.id, claim.fence);
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────

  #isTrusted(execution: Execution): boolean {
    return this.#leases.isTrusted(execution.claim.fence, this.#moment());
  }

  #moment(): Moment {
    return { wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs() };
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  #noteIdle(): void {
    if (this.#running.size + this.#marking > 0) return;
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
    // The buffer too: what was read back only now is handed back by the next turn of the pump.
    while (this.#outbox.length + this.#exchanges + this.#asked + this.#buffer.length > 0) {
      if (this.#failures > 3 || this.#clock.monotonicMs() >= untilMs) return;
      this.#schedule();
      await delay(this.#clock, 10);
    }
  }
}

/** It may have ended the process of its earlier holder; what is done elsewhere ends nobody here. */
function isDangerous({ claim, isDispatched }: Execution): boolean {
  return claim.isSuspect && !isDispatched;
}

/** An attempt whose loss would end the run: its start must be known to the reaper. */
function isLossFinal({ claim, run }: Execution): boolean {
  const attemptsMax = claim.policy.retry.attempts + run.extraAttempts;
  return claim.policy.onLost === "fail" || claim.attempt >= attemptsMax;
}
