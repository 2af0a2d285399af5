// Gives users the class `Holdfast`, a table of contents: each verb calls the part that does the work. compose.ts makes
// the parts, lifecycle.ts starts and stops them. The constructor does no I/O: the first verb that needs the database
// opens it, once. No decision and no statement belongs here.

import type { Alerts } from "./alerts/alerts.js";
import { type Acting, type ActorOptions, readActor } from "./instance/actor-api.js";
import { type Composition, compose } from "./instance/compose.js";
import type { HoldfastOptions, StartOptions } from "./instance/config.js";
import { type InstanceContext, type Internals, newContext } from "./instance/context.js";
import { runnableAs } from "./instance/jobs.js";
import { hosting, type ServerInternals, serverInternalsOf } from "./instance/server-internals.js";
import type { Ticked, TickOptions } from "./instance/tick-once.js";
import type { HeldLock, LockOptions, LockResult } from "./locks/locking.js";
import type { Locks } from "./locks/locks.js";
import { Audit } from "./operations/audit.js";
import type { CheckOptions, CheckReport } from "./operations/check.js";
import type { CleanedUp, CleanupOptions } from "./operations/cleanup.js";
import type { HealthOptions, HealthReport } from "./operations/health.js";
import type { Instances } from "./operations/instances.js";
import type { Keys } from "./operations/keys.js";
import { type MetricsOptions, readMetrics } from "./operations/metrics.js";
import {
  type ErrorReport,
  type ErrorsOptions,
  errorsOf,
  readErrors,
  readStats,
  type Stats,
  type StatsOptions,
  statsOf,
} from "./operations/overview.js";
import { type Pause, type PauseOptions, pauseOf } from "./operations/pause.js";
import type { Queues } from "./operations/queues.js";
import type { RecoverOptions, RecoverReport } from "./operations/recover.js";
import type { RepairOptions, RepairReport } from "./operations/repair.js";
import type { Pruned, PruneOptions } from "./operations/retention.js";
import { type Settings, settingsOf } from "./operations/settings.js";
import { refuseUnknownTarget } from "./remote/dispatch/targets.js";
import { httpJob } from "./remote/http-job.js";
import type { Remote } from "./remote/remote.js";
import { shellJob } from "./remote/shell-job.js";
import { accepted, type Enqueued, type EnqueueOptions, newRun } from "./runs/enqueue.js";
import { type AnnouncedJob, Job, type JobOf, toAnnouncedJob } from "./runs/job.js";
import type { InputOption, PlainJobOptions, SchemaJobOptions } from "./runs/job-options.js";
import { defineJob, type JobOptions } from "./runs/rules/job.js";
import type { Runs } from "./runs/runs.js";
import type { Calendars } from "./schedules/calendars.js";
import { jobOf } from "./schedules/options.js";
import type { ScheduleOptions } from "./schedules/rules/schedule.js";
import type { Schedules } from "./schedules/schedules.js";
import { type Duration, durationMs } from "./shared/duration.js";
import { DuplicateJobError } from "./shared/errors.js";
import type { StandardSchema } from "./shared/schema.js";
import type { Store } from "./store/store.js";
import type { Listener } from "./telemetry/bus.js";
import type { EventName, Logger } from "./telemetry/log.js";
import type { Handler } from "./worker/attempt.js";
import { type AroundOptions, readHooks } from "./worker/hooks.js";
import type { StopReport } from "./worker/worker.js";

