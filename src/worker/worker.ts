// Claims runs for an instance and executes them in its slots. Each round trip to the database settles the ended runs
// and claims the next ones. loop.ts wakes a worker; while there is work, the worker goes on by itself.
//
// A run takes this way: claim-planner.ts decides how many runs to claim, exchange.ts claims them, executor.ts takes them
// from the claim to the settlement, attempt.ts calls the handler, completer.ts makes the settlement, and exchange.ts
// stores it. This file holds the parts together: it sends when there is something to send, and it stops.
//
// Nothing in this folder decides about time or ownership: the database does, and every write to a held run carries its
// fence. Nothing in it waits for the next poll, fires a schedule or writes SQL.
// Essays: docs/internals/lease-and-fence.md, docs/internals/shutdown.md.

import { ABORT_GRACE_MS, type RunId } from "../runs/rules/run.js";
import { type Clock, delay } from "../shared/ports.js";
import { type ClaimBudget, ClaimPlanner } from "./claim-planner.js";
import { Backoff, Exchange, SettlementBuffer } from "./exchange.js";
import { Executor, type ExecutorParams } from "./executor.js";
import { Leases, type Renewed } from "./leases.js";
import { type SharedSlots, Slots } from "./slots.js";

/** How long a stopping instance waits for a slow database to store its settlements. */
const SETTLE_TIMEOUT_MS = 10_000;
/** A stopping instance gives up on a database that has failed more often than this in a row. */
const SETTLE_FAILURES_MAX = 3;

export type StopReport = { finished: number; handedBack: number; abandoned: number };

export type StopOptions = {
  readonly graceMs: number;
  /** The budget of the bounded pass that ends; null: the instance stops. */
  readonly budgetMs?: number | null;
};

/** The parts that a worker makes for itself. */
type OwnParts =
  | "slots"
  | "leases"
  | "claimPlanner"
  | "settlementBuffer"
  | "backoff"
  | "over"
  | "schedule";

export type WorkerParams = Omit<ExecutorParams, OwnParts> & {
  readonly concurrency: number;
  /** The slots that it shares with other workers of the instance. @default none */
  readonly shared?: SharedSlots;
  readonly queues: readonly string[] | null;
  /** Each run gets its own lease: a remote worker may take it over. */
  readonly isApart?: boolean;
  /** How many runs it may still claim; several workers may share one budget. @default no limit */
  readonly claimBudget?: ClaimBudget;
  /** How many runs it may hold now, in addition to the limit of its slots. @default no limit */
  readonly room?: () => number;
};

export class Worker {
  readonly #params: WorkerParams;
  readonly #clock: Clock;
  readonly #leases = new Leases();
  readonly #settlementBuffer = new SettlementBuffer();
  readonly #backoff: Backoff;
  readonly #slots: Slots;
  readonly #claimPlanner: ClaimPlanner;
  readonly #executor: Executor;
  readonly #exchange: Exchange;
  /** Aborts when this worker is closed: it then sends nothing and waits for nothing. */
  readonly #over = new AbortController();
  #isPumpScheduled = false;
  #idle: (() => void)[] = [];

