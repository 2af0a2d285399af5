// Every exception of the library, each with a stable code, its facts as fields, and a message that
// says what happened and what to do. Expected outcomes are return values, not exceptions.
// Messages are built here only; none of them may contain a secret.

import { type Duration, formatDuration, readDuration } from "./duration-text.js";
import { readInstant } from "./instant.js";
import { redactUrl } from "./redact.js";
import { listShort, type Problem, quoteShort, suggest } from "./suggest.js";

export type { Problem } from "./suggest.js";

/** What all exceptions of the library have in common. */
export abstract class HoldfastError extends Error {
  abstract readonly code: string;
}

// ── what callers give ────────────────────────────────────────────────────────────────────────────

/** Options contradict each other or are wrong; nothing was started. All problems are named at once. */
export class ConfigurationError extends HoldfastError {
  readonly code = "CONFIGURATION_INVALID";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(({ field, message }) => `${field}: ${message}`).join("\n"));
  }
}

export type InputIssue = { readonly path: string; readonly message: string };

/** An input does not fit the schema of its job. */
export class InputInvalidError extends HoldfastError {
  readonly code = "INPUT_INVALID";
  constructor(
    readonly field: string,
    readonly issues: readonly InputIssue[],
  ) {
    super(`${field} is invalid: ${issuesText(issues)}`);
  }
}

const ISSUES_SHOWN_MAX = 10;

function issuesText(issues: readonly InputIssue[]): string {
  const shown = issues.slice(0, ISSUES_SHOWN_MAX).map(({ path, message }) => `${path}: ${message}`);
  const restCount = issues.length - shown.length;
  return restCount > 0 ? `${shown.join("; ")}; and ${restCount} more` : shown.join("; ");
}

/** An input is larger than a run may carry; `bytes` is what had been counted when it was refused. */
export class InputTooLargeError extends HoldfastError {
  readonly code = "INPUT_TOO_LARGE";
  constructor(
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(
      `The input has at least ${bytes} bytes of JSON; the limit is ${limit}. Nothing was stored. ` +
        "Store the data elsewhere and enqueue a reference to it.",
    );
  }
}

/** An input holds something that JSON cannot carry unchanged; `path` says where. */
export class InputNotJsonError extends HoldfastError {
  readonly code = "INPUT_NOT_JSON";
  constructor(
    readonly path: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`${path} ${reason}. Nothing was stored.`, options);
  }
}

/** One member of a batch was refused, so nothing of the batch was stored. */
export class BatchRefusedError extends HoldfastError {
  readonly code = "BATCH_REFUSED";
  constructor(
    readonly index: number,
    cause: unknown,
  ) {
    super(
      `Member ${index} of the batch was refused${causeText(cause)}. Nothing of the batch was stored.`,
      { cause },
    );
  }
}

// ── jobs, runs and those who take part ───────────────────────────────────────────────────────────

/** The job types that need no code are off until they are told what they may use. */
const OFF: ReadonlyMap<string, string> = new Map([
  [
    "shell",
    ' It is off: list its programs, for example new Holdfast({ shell: { commands: { backup: ["pg_dump", "app"] } } }).',
  ],
  [
    "http",
    ' It is off: list its origins, for example new Holdfast({ http: { origins: { api: "https://api.example.com" } } }).',
  ],
]);

/** No job of that name is registered here or announced by any instance. */
export class UnknownJobError extends HoldfastError {
  readonly code = "JOB_UNKNOWN";
  readonly suggestion: string | undefined;
  constructor(
    readonly job: string,
    readonly known: readonly string[] = [],
  ) {
    const suggestion = suggest(job, known);
    const hint = suggestion === undefined ? "" : ` Did you mean ${quoteShort(suggestion)}?`;
    const list = known.length === 0 ? "No job is known." : `Known: ${listShort(known)}.`;
    super(`No job is named ${quoteShort(job)}.${OFF.get(job) ?? hint} ${list}`);
    this.suggestion = suggestion;
  }
}

/** A job of that name already exists in this instance. */
export class DuplicateJobError extends HoldfastError {
  readonly code = "JOB_DUPLICATE";
  constructor(readonly job: string) {
    super(`A job named ${quoteShort(job)} is already registered; give this one another name.`);
  }
}

