// Defines every event and log line of the library: level, words and fields. Other files emit events; only this file words
// them. Telemetry must never change what it reports, and never fails its caller.

import type { AlertKind, Severity } from "../alerts/rules/alert.js";
import type { RunId, RunStatus } from "../runs/rules/run.js";
import type { PingState } from "../schedules/rules/monitor.js";
import type { Reason } from "../schedules/rules/tick.js";
import type { StoredError } from "../shared/failure.js";
import { shownJson } from "../shared/json.js";
import { hideSecrets, hideSecretsIn } from "../shared/known-secrets.js";
import { redactError, redactMember, redactText } from "../shared/redact.js";

/** The methods that the library calls on a logger; pino fits, and so does console. Winston and AWS Powertools are recognized. */
export type Logger = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** For problems that need attention now. If it is missing, `fatal` is called, as in pino, else `error`. */
  critical?(fields: object, message: string): void;
  fatal?(fields: object, message: string): void;
  /** If given, lines of disabled levels are not built. */
  isLevelEnabled?(level: string): boolean;
};

type RunFields = {
  readonly run: RunId;
  readonly job: string;
  readonly attempt: number;
  /** Left out if there are none. */
  readonly tags?: readonly string[];
};

type LockFields = { readonly lock: string; readonly fence: number };

type AlertFields = {
  readonly alert: string;
  readonly kind: AlertKind;
  readonly severity: Severity;
  readonly subject: string;
  readonly message: string;
};

type TickFields = {
  readonly schedule: string;
  readonly tick: string;
  /** Only for a stretch: the number of ticks, and the last one. */
  readonly count: number;
  readonly lastTick: string;
  readonly reason: Reason;
};

/** The events of an instance with their facts. */
export type Events = {
  "instance.started": {
    instance: string;
    database: string;
    jobs: readonly string[];
    concurrency: number;
    connections: number;
  };
  "variable.unknown": { variable: string; hint: string };
  "schema.foreign": { instance: string; owners: readonly string[] };
  "instance.stopped": { instance: string; finished: number; handedBack: number; abandoned: number };
  "instance.halted": { instance: string; why: "all" | "quiet"; note: string | null };
  "instance.resumed": { instance: string };
  "clock.skewed": { instance: string; skewMs: number };
  "clock.stepped": { steppedMs: number; now: number };
  "everything.paused": { by: string | null; note: string | null };
  "everything.resumed": { by: string | null; pausedMs: number };
  "run.started": RunFields;
  "run.completed": RunFields & { ranMs: number };
  "run.retrying": RunFields & { delayMs: number; error: StoredError };
  "run.postponed": RunFields & { delayMs: number };
  /** `wakeInMs` is null if only a signal or a called run wakes it. */
  "run.suspended": RunFields & { wakeInMs: number | null };
  /** `ranMs` is null if its holder stopped responding. */
  "run.failed": RunFields & { ranMs: number | null; error: StoredError; isPermanent: boolean };
  "run.partial": RunFields & { failedItems: number };
  "item.failed": RunFields & { item: string; error: StoredError };
  "run.cancelled": RunFields;
  "run.handed_back": RunFields;
  "run.lost": RunFields & { fence: number };
  "run.accepted": RunFields & { fence: number };
  "run.unknown": RunFields & { fence: number; reason: string };
  "run.undelivered": RunFields & { target: string; reason: string; pauseMs: number };
  "target.left_alone": { target: string; reason: string };
  "target.answers": { target: string; reason: string };
  "run.stale": { run: RunId; fence: number };
  "run.unsettled": {
    run: RunId;
    fence: number;
    becomes: "failed" | "let_go";
    error: StoredError;
  };
  "run.after_commit": RunFields & { error: StoredError };
  "run.held_up": RunFields & { verb: string; heldMs: number; leaseMs: number };
  "run.reclaimed": RunFields & { holder: string; end: "lost" | "timeout"; to: RunStatus };
  "tick.fired": { schedule: string; tick: string; reason: Reason; run: RunId; lateMs: number };
  "tick.skipped": TickFields;
  "tick.missed": TickFields;
  "tick.lost": { schedule: string };
  "trigger.skipped": {
    schedule: string;
    reason: string;
    holder: string | null;
    until: string | null;
    nextAt: string | null;
  };
  "trigger.unread": { schedule: string; error: StoredError };
  "monitor.pinged": {
    schedule: string;
    state: PingState;
    tick: string | null;
    run: RunId | null;
    repeated: boolean;
  };
  "monitor.failed": {
    schedule: string;
    tick: string | null;
    run: RunId | null;
    error: StoredError;
  };
  "schedule.stuck": { schedule: string; nextAt: string | null; cursorAt: string | null };
  "schedule.broken": { schedule: string; error: string };
  "schedule.declared": { schedule: string; change: string };
  "schedule.warned": { schedule: string; warning: string };
  "schedule.refused": { schedule: string; why: string };
  "schedule.vanished": {
    schedule: string;
    isPaused: boolean;
    app: string | null;
    /** The action that was taken, and how to undo it. */
    what: string;
  };
  "store.failed": { what: string; error: StoredError; retryInMs: number };
  "store.recovered": { what: string };
  "store.awaited": { error: StoredError; waitedMs: number; timeoutMs: number };
  "store.gone": { error: StoredError };
  "access.signed_in": {
    who: string;
    scopes: readonly string[];
    address: string | null;
    requestId: string | null;
  };
  "access.refused": {
    what: string;
    address: string | null;
    requestId: string | null;
    /** For this long secrets of that peer are refused unchecked. */
    waitS: number;
  };
  "lock.acquired": LockFields & { holder: string; waitedMs: number; execution?: string };
  "lock.refused": { lock: string; holder: string | null; execution?: string };
  "lock.released": LockFields & { heldMs: number };
  "lock.taken_over": LockFields & { holder: string; execution?: string };
  "lock.expired": LockFields & { holder: string };
  "lock.revoked": LockFields & { holder: string; note: string | null };
  "lock.lost": LockFields;
  "lock.unreleased": LockFields & { error: StoredError };
  "locking.enabled": { instance: string; leaseMs: number };
  "locking.disabled": { instance: string };
  "alert.opened": AlertFields;
  "alert.resolved": AlertFields;
  "alert.undelivered": {
    alert: string;
    destination: string;
    error: string;
    attempt: number;
    retryInMs: number | null;
  };
  "alert.heartbeat_failed": { error: string };
  "loop.blocked": { blockedMs: number };
  /** `lateMs`: the event loop was blocked for at least this long; `jobs`: those that ran here meanwhile. */
  "heartbeat.late": { lateMs: number; leaseMs: number; jobs: readonly string[] };
  "hook.failed": RunFields & { hook: string; error: StoredError };
  "listener.failed": { listener: EventName | "onError"; error: StoredError };
};

