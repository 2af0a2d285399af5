// `Holdfast`: what users hold. It wires the parts of an instance together and keeps their order when
// starting and stopping; what the parts do is in their own files. The constructor does no I/O: the
// first verb that needs the database opens it, once.

import { hostname } from "node:os";
import { systemChance, systemIds } from "../adapters/chance.js";
import { systemClock } from "../adapters/clock.js";
import { systemNetwork } from "../adapters/network.js";
import { NO_ALERTS } from "../alerts/alert-options.js";
import { requireMailer } from "../alerts/email.js";
import { type Actor, type AuditEntry, auditEntry, codeActor } from "../core/audit.js";
import { type Duration, durationMs } from "../core/duration.js";
import {
  ConfigurationError,
  DuplicateJobError,
  StoppedError,
  UnknownJobError,
} from "../core/errors.js";
import { describeFailure } from "../core/failure.js";
import { NO_LIMITS } from "../core/flow.js";
import { defineJob, type JobDefinition, type JobOptions } from "../core/job.js";
import { encodeInput } from "../core/json.js";
import type { Network, Ports } from "../core/ports.js";
import { redactUrl } from "../core/redact.js";
import type { ScheduleOptions } from "../core/schedule.js";
import { type StandardSchema, validateInput } from "../core/schema.js";
import { isCallbackToken, type TokenGrant } from "../http/dispatch/callback-token.js";
import { Dispatcher } from "../http/dispatch/dispatcher.js";
import { refuseUnknownTarget, requirePublicUrl } from "../http/dispatch/targets.js";
import { leaseRows } from "../locks/lease-rows.js";
import type { LockOptions } from "../locks/lock-options.js";
import { type HeldLock, Locking, type LockResult } from "../locks/locking.js";
import { Locks } from "../locks/locks.js";
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
import { ALERTS_BY, Alerting } from "./alerting.js";
import { Alerts } from "./alerts.js";
import { Allowance } from "./allowance.js";
import type { Around, AroundOptions } from "./around.js";
import { readAround } from "./around-options.js";
import { Audit } from "./audit.js";
import { Calendars } from "./calendars.js";
import { type CheckOptions, type CheckReport, readCheck, reportOf } from "./check.js";
import { type CleanedUp, type CleanupOptions, cleanUpOnce, readCleanup } from "./cleanup.js";
import { CompiledSchedules } from "./compiled.js";
import {
  type Config,
  type HoldfastOptions,
  readStart,
  type StartConfig,
  type StartOptions,
} from "./config.js";
import { Declarations } from "./declarations.js";
import type { PlannedChange } from "./declared.js";
import { Desk } from "./desk.js";
import { dispatchTo, type Sends } from "./dispatching.js";
import { Enqueuer } from "./enqueuer.js";
import type { Handler, RunnableJob } from "./execution.js";
import { FanOut } from "./fan-out.js";
import { type HealthOptions, type HealthReport, healthOf, readHealth } from "./health.js";
import { httpJob } from "./http-job.js";
import { Instances } from "./instances.js";
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
import { Loop, type LoopParams } from "./loop.js";
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
import { type BoundedWorker, passOnce, readTick, type Ticked, type TickOptions } from "./pass.js";
import { reapOnce } from "./passes.js";
import { type Pause, type PauseOptions, pauseOf, readPause, toPause } from "./pausing.js";
import { mainThreadPulse, type Pulse } from "./pulse.js";
import { Queues } from "./queues.js";
import { type RecoverOptions, type RecoverReport, readRecover, recoverOnce } from "./recover.js";
import { Remote } from "./remote.js";
import { type RepairOptions, type RepairReport, readRepair, repairOnce } from "./repair.js";
import { JobRetention, type Pruned, type PruneOptions, pruneAll } from "./retention.js";
import { RunnableJobs } from "./runnable.js";
import { Runs, Waiter } from "./runs.js";
import { jobName } from "./schedule-options.js";
import { Schedules } from "./schedules.js";
import { type Settings, settingsOf } from "./settings.js";
import { shellJob } from "./shell-job.js";
import { readConfigWithin, surroundings } from "./surroundings.js";
import { type TickerParams, tickOnce } from "./ticker.js";
import { type StopReport, Worker, type WorkerParams } from "./worker.js";
import { Workers } from "./workers.js";

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
  readonly runs: Runs;
  readonly queues: Queues;
  readonly schedules: Schedules;
  readonly calendars: Calendars;
  readonly locks: Locks;
  readonly alerts: Alerts;
  readonly #alerting: Alerting | null;
  readonly instances: Instances;
  /** Who changed what, from where, when and why. */
  readonly audit: Audit;
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
  readonly #enqueuer: Enqueuer;
  readonly #waiter: Waiter;
  readonly #definitions = new Map<string, JobDefinition>();
  readonly #arounds = new Map<string, Around>();
  readonly #runnable = new RunnableJobs();
  readonly #retention = new JobRetention(() => this.#definitions.values());
  readonly #sends: Sends;
  readonly #compiled = new CompiledSchedules();
  readonly #declarations: Declarations;
  /** Jobs that the database knows from this instance. */
  readonly #announcedJobs = new Set<string>();
  #opening: Promise<Store> | null = null;
  #isOpen = false;
  #starting: Promise<Started> | null = null;
  #announcing: Promise<number> | null = null;
  /** Bounded passes that are going on, each with how to end it. */
  readonly #passes = new Map<Promise<unknown>, AbortController>();
  #isScheduler = false;
  /** What this instance executes. */
  #works: () => Appetite = () => ({ jobs: this.#runnable.names(), queues: null });
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
        onCircuit: (change) => this.#emit("target.changed", change),
      });
    this.#enqueuer = new Enqueuer({
      store: this.#store,
      clock,
      onStored: (dueInMs) => void this.#stored(dueInMs),
    });
    const store = () => this.#opened("runs");
    this.#waiter = new Waiter({ store, clock });
    const onChanged = () => void this.#pollSoon();
    this.remote = new Remote({
      hooks: {
        aroundOf: (job) => this.#arounds.get(job),
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
    const encode = (job: string, input: unknown) => this.#encode(job, input);
    const ensureJob = (name: string) => this.#ensureJob(name);
    const actor = around.actor ?? codeActor(this.instanceId);
    this.#declarations = new Declarations({
      ports: this.#ports,
      desk,
      actor,
      app,
      release,
      mayPause: !this.#isDevelopment,
      emit: this.#emit,
      encode,
      ensureJob,
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
    this.alerts = new Alerts({
      store: (verb) => this.#opened(verb),
      destinations: (this.#config.alerts ?? NO_ALERTS).destinations,
      ports: this.#ports,
      network,
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
    const addAudit = async (entry: AuditEntry) => (await this.#opened("locks")).addAudit(entry);
    this.#actingAs = (as) => {
      const schedules = new Schedules({
        store: (verb) => this.#opened(verb),
        actor: as,
        ports: this.#ports,
        desk,
        compiled: this.#compiled,
        encode,
        ensureJob,
        app,
        reconcileOnce: () => this.#reconcileOnce(),
        plan: async () => this.#declarations.plan(await this.#opened("schedules.plan")),
        apply: () => this.#apply(),
        onChanged,
        emit: this.#emit,
      });
      return {
        schedules,
        runs: new Runs({
          store,
          actor: as,
          waiter: this.#waiter,
          ports: this.#ports,
          desk,
          onChanged,
        }),
        queues: new Queues({ store: () => this.#opened("queues"), actor: as, onChanged }),
        calendars: new Calendars({
          store: () => this.#opened("calendars"),
          actor: as,
          applyTo: (schedule) => schedules.applyCalendars(schedule),
        }),
        locks: new Locks({
          provider,
          actor: as,
          addAudit: options.locks ? addAudit : null,
          onReleased: (facts) => this.#emit("lock.revoked", facts),
        }),
        instances: new Instances({ store: (verb) => this.#opened(verb), actor: as, onChanged }),
        pause: (asked = {}) => this.#pauseAll(as, asked),
        resume: (asked = {}) => this.#resumeAll(as, asked),
      };
    };
    const own = this.#actingAs(actor);
    this.#own = own;
    this.runs = own.runs;
    this.schedules = own.schedules;
    this.calendars = own.calendars;
    this.queues = own.queues;
    this.locks = own.locks;
    this.instances = own.instances;
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
    if (this.#definitions.has(name)) throw new DuplicateJobError(name);
    const definition = defineJob(name, options);
    refuseUnknownTarget(definition, this.#config.dispatch);
    const field = (member: string) => `job("${name}").${member}`;
    const around = readAround(options, this.#config.around, field);
    this.#definitions.set(name, definition);
    this.#arounds.set(name, around);
    if (options.run) this.#runnable.add({ ...definition, run: options.run, around });
    else if (definition.worker !== null) this.#runnable.add(this.#sent(definition, around));
    if (this.#starting) void this.#announceLate();
    return new Job<never, never>(definition, this.#sender());
  }

  /** Declares a schedule; a start with the scheduler on brings the database up to it. */
  schedule<Input>(
    name: string,
    job: Job<Input, unknown> | string,
    options: ScheduleOptions & { readonly input?: Input },
  ): void {
    this.#declarations.add(name, jobName(job, `schedule("${name}").job`), options);
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
    const definition = await this.#definitionOf(job);
    const run = await newRun({ definition, input, options, id: this.#ports.ids.run() });
    return accepted(run, await send(this.#sender(), run, options.tx));
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
      jobs: this.#runnable.names(),
      limit,
      budgetMs,
      alert: () => this.#alert(store, holder),
      newWorker: (claimMax) => this.#boundedWorker(store, { holder, claimMax, end: end.signal }),
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
    if (isApplied) this.#tellOfChanges(store);
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
    return recoverOnce({ store, ports, compiled, isApplied, reap });
  }

  /** A few figures against thresholds: success rate, heartbeats, stale runs, the scheduler. */
  async health(options: HealthOptions = {}): Promise<HealthReport> {
    const wanted = readHealth(options);
    return healthOf(await this.#opened("health"), wanted, () => this.check());
  }

  /** Removes what is past its time, all of it; running instances do so each hour, a bounded amount. */
  async prune({ onProgress = () => undefined }: PruneOptions = {}): Promise<Pruned> {
    const store = await this.#opened("prune");
    const { keepMs, keepTicksMs, keepLogsMs, keepLocksMs } = this.#config;
    const keep = { keepMs, keepTicksMs, keepLogsMs };
    return pruneAll({ store, keep, keepLocksMs, jobs: this.#retention, onProgress });
  }

  #reap(store: Store): Promise<unknown> {
    return reapOnce({ store, chance: () => this.#ports.chance.next(), emit: this.#emit });
  }

  #tellOfChanges(store: Store): void {
    store.wake();
    void this.#pollSoon();
  }

  /** What this process counted and what the database tells of the whole, as text for Prometheus. */
  async metrics(options: MetricsOptions = {}): Promise<string> {
    const read = readMetrics(options);
    if (this.#stopping) throw new StoppedError("metrics");
    return this.#metrics.text(read);
  }

  /** Takes back now what silent or endless holders have; each run goes on by its own policy. */
  async cleanup(options: CleanupOptions = {}): Promise<CleanedUp> {
    const stale = readCleanup(options);
    const store = await this.#opened("cleanup");
    const chance = () => this.#ports.chance.next();
    const report = await cleanUpOnce({ store, stale, chance, emit: this.#emit });
    if (report.reclaimed > 0) this.#tellOfChanges(store);
    return report;
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

  async #pauseAll(actor: Actor, options: PauseOptions): Promise<Pause> {
    const { by, note } = readPause(options);
    const store = await this.#opened("pause");
    const facts = { verb: "pause", noun: "everything", name: null, note } as const;
    const audit = auditEntry(actor, facts, by);
    const pause = await store.pauseAll({ by: by ?? actor.who, note, audit });
    this.#emit("everything.paused", { by: pause.by, note: pause.note });
    return toPause(pause);
  }

  async #resumeAll(actor: Actor, options: { readonly by?: string }): Promise<Pause | null> {
    const { by } = readPause(options);
    const store = await this.#opened("resume");
    const audit = auditEntry(actor, { verb: "resume", noun: "everything", name: null }, by);
    const pause = await store.resumeAll({ audit });
    if (!pause) return null;
    const pausedMs = (pause.until ?? pause.at) - pause.at;
    this.#emit("everything.resumed", { by: by ?? actor.who, pausedMs });
    store.wake();
    void this.#pollSoon();
    return toPause(pause);
  }

  /** An instance without jobs to run still polls: it promotes, reclaims and keeps itself known. */
  async #begin(settings: StartConfig): Promise<Started> {
    this.#refuseUnknownJobs(settings.jobs);
    await this.#requireMailer();
    const store = await this.#opened("start");
    const { isScheduler, concurrency, queues } = settings;
    this.#isScheduler = isScheduler;
    this.#locking.tellState();
    const jobs = settings.jobs === null ? this.#runnable : this.#runnable.only(settings.jobs);
    this.#works = () => ({ jobs: jobs.names(), queues });
    const holder = await this.#announce(store);
    if (isScheduler) await this.#reconcileOnce();
    const ticker = this.#ticker(store, holder);
    const { worker, loop, pulse } = await this.#newWorker(store, {
      holder,
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

  /** A thread is not even loaded where nobody asks for one. */
  async #pulse(
    heartbeat: StartConfig["heartbeat"],
    { store, holder, worker }: { store: Store; holder: number; worker: Workers },
  ): Promise<Pulse> {
    if (heartbeat === "main") return mainThreadPulse(store);
    const { threadPulse } = await import("./thread-pulse.js");
    return threadPulse({
      store,
      holder,
      config: this.#config,
      clock: this.#ports.clock,
      emit: this.#emit,
      held: () => worker.leases.held(),
    });
  }

  async #newWorker(
    store: Store,
    params: Pick<WorkerParams, "holder" | "concurrency" | "queues"> &
      Pick<LoopParams, "tick" | "alert"> &
      Pick<StartConfig, "heartbeat"> &
      Partial<Pick<WorkerParams, "allowance" | "onDrained">> & { readonly jobs: RunnableJobs },
  ): Promise<{ readonly worker: Workers; readonly loop: Loop; readonly pulse: Pulse }> {
    const { tick, alert, heartbeat, onDrained, ...workerParams } = params;
    const { holder, queues, jobs } = workerParams;
    const shared = {
      ...workerParams,
      store,
      ports: this.#ports,
      emit: this.#emit,
      listens: this.#bus.listens,
      logger: this.logger,
      meter: this.#meters,
      tracing: this.#tracing,
      fanOut: new FanOut({
        store,
        tracing: this.#tracing,
        clock: this.#ports.clock,
        newId: () => this.#ports.ids.run(),
        definitionOf: (job) => this.#definitionOf(job),
        onStored: (dueInMs) => void this.#stored(dueInMs),
      }),
      onSettled: (settlements) => {
        this.#waiter.settled(settlements.map(({ id }) => id));
        loop.settled(settlements);
      },
      onClaimed: () => loop.claimed(),
      onPostponed: (delayMs) => loop.pollWithin(delayMs),
      onContinued: () => worker.wake(),
      onLetGo: () => pulse.changed(),
      ...(onDrained ? { onDrained: () => worker.isDrained && onDrained() } : {}),
    } satisfies Omit<WorkerParams, "jobs"> & { readonly jobs: RunnableJobs };
    const here = new Worker({ ...shared, jobs: jobs.of(null) });
    const elsewhere = [...this.#config.dispatch.targets.values()].map(
      ({ name, concurrency }) =>
        new Worker({
          ...shared,
          jobs: jobs.of(name),
          concurrency,
          isApart: true,
          room: () => this.#sends.room(name),
        }),
    );
    const worker = new Workers([here, ...elsewhere], this.#ports);
    const pulse = await this.#pulse(heartbeat, { store, holder, worker });
    const loop = new Loop({
      store,
      worker,
      holder,
      tick,
      alert,
      ports: this.#ports,
      pulse,
      appetite: () => ({ jobs: jobs.names(), queues }),
      pollMs: this.#config.pollMs,
      keepMs: this.#config.keepMs,
      keepTicksMs: this.#config.keepTicksMs,
      keepLogsMs: this.#config.keepLogsMs,
      tidyJobs: () => this.#retention.pruneOnce(store),
      emit: this.#emit,
      instanceId: this.instanceId,
      meter: this.#meters,
      lookEachMinute: this.#declarations.isWatchful
        ? () => this.#declarations.reportVanished(store)
        : null,
      tidyLocks: () => this.#locking.tidyIfDue(),
      lookEachHour: () => this.#declarations.recompute(store),
    });
    return { worker, loop, pulse };
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
    const target = this.#definitions.get(params.job)?.worker ?? null;
    const secrets = target === null ? [] : this.#config.dispatch.targets.get(target)?.secrets;
    return isCallbackToken({ token: params.token, grant: params, secrets: secrets ?? [] });
  }

  #sent(definition: JobDefinition, around: Around): RunnableJob {
    const target = definition.worker ?? "";
    return {
      ...definition,
      around,
      dispatch: dispatchTo({
        target,
        sends: this.#sends,
        emit: this.#emit,
        tracing: this.#tracing,
      }),
    };
  }

  /** For one bounded pass: nothing of it outlives the call. */
  async #boundedWorker(
    store: Store,
    params: { readonly holder: number; readonly claimMax: number; readonly end: AbortSignal },
  ): Promise<BoundedWorker> {
    const { holder, claimMax, end } = params;
    let onDrained: () => void = () => undefined;
    const over = new Promise<void>((resolve) => {
      onDrained = resolve;
      end.addEventListener("abort", () => resolve());
    });
    const jobs = this.#runnable;
    const allowance = new Allowance(claimMax);
    const made = await this.#newWorker(store, {
      holder,
      concurrency: claimMax,
      queues: null,
      jobs,
      heartbeat: "main",
      tick: null,
      alert: null,
      allowance,
      onDrained,
    });
    return { ...made, over };
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

  #announce(store: Store): Promise<number> {
    const { app, release } = this.#config;
    return store.announce({
      instanceId: this.instanceId,
      app,
      release,
      jobs: [...this.#definitions.values()],
      schedules: this.#declarations.names,
      isScheduler: this.#isScheduler,
      works: this.#works(),
      pollMs: this.#config.pollMs,
    });
  }

  /** A schedule is stored with its job's name alone, so the database has to know the job. */
  async #ensureJob(name: string): Promise<void> {
    if (this.#announcedJobs.has(name)) return;
    const definition = this.#definitions.get(name);
    if (definition) await (await this.#opened("schedules")).announceJobs([definition]);
    else await this.#announced(name);
    this.#announcedJobs.add(name);
  }

  /** The caller's value as an enqueue would store it. */
  async #encode(job: string, input: unknown): Promise<string> {
    const schema = this.#definitions.get(job)?.schema;
    if (schema) await validateInput(schema, input);
    return encodeInput(input);
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

  async #definitionOf(name: string): Promise<JobDefinition> {
    return this.#definitions.get(name) ?? this.#announced(name);
  }

  async #announced(name: string): Promise<JobDefinition> {
    const store = await this.#opened("enqueue");
    const known = await store.announcedJobs();
    const found = known.find((job) => job.name === name);
    if (!found)
      throw new UnknownJobError(name, [
        ...new Set([...this.#definitions.keys(), ...known.map((job) => job.name)]),
      ]);
    const { limits = NO_LIMITS, inputSchema = null } = found;
    return {
      ...found,
      limits,
      inputSchema,
      retention: null,
      worker: null,
      schema: undefined,
      upcast: undefined,
    };
  }

  #refuseUnknownJobs(names: readonly string[] | null): void {
    for (const name of names ?? []) {
      if (!this.#runnable.has(name)) throw new UnknownJobError(name, this.#runnable.names());
    }
  }

  /** New runs of this process need no poll to be found. */
  async #stored(dueInMs: number): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    if (dueInMs <= 0) started?.worker.wake();
    else started?.loop.pollWithin(dueInMs);
  }

  /**
   * On SQLite a claim waits until the caller's transaction is over, and then finds its runs; on
   * PostgreSQL the commit itself tells all who listen.
   */
  #storedWithin(): void {
    if (this.#store.engine === "sqlite") void this.#stored(0);
  }

  #sender(): Sender {
    return {
      one: async (run: Parameters<Enqueuer["one"]>[0]) => {
        await this.#opened("enqueue");
        if (!this.#tracing) return this.#enqueuer.one(run);
        return this.#tracing.enqueue([run], ([traced = run]) => this.#enqueuer.one(traced));
      },
      many: async (runs: Parameters<Enqueuer["many"]>[0]) => {
        await this.#opened("enqueueMany");
        if (!this.#tracing) return this.#enqueuer.many(runs);
        return this.#tracing.enqueue(runs, (traced) => this.#enqueuer.many(traced));
      },
      within: async (params) => {
        await this.#opened("enqueue");
        const { tx, runs } = params;
        const answers = await (this.#tracing
          ? this.#tracing.enqueue(runs, (traced) => this.#store.enqueueWithin({ tx, runs: traced }))
          : this.#store.enqueueWithin(params));
        this.#storedWithin();
        return answers;
      },
      withinSync: (params) => {
        if (this.#stopping) throw new StoppedError("enqueueSync");
        if (!this.#isOpen) throw notOpen();
        const { tx, runs } = params;
        const answers = this.#tracing
          ? this.#tracing.enqueueSync(runs, (traced) =>
              this.#store.enqueueWithinSync({ tx, runs: traced }),
            )
          : this.#store.enqueueWithinSync(params);
        this.#storedWithin();
        return answers;
      },
      newId: () => this.#ports.ids.run(),
    };
  }
}

function notOpen(): ConfigurationError {
  const message =
    "needs a database that is open, and opening takes time; first `await holdfast.start()` or any other verb";
  return new ConfigurationError([{ field: "enqueueSync()", message }]);
}