/** The key already belongs to a run with another input. */
export class KeyConflictError extends HoldfastError {
  readonly code = "KEY_CONFLICT";
  readonly job: string;
  readonly key: string;
  readonly runId: string;
  constructor({ job, key, runId }: { job: string; key: string; runId: string }) {
    super(
      `Key ${quoteShort(key)} of job ${quoteShort(job)} belongs to run ${runId}, which has another ` +
        "input. Nothing was stored. Use another key for other work.",
    );
    this.job = job;
    this.key = key;
    this.runId = runId;
  }
}

/** There is no run of that id: it never existed, or it was pruned. */
export class RunNotFoundError extends HoldfastError {
  readonly code = "RUN_NOT_FOUND";
  constructor(readonly runId: string) {
    super(`There is no run ${quoteShort(runId)}: it never existed, or it was pruned.`);
  }
}

/** Several runs have an id that begins or ends like this. */
export class RunAmbiguousError extends HoldfastError {
  readonly code = "RUN_AMBIGUOUS";
  constructor(
    readonly fragment: string,
    /** At most ten of them. */
    readonly candidates: readonly string[],
    readonly hasMore: boolean,
  ) {
    const more = hasMore ? ", and more" : "";
    super(
      `${quoteShort(fragment)} is the beginning or the end of several run ids: ${candidates.join(", ")}${more}. Give more of the id.`,
    );
  }
}

/** The run had not ended when the caller's patience did; the run itself goes on. */
export class WaitTimeoutError extends HoldfastError {
  readonly code = "WAIT_TIMEOUT";
  constructor(
    readonly runId: string,
    readonly timeoutMs: number,
  ) {
    super(`Run ${runId} had not ended after ${formatDuration(timeoutMs)}; it goes on.`);
  }
}

/** There is no alert of that id: it never existed, or it was pruned. */
export class AlertNotFoundError extends HoldfastError {
  readonly code = "ALERT_NOT_FOUND";
  constructor(readonly alert: string) {
    super(`There is no alert ${quoteShort(alert)}: it never existed, or it was pruned.`);
  }
}

/** There is no named key of that name: it never existed, was revoked, or expired long ago. */
export class KeyNotFoundError extends HoldfastError {
  readonly code = "KEY_NOT_FOUND";
  constructor(readonly key: string) {
    super(
      `There is no key ${quoteShort(key)}: it never existed, was revoked, or expired long ago.`,
    );
  }
}

/** Another named key has that name. */
export class KeyTakenError extends HoldfastError {
  readonly code = "KEY_TAKEN";
  constructor(readonly key: string) {
    super(`There is a key ${quoteShort(key)} already; revoke it first, or choose another name.`);
  }
}

/** There is no instance of that id: it never existed, or it was pruned. */
export class InstanceNotFoundError extends HoldfastError {
  readonly code = "INSTANCE_NOT_FOUND";
  constructor(readonly instance: string) {
    super(
      `There is no instance ${quoteShort(instance)}; \`holdfast instances list\` shows those there are.`,
    );
  }
}

/** A verb was called after `stop()`. */
export class StoppedError extends HoldfastError {
  readonly code = "STOPPED";
  constructor(readonly verb: string) {
    super(`${verb} was called after stop(); nothing was done. Make a new Holdfast to go on.`);
  }
}

// ── schedules ────────────────────────────────────────────────────────────────────────────────────

/** There is no schedule of that name: it never existed, or it was deleted. */
export class ScheduleNotFoundError extends HoldfastError {
  readonly code = "SCHEDULE_NOT_FOUND";
  constructor(
    readonly schedule: string,
    known: readonly string[] = [],
  ) {
    const meant = suggest(schedule, known);
    const hint = meant === undefined ? "" : ` Did you mean ${quoteShort(meant)}?`;
    super(`There is no schedule ${quoteShort(schedule)}.${hint}`);
  }
}

/** A schedule of that name is already declared in this instance. */
export class DuplicateScheduleError extends HoldfastError {
  readonly code = "SCHEDULE_DUPLICATE";
  constructor(readonly schedule: string) {
    super(
      `A schedule named ${quoteShort(schedule)} is already declared; give this one another name.`,
    );
  }
}

