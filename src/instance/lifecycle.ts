// Starts and stops an instance for `Holdfast`: announces it, lets it work until it is stopped, or does one bounded
// pass at a time. This file holds the order of these steps; the files of the parts hold the steps themselves, and
// nothing here executes a run or writes a statement. Essay: docs/internals/shutdown.md.

import type { Alerting } from "../alerts/alerting.js";
import { requireMailer } from "../alerts/destinations/send.js";
import type { Locking } from "../locks/locking.js";
import type { Maintenance } from "../operations/maintenance.js";
import { databaseLabel } from "../operations/settings.js";
import { requirePublicUrl } from "../remote/dispatch/targets.js";
import type { RunId } from "../runs/rules/run.js";
import type { RunDetails } from "../runs/view.js";
import type { Waiter } from "../runs/waiter.js";
import type { Declarations, Reconciler } from "../schedules/reconcile.js";
import { type TickerParams, tickOnce } from "../schedules/ticker.js";
import type { Triggered } from "../schedules/trigger.js";
import type { StoreGoneError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { requireName } from "../shared/names.js";
import { SharedCall } from "../shared/shared-call.js";
import type { ClaimScope } from "../store/instances.js";
import type { LazyStore } from "../store/lazy-store.js";
import type { Store } from "../store/store.js";
import type { SharedSlots } from "../worker/slots.js";
import type { StopReport, WorkerParams } from "../worker/worker.js";
import { readStart, type StartConfig, type StartOptions } from "./config.js";
import type { InstanceContext } from "./context.js";
import type { AnnouncedJobs, LocalJobs } from "./jobs.js";
import type { LoopParams } from "./loop.js";
import { type RanIfDue, type RunIfDueOptions, readRunIfDue, runIfDueOnce } from "./run-if-due.js";
import type { RunningInstance, Started, WorkerSet } from "./running.js";
import {
  type BoundedWorker,
  type PassParams,
  passOnce,
  readTick,
  type Ticked,
  type TickOptions,
} from "./tick-once.js";

/** Which workers and loop to make for a start. */
export type WorkerSetOptions = Pick<WorkerParams, "concurrency" | "queues" | "holder" | "store"> &
  Pick<LoopParams, "tick" | "alert" | "onGone"> &
  Pick<StartConfig, "heartbeat"> & { readonly jobs: LocalJobs };

/** Which workers to make for a bounded pass: they end after this many runs, or when `end` aborts. */
export type BoundedOptions = Pick<WorkerSetOptions, "holder" | "store" | "onGone"> & {
  readonly claimMax: number;
  readonly jobs: LocalJobs;
  readonly end: AbortSignal;
};

export type LifecycleParams = {
  readonly context: InstanceContext;
  readonly lazyStore: LazyStore;
  readonly running: RunningInstance;
  readonly jobs: AnnouncedJobs;
  readonly declarations: Declarations;
  readonly reconciler: Reconciler;
  readonly locking: Locking;
  readonly alerting: Alerting | null;
  readonly waiter: Waiter;
  /** Fires a schedule if it is due. */
  readonly trigger: (schedule: string) => Promise<Triggered>;
  readonly run: (id: RunId) => Promise<RunDetails | null>;
  readonly maintenance: Maintenance;
  readonly tickerOf: (store: Store, holder: number) => TickerParams;
  /** The slots of this instance. */
  readonly slots: SharedSlots;
  readonly newWorkerSet: (options: WorkerSetOptions) => Promise<WorkerSet>;
  readonly newBoundedWorker: (options: BoundedOptions) => Promise<BoundedWorker>;
};

type Announced = { readonly store: Store; readonly holder: number };

export class Lifecycle {
  readonly #params: LifecycleParams;
  #announcing: Promise<number> | null = null;
  #stopping: Promise<StopReport> | null = null;
  /** The jobs and queues that this instance executes. */
  #works: () => ClaimScope;
  /** Bounded passes under way, each with the controller that ends it. */
  readonly #passes = new Map<Promise<unknown>, AbortController>();
  /** Simultaneous bounded passes share their polls. */
  readonly #polls = new SharedCall(({ store, holder }: Announced) =>
    store.work.poll({
      holder,
      jobs: this.#params.jobs.runnable.names(),
      queues: null,
      isScheduler: true,
      wantsLastPoll: true,
    }),
  );
  /** A bounded pass evaluates alerts now; others do not wait for it, since a delivery may be slow. */
  #isAlerting = false;

  constructor(params: LifecycleParams) {
    this.#params = params;
    this.#works = () => ({ jobs: params.jobs.runnable.names(), queues: null });
  }

  // ── starting ───────────────────────────────────────────────────────────────────────────────────

  async start(options: StartOptions): Promise<void> {
    const { context, lazyStore, running } = this.#params;
    lazyStore.requireRunning("start");
    const settings = readStart(options, context.config);
    requirePublicUrl(context.config.dispatch);
    await running.start(() => this.#begin(settings));
  }

  /** An instance without jobs still polls: it promotes and reclaims runs, and stays listed as live. */
  async #begin(settings: StartConfig): Promise<Started> {
    const { context, alerting, locking, reconciler, running } = this.#params;
    const jobs = this.#params.jobs.chosen(settings.jobs);
    await this.#requireMailer();
    const store = await this.#openedStore();
    const { isScheduler, concurrency, queues } = settings;
    running.takeRoles(settings);
    locking.logState();
    this.#works = () => ({ jobs: jobs.names(), queues });
    const holder = await this.#announce(store);
    if (isScheduler) await reconciler.once();
    const ticker = this.#params.tickerOf(store, holder);
    this.#params.slots.setMax(concurrency);
    const set = await this.#params.newWorkerSet({
      store,
      holder,
      concurrency,
      queues,
      jobs,
      heartbeat: settings.heartbeat,
      tick: isScheduler ? (context) => tickOnce(ticker, context) : null,
      alert: alerting ? () => this.#alert(store, holder) : null,
      onGone: (error) => void this.#gone(error),
    });
    context.bus.emit("instance.started", {
      instance: context.instanceId,
      database: databaseLabel(context),
      jobs: jobs.names(),
      concurrency,
      connections: store.connectionsMax,
    });
    await this.#warnOfStrangers(store);
    const concurrencyMax = jobs.names().length === 0 ? 0 : concurrency;
    const started = { ...set, holder, concurrencyMax };
    running.working(started);
    set.worker.start();
    set.loop.start();
    return started;
  }

  /** Containers start in any order: the database may be reachable later than the application starts. */
  #openedStore(): Promise<Store> {
    const { context, lazyStore } = this.#params;
    const { startTimeoutMs: timeoutMs } = context.config;
    return lazyStore.waitFor("start", {
      clock: context.ports.clock,
      timeoutMs,
      onWaiting: (error, waitedMs) => {
        const facts = { error: describeFailure(error), waitedMs, timeoutMs };
        context.bus.emit("store.awaited", facts, error);
      },
    });
  }

  /** Logs other owners of the schema. A failure of this check does not fail the start. */
  async #warnOfStrangers(store: Store): Promise<void> {
    const { context } = this.#params;
    const owners = await store.repairs.strangers().catch(() => []);
    if (owners.length > 0)
      context.bus.emit("schema.foreign", { instance: context.instanceId, owners });
  }

  #announce(store: Store): Promise<number> {
    const { context, running, jobs, declarations } = this.#params;
    const { app, release, pollMs } = context.config;
    return store.instances.announce({
      instanceId: context.instanceId,
      app,
      program: context.program,
      release,
      jobs: [...jobs.declared()],
      schedules: declarations.names,
      isScheduler: running.isScheduler,
      works: this.#works(),
      pollMs,
    });
  }

  async #requireMailer(): Promise<void> {
    await requireMailer(this.#params.context.config.alerts?.destinations ?? []);
  }

  async #alert(store: Store, holder: number): Promise<number> {
    return (await this.#params.alerting?.pass(store, holder)) ?? Number.POSITIVE_INFINITY;
  }

  async #alertOnce(store: Store, holder: number): Promise<void> {
    if (this.#isAlerting) return;
    this.#isAlerting = true;
    await this.#alert(store, holder).finally(() => {
      this.#isAlerting = false;
    });
  }

  // ── while it is started ────────────────────────────────────────────────────────────────────────

  /** Announces a job that was declared after the start; workers claim its runs from now on. */
  async jobDeclared(): Promise<void> {
    const started = await this.#params.running.started();
    if (!started || this.#stopping) return;
    await this.#announce(this.#params.context.store).catch(() => undefined);
    started.worker.wake();
  }

  /** Reconciles a schedule that was declared after the start at once. */
  async scheduleDeclared(name: string): Promise<void> {
    const { context, declarations } = this.#params;
    const started = await this.#params.running.started();
    if (!started || this.#stopping) return;
    try {
      await this.#announce(context.store);
      if (!this.#params.running.isScheduler) return;
      await declarations.reconcileAll(context.store, { isForced: false, only: name });
      started.loop.pollWithin(1);
    } catch (error) {
      const why = describeFailure(error).message;
      context.bus.emit("schedule.refused", { schedule: name, why }, error);
    }
  }

  // ── one pass ───────────────────────────────────────────────────────────────────────────────────

  async tick(options: TickOptions): Promise<Ticked> {
    const limits = readTick(options);
    const end = new AbortController();
    const params = await this.#passParams("tick", limits, end.signal);
    return this.#underWay(passOnce(params), end);
  }

  /** Executes a schedule if it is due, and returns how its run ended. */
  async runIfDue(schedule: string, options: RunIfDueOptions): Promise<RanIfDue> {
    const name = requireName(schedule, "runIfDue(schedule)");
    const deadlineMs = readRunIfDue(options);
    const end = new AbortController();
    const { context, trigger, run, waiter, running, lazyStore } = this.#params;
    lazyStore.requireRunning("runIfDue");
    const left = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
    const ran = runIfDueOnce({
      name,
      deadlineMs,
      ports: context.ports,
      emit: context.bus.emit,
      pass: () => this.#passParams("runIfDue", { limit: 1, budgetMs: deadlineMs }, end.signal),
      trigger: () => trigger(name),
      run,
      isExecutedHere: () => running.isWorker,
      whenEnded: (id, timeoutMs) => waiter.terminal({ id, timeoutMs, signal: left }),
      end: left,
    });
    return this.#underWay(ran, end);
  }

  #underWay<T>(pass: Promise<T>, end: AbortController): Promise<T> {
    this.#passes.set(pass, end);
    return pass.finally(() => this.#passes.delete(pass));
  }

  async #passParams(
    verb: string,
    limits: Pick<PassParams, "limit" | "budgetMs">,
    end: AbortSignal,
  ): Promise<PassParams> {
    const { context, lazyStore, jobs, maintenance, reconciler } = this.#params;
    requirePublicUrl(context.config.dispatch);
    await this.#requireMailer();
    const store = await lazyStore.for(verb);
    await reconciler.once({ isFiring: true });
    const holder = await this.#holder(store);
    return {
      store,
      ports: context.ports,
      holder,
      ticker: this.#params.tickerOf(store, holder),
      poll: () => this.#polls.run({ store, holder }),
      emit: context.bus.emit,
      jobs: jobs.runnable.names(),
      ...limits,
      hasWorker: this.#params.running.isWorker,
      alert: () => this.#alertOnce(store, holder),
      applyRetention: (isTimeUp) =>
        maintenance.retentionOnce(store, () => isTimeUp() || end.aborted),
      newWorker: (claimMax, names) =>
        this.#params.newBoundedWorker({
          store,
          holder,
          claimMax,
          jobs: jobs.chosen(names),
          end,
          onGone: (error) => void this.#gone(error),
        }),
    };
  }

  /** The number of this instance in the database; announces the instance if it was not started. */
  async #holder(store: Store): Promise<number> {
    const started = await this.#params.running.started();
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
    this.#params.lazyStore.stop();
    return this.#stopping;
  }

  async #end(graceMs: number): Promise<StopReport> {
    const { context, lazyStore, locking, alerting, waiter } = this.#params;
    const locksEnded = locking.stop({ graceMs });
    alerting?.stop();
    const started = await this.#params.running.started();
    let report: StopReport = { finished: 0, handedBack: 0, abandoned: 0 };
    const passes = this.#endPasses(graceMs);
    if (started) {
      started.loop.stopPolling();
      report = await started.worker.stop({ graceMs });
      started.loop.stopHeartbeat();
      await started.heartbeat.close();
      await context.store.instances.retire({ holder: started.holder }).catch(() => undefined);
      context.bus.emit("instance.stopped", { instance: context.instanceId, ...report });
    }
    await passes;
    if (!started) await this.#retireAnnounced();
    await locksEnded;
    waiter.close();
    await lazyStore.close();
    return report;
  }

  /** The database is gone: aborts running handlers, and refuses every verb with this error. */
  async #gone(error: StoreGoneError): Promise<void> {
    if (this.#stopping) return;
    const { context, lazyStore } = this.#params;
    lazyStore.stop(error);
    context.bus.emit("store.gone", { error: describeFailure(error) }, error);
    (await this.#params.running.started())?.worker.abandon();
    await this.stop(0);
  }

  /** Waits for passes to end within the grace; then they hand their runs back. */
  async #endPasses(graceMs: number): Promise<void> {
    if (this.#passes.size === 0) return;
    const ended = Promise.allSettled(this.#passes.keys());
    const timer = this.#params.context.ports.clock.timer(graceMs, () => {
      for (const end of this.#passes.values()) end.abort();
    });
    await ended;
    timer.cancel();
  }

  async #retireAnnounced(): Promise<void> {
    const holder = await this.#announcing?.catch(() => null);
    if (holder)
      await this.#params.context.store.instances.retire({ holder }).catch(() => undefined);
  }
}
