// Lists every exception of the library by subject. Each has a stable code, its facts as fields, and a message that
// says what happened and what to do. Expected outcomes are return values, not exceptions.
// Only these files build messages; no message may contain a secret.

export {
  ConfigurationError,
  HoldfastError,
} from "./errors/base.js";
export {
  CancelledError,
  ItemConflictError,
  ItemNotJsonError,
  ItemTooLargeError,
  LeaseLostError,
  PermanentError,
  type PermanentErrorOptions,
  ResultConflictError,
  RetryLater,
  RunCommittedError,
  ShutdownError,
  TimeoutError,
  TxEndedError,
  TxMustBeSyncError,
} from "./errors/handlers.js";
export {
  AlertAmbiguousError,
  AlertNotFoundError,
  BatchRefusedError,
  DuplicateJobError,
  InputInvalidError,
  type InputIssue,
  InputNotJsonError,
  InputTooLargeError,
  InstanceAmbiguousError,
  InstanceNotFoundError,
  InstanceTakenError,
  JobNotRemoteError,
  KeyConflictError,
  KeyNotFoundError,
  KeyTakenError,
  RunAmbiguousError,
  RunNotFoundError,
  StoppedError,
  UnknownJobError,
  WaitTimeoutError,
} from "./errors/runs.js";
export {
  BackfillRunningError,
  CalendarInUseError,
  DeliveryConflictError,
  DuplicateScheduleError,
  NotAMonitorError,
  RunsElsewhereError,
  ScheduleBusyError,
  ScheduleChangedError,
  ScheduleNotFoundError,
} from "./errors/schedules.js";
export {
  ChildFailedError,
  ResultTooLargeError,
  SignalConflictError,
  SignalTakenError,
  StepChangedError,
  StepNameOpenError,
  StepNestedError,
  StepNotJsonError,
  StepsTooManyError,
  SuspendedError,
  WaitInStepError,
} from "./errors/steps.js";
export {
  MigrationError,
  OutcomeUnknownError,
  SettlementRefusedError,
  StoreGoneError,
  StoreReadOnlyError,
  StoreUnavailableError,
  StoreUnsupportedError,
} from "./errors/store.js";
export type { Problem } from "./suggest.js";
