// Reads the options of an instance: the option in code, then the environment, then the default. Checks all of them
// before it throws, so that one error names every wrong value.

import { type AlertConfig, type AlertOptions, readAlerts } from "../alerts/alert-options.js";
import { LOCK_LEASE_DEFAULT, type LockProvider } from "../locks/rules/lock.js";
import { readOwnChecks } from "../operations/check.js";
import {
  type BuiltInJobs,
  type HttpOptions,
  NO_BUILT_IN_JOBS,
  readBuiltInJobs,
  type ShellOptions,
} from "../remote/built-in-jobs.js";
import {
  type DispatchConfig,
  readDispatch,
  type WorkerTargetOptions,
} from "../remote/dispatch/targets.js";
import { SIGNAL_RETENTION } from "../runs/signals.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { OwnCheck } from "../store/checks/checks.js";
import { type Database, placeProblems } from "../store/open.js";
import type { OnError } from "../telemetry/bus.js";
import {
  LOG_LEVELS,
  type Logger,
  type LogLevel,
  type MessageFirstLogger,
} from "../telemetry/log.js";
import { type TelemetryOptions, telemetryProblems } from "../telemetry/tracing.js";
import {
  type AroundOptions,
  HOOK_OPTIONS,
  type HookChain,
  NO_HOOKS,
  readHooks,
} from "../worker/hooks.js";
import { LEASE_MIN_MS } from "../worker/rules/lease.js";

export type HoldfastOptions = AroundOptions & {
  /**
   * Where runs live: `"sqlite:app.db"`, `"postgres://…"`, a pg `Pool`, or a SQLite handle.
   * @default HOLDFAST_DATABASE_URL, else "sqlite:.holdfast/holdfast.db", which NODE_ENV=production refuses
   */
  readonly database?: Database | undefined;
  /** The PostgreSQL schema of the tables. @default "holdfast" */
  readonly schema?: string | undefined;
  /**
   * Names the application: it owns the schedules that its code declares. Programs that declare different schedules need
   * different names, those that declare the same ones need the same. @default HOLDFAST_APP, else the name in the nearest
   * package.json: above the program that Node runs, or the working directory
   */
  readonly app?: string | undefined;
  /** The release of the application. @default HOLDFAST_RELEASE */
  readonly release?: string | undefined;
  /** How often an instance looks for work without being woken. @default "1s" */
  readonly poll?: Duration | undefined;
  /** How long `start()` waits for a database that cannot be reached yet. @default HOLDFAST_START_TIMEOUT, else "30s" */
  readonly startTimeout?: Duration | undefined;
  /** How long finished runs are kept. @default "30d" */
  readonly retention?: Duration | undefined;
  /** How long log lines are kept with their runs, if for a shorter time. @default as `retention` */
  readonly logRetention?: Duration | undefined;
  /** How long the history of locks is kept. @default as `retention` */
  readonly lockRetention?: Duration | undefined;
  /** How long the first value of a signal counts; then another may take its place. @default "7d" */
  readonly signalRetention?: Duration | undefined;
  /** How long every tick is kept. The newest 200 of each schedule, and those that did not fire, are kept for as long as runs. @default "7d" */
  readonly ledgerRetention?: Duration | undefined;
  /** Whether tables are created and migrated, only checked, or neither. @default "auto" */
  readonly migrate?: "auto" | "check" | "off" | undefined;
  /** SQLite only: NORMAL is faster and may lose the last commits when the machine loses power. @default "FULL" */
  readonly synchronous?: "FULL" | "NORMAL" | undefined;
  /** The provider that keeps the locks of `holdfast.lock`. @default lease rows in the database */
  readonly locks?: LockProvider | undefined;
  /** The lease of locks that name none. @default HOLDFAST_LOCK_LEASE, else "6m" */
  readonly lockLease?: Duration | undefined;
  /** False: `holdfast.lock` excludes no other holder. Not safe with several instances. @default HOLDFAST_LOCKING_ENABLED, else true */
  readonly locking?: boolean | undefined;
  /** Services that runs of jobs with `worker` are sent to, by name. */
  readonly workers?: Readonly<Record<string, WorkerTargetOptions>> | undefined;
  /** The address under which those services reach this application. @default HOLDFAST_PUBLIC_URL */
  readonly publicUrl?: string | undefined;
  /**
   * Checks of your own, which `check()` runs beside the built-in ones: a sentence that should be true, and a `select` that
   * returns a row for everything that makes it false.
   */
  readonly checks?: Readonly<Record<string, string>> | undefined;
  /** How many runs this instance executes at the same time, in its worker and in calls of `tick()`. @default 10 */
  readonly concurrency?: number | undefined;
  /** Which alerts are sent, and where; false: none. @default the usual ones, to the log */
  readonly alerts?: AlertOptions | false | undefined;
  /** Turns the job `shell` on, for these programs only. @default off */
  readonly shell?: ShellOptions | undefined;
  /** Turns the job `http` on, for these origins only. @default off */
  readonly http?: HttpOptions | undefined;
  /** Any pino-like logger, winston's, or that of AWS Powertools. @default JSON lines on stderr, from HOLDFAST_LOG_LEVEL (warn) up */
  readonly logger?: Logger | MessageFirstLogger | undefined;
  /** Spans for OpenTelemetry: `{ opentelemetry: await import("@opentelemetry/api") }`. */
  readonly telemetry?: TelemetryOptions | undefined;
  /** Called with every error of the library itself that would otherwise only be logged. */
  readonly onError?: OnError | undefined;
};