export type EventName = keyof Events;
/** Emits an event; `cause` is the error itself, if it is an error of the library and not of a run. */
export type Emit = <Name extends EventName>(
  name: Name,
  facts: Events[Name],
  cause?: unknown,
) => void;

type Level = "debug" | "info" | "warn" | "error" | "critical";

/** Every event with the level and the message of its log line. */
export const LINES: { readonly [Name in EventName]: readonly [Level, string] } = {
  "instance.started": ["info", "instance started"],
  "variable.unknown": ["warn", "unknown environment variable, which has no effect"],
  "schema.foreign": [
    "error",
    "THE SCHEMA BELONGS TO ANOTHER ROLE, which can read what is stored and run code as this one; `holdfast check` names it",
  ],
  "instance.stopped": ["info", "instance stopped"],
  "instance.halted": ["warn", "instance claims and fires nothing until it is resumed"],
  "instance.resumed": ["info", "instance claims and fires again"],
  "clock.skewed": [
    "warn",
    "the clock of this process is off the database's, which decides what is due",
  ],
  "clock.stepped": [
    "warn",
    "the database's clock went back: no schedule fires before it has caught up",
  ],
  "everything.paused": ["info", "everything is paused: nothing fires and nothing is claimed"],
  "everything.resumed": ["info", "everything is resumed"],
  "run.started": ["info", "run started"],
  "run.completed": ["info", "run completed"],
  "run.retrying": ["warn", "attempt failed, the run will be retried"],
  "run.postponed": ["info", "run postponed by its handler"],
  "run.suspended": ["info", "run suspended, it holds no worker until a wait of it ends"],
  "run.failed": ["error", "run failed"],
  "run.partial": ["warn", "run completed, but some of its items failed"],
  "item.failed": ["error", "an item failed"],
  "run.cancelled": ["info", "run cancelled"],
  "run.handed_back": ["info", "run handed back, the attempt does not count"],
  "run.lost": ["warn", "lease lost, the run's signal was aborted"],
  "run.accepted": ["info", "a remote worker accepted the run and renews its lease"],
  "run.unknown": [
    "warn",
    "no response to a dispatch; it is not sent again before the lease expires",
  ],
  "run.undelivered": ["warn", "run not delivered and handed back, the attempt does not count"],
  "target.left_alone": ["warn", "a target failed too often in a row and gets no runs for a while"],
  "target.answers": ["info", "a target responds again and gets runs"],
  "run.stale": ["warn", "a result came too late and was refused"],
  "run.unsettled": ["error", "the database refused the settlement of an attempt"],
  "run.after_commit": ["warn", "the handler failed after ctx.commit had completed its run"],
  "run.held_up": [
    "warn",
    "a synchronous transaction blocked the file and the event loop for too long",
  ],
  "run.reclaimed": ["warn", "run reclaimed from a silent holder"],
  "tick.fired": ["info", "tick fired"],
  "tick.skipped": ["info", "tick skipped"],
  "tick.missed": ["warn", "tick missed"],
  "tick.lost": ["debug", "another instance evaluated the schedule first, nothing was done"],
  "trigger.skipped": ["info", "trigger skipped, nothing was run"],
  "trigger.unread": ["error", "the schedule could not be read, nothing was run"],
  "monitor.pinged": ["info", "monitor checked in"],
  "monitor.failed": ["error", "a monitored job checked in as failed"],
  "schedule.stuck": ["warn", "schedule was stuck and has been reset"],
  "schedule.broken": [
    "critical",
    "schedule cannot be evaluated and does not fire until it is repaired",
  ],
  "schedule.declared": ["info", "schedule updated to its declaration in code"],
  "schedule.warned": ["warn", "schedule may not do what was intended"],
  "schedule.refused": ["warn", "declaration in code was ignored"],
  "schedule.vanished": ["warn", "schedule is no longer declared in code"],
  "store.failed": ["error", "the database did not respond, retrying"],
  "store.recovered": ["info", "the database responds again"],
  "store.awaited": ["warn", "the database is not available yet, the start waits for it"],
  "store.gone": [
    "critical",
    "the SQLite file was deleted, moved or replaced; this instance has stopped",
  ],
  "access.signed_in": ["info", "a user signed in to the dashboard"],
  "access.refused": ["warn", "a wrong secret or callback token was refused"],
  "lock.acquired": ["info", "lock acquired"],
  "lock.refused": ["info", "lock is held by another, nothing was done"],
  "lock.released": ["info", "lock released"],
  "lock.taken_over": ["warn", "lock had expired and was taken over"],
  "lock.expired": ["warn", "lock expired, its holder did not release it"],
  "lock.revoked": ["warn", "lock taken from its holder by an operator"],
  "lock.lost": ["warn", "lock lost, others may hold it now"],
  "lock.unreleased": ["warn", "lock could not be released, its lease will run out"],
  "locking.enabled": ["info", "locks are on for this instance"],
  "locking.disabled": [
    "warn",
    "LOCKING IS OFF: holdfast.lock excludes no other holder, which is not safe with several instances",
  ],
  "alert.opened": ["critical", "alert"],
  "alert.resolved": ["info", "alert resolved"],
  "alert.undelivered": ["warn", "an alert did not reach a destination"],
  "alert.heartbeat_failed": ["warn", "the heartbeat did not reach its address"],
  "loop.blocked": ["warn", "the event loop was blocked; heartbeats were late"],
  "heartbeat.late": [
    "warn",
    'the event loop was blocked and a heartbeat was late; start with worker: { heartbeat: "thread" } if jobs block it',
  ],
  "hook.failed": ["error", "a hook failed; the run goes on"],
  "listener.failed": ["error", "a listener failed; it is reported once"],
};