/** Others changed the schedule again and again while this call tried to. */
export class ScheduleBusyError extends HoldfastError {
  readonly code = "SCHEDULE_BUSY";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} is being changed by others all the time. Nothing was done; ` +
        "try again.",
    );
  }
}

/** The schedule is not what the caller looked at before asking for the change. */
export class ScheduleChangedError extends HoldfastError {
  readonly code = "SCHEDULE_CHANGED";
  readonly schedule: string;
  /** What the caller went by; 0: that there was none. */
  readonly ifVersion: number;
  /** What it is at; null: there is none. */
  readonly version: number | null;
  constructor(params: { schedule: string; ifVersion: number; version: number | null }) {
    const { schedule, ifVersion, version } = params;
    const shown = quoteShort(schedule);
    super(
      version === null
        ? `There is no schedule ${shown} any more. Nothing was done.`
        : ifVersion === 0
          ? `There is a schedule ${shown} already, at version ${version}. Nothing was changed; give this one another name.`
          : `Schedule ${shown} was changed meanwhile: it is at version ${version}, not ${ifVersion}. Nothing was done; ` +
            "look at it again, and repeat what is still wanted.",
    );
    this.schedule = schedule;
    this.ifVersion = ifVersion;
    this.version = version;
  }
}

/** The delivery already made a run with another input. */
export class DeliveryConflictError extends HoldfastError {
  readonly code = "DELIVERY_CONFLICT";
  constructor(
    readonly deliveryId: string,
    readonly runId: string,
  ) {
    super(
      `Delivery ${quoteShort(deliveryId)} already made run ${runId} with another input. ` +
        "Nothing was stored. Use another deliveryId for other work.",
    );
  }
}

/** A schedule has one backfill at a time. */
export class BackfillRunningError extends HoldfastError {
  readonly code = "BACKFILL_RUNNING";
  constructor(
    readonly schedule: string,
    readonly backfillId: string,
  ) {
    super(
      `Schedule ${quoteShort(schedule)} is being backfilled (${backfillId}). Wait for it, or end it ` +
        "with schedules.cancelBackfill().",
    );
  }
}

/** Somebody asked for a run of a monitor, which makes none. */
export class RunsElsewhereError extends HoldfastError {
  readonly code = "RUNS_ELSEWHERE";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} is a monitor: what it watches runs elsewhere, and checks in with ` +
        "schedules.ping() or POST /api/ping/:monitor. Nothing was done.",
    );
  }
}

/** A live instance of another owner has the name that a remote worker gave. */
export class InstanceTakenError extends HoldfastError {
  readonly code = "INSTANCE_TAKEN";
  constructor(readonly instance: string) {
    super(
      `The name ${quoteShort(instance)} belongs to another live instance; nothing was done. Give the worker a name of its own.`,
    );
  }
}

/** A remote worker cannot claim a job that instances execute themselves or send to a target. */
export class JobNotRemoteError extends HoldfastError {
  readonly code = "JOB_NOT_REMOTE";
  constructor(readonly job: string) {
    super(
      `Job ${quoteShort(job)} has a handler or a target of its own: remote workers cannot claim its runs. ` +
        "Declare it without run and worker to leave it to them.",
    );
  }
}

/** A check-in for a schedule whose runs are made here. */
export class NotAMonitorError extends HoldfastError {
  readonly code = "NOT_A_MONITOR";
  constructor(readonly schedule: string) {
    super(
      `Schedule ${quoteShort(schedule)} runs a job here; only one with \`monitor: true\` is checked in for. ` +
        "Nothing was stored.",
    );
  }
}

/** Schedules leave times out by this calendar. */
export class CalendarInUseError extends HoldfastError {
  readonly code = "CALENDAR_IN_USE";
  constructor(
    readonly calendar: string,
    readonly schedules: readonly string[],
  ) {
    super(
      `Calendar ${quoteShort(calendar)} is used by ${listShort(schedules)}. Nothing was removed. ` +
        "Take it out of these schedules first.",
    );
  }
}

