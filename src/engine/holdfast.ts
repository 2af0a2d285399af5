// `Holdfast`: what users hold. It wires the parts of an instance together and keeps their order when
// starting and stopping; what the parts do is in their own files. The constructor does no I/O: the
// first verb that needs the database opens it, once.

import { hostname } from "node:os";
import { systemChance, systemIds } from "../adapters/chance.js";
import { systemClock } from "../adapters/clock.js";
import { systemNetwork } from "../adapters/network.js";
import { NO_ALERTS } from "../alerts/alert-options.js";
import { requireMailer } from "../alerts/email.js";
import { type Actor, auditEntry, codeActor } from "../core/audit.js";
import { type Duration, durationMs } from "../core/duration.js";
import { DuplicateJobError, StoppedError } from "../core/errors.js";
import { describeFailure } from "../core/failure.js";
import { defineJob, type JobDefinition, type JobOptions } from "../core/job.js";
import type { Network, Ports } from "../core/ports.js";
import { redactUrl } from "../core/redact.js";
import type { ScheduleOptions } from "../core/schedule.js";
import type { StandardSchema } from "../core/schema.js";
import { isCallbackToken, type TokenGrant } from "../http/dispatch/callback-token.js";
import { Dispatcher } from "../http/dispatch/dispatcher.js";
import { refuseUnknownTarget, requirePublicUrl } from "../http/dispatch/targets.js";
import { leaseRows } from "../locks/lease-rows.js";
import type { LockOptions } from "../locks/lock-options.js";
import { type HeldLock, Locking, type LockResult } from "../locks/locking.js";
import type { Locks } from "../locks/locks.js";
import { storeFor } from "../store/open.js";
import type { Glance } from "../store/operator-store.js";
import type { Appetite, Store } from "../store/store.js";
import { Bus, type Listener } from "../telemetry/bus.js";
import {
  type Emit,
  type EventName,
  LentLogger,
  type Logger,
  lineLogger,
} from "../telemetry/log.js";
import { Meters } from "../telemetry/meters.js";
import { Tracing } from "../telemetry/tracing.js";
import { type Acting, type ActorOptions, readActor } from "./acting.js";
import { type ActingParts, actingAs } from "./acting-as.js";
import { ALERTS_BY, Alerting } from "./alerting.js";
import type { Alerts } from "./alerts.js";
import type { Around, AroundOptions } from "./around.js";
import { readAround } from "./around-options.js";
import { Audit } from "./audit.js";
import type { Calendars } from "./calendars.js";
import { type CheckOptions, type CheckReport, readCheck, reportOf } from "./check.js";
import type { CleanedUp, CleanupOptions } from "./cleanup.js";
import { CompiledSchedules } from "./compiled.js";
import {
  type Config,
  type HoldfastOptions,
  readStart,
  type StartConfig,
  type StartOptions,
} from "./config.js";
import { boundedCrew, type CrewParts, newCrew } from "./crew.js";
import { Declarations } from "./declarations.js";
import type { PlannedChange } from "./declared.js";
import { Desk } from "./desk.js";
import { dispatchTo, type Sends } from "./dispatching.js";
import { Enqueuer } from "./enqueuer.js";
import type { Handler, RunnableJob } from "./execution.js";
import { type HealthOptions, type HealthReport, healthOf, readHealth } from "./health.js";
import { httpJob } from "./http-job.js";
import type { Instances } from "./instances.js";
import {
  accepted,
  type Enqueued,
  type EnqueueOptions,
  Job,
  type JobOf,
  newRun,
  type Sender,
  send,
} from "./job.js";
import type { PlainJobOptions, SchemaJobOptions } from "./job-options.js";
import { type AnnouncedJob, toAnnouncedJob } from "./job-view.js";
import { KnownJobs } from "./known-jobs.js";
import type { Loop } from "./loop.js";
import { Metrics, type MetricsOptions, readMetrics } from "./metrics.js";
import {
  type ErrorReport,
  type ErrorsOptions,
  errorsOf,
  readErrors,
  readStats,
  type Stats,
  type StatsOptions,
  statsOf,
} from "./overview.js";
import { passOnce, readTick, type Ticked, type TickOptions } from "./pass.js";
import { reapOnce } from "./passes.js";
import { type Pause, type PauseOptions, pauseOf } from "./pausing.js";
import type { Pulse } from "./pulse.js";
import type { Queues } from "./queues.js";
import { type RecoverOptions, type RecoverReport, readRecover, recoverOnce } from "./recover.js";
import { Remote } from "./remote.js";
import { type RepairOptions, type RepairReport, readRepair, repairOnce } from "./repair.js";
import {
  JobRetention,
  type Keeping,
  type Pruned,
  type PruneOptions,
  pruneAll,
  pruneSome,
} from "./retention.js";
import { type Runs, Waiter } from "./runs.js";
import { jobOf } from "./schedule-options.js";
import type { Schedules } from "./schedules.js";
import { newSender } from "./sending.js";
import { type Settings, settingsOf } from "./settings.js";
import { shellJob } from "./shell-job.js";
import { readConfigWithin, surroundings } from "./surroundings.js";
import { type TickerParams, tickOnce } from "./ticker.js";
import type { StopReport } from "./worker.js";
import type { Workers } from "./workers.js";

