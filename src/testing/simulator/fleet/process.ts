// Simulates one process: a real instance with a clock, a connection and a network of its own. When it crashes, its
// clock stops forever and none of its calls ever returns.

import { Holdfast } from "../../../holdfast.js";
import type { Sends } from "../../../remote/dispatching.js";
import type { Clock, Timer } from "../../../shared/ports.js";
import { SqliteStore } from "../../../store/sqlite/store.js";
import type { Store } from "../../../store/store.js";
import { SeededRandom, seededIds, type VirtualClock } from "../../virtual-clock.js";
import type { Fault } from "../faults/catalogue.js";
import { Draw, mix } from "../random.js";
import { type HandlerHost, type JobPlan, jobOptions, TARGET_OPTIONS } from "../workload/jobs.js";
import { SIGNALS_KEPT_MS } from "../workload/waits.js";
import type { Connection } from "./database.js";

/** The store call of the current transaction. */
export type CallInProgress = { readonly verb: string; readonly params: unknown };

export class SimulatedProcess {
  readonly label: string;
  readonly place: number;
  readonly clock: ProcessClock;
  readonly draw: Draw;
  readonly armed: Fault[] = [];
  readonly jobNames: readonly string[];
  isDead = false;
  isStarted = false;
  isStopping = false;
  /** Whether its clocks were ever wrong: off, stepped, drifted or stopped. */
  isClockWrong = false;
  cutOffUntilMs = 0;
  /** Until this time it may wait for a call that a fault has delayed. */
  lateUntilMs = 0;
  /** The number under which it holds leases; set by its announcement. */
  holder: number | null = null;
  current: CallInProgress | null = null;
  busy: Promise<unknown> | null = null;
  holdfast!: Holdfast;
  store!: Store;
  connection!: Connection;

  constructor(params: {
    readonly label: string;
    readonly place: number;
    readonly seed: number;
    readonly base: VirtualClock;
    readonly shiftMs: number;
    readonly jobs: readonly JobPlan[];
  }) {
    this.label = params.label;
    this.place = params.place;
    this.clock = new ProcessClock(params.base, params.shiftMs);
    this.draw = new Draw(params.seed, "network", params.label);
    this.jobNames = params.jobs.map(({ name }) => name);
  }

  /** Makes the instance without starting it. `wire` puts the simulated network in front of the store. */
  boot(params: {
    readonly seed: number;
    readonly pollMs: number;
    readonly isNamed: boolean;
    readonly isAlert: boolean;
    readonly hasTarget: boolean;
    readonly hasWaits: boolean;
    readonly jobs: readonly JobPlan[];
    readonly connection: Connection;
    readonly databaseNow: () => number;
    readonly wire: (store: Store) => Store;
    readonly sends: Sends;
    readonly host: Omit<HandlerHost, "clock" | "seed">;
  }): void {
    const { seed, connection, databaseNow, wire, host } = params;
    const random = new SeededRandom(mix(seed, "chance", this.label));
    this.connection = connection;
    this.holdfast = new Holdfast(
      {
        database: "sqlite::memory:",
        poll: params.pollMs,
        logger: SILENT,
        ...(params.hasTarget ? TARGET_OPTIONS : {}),
        ...(params.hasWaits ? { signalRetention: SIGNALS_KEPT_MS } : {}),
        ...(params.isNamed ? { app: "simulation" } : {}),
        ...(params.isAlert ? {} : { alerts: false }),
      },
      {
        ports: { clock: this.clock, random, ids: seededIds(this.clock, random) },
        sends: params.sends,
        store: () => {
          this.store = wire(
            new SqliteStore({
              source: { handle: connection.handle },
              clock: this.clock,
              random: new SeededRandom(mix(seed, "store", this.label)),
              synchronous: "FULL",
              migrate: "auto",
              mayCreate: true,
              now: databaseNow,
            }),
          );
          return this.store;
        },
      },
    );
    for (const plan of params.jobs)
      this.holdfast.job(plan.name, jobOptions(plan, { ...host, clock: this.clock, seed }));
  }