// ── the database ─────────────────────────────────────────────────────────────────────────────────

/** The database could not be reached; `url` has no secrets in it. */
export class StoreUnavailableError extends HoldfastError {
  readonly code = "STORE_UNAVAILABLE";
  readonly tried: string;
  readonly url: string | undefined;
  /** Whether waiting may help. It does not where the database refuses: a wrong password, a name that it does not know. */
  readonly isTemporary: boolean;
  constructor(params: {
    tried: string;
    url?: string | undefined;
    cause?: unknown;
    isTemporary?: boolean;
  }) {
    const { tried, url, cause, isTemporary = true } = params;
    const shownUrl = url === undefined ? undefined : redactUrl(url);
    const where = shownUrl === undefined ? "" : ` at ${shownUrl}`;
    const why = causeText(cause, url);
    super(
      `The database${where} could not be reached (tried to ${tried})${why}.`,
      causeOption(cause),
    );
    this.tried = tried;
    this.url = shownUrl;
    this.isTemporary = isTemporary;
  }
}

/** The database or its library is too old or lacks something the promises rest on. */
export class StoreUnsupportedError extends HoldfastError {
  readonly code = "STORE_UNSUPPORTED";
  readonly found: string;
  readonly needed: string;
  constructor({ found, needed, advice }: { found: string; needed: string; advice: string }) {
    super(`Found ${found}, but ${needed} is needed. ${advice}`);
    this.found = found;
    this.needed = needed;
  }
}

/** This process may not write the SQLite file or its folder. */
export class StoreReadOnlyError extends HoldfastError {
  readonly code = "STORE_READ_ONLY";
  readonly file: string;
  readonly tried: string;
  constructor({ file, tried, cause }: { file: string; tried: string; cause?: unknown }) {
    super(
      `The SQLite file ${quoteShort(file)} or its folder may only be read by this process (tried to ${tried}). Nothing was ` +
        "stored. Let its user write both: SQLite keeps a -wal and a -shm file beside the database, also for reading.",
      causeOption(cause),
    );
    this.file = file;
    this.tried = tried;
  }
}

/** The SQLite file was deleted, moved or replaced while it was open. */
export class StoreGoneError extends HoldfastError {
  readonly code = "STORE_GONE";
  readonly file: string;
  /** Whether another file is at its path now. */
  readonly isReplaced: boolean;
  constructor({ file, isReplaced }: { file: string; isReplaced: boolean }) {
    super(
      `The SQLite file ${quoteShort(file)} was ${isReplaced ? "replaced by another file" : "deleted or moved"} while it was ` +
        "open. Nothing more is stored in it. Stop every process that uses it, put the file in its place together with its -wal " +
        "file, if it has one, and start again.",
    );
    this.file = file;
    this.isReplaced = isReplaced;
  }
}

/** The answer to a commit was lost and could not be read back: it may or may not have happened. */
export class OutcomeUnknownError extends HoldfastError {
  readonly code = "OUTCOME_UNKNOWN";
  constructor(
    readonly what: string,
    options?: ErrorOptions,
  ) {
    super(
      `The database's answer to "${what}" was lost and could not be read back: it may or may not ` +
        "have happened. Repeat it with the same id or key, which cannot make a second one.",
      options,
    );
  }
}

/** The tables do not fit this version of the library and were left as they are. */
export class MigrationError extends HoldfastError {
  readonly code = "MIGRATION_REFUSED";
  constructor(
    message: string,
    /** The version of the tables that were found; null where there are none. */
    readonly version: number | null = null,
  ) {
    super(message);
  }
}

/** The database refused, while it took others, to store how an attempt ended. */
export class SettlementRefusedError extends HoldfastError {
  readonly code = "SETTLEMENT_REFUSED";
  constructor(said: string) {
    super(`The database refused to store how the attempt ended. It said: ${said}`);
  }
}

// ── what a handler did ───────────────────────────────────────────────────────────────────────────

/** The function given to `ctx.commit` or to an item with `tx` returned a promise on SQLite. */
export class TxMustBeSyncError extends HoldfastError {
  readonly code = "TX_MUST_BE_SYNC";
  constructor(readonly verb: string) {
    super(
      `The function given to ${verb} returned a promise; on SQLite it must be synchronous. ` +
        "The transaction was rolled back. Do asynchronous work before it.",
    );
  }
}

