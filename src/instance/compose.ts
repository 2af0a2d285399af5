// Composes the parts of an instance for `Holdfast`: makes each part and passes it the parts that it uses. Nothing here
// opens a database, starts a timer or decides anything; each part does that in its own file. Read from top to bottom:
// every part refers only to parts above it. Signals to parts below go through the two objects of running.ts.

import { NO_ALERTS } from "../alerts/alert-options.js";
import { ALERTS_BY, Alerting } from "../alerts/alerting.js";
import { Locking } from "../locks/locking.js";
import { Maintenance } from "../operations/maintenance.js";
import { Metrics } from "../operations/metrics.js";
import { pruneSome } from "../operations/retention.js";
import type { Actor } from "../operations/rules/audit.js";
import { Remote } from "../remote/remote.js";
import { Enqueuer } from "../runs/enqueue.js";
import { BUILT_IN_JOBS } from "../runs/rules/job.js";
import { SignalSender } from "../runs/signals.js";
import { Waiter } from "../runs/waiter.js";
import { Declarations, Reconciler } from "../schedules/reconcile.js";
import { ScheduleCache } from "../schedules/schedule-cache.js";
import { releaseOnce, type TickerParams } from "../schedules/ticker.js";
import { ScheduleUpdater } from "../schedules/updater.js";
import { LazyStore } from "../store/lazy-store.js";
import type { Store } from "../store/store.js";
import { ClaimBudget } from "../worker/claim-planner.js";
import { FanOut } from "../worker/handler/fan-out.js";
import { type LeaseHeartbeat, mainThreadHeartbeat } from "../worker/passes.js";
import { Workers } from "../worker/pool.js";
import { BeginWindow, SharedSlots } from "../worker/slots.js";
import { Worker, type WorkerParams } from "../worker/worker.js";
import { type Acting, actorApi } from "./actor-api.js";
import type { HoldfastOptions } from "./config.js";
import type { InstanceContext } from "./context.js";
import { AnnouncedJobs } from "./jobs.js";
import { type BoundedOptions, Lifecycle, type WorkerSetOptions } from "./lifecycle.js";
import { Loop } from "./loop.js";
import { RunningInstance, type WorkerSet, WorkerSetSignals } from "./running.js";
import type { BoundedWorker } from "./tick-once.js";

export type Composition = {
  readonly lazyStore: LazyStore;
  readonly running: RunningInstance;
  readonly jobs: AnnouncedJobs;
  readonly declarations: Declarations;
  readonly enqueuer: Enqueuer;
  readonly signals: SignalSender;
  readonly locking: Locking;
  readonly lifecycle: Lifecycle;
  readonly maintenance: Maintenance;
  readonly metrics: Metrics;
  readonly remote: Remote;
  /** The verbs that change something, in the name of this actor. */
  readonly as: (actor: Actor) => Acting;
  /** The same verbs in the instance's own name. */
  readonly own: Acting;
};

// ── an instance ──────────────────────────────────────────────────────────────────────────────────

