// The public interface of `holdfast`, name by name.

export type { AlertOptions, HeartbeatOptions } from "./alerts/alert-options.js";
export type { Alert, AlertDeliveryView, AlertNotice } from "./alerts/alert-view.js";
export type { AlertListOptions, AlertPage, Alerts, AlertTested } from "./alerts/alerts.js";
export type {
  AlertDestination,
  EmailDestination,
  FunctionDestination,
  SlackDestination,
  WebhookDestination,
} from "./alerts/destinations/destinations.js";
export type { AlertEvidence, AlertKind, AlertSubject, Severity } from "./alerts/rules/alert.js";
export type {
  AlertRuleOptions,
  ConsecutiveFailuresOptions,
  FailureRateOptions,
  ScheduleAlertOptions,
  SlowOptions,
} from "./alerts/rules/rules.js";
export { createReceiver, type Receiver, type ReceiverOptions } from "./client/receive.js";
export { Holdfast } from "./holdfast.js";
export type { Acting, ActorOptions } from "./instance/actor-api.js";
export type { HoldfastOptions, StartOptions, WorkerOptions } from "./instance/config.js";
export type { RanIfDue, RunIfDueOptions } from "./instance/run-if-due.js";
export type { Ticked, TickOptions } from "./instance/tick-once.js";
export { type AdvisoryResult, type AdvisoryTransaction, advisoryLock } from "./locks/advisory.js";
export { type EtcdLockOptions, etcdLocks } from "./locks/etcd.js";
export type { HeldLock, LockOptions, LockResult } from "./locks/locking.js";
export type {
  Lock,
  LockGrantView,
  LockHistoryOptions,
  LockListOptions,
  LockReleased,
  Locks,
} from "./locks/locks.js";
export { type RedisClient, type RedisLockOptions, redisLocks } from "./locks/redis.js";
export type {
  LockAnswer,
  LockCapabilities,
  LockFilter,
  LockGrant,
  LockHistoryFilter,
  LockHistoryRecord,
  LockProvider,
  LockRecord,
  LockRequest,
  LockRevocation,
  LockState,
  LockStats,
  LockTidied,
} from "./locks/rules/lock.js";
export type { Audit, AuditListOptions, AuditPage, AuditRecord } from "./operations/audit.js";
export type {
  CheckOptions,
  CheckReport,
  CheckResult,
  RepairOptions,
  RepairReport,
  RepairStep,
} from "./operations/check.js";
export type { CleanedUp, CleanupOptions } from "./operations/cleanup.js";
export type { HealthFigure, HealthOptions, HealthReport } from "./operations/health.js";
export type {
  Instance,
  InstanceListOptions,
  InstancePage,
  Instances,
} from "./operations/instances.js";
export type { AccessKey, CreatedKey, KeyOptions, Keys } from "./operations/keys.js";
export type { MetricsOptions } from "./operations/metrics.js";
export type { Pause, PauseOptions } from "./operations/pause.js";
export type { Queue, Queues } from "./operations/queues.js";
export type { RecoverOptions, RecoverReport } from "./operations/recover.js";
export type { Pruned, PruneOptions } from "./operations/retention.js";
export type {
  ErrorGroup,
  ErrorReport,
  ErrorsOptions,
  SinceOption,
  Stats,
  StatsOptions,
  Totals,
} from "./operations/statistics.js";
export type {
  HttpOptions,
  HttpOriginOptions,
  ShellCommandOptions,
  ShellOptions,
} from "./remote/built-in-jobs.js";
export { type Verified, type VerifyParams, verifyDispatch } from "./remote/dispatch/signature.js";
export type { WorkerTargetOptions } from "./remote/dispatch/targets.js";
export type { RunExchange } from "./runs/dispatch-log.js";
export type { Enqueued, EnqueueOptions, OnDuplicate } from "./runs/enqueue.js";
export type { AnnouncedJob, Job } from "./runs/job.js";
export type { PlainJobOptions, SchemaJobOptions } from "./runs/job-options.js";
export type { WaitingFor } from "./runs/pending-reason.js";
export type { ProgressOptions } from "./runs/rules/progress.js";
export type { RetryOptions } from "./runs/rules/retry.js";
export type { Mode, OnLost, RunId, RunStatus } from "./runs/rules/run.js";
export type { LogsOptions } from "./runs/rules/run-logs.js";
export type {
  Batch,
  ChildListOptions,
  RetryRunOptions,
  RunListOptions,
  Runs,
} from "./runs/runs.js";
export type { SignalOptions, SignalSent } from "./runs/signals.js";
export type { RunStep, RunStepOptions, RunStepPage } from "./runs/step-view.js";
export type {
  ItemListOptions,
  ItemPage,
  Run,
  RunAttempt,
  RunDetails,
  RunItem,
  RunLogEntry,
  RunLogOptions,
  RunLogPage,
  RunPage,
  RunProgress,
} from "./runs/view.js";
export type { CalendarOptions } from "./schedules/calendars/calendar.js";
export type { Calendar, Calendars } from "./schedules/calendars.js";
export type { Pinged, PingOptions } from "./schedules/check-in.js";
export type { PlannedChange } from "./schedules/declared.js";
export type { Explanation } from "./schedules/explainer.js";
export type {
  BackfillOptions,
  ScheduleListOptions,
  TickListOptions,
  TriggerOptions,
  UpsertAsked,
  Upserted,
  UpsertOptions,
} from "./schedules/options.js";
export type { Preview } from "./schedules/preview.js";
export type { Overlap } from "./schedules/rules/overlap.js";
export type { MissedOptions, ScheduleOptions } from "./schedules/rules/schedule.js";
export type { Evidence, Outcome, Reason } from "./schedules/rules/tick.js";
export type { Schedules } from "./schedules/schedules.js";
export type { Triggered } from "./schedules/trigger.js";
export type {
  Backfill,
  Schedule,
  ScheduleStatus,
  ScheduleVersion,
  Tick,
} from "./schedules/view.js";
export type { Duration } from "./shared/duration.js";
export {
  AlertAmbiguousError,
  AlertNotFoundError,
  BackfillRunningError,
  BatchRefusedError,
  CalendarInUseError,
  CancelledError,
  ChildFailedError,
  ConfigurationError,
  DeliveryConflictError,
  DuplicateJobError,
  DuplicateScheduleError,
  HoldfastError,
  InputInvalidError,
  InputNotJsonError,
  InputTooLargeError,
  InstanceAmbiguousError,
  InstanceNotFoundError,
  InstanceTakenError,
  ItemConflictError,
  ItemNotJsonError,
  ItemTooLargeError,
  JobNotRemoteError,
  KeyConflictError,
  KeyNotFoundError,
  KeyTakenError,
  LeaseLostError,
  MigrationError,
  NotAMonitorError,
  OutcomeUnknownError,
  PermanentError,
  ResultConflictError,
  ResultTooLargeError,
  RetryLater,
  RunAmbiguousError,
  RunCommittedError,
  RunNotFoundError,
  RunsElsewhereError,
  ScheduleBusyError,
  ScheduleChangedError,
  ScheduleNotFoundError,
  ShutdownError,
  SignalConflictError,
  SignalTakenError,
  StepChangedError,
  StepNameOpenError,
  StepNestedError,
  StepNotJsonError,
  StepsTooManyError,
  StoppedError,
  StoreGoneError,
  StoreReadOnlyError,
  StoreUnavailableError,
  StoreUnsupportedError,
  SuspendedError,
  TimeoutError,
  TxEndedError,
  TxMustBeSyncError,
  UnknownJobError,
  WaitInStepError,
  WaitTimeoutError,
} from "./shared/errors.js";
export type { StoredError } from "./shared/failure.js";
export type { StandardSchema } from "./shared/schema.js";
export type { BatchAnswer, BatchError } from "./store/batches.js";
export type { Database } from "./store/open.js";
export type { PostgresTx } from "./store/postgres/commits.js";
export type { SqliteHandle, SqliteTx } from "./store/sqlite/connection/handle.js";
export type { EventOf, Listener, OnError } from "./telemetry/bus.js";
export type { EventName, Events, Logger } from "./telemetry/log.js";
export type { OpenTelemetry, TelemetryOptions } from "./telemetry/tracing.js";
export type {
  CommitOptions,
  TransactionHandle,
} from "./worker/handler/commit.js";
export type { RunContext } from "./worker/handler/context.js";
export type { BatchCounts, BatchEntry, BatchOptions } from "./worker/handler/fan-out.js";
export type { ItemOptions } from "./worker/handler/items.js";
export type { RunLog, RunLogLine } from "./worker/handler/logs.js";
export type {
  CallOptions,
  ReceivedSignal,
  SleepOptions,
  StepOptions,
  WaitForOptions,
} from "./worker/handler/step-options.js";
export type { AroundOptions, Middleware } from "./worker/hooks.js";
export type { ConcurrencyOptions, RateOptions } from "./worker/rules/limits.js";
export type { StopReport } from "./worker/worker.js";