/** The function given to `ctx.commit` or to an item with `tx` ended the transaction itself. */
export class TxEndedError extends HoldfastError {
  readonly code = "TX_ENDED";
  constructor(readonly verb: string) {
    super(
      `The function given to ${verb} began or ended a transaction itself; both are done for it. Its run ` +
        "was not completed, and its item was not stored. Throw to roll back.",
    );
  }
}

/** The run was completed by `ctx.commit`; what comes after it in the handler can store nothing. */
export class RunCommittedError extends HoldfastError {
  readonly code = "RUN_COMMITTED";
  constructor(
    readonly runId: string,
    readonly verb: string,
  ) {
    super(
      `${verb} was called when ctx.commit had completed run ${runId}, or was about to. Nothing was ` +
        "done. Call it before, and ctx.commit once, as the last thing.",
    );
  }
}

/** A value that an item returned holds something that JSON cannot carry; `path` says where. */
export class ItemNotJsonError extends HoldfastError {
  readonly code = "ITEM_NOT_JSON";
  constructor(
    readonly key: string,
    readonly path: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`Item ${quoteShort(key)}: ${path} ${reason}. Its value was not stored.`, options);
  }
}

/** A value that an item returned is too large; `bytes` is what had been counted by then. */
export class ItemTooLargeError extends HoldfastError {
  readonly code = "ITEM_TOO_LARGE";
  constructor(
    readonly key: string,
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(
      `Item ${quoteShort(key)} returned at least ${bytes} bytes of JSON; the limit is ${limit}. Its ` +
        "value was not stored. Store the data elsewhere and return a reference to it.",
    );
  }
}

/** The item was done before with another value, which stays. */
export class ItemConflictError extends HoldfastError {
  readonly code = "ITEM_CONFLICT";
  constructor(
    readonly runId: string,
    readonly key: string,
  ) {
    super(
      `Item ${quoteShort(key)} of run ${runId} was done before, with another value, which stays. Nothing ` +
        "was stored.",
    );
  }
}

// ── what a handler says ──────────────────────────────────────────────────────────────────────────

export type PermanentErrorOptions = { readonly cause?: unknown; readonly code?: string };

/** Thrown by a handler that knows another try would fail the same way: the run fails at once. */
export class PermanentError extends HoldfastError {
  readonly code: string;
  constructor(message: string, options: PermanentErrorOptions = {}) {
    super(message, causeOption(options.cause));
    this.code = options.code ?? "PERMANENT";
  }
}

/** Thrown by a handler to be run again at that time, without using up an attempt. */
export class RetryLater extends HoldfastError {
  readonly code = "RETRY_LATER";
  readonly at?: Date;
  readonly delayMs?: number;
  constructor(when: Date | string | { readonly delay: Duration }) {
    const read = readWhen(when);
    const isDelay = "delayMs" in read;
    super(
      isDelay
        ? `The handler asked to be run again in ${formatDuration(read.delayMs)}.`
        : `The handler asked to be run again at ${read.at.toISOString()}.`,
    );
    if (isDelay) this.delayMs = read.delayMs;
    else this.at = read.at;
  }
}

function readWhen(when: unknown): { delayMs: number } | { at: Date } {
  if (typeof when === "object" && when !== null && "delay" in when) {
    const delayMs = readDuration(when.delay);
    if (typeof delayMs === "number") return { delayMs };
    throw new ConfigurationError([{ field: "RetryLater.delay", message: delayMs }]);
  }
  const at = readInstant(when);
  if (typeof at === "number") return { at: new Date(at) };
  const message = `${at} For a delay give { delay: "30s" }.`;
  throw new ConfigurationError([{ field: "RetryLater.at", message }]);
}

// ── why a handler is told to stop ────────────────────────────────────────────────────────────────