export function compose(
  context: InstanceContext,
  given: Pick<HoldfastOptions, "locks">,
): Composition {
  const { config, ports, network, store, instanceId, actor, bus, meters, tracing } = context;
  const { app, release } = config;
  const { emit, listens } = bus;
  const lazyStore = new LazyStore(store);
  const opened = (verb: string) => lazyStore.for(verb);
  const running = new RunningInstance();
  const onChanged = () => void running.changed();

  const jobs = new AnnouncedJobs(opened);
  const waiter = new Waiter({ store: () => opened("runs"), clock: ports.clock });

  // Schedules.
  const cache = new ScheduleCache();
  const updater = new ScheduleUpdater(ports);
  const declarations = new Declarations({
    ports,
    updater,
    actor,
    app,
    program: context.program,
    release,
    mayPause: !context.isDevelopment,
    emit,
    jobs,
  });
  const { isDevelopment } = context;
  const reconciler = new Reconciler({ declarations, lazyStore, isDevelopment, running });
  const refusals: TickerParams["refusals"] = new Map();
  const tickerOf = (opened: Store, holder: number | null): TickerParams => ({
    store: opened,
    holder,
    ports,
    cache,
    refusals,
    emit,
    listens,
    meter: meters,
    tracing,
  });

  // Locks.
  const locks = async (verb: string) => given.locks ?? (await opened(verb)).locks;
  const locking = new Locking({
    provider: locks,
    ports,
    holder: instanceId,
    leaseMs: config.lockLeaseMs,
    isEnabled: config.isLockingEnabled,
    keepMs: config.keepLocksMs,
    emit,
    tracing,
  });

  // The verbs of operators, and alerts, which may pause a schedule in the instance's own name.
  const as = (actor: Actor) =>
    actorApi(actor, {
      store: opened,
      ports,
      updater,
      waiter,
      jobs,
      cache,
      app,
      locks,
      hasOwnLockProvider: given.locks !== undefined,
      emit,
      destinations: (config.alerts ?? NO_ALERTS).destinations,
      network,
      reconciler,
      onChanged,
    });
  const own = as(actor);
  /** Leaves the pause of an operator, and its note, as they are. */
  const pauseFailing = async (schedule: string, note: string) => {
    const found = await own.schedules.get(schedule);
    if (found && found.pausedAt === null)
      await own.schedules.pause(schedule, note, { by: ALERTS_BY });
  };
  const alerting = config.alerts
    ? new Alerting({ ...config.alerts, ports, network, emit, instanceId, app, pause: pauseFailing })
    : null;

  // Workers, start and stop.
  const parts = { context, lazyStore, running, jobs, declarations, locking, waiter };
  const maintenance = new Maintenance({ ...parts, cache, onChanged });
  const begins = new BeginWindow();
  const slots = new SharedSlots(config.concurrency);
  const workerParts: WorkerParts = { ...parts, maintenance, tickerOf, begins, slots };
  const lifecycle = new Lifecycle({
    ...parts,
    reconciler,
    alerting,
    trigger: (schedule) => own.schedules.trigger(schedule, { ifDue: true }),
    run: (id) => own.runs.get(id),
    maintenance,
    tickerOf,
    slots,
    newWorkerSet: (options) => newWorkerSet(workerParts, options),
    newBoundedWorker: (options) => newBoundedWorker(workerParts, options),
  });

  // Runs from this process, and runs of remote workers.
  const enqueuer = new Enqueuer({
    store,
    opened,
    isOpenFor: (verb) => lazyStore.isOpenFor(verb),
    tracing,
    clock: ports.clock,
    ids: ports.ids,
    onStored: (hint) => void running.stored(hint),
  });
  const signals = new SignalSender({
    store: opened,
    keepMs: config.keepSignalsMs,
    onStored: onChanged,
  });
  const remote = new Remote({
    hooks: { hookChainOf: (job) => jobs.hookChainOf(job), logger: context.logger, emit },
    store: () => opened("remote"),
    ports,
    emit,
    listens,
    meter: meters,
    tracing,
    isLocal: (job) => BUILT_IN_JOBS.includes(job) || jobs.runnable.has(job),
    logsOf: (job) => (jobs.hookChainOf(job) ?? config.hookChain).logs,
    release: (opened) => releaseOnce(tickerOf(opened, null)),
    onSettled: (settlements) => {
      waiter.settled(settlements);
      onChanged();
    },
    fanOutOf: (opened) => newFanOut(context, { store: opened, jobs, running }),
  });

  const metrics = new Metrics({
    store: () => opened("metrics"),
    clock: ports.clock,
    meters,
    info: [
      ["instance", instanceId],
      ["engine", store.engine],
      ["app", app ?? ""],
      ["release", release ?? ""],
    ],
    work: () => running.work(),
  });

  return {
    lazyStore,
    running,
    jobs,
    declarations,
    enqueuer,
    signals,
    locking,
    lifecycle,
    maintenance,
    metrics,
    remote,
    as,
    own,
  };
}

function newFanOut(
  { tracing, ports }: InstanceContext,
  { store, jobs, running }: Pick<WorkerParts, "jobs" | "running"> & { readonly store: Store },
): FanOut {
  return new FanOut({
    ...{ store, tracing, clock: ports.clock, newId: () => ports.ids.run() },
    definitionOf: (job) => jobs.definitionOf(job),
    onStored: (hint) => void running.stored(hint),
  });
}

// ── the workers of a start, or of a bounded pass ─────────────────────────────────────────────────