const STOP_GRACE = "25s";

/** What tests and the simulator put in place of the real world. */
export type Internals = {
  readonly ports?: Ports;
  readonly store?: (config: Config, ports: Ports) => Store;
  /** False: commands that only look never make a database. */
  readonly mayCreate?: boolean;
  /** What sends runs to targets. */
  readonly sends?: Sends;
  /** What runs and alerts are sent through. */
  readonly network?: Network;
};

type Started = {
  readonly worker: Workers;
  readonly loop: Loop;
  readonly pulse: Pulse;
  readonly holder: number;
};

export class Holdfast {
  /** `host:pid:boot-uuid`: names this object in leases, logs and history. */
  readonly instanceId: string;
  /** What was asked for and what became of it. */
  readonly runs: Runs;
  /** By which names runs are routed to workers. */
  readonly queues: Queues;
  /** When jobs run, and the ledger of every tick. */
  readonly schedules: Schedules;
  /** Named sets of times at which schedules do not tick. */
  readonly calendars: Calendars;
  /** The locks of `lock()`, from an operator's side. */
  readonly locks: Locks;
  /** What somebody should hear of. */
  readonly alerts: Alerts;
  readonly #alerting: Alerting | null;
  /** Who takes part. */
  readonly instances: Instances;
  /** Who changed what, from where, when and why. */
  readonly audit: Audit;
  readonly #actor: Actor;
  readonly #own: Acting;
  readonly #actingAs: (actor: Actor) => Acting;
  readonly #locking: Locking;
  /** What workers elsewhere ask for over the network; the HTTP API's worker routes call it. */
  readonly remote: Remote;
  readonly #config: Config;
  readonly #ports: Ports;
  readonly #store: Store;
  /** What its lines go to. */
  readonly logger: Logger;
  readonly #bus: Bus;
  readonly #meters = new Meters();
  readonly #metrics: Metrics;
  readonly #tracing: Tracing | null;
  /** How many runs the worker may execute at the same time. */
  #concurrency = 0;
  #working: Workers | null = null;
  readonly #emit: Emit;
  readonly #sender: Sender;
  readonly #waiter: Waiter;
  readonly #jobs = new KnownJobs((verb) => this.#opened(verb));
  readonly #retention = new JobRetention(() => this.#jobs.declared());
  readonly #sends: Sends;
  readonly #compiled = new CompiledSchedules();
  readonly #declarations: Declarations;
  #opening: Promise<Store> | null = null;
  #isOpen = false;
  #starting: Promise<Started> | null = null;
  #announcing: Promise<number> | null = null;
  /** Bounded passes that are going on, each with how to end it. */
  readonly #passes = new Map<Promise<unknown>, AbortController>();
  #isScheduler = false;
  /** What this instance executes. */
  #works: () => Appetite = () => ({ jobs: this.#jobs.runnable.names(), queues: null });
  /** The code at hand always wins, and nothing is paused for it. */
  readonly #isDevelopment: boolean;
  #reconciling: Promise<void> | null = null;
  #stopping: Promise<StopReport> | null = null;
  readonly #ending = new AbortController();