  /** Whether it handles requests. */
  get isServing(): boolean {
    return this.isStarted && !this.isStopping && !this.clock.isStopped;
  }

  /** Takes the first armed fault that fits this call. */
  takeFault(fits: (fault: Fault) => boolean): Fault | null {
    const at = this.armed.findIndex(fits);
    return at < 0 ? null : (this.armed.splice(at, 1)[0] ?? null);
  }

  die(): void {
    this.isDead = true;
    this.clock.die();
  }
}

const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  isLevelEnabled: () => false,
};

// ── its clocks ─────────────────────────────────────────────────────────────────────────────────────

export class ProcessClock implements Clock {
  readonly #base: VirtualClock;
  readonly #shiftMs: number;
  readonly #set = new Set<Timer>();
  readonly #held: (() => void)[] = [];
  #offsetMs = 0;
  #rate = 0;
  #rateSinceMs: number;
  #asleepMs = 0;
  #stoppedAtMs: number | null = null;
  #isAsleep = false;
  #isDead = false;

  /** `shiftMs` is the difference between the simulated time and the virtual clock. */
  constructor(base: VirtualClock, shiftMs: number) {
    this.#base = base;
    this.#shiftMs = shiftMs;
    this.#rateSinceMs = base.monotonicMs();
  }

  get isStopped(): boolean {
    return this.#stoppedAtMs !== null;
  }

  wallMs(): number {
    return Math.floor(this.#base.wallMs() + this.#shiftMs + this.#offsetMs + this.#drifted());
  }

  monotonicMs(): number {
    return this.#base.monotonicMs() + this.#drifted() - this.#asleepMs;
  }

  timer(delayMs: number, callback: () => void): Timer {
    if (this.#isDead) return { cancel: () => undefined };
    // Whole milliseconds, and at least one, as on a real machine.
    const waitMs = Math.max(1, Math.ceil(delayMs / (1 + this.#rate)));
    const inner = this.#base.timer(waitMs, () => {
      this.#run(() => {
        if (this.#set.delete(timer)) callback();
      });
    });
    const timer: Timer = {
      cancel: () => {
        this.#set.delete(timer);
        inner.cancel();
      },
    };
    this.#set.add(timer);
    return timer;
  }

  soon(callback: () => void): void {
    if (!this.#isDead) this.#base.soon(() => this.#run(callback));
  }

  /** Calls back when something from outside reaches the process. */
  arrive(callback: () => void): void {
    this.#run(callback);
  }

  step(byMs: number): void {
    this.#offsetMs += byMs;
  }

  /** From now on this clock gains this part of every millisecond. */
  drift(rate: number): void {
    this.#offsetMs += this.#drifted();
    this.#asleepMs -= this.#drifted();
    this.#rateSinceMs = this.#base.monotonicMs();
    this.#rate = rate;
  }

  /** The wall clock is right again, as after a synchronisation. */
  mend(): void {
    this.drift(0);
    this.#offsetMs = 0;
  }

  /** Stops the process like SIGSTOP. If the machine is asleep, the monotonic clock stops too. */
  stop({ isAsleep }: { readonly isAsleep: boolean }): void {
    if (this.#stoppedAtMs !== null) return;
    this.#stoppedAtMs = this.#base.monotonicMs();
    this.#isAsleep = isAsleep;
  }

  resume(): void {
    if (this.#stoppedAtMs === null) return;
    if (this.#isAsleep) this.#asleepMs += this.#base.monotonicMs() - this.#stoppedAtMs;
    this.#stoppedAtMs = null;
    for (const callback of this.#held.splice(0)) this.#run(callback);
  }

  die(): void {
    this.#isDead = true;
    this.#held.length = 0;
    for (const timer of [...this.#set]) timer.cancel();
  }

  #drifted(): number {
    return this.#rate === 0 ? 0 : (this.#base.monotonicMs() - this.#rateSinceMs) * this.#rate;
  }

  #run(callback: () => void): void {
    if (this.#isDead) return;
    if (this.#stoppedAtMs !== null) this.#held.push(callback);
    else callback();
  }
}