  constructor(params: WorkerParams) {
    const { concurrency, shared, emit, claimBudget, isApart = false } = params;
    const { clock } = params.ports;
    const over = this.#over.signal;
    const schedule = () => this.#schedule();
    claimBudget?.onReturned(schedule);
    const backoff = new Backoff({ clock, emit, over });
    const onAdmissible = schedule;
    const slots = new Slots({ clock, concurrency, onAdmissible, ...(shared ? { shared } : {}) });
    // A bounded pass claims only what may start now; the worker of a start also fills its buffer.
    const room = params.room ?? (claimBudget ? () => slots.room : null);
    const claimPlanner = new ClaimPlanner({ ...params, slots, ...(room ? { room } : {}) });
    const [leases, settlementBuffer] = [this.#leases, this.#settlementBuffer];
    const parts = { leases, settlementBuffer, backoff, slots, claimPlanner, over, schedule };
    const executor = new Executor({ ...params, ...parts });
    this.#params = params;
    this.#clock = clock;
    this.#backoff = backoff;
    this.#slots = slots;
    this.#claimPlanner = claimPlanner;
    this.#executor = executor;
    this.#exchange = new Exchange({ ...params, ...parts, isApart, receiver: executor });
  }

  // ── waking ─────────────────────────────────────────────────────────────────────────────────────

  start(): void {
    this.#claimPlanner.open();
    this.wake();
  }

  /** Looks for work: there may be a run to claim. */
  wake(): void {
    this.#claimPlanner.mayHaveWork();
    this.#schedule();
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

  /** Starts what can start, and sends what can be sent: settlements and claims, in one commit. */
  #pump(): void {
    this.#executor.startBuffered();
    while (this.#exchange.isWanted) void this.#exchange.send();
    this.#noteIdle();
  }

  #noteIdle(): void {
    if (this.#slots.startedCount > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const resolve of waiting) resolve();
    const { claimBudget, signals } = this.#params;
    if (claimBudget && this.isDrained) signals.drained();
  }

  // ── held runs ──────────────────────────────────────────────────────────────────────────────────

  /** The leases that the heartbeat renews. */
  get leases(): Pick<Leases, "fences" | "held" | "shortestMs"> {
    return this.#leases;
  }

  /** Applies the result of a renewal: extends leases, and drops runs that are no longer held. */
  renewed(renewed: Renewed): void {
    this.#executor.renewed(renewed);
  }

  /** Aborts these runs, or settles them as cancelled if they have not started. */
  cancelRequested(ids: readonly RunId[]): void {
    this.#executor.cancel(ids);
  }

  /** Hands back the buffer if it has waited too long because long runs occupy the slots. */
  relieve(): void {
    this.#claimPlanner.slow(this.#slots.slowCount());
    if (this.#slots.isStale) this.#executor.handBackBuffer();
    this.#schedule();
  }

  // ── counts ─────────────────────────────────────────────────────────────────────────────────────

  executes(job: string): boolean {
    return this.#params.jobs.has(job);
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
    return this.#executor.tally.executed;
  }

  /** Attempts that a remote service has received, or may have received. */
  get dispatchedCount(): number {
    return this.#executor.tally.dispatched;
  }

  /** It holds nothing, and claims nothing until the next wake-up. */
  get isDrained(): boolean {
    const isFree = this.#slots.startedCount === 0 && this.#unsettledCount === 0;
    return isFree && !this.#backoff.isOn && !this.#exchange.isWanted;
  }

  /** Settlements and claims in flight or waiting to be sent, and claimed runs without a slot. */
  get #unsettledCount(): number {
    const inFlight = this.#exchange.count + this.#claimPlanner.inFlightCount;
    return this.#settlementBuffer.length + inFlight + this.#slots.bufferedCount;
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  /** Stops claiming, waits for handlers, aborts the rest, settles. The caller keeps the heartbeat going. */
  async stop({ graceMs, budgetMs = null }: StopOptions): Promise<StopReport> {
    this.#claimPlanner.close();
    const before = { ...this.#executor.tally };
    this.#executor.handBackBuffer();
    await this.#untilIdle(graceMs);
    this.#executor.abortAll(budgetMs);
    await this.#untilIdle(ABORT_GRACE_MS);
    await this.#untilSettled();
    const { finished, handedBack, unknown } = this.#executor.tally;
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
    this.#executor.loseAll();
    this.#close();
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
    const untilMs = this.#clock.monotonicMs() + SETTLE_TIMEOUT_MS;
    // The buffer counts too: the next pump hands back runs that were read back only now.
    while (this.#unsettledCount > 0 && !this.#over.signal.aborted) {
      const isTimeUp = this.#clock.monotonicMs() >= untilMs;
      if (isTimeUp || this.#backoff.failures > SETTLE_FAILURES_MAX) return;
      this.#schedule();
      await delay(this.#clock, 10);
    }
  }

  #close(): void {
    this.#over.abort();
    this.#executor.close();
    this.#leases.clear();
  }
}
