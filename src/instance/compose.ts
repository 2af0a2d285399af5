// Puts the parts of an instance together: who needs whom, and who tells whom. Nothing happens here; what a
// part does is in its own file.

import { NO_ALERTS } from "../alerts/alert-options.js";
import { ALERTS_BY, Alerting } from "../alerts/alerting.js";
import { leaseRows } from "../locks/lease-rows.js";
import { Locking } from "../locks/locking.js";
import { Maintenance } from "../operations/maintenance.js";
import { Metrics } from "../operations/metrics.js";
import type { Actor } from "../operations/rules/audit.js";
import { BUILT_IN_JOBS } from "../remote/built-in-jobs.js";
import { Remote } from "../remote/remote.js";
import { Enqueuer, newSender } from "../runs/enqueue.js";
import type { Sender } from "../runs/job.js";
import { Waiter } from "../runs/waiter.js";
import { Declarations, Reconciling } from "../schedules/reconcile.js";
import { ScheduleCache } from "../schedules/schedule-cache.js";
import { ScheduleUpdater } from "../schedules/updater.js";
import { LazyStore } from "../store/lazy-store.js";
import { type Acting, actingAs } from "./actor-api.js";
import type { HoldfastOptions } from "./config.js";
import type { InstanceContext } from "./context.js";
import { AnnouncedJobs } from "./jobs.js";
import { Lifecycle } from "./lifecycle.js";

export type Composition = {
  readonly opening: LazyStore;
  readonly jobs: AnnouncedJobs;
  readonly declarations: Declarations;
  readonly sender: Sender;
  readonly locking: Locking;
  readonly life: Lifecycle;
  readonly upkeep: Maintenance;
  readonly metrics: Metrics;
  readonly remote: Remote;
  /** The verbs that change something, in this name. */
  readonly as: (actor: Actor) => Acting;
  /** The same in the instance's own name. */
  readonly own: Acting;
};

export function assemble(
  basis: InstanceContext,
  given: Pick<HoldfastOptions, "locks">,
): Composition {
  const { config, ports, network, store, instanceId, actor, bus, meters, tracing } = basis;
  const { app, release } = config;
  const { emit, listens } = bus;
  const opening = new LazyStore(store);
  const opened = (verb: string) => opening.for(verb);
  const onChanged = () => void life.changed();

  const jobs = new AnnouncedJobs(opened);
  const compiled = new ScheduleCache();
  const desk = new ScheduleUpdater(ports);
  const waiter = new Waiter({ store: () => opened("runs"), clock: ports.clock });

  const declarations = new Declarations({
    ports,
    desk,
    actor,
    app,
    release,
    mayPause: !basis.isDevelopment,
    emit,
    encode: (job, input) => jobs.encode(job, input),
    ensureJob: (name) => jobs.ensure(name),
  });
  const reconciling = new Reconciling({
    declarations,
    opening,
    isDevelopment: basis.isDevelopment,
    isScheduler: () => life.isScheduler,
    onApplied: onChanged,
  });

  const locks = async (verb: string) => given.locks ?? leaseRows(await opened(verb));
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

  /** An operator's pause, and its note, stay as they are. */
  const pauseFailing = async (schedule: string, note: string) => {
    const found = await own.schedules.get(schedule);
    if (found && found.pausedAt === null)
      await own.schedules.pause(schedule, note, { by: ALERTS_BY });
  };
  const alerting = config.alerts
    ? new Alerting({ ...config.alerts, ports, network, emit, instanceId, app, pause: pauseFailing })
    : null;

  const parts = { basis, opening, jobs, compiled, declarations, locking };
  const upkeep = new Maintenance({ ...parts, onChanged });
  const life = new Lifecycle({ ...parts, reconciling, alerting, waiter, upkeep });

  const enqueuer = new Enqueuer({
    store,
    clock: ports.clock,
    onStored: (stored) => void life.stored(stored),
  });
  const sender = newSender({
    store,
    opened,
    isOpenFor: (verb) => opening.isOpenFor(verb),
    enqueuer,
    tracing,
    ids: ports.ids,
    onStored: () => void life.stored({ dueInMs: 0 }),
  });
  const remote = new Remote({
    hooks: { aroundOf: (job) => jobs.aroundOf(job), logger: basis.logger, emit },
    store: () => opened("remote"),
    ports,
    emit,
    listens,
    meter: meters,
    tracing,
    isLocal: (job) => BUILT_IN_JOBS.includes(job) || jobs.runnable.has(job),
    logsOf: (job) => (jobs.aroundOf(job) ?? config.around).logs,
    release: (opened) => life.release(opened),
    onSettled: (settlements) => {
      waiter.settled(settlements);
      onChanged();
    },
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
    work: () => life.work(),
  });

  const as = (actor: Actor) =>
    actingAs(actor, {
      store: opened,
      ports,
      desk,
      waiter,
      jobs,
      compiled,
      app,
      locks,
      hasLocksElsewhere: given.locks !== undefined,
      emit,
      destinations: (config.alerts ?? NO_ALERTS).destinations,
      network,
      reconcileOnce: () => life.reconcileOnce(),
      plan: () => reconciling.plan(),
      apply: () => reconciling.apply(),
      onChanged,
    });
  const own = as(actor);
  return {
    opening,
    jobs,
    declarations,
    sender,
    locking,
    life,
    upkeep,
    metrics,
    remote,
    as,
    own,
  };
}