export type StartOptions = {
  /** False: this instance executes nothing. */
  readonly worker?: boolean | WorkerOptions | undefined;
  /** False: this instance fires no schedules. */
  readonly scheduler?: boolean | undefined;
};

export type WorkerOptions = {
  /** How many runs at the same time. @default `concurrency` of the instance, 10 */
  readonly concurrency?: number | undefined;
  /** Only these queues. @default all */
  readonly queues?: readonly string[] | undefined;
  /** Only these jobs. @default all that have a handler */
  readonly jobs?: readonly string[] | undefined;
  /**
   * Which thread sends the heartbeats: the main thread, or a separate one with its own connection, so that a handler that
   * blocks the event loop keeps its lease, for up to ten leases. @default "main"
   */
  readonly heartbeat?: Heartbeat | undefined;
};

export const HEARTBEATS = ["main", "thread"] as const;
export type Heartbeat = (typeof HEARTBEATS)[number];

export type Config = {
  readonly database: Database;
  readonly schema: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly pollMs: number;
  readonly startTimeoutMs: number;
  readonly concurrency: number;
  readonly keepMs: number;
  readonly keepTicksMs: number;
  readonly keepLogsMs: number;
  readonly keepLocksMs: number;
  readonly keepSignalsMs: number;
  readonly migrate: "auto" | "check" | "off";
  readonly synchronous: "FULL" | "NORMAL";
  readonly logLevel: LogLevel;
  readonly isWorkerEnabled: boolean;
  readonly isSchedulerEnabled: boolean;
  readonly isLockingEnabled: boolean;
  readonly lockLeaseMs: number;
  readonly hookChain: HookChain;
  readonly dispatch: DispatchConfig;
  readonly checks: readonly OwnCheck[];
  readonly alerts: AlertConfig;
  readonly builtIn: BuiltInJobs;
};

export type Environment = Readonly<Record<string, string | undefined>>;

export const DEFAULT_DATABASE = "sqlite:.holdfast/holdfast.db";
export const CONSTRUCTOR_OPTIONS = [
  "database",
  "schema",
  "app",
  "release",
  "poll",
  "startTimeout",
  "concurrency",
  "retention",
  "logRetention",
  "lockRetention",
  "signalRetention",
  "ledgerRetention",
  "migrate",
  "synchronous",
  "locks",
  "lockLease",
  "locking",
  "workers",
  "publicUrl",
  "checks",
  "alerts",
  "shell",
  "http",
  "logger",
  "onError",
  "telemetry",
  ...HOOK_OPTIONS,
];
const NO_DISPATCH: DispatchConfig = { targets: new Map(), publicUrl: null };
const CONCURRENCY_MAX = 10_000;