export const EVENT_NAMES = Object.keys(LINES) as readonly EventName[];

export function logEvents(logger: Logger): Emit {
  return (name, facts) => {
    const [usual, message] = LINES[name];
    const level = isExhausted(name, facts) ? "critical" : usual;
    try {
      if (!isEnabled(logger, level)) return;
      writeLine(logger, level, { event: name, ...redacted(facts) }, message);
    } catch {
      // A failing logger must not fail the run.
    }
  };
}

/** All attempts have failed, and a person has to act. */
function isExhausted(name: EventName, facts: Events[EventName]): boolean {
  if (name !== "run.failed") return false;
  const { attempt, isPermanent } = facts as Events["run.failed"];
  return attempt > 1 && !isPermanent;
}

/** Whether a line of this event would be written. */
export function logs(logger: Logger): (name: EventName) => boolean {
  return (name) => {
    try {
      return (
        isEnabled(logger, LINES[name][0]) ||
        (name === "run.failed" && isEnabled(logger, "critical"))
      );
    } catch {
      return true;
    }
  };
}

/** Texts from other sources, above all errors, may contain secrets. */
function redacted<Facts extends object>(facts: Facts): Facts {
  const shown = hideSecretsIn(facts);
  const { error, reason, why } = shown as { error?: unknown; reason?: unknown; why?: unknown };
  if (error === undefined && reason === undefined && why === undefined) return shown;
  return {
    ...shown,
    ...(error === undefined ? {} : { error: redactedError(error) }),
    ...(typeof reason === "string" ? { reason: redactText(reason) } : {}),
    ...(typeof why === "string" ? { why: redactText(why) } : {}),
  };
}