/** The parts of an instance that its workers and their loop use. */
type WorkerParts = {
  readonly context: InstanceContext;
  readonly running: RunningInstance;
  readonly jobs: AnnouncedJobs;
  readonly declarations: Declarations;
  readonly locking: Locking;
  readonly waiter: Waiter;
  readonly maintenance: Maintenance;
  readonly tickerOf: (store: Store, holder: number | null) => TickerParams;
  readonly begins: BeginWindow;
  readonly slots: SharedSlots;
};

type BoundedParams = { readonly budget?: ClaimBudget; readonly onDrained?: () => void };

async function newWorkerSet(
  parts: WorkerParts,
  options: WorkerSetOptions,
  { budget, onDrained }: BoundedParams = {},
): Promise<WorkerSet> {
  const { context, running, declarations } = parts;
  const { config, ports, bus, meters, tracing, sends } = context;
  const { store, holder, jobs, concurrency, queues } = options;
  const signals = new WorkerSetSignals(parts.waiter, onDrained);
  const shared: Omit<WorkerParams, "jobs" | "concurrency"> = {
    queues,
    store,
    holder,
    ports,
    emit: bus.emit,
    listens: bus.listens,
    logger: context.logger,
    meter: meters,
    tracing,
    begins: parts.begins,
    fanOut: newFanOut(context, { store, jobs: parts.jobs, running }),
    locking: parts.locking,
    signals,
    ...(budget ? { claimBudget: budget } : {}),
  };
  const local = new Worker({ ...shared, shared: parts.slots, concurrency, jobs: jobs.of(null) });
  const targets = [...config.dispatch.targets.values()].map(
    (target) =>
      new Worker({
        ...shared,
        jobs: jobs.of(target.name),
        concurrency: target.concurrency,
        isApart: true,
        room: () => sends.room(target.name),
      }),
  );
  const worker = new Workers([local, ...targets], ports);
  const heartbeat = await newHeartbeat(context, { ...options, worker });
  const loop = new Loop({
    store,
    worker,
    holder,
    tick: options.tick,
    release: () => releaseOnce(parts.tickerOf(store, holder)),
    alert: options.alert,
    ports,
    heartbeat,
    executes: () => ({ jobs: jobs.names(), queues }),
    pollMs: config.pollMs,
    prune: () => pruneSome(parts.maintenance.retention(store)),
    emit: bus.emit,
    instanceId: context.instanceId,
    meter: meters,
    reportVanished: declarations.isWatchful ? () => declarations.reportVanished(store) : null,
    maintainLocks: () => parts.locking.retentionIfDue(),
    onGone: options.onGone,
    recomputeSchedules: async () => {
      await declarations.recompute(store);
      await declarations.resetFar(store);
    },
  });
  const set = { worker, loop, heartbeat };
  signals.connect(set);
  return set;
}

/** Workers that claim `claimMax` runs at most. They are over when these are done, or when `end` aborts. */
async function newBoundedWorker(
  parts: WorkerParts,
  { claimMax, end, ...options }: BoundedOptions,
): Promise<BoundedWorker> {
  const over = new AbortController();
  const whenOver = new Promise<void>((resolve) => {
    over.signal.addEventListener("abort", () => resolve());
    end.addEventListener("abort", () => resolve(), { signal: over.signal });
  });
  const set = await newWorkerSet(
    parts,
    {
      ...options,
      concurrency: claimMax,
      queues: null,
      heartbeat: "main",
      tick: null,
      alert: null,
    },
    { budget: new ClaimBudget(claimMax), onDrained: () => over.abort() },
  );
  return { ...set, over: whenOver };
}

/** The module of the heartbeat thread is loaded only if a start requests it. */
async function newHeartbeat(
  { config, ports, bus }: InstanceContext,
  options: Pick<WorkerSetOptions, "store" | "holder" | "heartbeat"> & { readonly worker: Workers },
): Promise<LeaseHeartbeat> {
  const { store, holder, heartbeat, worker } = options;
  if (heartbeat === "main") return mainThreadHeartbeat(store);
  const { threadHeartbeat } = await import("./thread-heartbeat.js");
  return threadHeartbeat({
    store,
    holder,
    config,
    clock: ports.clock,
    emit: bus.emit,
    held: () => worker.leases.held(),
  });
}
