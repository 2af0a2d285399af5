// The life of an instance: it announces itself, works until it is stopped, or does one bounded pass at a
// time, and ends in good order. The order of these steps is all there is here; what they do is in other
// files. Essay: docs/internals/shutdown.md.

import type { Alerting } from "../alerts/alerting.js";
import { requireMailer } from "../alerts/destinations/send.js";
import type { Locking } from "../locks/locking.js";
import type { Maintenance } from "../operations/maintenance.js";
import { databaseLabel } from "../operations/settings.js";
import { requirePublicUrl } from "../remote/dispatch/targets.js";
import type { WakeHint } from "../runs/enqueue.js";
import type { Waiter } from "../runs/waiter.js";
import type { Declarations, Reconciling } from "../schedules/reconcile.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import { releaseOnce, type TickerParams, type TickReport, tickOnce } from "../schedules/ticker.js";
import type { StoreGoneError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { Appetite, Store } from "../store/store.js";
import { BeginWindow } from "../worker/begin-window.js";
import type { StopReport } from "../worker/worker.js";
import { readStart, type StartConfig, type StartOptions } from "./config.js";
import type { InstanceContext } from "./context.js";
import { boundedCrew, type Crew, type CrewParts, newCrew } from "./crew.js";
import type { AnnouncedJobs } from "./jobs.js";
import { passOnce, readTick, type Ticked, type TickOptions } from "./tick-once.js";

export type LifecycleParams = {
  readonly basis: InstanceContext;
  readonly opening: LazyStore;
  readonly jobs: AnnouncedJobs;
  readonly compiled: ScheduleCache;
  readonly declarations: Declarations;
  readonly reconciling: Reconciling;
  readonly locking: Locking;
  readonly alerting: Alerting | null;
  readonly waiter: Waiter;
  readonly upkeep: Maintenance;
};

type Started = Crew & { readonly holder: number };

export class Lifecycle {
  readonly #params: LifecycleParams;
  #starting: Promise<Started> | null = null;
  #announcing: Promise<number> | null = null;
  #stopping: Promise<StopReport> | null = null;
  #isScheduler = false;
  #isWorker = false;
  /** What this instance executes. */
  #works: () => Appetite;
  #work: () => { readonly running: number; readonly max: number } = () => ({ running: 0, max: 0 });
  readonly #begins = new BeginWindow();
  readonly #refusals: TickerParams["refusals"] = new Map();
  /** Bounded passes that are going on, each with how to end it. */
  readonly #passes = new Map<Promise<unknown>, AbortController>();

  constructor(params: LifecycleParams) {
    this.#params = params;
    this.#works = () => ({ jobs: params.jobs.runnable.names(), queues: null });
  }

  /** Whether it fires what is due. */
  get isScheduler(): boolean {
    return this.#isScheduler;
  }

  /** Whether it executes runs by itself: it was started, with its worker on. */
  get isWorker(): boolean {
    return this.#isWorker;
  }

  /** How many runs are executed now, and how many may be at the same time. */
  work(): { readonly running: number; readonly max: number } {
    return this.#work();
  }

  // ── starting ───────────────────────────────────────────────────────────────────────────────────

  async start(options: StartOptions): Promise<void> {
    const { basis, opening } = this.#params;
    opening.requireRunning("start");
    const settings = readStart(options, basis.config);
    requirePublicUrl(basis.config.dispatch);
    this.#starting ??= this.#begin(settings);
    this.#starting.catch(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  /** An instance without jobs to run still polls: it promotes, reclaims and keeps itself known. */
  async #begin(settings: StartConfig): Promise<Started> {
    const { basis, alerting, locking } = this.#params;
    const jobs = this.#params.jobs.chosen(settings.jobs);
    await this.#requireMailer();
    const store = await this.#whenThere();
    const { isScheduler, concurrency, queues } = settings;
    this.#isScheduler = isScheduler;
    this.#isWorker = settings.isWorker;
    locking.tellState();
    this.#works = () => ({ jobs: jobs.names(), queues });
    const holder = await this.#announce(store);
    if (isScheduler) await this.reconcileOnce();
    const ticker = this.#ticker(store, holder);
    const crew = await newCrew(this.#crewParts(store, holder), {
      concurrency,
      queues,
      jobs,
      heartbeat: settings.heartbeat,
      tick: isScheduler ? (looked) => tickOnce(ticker, looked) : null,
      alert: alerting ? () => this.#alert(store, holder) : null,
    });
    basis.bus.emit("instance.started", {
      instance: basis.instanceId,
      database: databaseLabel(basis),
      jobs: jobs.names(),
      concurrency,
      connections: store.connectionsMax,
    });
    await this.#warnOfStrangers(store);
    const max = jobs.names().length === 0 ? 0 : concurrency;
    this.#work = () => ({ running: crew.worker.runningCount, max });
    crew.worker.start();
    crew.loop.start();
    return { ...crew, holder };
  }

  /** Containers start in any order: the database may come later than its application. */
  #whenThere(): Promise<Store> {
    const { basis, opening } = this.#params;
    const { startTimeoutMs: timeoutMs } = basis.config;
    return opening.waitFor("start", {
      clock: basis.ports.clock,
      timeoutMs,
      onWaiting: (error, waitedMs) => {
        const facts = { error: describeFailure(error), waitedMs, timeoutMs };
        basis.bus.emit("store.awaited", facts, error);
      },
    });
  }

  /** Whether this can be asked at all is no condition for a start. */
  async #warnOfStrangers(store: Store): Promise<void> {
    const { basis } = this.#params;
    const owners = await store.strangers().catch(() => []);
    if (owners.length > 0) basis.bus.emit("schema.foreign", { instance: basis.instanceId, owners });
  }

  #announce(store: Store): Promise<number> {
    const { basis, jobs, declarations } = this.#params;
    const { app, release, pollMs } = basis.config;
    return store.announce({
      instanceId: basis.instanceId,
      app,
      release,
      jobs: [...jobs.declared()],
      schedules: declarations.names,
      isScheduler: this.#isScheduler,
      works: this.#works(),
      pollMs,
    });
  }

  /** One that was started without a scheduler declares nothing, until somebody has it fire. */
  async reconcileOnce({ isFiring = false } = {}): Promise<void> {
    if (this.#starting && !this.#isScheduler && !isFiring) return;
    await this.#params.reconciling.once();
  }

  async #requireMailer(): Promise<void> {
    await requireMailer(this.#params.basis.config.alerts?.destinations ?? []);
  }

  #crewParts(store: Store, holder: number): CrewParts {
    const { basis, jobs, declarations, upkeep, locking, waiter } = this.#params;
    return {
      ...basis,
      store,
      holder,
      jobs,
      declarations,
      keeping: upkeep.keeping(store),
      tidyLocks: () => locking.tidyIfDue(),
      begins: this.#begins,
      release: () => this.release(store, holder),
      onStored: (stored) => void this.stored(stored),
      onSettled: (settlements) => waiter.settled(settlements),
      onGone: (error) => void this.#gone(error),
    };
  }

  /** Opens the gates of runs whose turn has come, whether or not this instance fires ticks. */
  release(store: Store, holder: number | null = null): Promise<TickReport> {
    return releaseOnce(this.#ticker(store, holder));
  }

  #ticker(store: Store, holder: number | null): TickerParams {
    const { basis, compiled } = this.#params;
    const { ports, bus, meters, tracing } = basis;
    return {
      store,
      holder,
      ports,
      compiled,
      refusals: this.#refusals,
      emit: bus.emit,
      listens: bus.listens,
      meter: meters,
      tracing,
    };
  }

  async #alert(store: Store, holder: number): Promise<number> {
    return (await this.#params.alerting?.pass(store, holder)) ?? Number.POSITIVE_INFINITY;
  }

  // ── what happens meanwhile ─────────────────────────────────────────────────────────────────────

  /** New runs of this process need no poll to be found. */
  async stored({ dueInMs, jobs }: WakeHint): Promise<void> {
    const started = await this.#started();
    if (dueInMs > 0) started?.loop.pollWithin(dueInMs);
    else if (jobs) started?.worker.wakeFor(jobs);
    else started?.worker.wake();
  }

  /** Something may be due now that was not before: a poll says what, and wakes whom it concerns. */
  async changed(): Promise<void> {
    const started = await this.#started();
    started?.loop.pollWithin(1);
  }

  /** A job that was declared after the start is claimed from the next poll on. */
  async jobDeclared(): Promise<void> {
    const started = await this.#started();
    if (!started || this.#stopping) return;
    await this.#announce(this.#params.basis.store).catch(() => undefined);
    started.worker.wake();
  }

  /** A schedule that was declared after the start is reconciled at once. */
  async scheduleDeclared(name: string): Promise<void> {
    const { basis, declarations } = this.#params;
    const started = await this.#started();
    if (!started || this.#stopping) return;
    try {
      await this.#announce(basis.store);
      if (!this.#isScheduler) return;
      await declarations.reconcileAll(basis.store, { isForced: false, only: name });
      started.loop.pollWithin(1);
    } catch (error) {
      const why = describeFailure(error).message;
      basis.bus.emit("schedule.refused", { schedule: name, why }, error);
    }
  }

  #started(): Promise<Started | null> {
    return this.#starting?.catch(() => null) ?? Promise.resolve(null);
  }

  // ── one pass ───────────────────────────────────────────────────────────────────────────────────

  async tick(options: TickOptions): Promise<Ticked> {
    const { basis, opening, jobs, upkeep } = this.#params;
    const { limit, budgetMs } = readTick(options);
    requirePublicUrl(basis.config.dispatch);
    await this.#requireMailer();
    const store = await opening.for("tick");
    await this.reconcileOnce({ isFiring: true });
    const holder = await this.#holder(store);
    const end = new AbortController();
    const pass = passOnce({
      store,
      ports: basis.ports,
      holder,
      ticker: this.#ticker(store, holder),
      emit: basis.bus.emit,
      jobs: jobs.runnable.names(),
      limit,
      budgetMs,
      alert: () => this.#alert(store, holder),
      tidy: (isTimeUp) => upkeep.tidyOnce(store, () => isTimeUp() || end.signal.aborted),
      newWorker: (claimMax) =>
        boundedCrew(this.#crewParts(store, holder), { claimMax, end: end.signal }),
    });
    this.#passes.set(pass, end);
    return pass.finally(() => this.#passes.delete(pass));
  }

  /** This instance's number in the database, also where it was not started. */
  async #holder(store: Store): Promise<number> {
    const started = await this.#started();
    if (started) return started.holder;
    this.#announcing ??= this.#announce(store);
    this.#announcing.catch(() => {
      this.#announcing = null;
    });
    return this.#announcing;
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  stop(graceMs: number): Promise<StopReport> {
    this.#stopping ??= this.#end(graceMs);
    this.#params.opening.stop();
    return this.#stopping;
  }

  async #end(graceMs: number): Promise<StopReport> {
    const { basis, opening, locking, alerting, waiter } = this.#params;
    const locksEnded = locking.stop({ graceMs });
    alerting?.stop();
    const started = await this.#started();
    let report: StopReport = { finished: 0, handedBack: 0, abandoned: 0 };
    const passes = this.#endPasses(graceMs);
    if (started) {
      started.loop.stopPolling();
      report = await started.worker.stop({ graceMs });
      started.loop.stopBeating();
      await started.pulse.close();
      await basis.store.retire({ holder: started.holder }).catch(() => undefined);
      basis.bus.emit("instance.stopped", { instance: basis.instanceId, ...report });
    }
    await passes;
    if (!started) await this.#retireAnnounced();
    await locksEnded;
    waiter.close();
    await opening.close();
    return report;
  }

  /** What runs is told that it is no longer held, and every verb is refused with what happened. */
  async #gone(error: StoreGoneError): Promise<void> {
    if (this.#stopping) return;
    const { basis, opening } = this.#params;
    opening.stop(error);
    basis.bus.emit("store.gone", { error: describeFailure(error) }, error);
    (await this.#started())?.worker.abandon();
    await this.stop(0);
  }

  /** Passes end by themselves within the grace, or hand back what they still run. */
  async #endPasses(graceMs: number): Promise<void> {
    if (this.#passes.size === 0) return;
    const ended = Promise.allSettled(this.#passes.keys());
    const timer = this.#params.basis.ports.clock.timer(graceMs, () => {
      for (const end of this.#passes.values()) end.abort();
    });
    await ended;
    timer.cancel();
  }

  async #retireAnnounced(): Promise<void> {
    const holder = await this.#announcing?.catch(() => null);
    if (holder) await this.#params.basis.store.retire({ holder }).catch(() => undefined);
  }
}