function redactedError(error: unknown): unknown {
  return typeof error === "string" ? redactText(error) : redactError(error as StoredError);
}

// ── loggers that take the message first ────────────────────────────────────────────────────────────

/** What the library calls on a logger that takes the message first. */
export type MessageFirstLogger = {
  debug(message: string, ...fields: never[]): void;
  info(message: string, ...fields: never[]): void;
  warn(message: string, ...fields: never[]): void;
  error(message: string, ...fields: never[]): void;
};

type Method = Readonly<Record<string, (message: string, fields: object) => unknown>>;
/** Names that only winston, and only the logger of AWS Powertools, have. */
const MESSAGE_FIRST = [
  ["profilers", "transports", "rejections"],
  ["appendKeys", "createChild", "injectLambdaContext"],
] as const;

/** The logger itself, or winston's and AWS Powertools' as one that takes the fields first. */
export function fieldsFirst(logger: Logger | MessageFirstLogger): Logger {
  if (!isMessageFirst(logger)) return logger as Logger;
  const turned = logger as unknown as Method & Pick<Logger, "isLevelEnabled">;
  const method = (name: string) => (fields: object, message: string) =>
    void turned[name]?.(message, withoutLevel(fields));
  const isEnabled = turned.isLevelEnabled?.bind(logger);
  return {
    debug: method("debug"),
    info: method("info"),
    warn: method("warn"),
    error: method("error"),
    ...(typeof turned.critical === "function" ? { critical: method("critical") } : {}),
    ...(isEnabled ? { isLevelEnabled: isEnabled } : {}),
  };
}

function isMessageFirst(logger: object): boolean {
  return MESSAGE_FIRST.some((names) => names.every((name) => name in logger));
}

/** A member `level` would replace the level of winston's line. */
function withoutLevel(fields: object): object {
  if (!("level" in fields)) return fields;
  const { level, ...rest } = fields;
  return { severity: level, ...rest };
}

/** The method for the level, or its substitute. */
function methodOf(logger: Logger, level: Level): Exclude<keyof Logger, "isLevelEnabled"> {
  if (level !== "critical" || typeof logger.critical === "function") return level;
  return typeof logger.fatal === "function" ? "fatal" : "error";
}

function isEnabled(logger: Logger, level: Level): boolean {
  return logger.isLevelEnabled?.(methodOf(logger, level)) !== false;
}

function writeLine(logger: Logger, level: Level, fields: object, message: string): void {
  const method = methodOf(logger, level);
  const isLost = level === "critical" && method === "error";
  logger[method]?.(isLost ? { level, ...fields } : fields, message);
}

const RANK = { debug: 10, info: 20, warn: 30, error: 40, critical: 50, silent: 100 } as const;
export type LogLevel = keyof typeof RANK;
export const LOG_LEVELS = Object.keys(RANK) as readonly LogLevel[];

/** The default logger: one JSON line per event, with control characters and direction marks escaped. */
export function lineLogger(
  level: LogLevel,
  write: (line: string) => void,
  now: () => Date,
): Logger {
  const at = (each: Level) => (fields: object, message: string) => {
    if (RANK[each] < RANK[level]) return;
    const line = { level: each, at: now().toISOString(), message, ...fields };
    write(shownJson(hideSecrets(JSON.stringify(line, redactMember))));
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    critical: at("critical"),
    isLevelEnabled: (each) => RANK[each as Level] >= RANK[level],
  };
}

/** Writes to a logger of its own until a host lends it another one. */
export class LentLogger implements Logger {
  #to: Logger;

  constructor(own: Logger) {
    this.#to = own;
  }

  lend(logger: Logger): void {
    this.#to = logger;
  }

  debug(fields: object, message: string): void {
    this.#to.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.#to.info(fields, message);
  }

  warn(fields: object, message: string): void {
    this.#to.warn(fields, message);
  }

  error(fields: object, message: string): void {
    this.#to.error(fields, message);
  }

  critical(fields: object, message: string): void {
    writeLine(this.#to, "critical", fields, message);
  }

  isLevelEnabled(level: string): boolean {
    return isEnabled(this.#to, level as Level);
  }
}
