// Carries the signals between the parts of an instance that cannot refer to each other: from parts that are composed
// before the lifecycle (schedules, enqueue, maintenance) to the loop and the workers of a start, and from workers to
// the loop that is made after them. Every signal only makes something happen sooner; polling finds it as well.

import type { WakeHint } from "../runs/enqueue.js";
import type { Waiter } from "../runs/waiter.js";
import type { Settlement } from "../store/claims.js";
import type { WorkerSignals } from "../worker/exchange.js";
import type { LeaseHeartbeat } from "../worker/passes.js";
import type { Workers } from "../worker/pool.js";
import type { Loop } from "./loop.js";

/** Workers, the loop that polls for them, and the heartbeat that keeps their leases. */
export type WorkerSet = {
  readonly worker: Workers;
  readonly loop: Loop;
  readonly heartbeat: LeaseHeartbeat;
};

export type Started = WorkerSet & {
  /** The number of this instance in the database. */
  readonly holder: number;
  /** How many runs it may execute at the same time. */
  readonly concurrencyMax: number;
};

/** Knows the loop and the workers of a start. Before a start, and after a failed one, its signals have no effect. */
export class RunningInstance {
  #starting: Promise<Started> | null = null;
  #set: Started | null = null;
  #isScheduler = false;
  #isWorker = false;

  /** Whether a start has begun, and has not failed. */
  get isStarted(): boolean {
    return this.#starting !== null;
  }

  /** Whether this instance fires due schedules. */
  get isScheduler(): boolean {
    return this.#isScheduler;
  }

  /** Whether this instance executes runs without being called: it was started, with its worker on. */
  get isWorker(): boolean {
    return this.#isWorker;
  }

  /** How many runs are executed now, and how many may be at the same time. */
  work(): { readonly running: number; readonly max: number } {
    if (!this.#set) return { running: 0, max: 0 };
    return { running: this.#set.worker.runningCount, max: this.#set.concurrencyMax };
  }

  // ── set by the lifecycle ───────────────────────────────────────────────────────────────────────

  /** Starts once; a start that failed may be repeated. */
  async start(begin: () => Promise<Started>): Promise<void> {
    this.#starting ??= begin();
    this.#starting.catch(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  takeRoles(roles: { readonly isScheduler: boolean; readonly isWorker: boolean }): void {
    this.#isScheduler = roles.isScheduler;
    this.#isWorker = roles.isWorker;
  }

  /** The workers are about to start. */
  working(set: Started): void {
    this.#set = set;
  }

  /** The result of the start that is under way or done; null if there is none, or it failed. */
  started(): Promise<Started | null> {
    return this.#starting?.catch(() => null) ?? Promise.resolve(null);
  }

  // ── signals ────────────────────────────────────────────────────────────────────────────────────

  /** This process stored new runs: workers claim them without waiting for a poll. */
  async stored({ dueInMs, jobs }: WakeHint): Promise<void> {
    const started = await this.started();
    if (dueInMs > 0) started?.loop.pollWithin(dueInMs);
    else if (jobs) started?.worker.wakeFor(jobs);
    else started?.worker.wake();
  }

  /** Work may be due now that was not before: a poll finds out, and wakes the workers concerned. */
  async changed(): Promise<void> {
    const started = await this.started();
    started?.loop.pollWithin(1);
  }
}

/** The signals of one set of workers. Workers are made before the loop, and send nothing before they are started. */
export class WorkerSetSignals implements WorkerSignals {
  readonly #waiter: Waiter;
  readonly #onDrained: (() => void) | undefined;
  #set: WorkerSet | null = null;

  /** `onDrained` is called when every worker of a bounded pass has nothing left to do. */
  constructor(waiter: Waiter, onDrained: (() => void) | undefined) {
    this.#waiter = waiter;
    this.#onDrained = onDrained;
  }

  connect(set: WorkerSet): void {
    this.#set = set;
  }

  settled(settlements: readonly Settlement[]): void {
    this.#waiter.settled(settlements);
    this.#set?.loop.settled(settlements);
  }

  claimed(): void {
    this.#set?.loop.claimed();
  }

  postponed(delayMs: number): void {
    this.#set?.loop.pollWithin(delayMs);
  }

  continued(): void {
    this.#set?.worker.wake();
  }

  letGo(): void {
    this.#set?.heartbeat.changed();
  }

  drained(): void {
    if (this.#set?.worker.isDrained) this.#onDrained?.();
  }
}
