// The public interface of `holdfast`, name by name.

export type { Duration } from "./core/duration.js";
export {
  BatchRefusedError,
  CancelledError,
  ConfigurationError,
  DuplicateJobError,
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
  ShutdownError,
  StoppedError,
  StoreUnavailableError,
  StoreUnsupportedError,
  TimeoutError,
  UnknownJobError,
  WaitTimeoutError,
} from "./core/errors.js";
export type { StoredError } from "./core/failure.js";
export type { RetryOptions } from "./core/retry.js";
export type { Mode, OnLost, RunId, RunStatus } from "./core/run.js";
export type { StandardSchema } from "./core/schema.js";
export type { HoldfastOptions, StartOptions, WorkerOptions } from "./engine/config.js";
export type { RunContext } from "./engine/context.js";
export { Holdfast } from "./engine/holdfast.js";
export type {
  Enqueued,
  EnqueueOptions,
  Job,
  PlainJobOptions,
  SchemaJobOptions,
} from "./engine/job.js";
export type { Run, RunAttempt, RunListOptions, RunPage, Runs } from "./engine/runs.js";
export type { StopReport } from "./engine/worker.js";
export type { Database } from "./store/open.js";
export type { Logger } from "./telemetry/log.js";
