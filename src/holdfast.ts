// Gives users the class `Holdfast`, a table of contents: each verb calls the part that does the work. compose.ts makes
// the parts, lifecycle.ts starts and stops them. The constructor does no I/O: the first verb that needs the database
// opens it, once. No decision and no statement belongs here.

import type { Alerts } from "./alerts/alerts.js";
import { type Acting, type ActorOptions, readActor } from "./instance/actor-api.js";
import { type Composition, compose } from "./instance/compose.js";
import type { HoldfastOptions, StartOptions } from "./instance/config.js";
import { type InstanceContext, type Internals, newContext } from "./instance/context.js";
import { runnableAs } from "./instance/jobs.js";
import type { RanIfDue, RunIfDueOptions } from "./instance/run-if-due.js";
import {
  type ServerInternals,
  serverInternals,
  serverInternalsOf,
} from "./instance/server-internals.js";
import type { Ticked, TickOptions } from "./instance/tick-once.js";
import type { HeldLock, LockOptions, LockResult } from "./locks/locking.js";
import type { Locks } from "./locks/locks.js";
import { Audit } from "./operations/audit.js";
import type { CheckOptions, CheckReport, RepairOptions, RepairReport } from "./operations/check.js";
import type { CleanedUp, CleanupOptions } from "./operations/cleanup.js";
import type { HealthOptions, HealthReport } from "./operations/health.js";
import type { Instances } from "./operations/instances.js";
import type { Keys } from "./operations/keys.js";
import { type MetricsOptions, readMetrics } from "./operations/metrics.js";
import { type Pause, type PauseOptions, pauseOf } from "./operations/pause.js";
import type { Queues } from "./operations/queues.js";
import type { RecoverOptions, RecoverReport } from "./operations/recover.js";
import type { Pruned, PruneOptions } from "./operations/retention.js";
import { type Settings, settingsOf } from "./operations/settings.js";
import {
  type ErrorReport,
  type ErrorsOptions,
  errorsOf,
  readErrors,
  readStats,
  type Stats,
  type StatsOptions,
  statsOf,
} from "./operations/statistics.js";
import { refuseUnknownTarget } from "./remote/dispatch/targets.js";
import { httpJob } from "./remote/http-job.js";
import type { Remote } from "./remote/remote.js";
import { shellJob } from "./remote/shell-job.js";
import { accepted, type Enqueued, type EnqueueOptions, newRun } from "./runs/enqueue.js";
import { type AnnouncedJob, Job, type JobOf, toAnnouncedJob } from "./runs/job.js";
import type { InputOption, PlainJobOptions, SchemaJobOptions } from "./runs/job-options.js";
import { defineJob, type JobOptions } from "./runs/rules/job.js";
import type { Runs } from "./runs/runs.js";
import type { SignalOptions, SignalSent } from "./runs/signals.js";
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
  /** Requests for work and their outcomes. */
  readonly runs: Runs;
  /** The names by which runs are routed to workers. */
  readonly queues: Queues;
  /** The times at which jobs run, and the ledger of every tick. */
  readonly schedules: Schedules;
  /** Named sets of times at which schedules do not tick. */
  readonly calendars: Calendars;
  /** The locks of `lock()`, for operators. */
  readonly locks: Locks;
  /** Conditions that a person should know of. */
  readonly alerts: Alerts;
  /** Named keys: credentials for callers over HTTP. */
  readonly keys: Keys;
  /** The instances that share this database. */
  readonly instances: Instances;
  /** The audit trail: who changed what, from where, when and why. */
  readonly audit: Audit;
  /** The calls of remote workers; the worker routes of the HTTP API use them. */
  readonly remote: Remote;
  /** The logger that its lines go to. */
  readonly logger: Logger;
  /** @internal Parts that the HTTP server needs. */
  readonly [serverInternals]: ServerInternals;
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
    this[serverInternals] = serverInternalsOf(context, parts);
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

  /** Declares a schedule. A start with the scheduler on writes it to the database. */
  schedule<Input>(
    name: string,
    job: Job<Input, unknown>,
    options: ScheduleOptions & InputOption<Input>,
  ): void;
  schedule(name: string, job: string, options: ScheduleOptions): void;
  /** Declares a monitor: a schedule for work that runs in another system and checks in here. */
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

  /** Enqueues a job by name. A job that this process did not declare is used as another instance announced it. */
  async enqueue(job: string, input: unknown, options: EnqueueOptions = {}): Promise<Enqueued> {
    const { jobs, enqueuer } = this.#parts;
    const definition = await jobs.definitionOf(job);
    const run = await newRun({ definition, input, options, id: this.#context.ports.ids.run() });
    return accepted(run, await enqueuer.store(run, options.tx));
  }

  /**
   * Sends a signal: a fact that runs wait for with `ctx.waitFor`. The first value of a name and key counts, for
   * `signalRetention`; an equal repetition changes nothing. Once this has resolved, every run that waits for it gets it,
   * whether it began to wait before or after.
   */
  signal(name: string, options: SignalOptions): Promise<SignalSent> {
    return this.#parts.signals.send(name, options);
  }

  /**
   * Runs the function under the lock of that name: no other process runs one under it at the same time. The lease is renewed
   * meanwhile. If it is lost, the signal aborts, and the call rejects once the function has ended.
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
   * Does one bounded pass, for platforms where no process stays alive between two calls: fires due ticks, reclaims runs of
   * silent holders, then executes at most `limit` runs within `budget`. Safe to call at any time, from any number of processes
   * at once; needs no `start`.
   */
  tick(options: TickOptions = {}): Promise<Ticked> {
    return this.#parts.lifecycle.tick(options);
  }

  /**
   * Executes one schedule if it is due and nobody executes it now, and returns how its run ended; otherwise says why not.
   * Of simultaneous calls one executes it. Needs no `start`.
   */
  runIfDue(schedule: string, options: RunIfDueOptions = {}): Promise<RanIfDue> {
    return this.#parts.lifecycle.runIfDue(schedule, options);
  }

  /**
   * Stops the instance: it claims nothing more, hands back runs that have not started, gives running ones `grace`, and then
   * aborts their signal. A run that does not end even then is abandoned: its lease expires by itself, so no second execution
   * begins beside it. A second call does nothing.
   */
  stop(options: { readonly grace?: Duration } = {}): Promise<StopReport> {
    return this.#parts.lifecycle.stop(durationMs(options.grace ?? STOP_GRACE, "stop().grace"));
  }

  /**
   * Calls the listener for each event of this instance, with its facts. An error of a listener disturbs nothing and is reported
   * once. Returns a function that stops listening.
   */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.#context.bus.on(event, listener);
  }

  /**
   * Runs the function as part of the trace that a W3C `traceparent` names, so that its enqueues belong to that trace. Without
   * OpenTelemetry, or inside an active trace, it only runs the function.
   */
  continueTrace<T>(traceparent: string | null, fn: () => T): T {
    const { tracing } = this.#context;
    return tracing ? tracing.continued(traceparent, fn) : fn();
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────

  /** Returns the verbs that change something, in the name of this actor: the audit trail keeps who called and from where. */
  as(actor: ActorOptions): Acting {
    return this.#parts.as(readActor(actor));
  }

  /**
   * Pauses everything: once this has resolved, no instance, remote worker or SQL function on this database fires or claims
   * anything. Running runs go on. Ticks during the pause are skipped and never run later. Pausing again keeps the time, and the
   * note if none is given.
   */
  pause(options: PauseOptions = {}): Promise<Pause> {
    return this.#parts.own.pause(options);
  }

  /** Ends the pause of everything and returns it. Schedules and queues that were paused by themselves stay paused. */
  resume(options: { readonly by?: string } = {}): Promise<Pause | null> {
    return this.#parts.own.resume(options);
  }

  /** Returns the current pause of everything, or null. */
  async paused(): Promise<Pause | null> {
    return pauseOf(await this.#opened("paused"));
  }

  /** Reclaims runs of silent or endless holders now; each run is retried or failed by its own policy. */
  cleanup(options: CleanupOptions = {}): Promise<CleanedUp> {
    return this.#parts.own.cleanup(options);
  }

  /**
   * Makes the SQL functions once more in another schema, as `holdfast_claim`, `holdfast_complete` and so on, for an API that
   * serves that schema: `public` on Supabase. No role may call them until it is granted. Returns their names. PostgreSQL only.
   */
  exposeFunctions(schema: string): Promise<readonly string[]> {
    return this.#parts.maintenance.exposeFunctions(schema);
  }

  /** Removes everything past its retention. Running instances remove a bounded amount each hour. */
  prune(options: PruneOptions = {}): Promise<Pruned> {
    return this.#parts.maintenance.prune(options);
  }

  /** Checks which promises the tables break, in one snapshot. On a healthy database there are none, even under load. */
  check(options: CheckOptions = {}): Promise<CheckReport> {
    return this.#parts.maintenance.check(options);
  }

  /** Returns the same checks as a script for psql or sqlite3, by the kind of the database; opens no connection. */
  checkScript(): string {
    return this.#parts.maintenance.checkScript();
  }

  /** Repairs the damage that `check()` finds, where a rule can. Returns the plan; acts only with `apply: true`. */
  repair(options: RepairOptions = {}): Promise<RepairReport> {
    return this.#parts.maintenance.repair(options);
  }

  /**
   * Prepares a restored backup: raises fences beyond any that was handed out, ends leases and locks of holders that are gone,
   * and reports what would fire and run next. Acts only with `apply: true`.
   */
  recover(options: RecoverOptions = {}): Promise<RecoverReport> {
    return this.#parts.maintenance.recover(options);
  }

  // ── reading ────────────────────────────────────────────────────────────────────────────────────

  /** Lists every job that an instance announced, by name, as the newest instance announced it. */
  async jobs(): Promise<readonly AnnouncedJob[]> {
    return (await (await this.#opened("jobs")).jobs.list()).map(toAnnouncedJob);
  }

  /** Counts how runs ended: overall, by job, and by hour or day. */
  async stats(options: StatsOptions = {}): Promise<Stats> {
    const filter = readStats(options);
    return statsOf(await this.#opened("stats"), filter);
  }

  /** Groups the newest failed runs by job and equal error. */
  async errors(options: ErrorsOptions = {}): Promise<ErrorReport> {
    const since = readErrors(options);
    return errorsOf(await this.#opened("errors"), since);
  }

  /** Compares a few figures with thresholds: success rate, heartbeats, stale runs, the scheduler. */
  health(options: HealthOptions = {}): Promise<HealthReport> {
    return this.#parts.maintenance.health(options);
  }

  /** Returns the counts of this process and figures of the database, as text for Prometheus. */
  async metrics(options: MetricsOptions = {}): Promise<string> {
    const read = readMetrics(options);
    this.#parts.lazyStore.requireRunning("metrics");
    return this.#parts.metrics.text(read);
  }

  /** Describes the configuration of this instance for people; contains no secret. */
  settings(): Settings {
    return settingsOf(this.#context, this.#parts.running);
  }

  #opened(verb: string): Promise<Store> {
    return this.#parts.lazyStore.for(verb);
  }
}
