// The public interface of `holdfast`, name by name.

export type { CalendarOptions } from "./core/calendar.js";
export type { Duration } from "./core/duration.js";
export {
  BackfillRunningError,
  BatchRefusedError,
  CalendarInUseError,
  CancelledError,
  ConfigurationError,
  DeliveryConflictError,
  DuplicateJobError,
  DuplicateScheduleError,
  HoldfastError,
  InputInvalidError,
  InputNotJsonError,
  InputTooLargeError,
  KeyConflictError,
  LeaseLostError,
  MigrationError,
  OutcomeUnknownError,
  PermanentError,
  RetryLater,
  RunNotFoundError,
  ScheduleBusyError,
  ScheduleNotFoundError,
  ShutdownError,
  StoppedError,
  StoreUnavailableError,
  StoreUnsupportedError,
  TimeoutError,
  UnknownJobError,
  WaitTimeoutError,
} from "./core/errors.js";
export type { StoredError } from "./core/failure.js";
export type { ConcurrencyOptions, RateOptions } from "./core/flow.js";
export type { Overlap } from "./core/overlap.js";
export type { RetryOptions } from "./core/retry.js";
export type { Mode, OnLost, RunId, RunStatus } from "./core/run.js";
export type { MissedOptions, ScheduleOptions } from "./core/schedule.js";
export type { StandardSchema } from "./core/schema.js";
export type { Evidence, Outcome, Reason } from "./core/tick.js";
export type { Calendar, Calendars } from "./engine/calendars.js";
export type { HoldfastOptions, StartOptions, WorkerOptions } from "./engine/config.js";
export type { RunContext } from "./engine/context.js";
export type { PlannedChange } from "./engine/declared.js";
export type { Explanation } from "./engine/explain.js";
export { Holdfast } from "./engine/holdfast.js";
export type {
  Enqueued,
  EnqueueOptions,
  Job,
  OnDuplicate,
  PlainJobOptions,
  SchemaJobOptions,
} from "./engine/job.js";
export type { Queue, Queues } from "./engine/queues.js";
export type { Run, RunAttempt, RunDetails, RunListOptions, RunPage, Runs } from "./engine/runs.js";
export type {
  BackfillOptions,
  ScheduleListOptions,
  TickListOptions,
  TriggerOptions,
  Upserted,
  UpsertOptions,
} from "./engine/schedule-options.js";
export type { Preview } from "./engine/schedule-preview.js";
export type { Triggered } from "./engine/schedule-trigger.js";
export type {
  Backfill,
  Schedule,
  ScheduleStatus,
  ScheduleVersion,
  Tick,
} from "./engine/schedule-view.js";
export type { Schedules } from "./engine/schedules.js";
export type { WaitingFor } from "./engine/waiting-for.js";
export type { StopReport } from "./engine/worker.js";
export type { Database } from "./store/open.js";
export type { Logger } from "./telemetry/log.js";