const STOP_GRACE = "25s";

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
  /** Named keys: credentials for callers over HTTP. */
  readonly keys: Keys;
  /** Who takes part. */
  readonly instances: Instances;
  /** Who changed what, from where, when and why. */
  readonly audit: Audit;
  /** What workers elsewhere ask for over the network; the HTTP API's worker routes call it. */
  readonly remote: Remote;
  /** What its lines go to. */
  readonly logger: Logger;
  /** @internal What a server around it needs. */
  readonly [hosting]: ServerInternals;
  readonly #context: InstanceContext;
  readonly #parts: Composition;

  constructor(options: HoldfastOptions = {}, internals: Internals = {}) {
    const context = newContext(options, internals);
    const parts = compose(context, options);
    this.#context = context;
    this.#parts = parts;
    this.instanceId = context.instanceId;
    this.logger = context.logger;
    this.runs = parts.own.runs;
    this.schedules = parts.own.schedules;
    this.calendars = parts.own.calendars;
    this.queues = parts.own.queues;
    this.locks = parts.own.locks;
    this.instances = parts.own.instances;
    this.alerts = parts.own.alerts;
    this.keys = parts.own.keys;
    this.audit = new Audit(() => this.#opened("audit"));
    this.remote = parts.remote;
    this[hosting] = serverInternalsOf(context, parts);
    this.#declareBuiltIn();
  }

  // ── declaring ──────────────────────────────────────────────────────────────────────────────────

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
    options: JobOptions & AroundOptions & { readonly run?: Handler | undefined },
  ): Job<never, never> {
    const { config } = this.#context;
    const { jobs, lifecycle, enqueuer } = this.#parts;
    if (jobs.has(name)) throw new DuplicateJobError(name);
    const definition = defineJob(name, options);
    refuseUnknownTarget(definition, config.dispatch);
    const hookChain = readHooks(options, config.hookChain, (member) => `job("${name}").${member}`);
    jobs.add(
      definition,
      hookChain,
      runnableAs({ ...this.#context, definition, hookChain, run: options.run }),
    );
    void lifecycle.jobDeclared();
    return new Job<never, never>(definition, enqueuer);
  }

  /** Declares a schedule; a start with the scheduler on brings the database up to it. */
  schedule<Input>(
    name: string,
    job: Job<Input, unknown>,
    options: ScheduleOptions & InputOption<Input>,
  ): void;
  schedule(name: string, job: string, options: ScheduleOptions): void;
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
    this.#parts.declarations.add(name, jobOf(name, given, `schedule("${name}").job`), chosen);
    void this.#parts.lifecycle.scheduleDeclared(name);
  }

  #declareBuiltIn(): void {
    const { config, ports, network } = this.#context;
    const { shell, http } = config.builtIn;
    if (shell) this.job("shell", shellJob(shell) as PlainJobOptions<never, unknown>);
    if (http)
      this.job(
        "http",
        httpJob(http, { clock: ports.clock, network }) as PlainJobOptions<never, unknown>,
      );
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────

  /** Enqueues a job by name; one that this process did not declare is taken as it was announced. */
  async enqueue(job: string, input: unknown, options: EnqueueOptions = {}): Promise<Enqueued> {
    const { jobs, enqueuer } = this.#parts;
    const definition = await jobs.definitionOf(job);
    const run = await newRun({ definition, input, options, id: this.#context.ports.ids.run() });
    return accepted(run, await enqueuer.store(run, options.tx));
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
    return this.#parts.locking.lock(name, options, fn);
  }

  /** Opens the database, announces this instance and its jobs, and begins to work. */
  start(options: StartOptions = {}): Promise<void> {
    return this.#parts.lifecycle.start(options);
  }

  /**
   * One bounded pass, for places where nothing stays alive between two calls: fires what is due,
   * takes back what silent holders left, then executes at most `limit` runs within `budget`.
   * Safe to call at any time, from any number of processes at once; needs no `start`.
   */
  tick(options: TickOptions = {}): Promise<Ticked> {
    return this.#parts.lifecycle.tick(options);
  }

  /**
   * Ends in good order: no new claims, unstarted runs handed back, `grace` for the running ones, then
   * their signal aborts. What does not end then is abandoned: its lease runs out by itself, so that
   * no second execution begins beside it. A second call does nothing.
   */
  stop(options: { readonly grace?: Duration } = {}): Promise<StopReport> {
    return this.#parts.lifecycle.stop(durationMs(options.grace ?? STOP_GRACE, "stop().grace"));
  }

  /**
   * Calls back when something happens in this instance, with the facts. What a listener throws disturbs
   * nothing and is reported once. Answers with how to stop listening.
   */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.#context.bus.on(event, listener);
  }

  /**
   * Does it as part of the trace that a W3C `traceparent` names, so that what it enqueues belongs there.
   * Where no OpenTelemetry was given, or a trace is going on already, it is just done.
   */
  continueTrace<T>(traceparent: string | null, fn: () => T): T {
    const { tracing } = this.#context;
    return tracing ? tracing.continued(traceparent, fn) : fn();
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────

  /** The verbs that change something, in this name: the audit trail keeps who asked and from where. */
  as(actor: ActorOptions): Acting {
    return this.#parts.as(readActor(actor));
  }

  /**
   * Stops everything: once this has resolved nothing fires and nothing is claimed, by any instance,
   * remote worker or SQL function on this database. Runs that are running go on; ticks meanwhile are
   * skipped and not caught up. Pausing again keeps the time, and the note if none is given.
   */
  pause(options: PauseOptions = {}): Promise<Pause> {
    return this.#parts.own.pause(options);
  }

  /** Lifts the pause of everything, and it alone: what was paused by itself stays so. Answers with it. */
  resume(options: { readonly by?: string } = {}): Promise<Pause | null> {
    return this.#parts.own.resume(options);
  }

  /** The pause of everything that is on, or null. */
  async paused(): Promise<Pause | null> {
    return pauseOf(await this.#opened("paused"));
  }

  /** Takes back now what silent or endless holders have; each run goes on by its own policy. */
  cleanup(options: CleanupOptions = {}): Promise<CleanedUp> {
    return this.#parts.own.cleanup(options);
  }

  /** Removes what is past its time, all of it; running instances do so each hour, a bounded amount. */
  prune(options: PruneOptions = {}): Promise<Pruned> {
    return this.#parts.maintenance.prune(options);
  }

  /** Which promises the tables break, in one snapshot; on a healthy database none, whatever is going on. */
  check(options: CheckOptions = {}): Promise<CheckReport> {
    return this.#parts.maintenance.check(options);
  }

  /** The same as a script for psql or sqlite3, whichever this database needs; nothing is connected. */
  checkScript(): string {
    return this.#parts.maintenance.checkScript();
  }

  /** Mends what `check()` finds, where a rule can; tells first, and acts with `apply: true`. */
  repair(options: RepairOptions = {}): Promise<RepairReport> {
    return this.#parts.maintenance.repair(options);
  }

  /**
   * After a restored backup: raises every fence beyond any that was handed out, ends the leases and locks
   * of holders that are gone, and tells what would fire and run next; acts with `apply: true`.
   */
  recover(options: RecoverOptions = {}): Promise<RecoverReport> {
    return this.#parts.maintenance.recover(options);
  }

  // ── reading ────────────────────────────────────────────────────────────────────────────────────

  /** Every job that an instance announced, by name, as the newest one announced it. */
  async jobs(): Promise<readonly AnnouncedJob[]> {
    return (await (await this.#opened("jobs")).announcedJobs()).map(toAnnouncedJob);
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

  /** A few figures against thresholds: success rate, heartbeats, stale runs, the scheduler. */
  health(options: HealthOptions = {}): Promise<HealthReport> {
    return this.#parts.maintenance.health(options);
  }

  /** What this process counted and what the database tells of the whole, as text for Prometheus. */
  async metrics(options: MetricsOptions = {}): Promise<string> {
    const read = readMetrics(options);
    this.#parts.lazyStore.requireRunning("metrics");
    return this.#parts.metrics.text(read);
  }

  /** How this instance is set up, for people to read; no secret is in it. */
  settings(): Settings {
    return settingsOf(this.#context, this.#parts.running);
  }

  #opened(verb: string): Promise<Store> {
    return this.#parts.lazyStore.for(verb);
  }
}