export function readConfig(options: HoldfastOptions, env: Environment): Config {
  const problems: Problem[] = [
    ...refuseUnknownMembers(options, CONSTRUCTOR_OPTIONS, "new Holdfast()"),
  ];
  const read = <T>(take: () => T, fallback: T): T => gather(problems, take, fallback);
  const fromEnv = (name: string) =>
    env[name] === undefined || env[name] === "" ? undefined : env[name];
  const choice = <T extends string>(value: unknown, allowed: readonly T[], field: string): T => {
    if (allowed.includes(value as T)) return value as T;
    throw problem(field, `must be one of ${allowed.map((each) => `"${each}"`).join(", ")}`);
  };
  const flag = (name: string) =>
    read(() => {
      const value = fromEnv(name) ?? "true";
      if (["true", "1"].includes(value)) return true;
      if (["false", "0"].includes(value)) return false;
      throw problem(name, "must be true, false, 1 or 0");
    }, true);
  const name = (value: unknown, field: string) =>
    value === undefined ? null : requireName(value, field);
  const [pollField, poll] =
    options.poll === undefined
      ? ["HOLDFAST_POLL_INTERVAL", fromEnv("HOLDFAST_POLL_INTERVAL") ?? "1s"]
      : ["poll", options.poll];

  const keepMs = read(
    () => retentionMs(options.retention, fromEnv("HOLDFAST_HISTORY_RETENTION_DAYS")),
    // Any valid value: options that default to it must not be reported as wrong too.
    1,
  );
  const config: Config = {
    database: read(
      () => options.database ?? fromEnv("HOLDFAST_DATABASE_URL") ?? unnamedDatabase(env),
      DEFAULT_DATABASE,
    ),
    schema: options.schema ?? "holdfast",
    app: read(() => name(options.app ?? fromEnv("HOLDFAST_APP"), "app"), null),
    release: read(() => name(options.release ?? fromEnv("HOLDFAST_RELEASE"), "release"), null),
    pollMs: read(() => durationMs(poll, String(pollField), { min: 10, max: 3_600_000 }), 1_000),
    startTimeoutMs: read(
      () =>
        options.startTimeout === undefined
          ? durationMs(fromEnv("HOLDFAST_START_TIMEOUT") ?? "30s", "HOLDFAST_START_TIMEOUT")
          : durationMs(options.startTimeout, "startTimeout"),
      0,
    ),
    concurrency: read(() => requireConcurrency(options.concurrency ?? 10, "concurrency"), 10),
    keepMs,
    keepLogsMs: read(
      () => durationMs(options.logRetention ?? keepMs, "logRetention", { min: 1 }),
      0,
    ),
    keepLocksMs: read(
      () => durationMs(options.lockRetention ?? keepMs, "lockRetention", { min: 1 }),
      0,
    ),
    keepSignalsMs: read(
      () =>
        durationMs(options.signalRetention ?? SIGNAL_RETENTION, "signalRetention", { min: 1_000 }),
      1_000,
    ),
    keepTicksMs: read(
      () => durationMs(options.ledgerRetention ?? "7d", "ledgerRetention", { min: 3_600_000 }),
      0,
    ),
    migrate: read(
      () => choice(options.migrate ?? "auto", ["auto", "check", "off"], "migrate"),
      "auto",
    ),
    synchronous: read(
      () => choice(options.synchronous ?? "FULL", ["FULL", "NORMAL"], "synchronous"),
      "FULL",
    ),
    logLevel: read(
      () => choice(fromEnv("HOLDFAST_LOG_LEVEL") ?? "warn", LOG_LEVELS, "HOLDFAST_LOG_LEVEL"),
      "warn",
    ),
    isWorkerEnabled: flag("HOLDFAST_WORKER_ENABLED"),
    isSchedulerEnabled: flag("HOLDFAST_SCHEDULER_ENABLED"),
    isLockingEnabled: read(
      () => lockingOf(options.locking) ?? flag("HOLDFAST_LOCKING_ENABLED"),
      true,
    ),
    lockLeaseMs: read(
      () =>
        options.lockLease === undefined
          ? durationMs(
              fromEnv("HOLDFAST_LOCK_LEASE") ?? LOCK_LEASE_DEFAULT,
              "HOLDFAST_LOCK_LEASE",
              { min: LEASE_MIN_MS },
            )
          : durationMs(options.lockLease, "lockLease", { min: LEASE_MIN_MS }),
      0,
    ),
    hookChain: read(() => readHooks(options, NO_HOOKS, (member) => member), NO_HOOKS),
    dispatch: read(
      () =>
        readDispatch({
          workers: options.workers,
          publicUrl: options.publicUrl ?? fromEnv("HOLDFAST_PUBLIC_URL"),
          publicUrlField: options.publicUrl === undefined ? "HOLDFAST_PUBLIC_URL" : "publicUrl",
        }),
      NO_DISPATCH,
    ),
    checks: read(() => readOwnChecks(options.checks), []),
    alerts: read(() => readAlerts(options.alerts), null),
    builtIn: read(() => readBuiltInJobs(options), NO_BUILT_IN_JOBS),
  };
  problems.push(...placeProblems(config));
  if (options.telemetry !== undefined) problems.push(...telemetryProblems(options.telemetry));
  if (options.locks !== undefined) problems.push(...providerProblems(options.locks));
  if (options.onError !== undefined && typeof options.onError !== "function")
    problems.push({ field: "onError", message: "must be a function, for example (error) => …" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return config;
}

export type StartConfig = WorkerConfig & { readonly isScheduler: boolean };

export type WorkerConfig = {
  readonly concurrency: number;
  readonly queues: readonly string[] | null;
  readonly jobs: readonly string[] | null;
  readonly heartbeat: Heartbeat;
  readonly isWorker: boolean;
};

export function readStart(options: StartOptions, config: Config): StartConfig {
  const problems: Problem[] = [
    ...refuseUnknownMembers(options, ["worker", "scheduler"], "start()"),
  ];
  const worker = options.worker ?? config.isWorkerEnabled;
  const settings: WorkerOptions = typeof worker === "object" ? worker : {};
  problems.push(
    ...refuseUnknownMembers(
      settings,
      ["concurrency", "queues", "jobs", "heartbeat"],
      "start().worker",
    ),
  );
  const { concurrency = config.concurrency, queues, jobs, heartbeat = "main" } = settings;
  if (!HEARTBEATS.includes(heartbeat))
    problems.push({ field: "start().worker.heartbeat", message: 'must be "main" or "thread"' });
  const read = <T>(take: () => T, fallback: T): T => gather(problems, take, fallback);
  read(() => requireConcurrency(concurrency, "start().worker.concurrency"), 0);
  const names = (values: readonly string[] | undefined, field: string) =>
    read(() => {
      if (values === undefined) return null;
      if (!Array.isArray(values) || values.length === 0)
        throw problem(field, 'must be a list of names, for example ["default"]');
      return values.map((each) => requireName(each, field));
    }, null);
  const chosen = {
    queues: names(queues, "start().worker.queues"),
    jobs: names(jobs, "start().worker.jobs"),
  };
  const isScheduler = options.scheduler ?? config.isSchedulerEnabled;
  if (typeof isScheduler !== "boolean")
    problems.push({ field: "start().scheduler", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  // A worker that is off executes no job.
  return worker === false
    ? { isScheduler, isWorker: false, concurrency, heartbeat, queues: null, jobs: [] }
    : { isScheduler, isWorker: true, concurrency, heartbeat, ...chosen };
}

function requireConcurrency(value: number, field: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= CONCURRENCY_MAX) return value;
  throw problem(field, `must be a whole number from 1 to ${CONCURRENCY_MAX}, for example 10`);
}

/** In production the default file would be lost with its container, and every instance would have its own. */
function unnamedDatabase(env: Environment): string {
  if (env.NODE_ENV !== "production") return DEFAULT_DATABASE;
  throw problem(
    "database",
    `is not named, and NODE_ENV is production; set HOLDFAST_DATABASE_URL or new Holdfast({ database }), for example ` +
      `"postgres://user@host/name", or "${DEFAULT_DATABASE}" if that file is meant`,
  );
}

function retentionMs(option: Duration | undefined, days: string | undefined): number {
  if (option !== undefined) return durationMs(option, "retention", { min: 1 });
  if (days === undefined) return durationMs("30d", "retention");
  if (!/^\d{1,4}$/.test(days) || Number(days) === 0) {
    throw problem(
      "HOLDFAST_HISTORY_RETENTION_DAYS",
      "must be a whole number of days from 1, for example 30",
    );
  }
  return Number(days) * 86_400_000;
}

function lockingOf(option: unknown): boolean | undefined {
  if (option === undefined || typeof option === "boolean") return option;
  throw problem("locking", "must be true or false");
}

function providerProblems(provider: unknown): Problem[] {
  const { acquire, release, capabilities } = (provider ?? {}) as Partial<LockProvider>;
  if (typeof acquire === "function" && typeof release === "function" && capabilities) return [];
  return [{ field: "locks", message: "must be a lock provider, for example redisLocks(client)" }];
}

function problem(field: string, message: string): ConfigurationError {
  return new ConfigurationError([{ field, message }]);
}