  constructor(options: HoldfastOptions = {}, internals: Internals = {}) {
    const around = surroundings();
    this.#config = readConfigWithin(around, options, process.env);
    this.#ports = internals.ports ?? { clock: systemClock, chance: systemChance, ids: systemIds() };
    this.#isDevelopment = around.mayPause === false;
    const { clock, chance, ids } = this.#ports;
    this.#store = internals.store
      ? internals.store(this.#config, this.#ports)
      : storeFor({
          ...this.#config,
          clock,
          chance,
          mayCreate: internals.mayCreate ?? around.mayCreate ?? this.#config.migrate === "auto",
        });
    this.instanceId = `${hostname()}:${process.pid}:${ids.unique()}`;
    this.logger =
      options.logger ??
      around.logger ??
      new LentLogger(
        lineLogger(
          this.#config.logLevel,
          (line) => process.stderr.write(`${line}\n`),
          () => new Date(clock.wallMs()),
        ),
      );
    this.#bus = new Bus({
      logger: this.logger,
      now: () => new Date(clock.wallMs()),
      onError: options.onError,
      observer: this.#meters,
    });
    this.#emit = this.#bus.emit;
    const api = options.telemetry?.opentelemetry;
    this.#tracing = api === undefined ? null : new Tracing(api);
    const network = internals.network ?? systemNetwork;
    this.#sends =
      internals.sends ??
      new Dispatcher({
        ...this.#config.dispatch,
        clock,
        network,
        onCircuit: ({ isOpen, ...what }) =>
          this.#emit(isOpen ? "target.left_alone" : "target.answers", what),
      });
    const enqueuer = new Enqueuer({
      store: this.#store,
      clock,
      onStored: (dueInMs) => void this.#stored(dueInMs),
    });
    this.#sender = newSender({
      store: this.#store,
      opened: (verb) => this.#opened(verb),
      isOpenFor: (verb) => this.#isOpenFor(verb),
      enqueuer,
      tracing: this.#tracing,
      ids,
      onStored: () => void this.#stored(0),
    });
    this.#waiter = new Waiter({ store: () => this.#opened("runs"), clock });
    const onChanged = () => void this.#pollSoon();
    this.remote = new Remote({
      hooks: {
        aroundOf: (job) => this.#jobs.aroundOf(job),
        logger: this.logger,
        emit: this.#emit,
      },
      store: () => this.#opened("remote"),
      ports: this.#ports,
      emit: this.#emit,
      listens: this.#bus.listens,
      meter: this.#meters,
      tracing: this.#tracing,
      onSettled: (settlements) => {
        this.#waiter.settled(settlements.map(({ id }) => id));
        onChanged();
      },
    });
    const desk = new Desk(this.#ports);
    const { app, release } = this.#config;
    this.#metrics = new Metrics({
      store: () => this.#opened("metrics"),
      clock,
      meters: this.#meters,
      info: [
        ["instance", this.instanceId],
        ["engine", this.#store.engine],
        ["app", app ?? ""],
        ["release", release ?? ""],
      ],
      work: () => ({ running: this.#working?.runningCount ?? 0, max: this.#concurrency }),
    });
    const actor = around.actor ?? codeActor(this.instanceId);
    this.#actor = actor;
    this.#declarations = new Declarations({
      ports: this.#ports,
      desk,
      actor,
      app,
      release,
      mayPause: !this.#isDevelopment,
      emit: this.#emit,
      encode: (job, input) => this.#jobs.encode(job, input),
      ensureJob: (name) => this.#jobs.ensure(name),
    });
    const provider = async (verb: string) => options.locks ?? leaseRows(await this.#opened(verb));
    this.#locking = new Locking({
      provider,
      ports: this.#ports,
      holder: this.instanceId,
      leaseMs: this.#config.lockLeaseMs,
      isEnabled: this.#config.isLockingEnabled,
      keepMs: this.#config.keepLocksMs,
      emit: this.#emit,
      tracing: this.#tracing,
    });
    this.#alerting = this.#config.alerts
      ? new Alerting({
          ...this.#config.alerts,
          ports: this.#ports,
          network,
          emit: this.#emit,
          instanceId: this.instanceId,
          app,
          pause: (schedule, note) => this.#pauseFailing(schedule, note),
        })
      : null;
    const acting: ActingParts = {
      store: (verb) => this.#opened(verb),
      ports: this.#ports,
      desk,
      waiter: this.#waiter,
      jobs: this.#jobs,
      compiled: this.#compiled,
      app,
      locks: provider,
      hasLocksElsewhere: options.locks !== undefined,
      emit: this.#emit,
      destinations: (this.#config.alerts ?? NO_ALERTS).destinations,
      network,
      reconcileOnce: () => this.#reconcileOnce(),
      plan: async () => this.#declarations.plan(await this.#opened("schedules.plan")),
      apply: () => this.#apply(),
      onChanged,
    };
    this.#actingAs = (as) => actingAs(as, acting);
    const own = this.#actingAs(actor);
    this.#own = own;
    this.runs = own.runs;
    this.schedules = own.schedules;
    this.calendars = own.calendars;
    this.queues = own.queues;
    this.locks = own.locks;
    this.instances = own.instances;
    this.alerts = own.alerts;
    this.audit = new Audit(() => this.#opened("audit"));
    const { shell, http } = this.#config.builtIn;
    if (shell) this.job("shell", shellJob(shell) as PlainJobOptions<never, unknown>);
    if (http)
      this.job("http", httpJob(http, { clock, network }) as PlainJobOptions<never, unknown>);
  }

  /**
   * Runs the function while no other holds the lock of that name, in any process. The lease is renewed
   * meanwhile; if it is lost, the signal aborts, and the call rejects once the function has ended.
   */
  lock<Value>(
    name: string,
    options: LockOptions,
    fn: (lock: HeldLock) => Value | Promise<Value>,
  ): Promise<LockResult<Value>> {
    return this.#locking.lock(name, options, fn);
  }

  /** Declares a job; its handler runs in every instance that starts a worker. */
  job<Schema extends StandardSchema, Result>(
    name: string,
    options: SchemaJobOptions<Schema, Result>,
  ): JobOf<Schema, Result>;
  job<Input = unknown, Result = unknown>(
    name: string,
    options: PlainJobOptions<Input, Result>,
  ): Job<Input, Result>;
  job(
    name: string,
    options: JobOptions & AroundOptions & { readonly run?: Handler },
  ): Job<never, never> {
    if (this.#jobs.has(name)) throw new DuplicateJobError(name);
    const definition = defineJob(name, options);
    refuseUnknownTarget(definition, this.#config.dispatch);
    const field = (member: string) => `job("${name}").${member}`;
    const around = readAround(options, this.#config.around, field);
    this.#jobs.add(definition, around, this.#runnableAs(definition, around, options.run));
    if (this.#starting) void this.#announceLate();
    return new Job<never, never>(definition, this.#sender);
  }

  /** Declares a schedule; a start with the scheduler on brings the database up to it. */
  schedule<Input>(
    name: string,
    job: Job<Input, unknown> | string,
    options: ScheduleOptions & { readonly input?: Input },
  ): void;
  /** Declares a monitor: what runs elsewhere, and checks in here. */
  schedule(name: string, options: ScheduleOptions & { readonly monitor: true }): void;
  schedule(
    name: string,
    job: { readonly name: string } | string | ScheduleOptions,
    options?: ScheduleOptions,
  ): void {
    const isMonitor = options === undefined && typeof job === "object" && "monitor" in job;
    const given = isMonitor ? job : { job, ...options };
    const chosen = (isMonitor ? job : options) as ScheduleOptions;
    this.#declarations.add(name, jobOf(name, given, `schedule("${name}").job`), chosen);
    if (this.#starting) void this.#declareLate(name);
  }

  /** For a server that hosts this instance: its lines go there, unless it was given a logger. */
  lendLogger(logger: Logger): void {
    if (this.logger instanceof LentLogger) this.logger.lend(logger);
  }

  /**
   * Calls back when something happens in this instance, with the facts. What a listener throws disturbs
   * nothing and is reported once. Answers with how to stop listening.
   */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.#bus.on(event, listener);
  }

  /**
   * Does it as part of the trace that a W3C `traceparent` names, so that what it enqueues belongs there.
   * Where no OpenTelemetry was given, or a trace is going on already, it is just done.
   */
  continueTrace<T>(traceparent: string | null, fn: () => T): T {
    return this.#tracing ? this.#tracing.continued(traceparent, fn) : fn();
  }

  /** Enqueues a job by name; one that this process did not declare is taken as it was announced. */
  async enqueue(job: string, input: unknown, options: EnqueueOptions = {}): Promise<Enqueued> {
    const definition = await this.#jobs.definitionOf(job);
    const run = await newRun({ definition, input, options, id: this.#ports.ids.run() });
    return accepted(run, await send(this.#sender, run, options.tx));
  }

  /** Opens the database, announces this instance and its jobs, and begins to work. */
  async start(options: StartOptions = {}): Promise<void> {
    if (this.#stopping) throw new StoppedError("start");
    const settings = readStart(options, this.#config);
    requirePublicUrl(this.#config.dispatch);
    this.#starting ??= this.#begin(settings);
    this.#starting.catch(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  /**
   * One bounded pass, for places where nothing stays alive between two calls: fires what is due,
   * takes back what silent holders left, then executes at most `limit` runs within `budget`.
   * Safe to call at any time, from any number of processes at once; needs no `start`.
   */
  async tick(options: TickOptions = {}): Promise<Ticked> {
    const { limit, budgetMs } = readTick(options);
    requirePublicUrl(this.#config.dispatch);
    await this.#requireMailer();
    const store = await this.#opened("tick");
    await this.#reconcileOnce({ isFiring: true });
    const holder = await this.#holder(store);
    const end = new AbortController();
    const pass = passOnce({
      store,
      ports: this.#ports,
      holder,
      ticker: this.#ticker(store, holder),
      emit: this.#emit,
      jobs: this.#jobs.runnable.names(),
      limit,
      budgetMs,
      alert: () => this.#alert(store, holder),
      tidy: (isTimeUp) => this.#tidyOnce(store, () => isTimeUp() || end.signal.aborted),
      newWorker: (claimMax) =>
        boundedCrew(this.#crewParts(store, holder), { claimMax, end: end.signal }),
    });
    this.#passes.set(pass, end);
    return pass.finally(() => this.#passes.delete(pass));
  }

  /**
   * Stops everything: once this has resolved nothing fires and nothing is claimed, by any instance,
   * remote worker or SQL function on this database. Runs that are running go on; ticks meanwhile are
   * skipped and not caught up. Pausing again keeps the time, and the note if none is given.
   */
  pause(options: PauseOptions = {}): Promise<Pause> {
    return this.#own.pause(options);
  }

  /** Lifts the pause of everything, and it alone: what was paused by itself stays so. Answers with it. */
  resume(options: { readonly by?: string } = {}): Promise<Pause | null> {
    return this.#own.resume(options);
  }

  /** The verbs that change something, in this name: the audit trail keeps who asked and from where. */
  as(actor: ActorOptions): Acting {
    return this.#actingAs(readActor(actor));
  }

  /** The pause of everything that is on, or null. */
  async paused(): Promise<Pause | null> {
    return pauseOf(await this.#opened("paused"));
  }

  /** Every job that an instance announced, by name, as the newest one announced it. */
  async jobs(): Promise<readonly AnnouncedJob[]> {
    return (await (await this.#opened("jobs")).announcedJobs()).map(toAnnouncedJob);
  }

  /** How this instance is set up, for people to read; no secret is in it. */
  settings(): Settings {
    const { instanceId: instance, databaseLabel: database } = this;
    return settingsOf(this.#config, { instance, database });
  }

  /** A cheap look that differs from the one before if runs changed; for what hints at changes. */
  async glance(): Promise<Glance> {
    return (await this.#opened("glance")).glance();
  }

  /** Aborts when a stop begins: for what serves this instance and has to end with it. */
  get stopSignal(): AbortSignal {
    return this.#ending.signal;
  }

  /** How runs ended since then: overall, by job, and by hour or day. */
  async stats(options: StatsOptions = {}): Promise<Stats> {
    const filter = readStats(options);
    return statsOf(await this.#opened("stats"), filter);
  }

  /** What failed since then, equal errors of a job together, out of the newest failed runs. */
  async errors(options: ErrorsOptions = {}): Promise<ErrorReport> {
    const since = readErrors(options);
    return errorsOf(await this.#opened("errors"), since);
  }

  /** Which promises the tables break, in one snapshot; on a healthy database none, whatever is going on. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    const { timeLimitMs } = readCheck(options);
    const store = await this.#opened("check");
    return reportOf(await store.check({ own: this.#config.checks, timeLimitMs }));
  }

  /** The same as a script for psql or sqlite3, whichever this database needs; nothing is connected. */
  checkScript(): string {
    return this.#store.checkScript(this.#config.checks);
  }

  /** Mends what `check()` finds, where a rule can; tells first, and acts with `apply: true`. */
  async repair(options: RepairOptions = {}): Promise<RepairReport> {
    const { isApplied } = readRepair(options);
    const store = await this.#opened("repair");
    const reap = () => this.#reap(store);
    const report = await repairOnce({ store, own: this.#config.checks, isApplied, reap });
    const mended = report.steps.filter(({ changed }) => changed !== null);
    if (mended.length === 0) return report;
    await this.#audited(store, "repair", mended.map(({ check }) => check).join("; "));
    store.wake();
    void this.#pollSoon();
    return report;
  }

  /**
   * After a restored backup: raises every fence beyond any that was handed out, ends the leases and locks
   * of holders that are gone, and tells what would fire and run next; acts with `apply: true`.
   */
  async recover(options: RecoverOptions = {}): Promise<RecoverReport> {
    const { isApplied } = readRecover(options);
    const store = await this.#opened("recover");
    const reap = () => this.#reap(store);
    const [ports, compiled] = [this.#ports, this.#compiled];
    const report = await recoverOnce({ store, ports, compiled, isApplied, reap });
    if (isApplied)
      await this.#audited(store, "recover", `fences raised by ${report.fencesRaisedBy}`);
    return report;
  }

  /** A few figures against thresholds: success rate, heartbeats, stale runs, the scheduler. */
  async health(options: HealthOptions = {}): Promise<HealthReport> {
    const wanted = readHealth(options);
    return healthOf(await this.#opened("health"), wanted, () => this.check());
  }

  /** Removes what is past its time, all of it; running instances do so each hour, a bounded amount. */
  async prune({ onProgress = () => undefined }: PruneOptions = {}): Promise<Pruned> {
    const store = await this.#opened("prune");
    const { keepLocksMs } = this.#config;
    return pruneAll({ ...this.#keeping(store), keepLocksMs, onProgress });
  }

  #keeping(store: Store): Keeping {
    const { keepMs, keepTicksMs, keepLogsMs } = this.#config;
    return { store, keep: { keepMs, keepTicksMs, keepLogsMs }, jobs: this.#retention };
  }

  /** What instances that stay do each hour, for a pass that nothing outlives. */
  async #tidyOnce(store: Store, isTimeUp: () => boolean): Promise<void> {
    await pruneSome(this.#keeping(store), isTimeUp);
    await this.#locking.tidyIfDue();
    await this.#declarations.recompute(store);
  }

  #reap(store: Store): Promise<unknown> {
    return reapOnce({ store, chance: () => this.#ports.chance.next(), emit: this.#emit });
  }

  #audited(store: Store, verb: string, change: string): Promise<void> {
    return store.addAudit(
      auditEntry(this.#actor, { verb, noun: "everything", name: null, change }),
    );
  }

  /** What this process counted and what the database tells of the whole, as text for Prometheus. */
  async metrics(options: MetricsOptions = {}): Promise<string> {
    const read = readMetrics(options);
    if (this.#stopping) throw new StoppedError("metrics");
    return this.#metrics.text(read);
  }

  /** Takes back now what silent or endless holders have; each run goes on by its own policy. */
  cleanup(options: CleanupOptions = {}): Promise<CleanedUp> {
    return this.#own.cleanup(options);
  }

  /**
   * Ends in good order: no new claims, unstarted runs handed back, `grace` for the running ones, then
   * their signal aborts. What does not end then is abandoned: its lease runs out by itself, so that
   * no second execution begins beside it. A second call does nothing.
   */
  stop(options: { readonly grace?: Duration } = {}): Promise<StopReport> {
    const graceMs = durationMs(options.grace ?? STOP_GRACE, "stop().grace");
    this.#stopping ??= this.#end(graceMs);
    this.#ending.abort();
    return this.#stopping;
  }

  /** An instance without jobs to run still polls: it promotes, reclaims and keeps itself known. */
  async #begin(settings: StartConfig): Promise<Started> {
    const jobs = this.#jobs.chosen(settings.jobs);
    await this.#requireMailer();
    const store = await this.#opened("start");
    const { isScheduler, concurrency, queues } = settings;
    this.#isScheduler = isScheduler;
    this.#locking.tellState();
    this.#works = () => ({ jobs: jobs.names(), queues });
    const holder = await this.#announce(store);
    if (isScheduler) await this.#reconcileOnce();
    const ticker = this.#ticker(store, holder);
    const { worker, loop, pulse } = await newCrew(this.#crewParts(store, holder), {
      concurrency,
      queues,
      jobs,
      heartbeat: settings.heartbeat,
      tick: isScheduler ? (looked) => tickOnce(ticker, looked) : null,
      alert: this.#alerting ? () => this.#alert(store, holder) : null,
    });
    this.#emit("instance.started", {
      instance: this.instanceId,
      database: this.databaseLabel,
      jobs: jobs.names(),
      concurrency,
      connections: store.connectionsMax,
    });
    this.#working = worker;
    this.#concurrency = jobs.names().length === 0 ? 0 : concurrency;
    worker.start();
    loop.start();
    return { worker, loop, pulse, holder };
  }

  #crewParts(store: Store, holder: number): CrewParts {
    return {
      store,
      holder,
      instanceId: this.instanceId,
      config: this.#config,
      ports: this.#ports,
      bus: this.#bus,
      logger: this.logger,
      meters: this.#meters,
      tracing: this.#tracing,
      jobs: this.#jobs,
      sends: this.#sends,
      declarations: this.#declarations,
      keeping: this.#keeping(store),
      tidyLocks: () => this.#locking.tidyIfDue(),
      onStored: (dueInMs) => void this.#stored(dueInMs),
      onSettled: (settlements) => this.#waiter.settled(settlements.map(({ id }) => id)),
    };
  }

  #ticker(store: Store, holder: number): TickerParams {
    return {
      store,
      holder,
      ports: this.#ports,
      compiled: this.#compiled,
      refusals: new Map(),
      emit: this.#emit,
      listens: this.#bus.listens,
      meter: this.#meters,
      tracing: this.#tracing,
    };
  }

  /**
   * Whether this token was given to the worker of that job's target with this run, under this fence.
   * For what serves callbacks; that the fence is still the current one is for the store to say.
   */
  isCallbackToken(params: { readonly token: string; readonly job: string } & TokenGrant): boolean {
    const target = this.#jobs.targetOf(params.job);
    const secrets = target === null ? [] : this.#config.dispatch.targets.get(target)?.secrets;
    return isCallbackToken({ token: params.token, grant: params, secrets: secrets ?? [] });
  }

  /** Null where neither a handler nor a target was named: the job is for others to execute. */
  #runnableAs(definition: JobDefinition, around: Around, run?: Handler): RunnableJob | null {
    if (run) return { ...definition, run, around };
    if (definition.worker === null) return null;
    const dispatch = dispatchTo({
      target: definition.worker,
      url: this.#config.dispatch.targets.get(definition.worker)?.url ?? "",
      sends: this.#sends,
      clock: this.#ports.clock,
      keepReply: (line) => this.#store.keepReply(line),
      emit: this.#emit,
      tracing: this.#tracing,
    });
    return { ...definition, around, dispatch };
  }

  async #alert(store: Store, holder: number): Promise<number> {
    return (await this.#alerting?.pass(store, holder)) ?? Number.POSITIVE_INFINITY;
  }

  async #requireMailer(): Promise<void> {
    await requireMailer(this.#config.alerts?.destinations ?? []);
  }

  /** An operator's pause, and its note, stay as they are. */
  async #pauseFailing(schedule: string, note: string): Promise<void> {
    const found = await this.schedules.get(schedule);
    if (found && found.pausedAt === null)
      await this.schedules.pause(schedule, note, { by: ALERTS_BY });
  }

  /** This instance's number in the database, also where it was not started. */
  async #holder(store: Store): Promise<number> {
    const started = await this.#starting?.catch(() => null);
    if (started) return started.holder;
    this.#announcing ??= this.#announce(store);
    this.#announcing.catch(() => {
      this.#announcing = null;
    });
    return this.#announcing;
  }

  /** The database in words, without secrets. */
  get databaseLabel(): string {
    const { database } = this.#config;
    return typeof database === "string"
      ? redactUrl(database)
      : `a given ${this.#store.engine} handle`;
  }

  async #end(graceMs: number): Promise<StopReport> {
    const locksEnded = this.#locking.stop({ graceMs });
    this.#alerting?.stop();
    const started = await this.#starting?.catch(() => null);
    let report: StopReport = { finished: 0, handedBack: 0, abandoned: 0 };
    const passes = this.#endPasses(graceMs);
    if (started) {
      started.loop.stopPolling();
      report = await started.worker.stop({ graceMs });
      started.loop.stopBeating();
      await started.pulse.close();
      await this.#store.retire({ holder: started.holder }).catch(() => undefined);
      this.#emit("instance.stopped", { instance: this.instanceId, ...report });
    }
    await passes;
    if (!started) await this.#retireAnnounced();
    await locksEnded;
    this.#waiter.close();
    await this.#opening?.catch(() => undefined);
    await this.#store.close();
    return report;
  }

  /** Passes end by themselves within the grace, or hand back what they still run. */
  async #endPasses(graceMs: number): Promise<void> {
    if (this.#passes.size === 0) return;
    const ended = Promise.allSettled(this.#passes.keys());
    const timer = this.#ports.clock.timer(graceMs, () => {
      for (const end of this.#passes.values()) end.abort();
    });
    await ended;
    timer.cancel();
  }

  async #retireAnnounced(): Promise<void> {
    const holder = await this.#announcing?.catch(() => null);
    if (holder) await this.#store.retire({ holder }).catch(() => undefined);
  }

  /** Opens the store once; a failed opening is tried again by the next verb. */
  #opened(verb: string): Promise<Store> {
    if (this.#stopping) return Promise.reject(new StoppedError(verb));
    this.#opening ??= this.#store.open().then(
      () => {
        this.#isOpen = true;
        return this.#store;
      },
      (error: unknown) => {
        this.#opening = null;
        throw error;
      },
    );
    return this.#opening;
  }

  #isOpenFor(verb: string): boolean {
    if (this.#stopping) throw new StoppedError(verb);
    return this.#isOpen;
  }

  #announce(store: Store): Promise<number> {
    const { app, release } = this.#config;
    return store.announce({
      instanceId: this.instanceId,
      app,
      release,
      jobs: [...this.#jobs.declared()],
      schedules: this.#declarations.names,
      isScheduler: this.#isScheduler,
      works: this.#works(),
      pollMs: this.#config.pollMs,
    });
  }

  /**
   * Once in a process; a failure is tried again by the next call. One that was started without a scheduler
   * declares nothing, until somebody has it fire.
   */
  async #reconcileOnce({ isFiring = false } = {}): Promise<void> {
    if (this.#starting && !this.#isScheduler && !isFiring) return;
    this.#reconciling ??= this.#reconcile();
    this.#reconciling.catch(() => {
      this.#reconciling = null;
    });
    await this.#reconciling;
  }

  async #reconcile(): Promise<void> {
    if (this.#declarations.names.length === 0 && !this.#isScheduler) return;
    const store = await this.#opened("schedules");
    await this.#declarations.reconcileAll(store, { isForced: this.#isDevelopment });
    if (!this.#isScheduler) return;
    await this.#declarations.reportVanished(store);
    await this.#declarations.recompute(store);
  }

  async #apply(): Promise<readonly PlannedChange[]> {
    const store = await this.#opened("schedules.apply");
    const planned = await this.#declarations.plan(store);
    await this.#declarations.reconcileAll(store, { isForced: true });
    await this.#declarations.reportVanished(store);
    void this.#pollSoon();
    return planned;
  }

  /** A schedule that was declared after the start is reconciled at once. */
  async #declareLate(name: string): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    if (!started || this.#stopping) return;
    try {
      await this.#announce(this.#store);
      if (!this.#isScheduler) return;
      await this.#declarations.reconcileAll(this.#store, { isForced: false, only: name });
      started.loop.pollWithin(1);
    } catch (error) {
      const why = describeFailure(error).message;
      this.#emit("schedule.refused", { schedule: name, why }, error);
    }
  }

  async #pollSoon(): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    started?.worker.wake();
    started?.loop.pollWithin(1);
  }

  /** A job that was declared after the start is claimed from the next poll on. */
  async #announceLate(): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    if (!started || this.#stopping) return;
    await this.#announce(this.#store).catch(() => undefined);
    started.worker.wake();
  }

  /** New runs of this process need no poll to be found. */
  async #stored(dueInMs: number): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    if (dueInMs <= 0) started?.worker.wake();
    else started?.loop.pollWithin(dueInMs);
  }
}