/** The run or the lock was taken from its holder: its lease expired, or an operator ended it. */
export class LeaseLostError extends HoldfastError {
  readonly code = "LEASE_LOST";
  /** Null where a lock was lost. */
  readonly runId: string | null;
  /** The name of the lock that was lost; null where it was a run. */
  readonly lock: string | null;
  constructor(
    held: string | { readonly lock: string },
    readonly fence: number,
    options?: ErrorOptions,
  ) {
    super(
      typeof held === "string"
        ? `Run ${held} is no longer held under fence ${fence}; its result was not stored.`
        : `Lock ${quoteShort(held.lock)} is no longer held under fence ${fence}: others may have ` +
            "been at work meanwhile.",
      options,
    );
    this.runId = typeof held === "string" ? held : null;
    this.lock = typeof held === "string" ? null : held.lock;
  }
}

/** The run was completed under this fence before, with another result. */
export class ResultConflictError extends HoldfastError {
  readonly code = "RESULT_CONFLICT";
  constructor(
    readonly runId: string,
    readonly fence: number,
  ) {
    super(
      `Run ${runId} was completed under fence ${fence} with another result, which stays. Nothing was stored.`,
    );
  }
}

/** The attempt ran for longer than its job allows. */
export class TimeoutError extends HoldfastError {
  readonly code = "TIMEOUT";
  constructor(readonly timeoutMs: number) {
    super(
      `The attempt was ended: it ran for longer than its timeout of ${formatDuration(timeoutMs)}.`,
    );
  }
}

/** Somebody cancelled the run. */
export class CancelledError extends HoldfastError {
  readonly code = "CANCELLED";
  constructor(readonly runId?: string) {
    super(
      `${runId === undefined ? "The run" : `Run ${runId}`} was cancelled; it will not be retried.`,
    );
  }
}

/** The instance is stopping; the run is handed back and its attempt is not counted. */
export class ShutdownError extends HoldfastError {
  readonly code = "SHUTDOWN";
  constructor() {
    super("This instance is stopping; the run is handed back and the attempt is not counted.");
  }
}

// ── what they share ──────────────────────────────────────────────────────────────────────────────

function causeOption(cause: unknown): ErrorOptions | undefined {
  return cause === undefined ? undefined : { cause };
}

// Only a first line and only for messages: failure.ts describes thrown values in full.
function causeText(cause: unknown, secretUrl?: string): string {
  try {
    const isObject = typeof cause === "object" && cause !== null;
    const message: unknown = isObject && "message" in cause ? cause.message : cause;
    if (typeof message !== "string" || message === "") return "";
    const safe = secretUrl ? message.replaceAll(secretUrl, redactUrl(secretUrl)) : message;
    return `: ${safe.slice(0, 500).replace(/\.$/, "")}`;
  } catch {
    return "";
  }
}

// The name goes on the prototype, not on the instance, as the stack's first line is written before any field
// exists; and as text, as a bundler may rename the class.
for (const [name, { prototype }] of Object.entries({
  ConfigurationError,
  InputInvalidError,
  InputTooLargeError,
  InputNotJsonError,
  LeaseLostError,
  UnknownJobError,
  DuplicateJobError,
  KeyConflictError,
  RunAmbiguousError,
  RunNotFoundError,
  AlertNotFoundError,
  InstanceNotFoundError,
  KeyNotFoundError,
  KeyTakenError,
  ScheduleNotFoundError,
  DuplicateScheduleError,
  ScheduleBusyError,
  ScheduleChangedError,
  DeliveryConflictError,
  BackfillRunningError,
  RunsElsewhereError,
  InstanceTakenError,
  JobNotRemoteError,
  NotAMonitorError,
  CalendarInUseError,
  WaitTimeoutError,
  StoppedError,
  StoreUnavailableError,
  StoreUnsupportedError,
  StoreReadOnlyError,
  StoreGoneError,
  OutcomeUnknownError,
  BatchRefusedError,
  MigrationError,
  TxMustBeSyncError,
  TxEndedError,
  RunCommittedError,
  ItemNotJsonError,
  ItemTooLargeError,
  ItemConflictError,
  ResultConflictError,
  PermanentError,
  RetryLater,
  TimeoutError,
  SettlementRefusedError,
  CancelledError,
  ShutdownError,
}))
  Object.defineProperty(prototype, "name", { value: name, configurable: true, writable: true });
