// Tests the promises of exceptions to users and documents: codes, names, messages without secrets.

import { describe, expect, test } from "vitest";
import { ERROR_CODES } from "./errors/codes.js";
import * as errors from "./errors.js";
import {
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
  SettlementRefusedError,
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
} from "./errors.js";

const RUN = "0199c1de-0000-7000-8000-000000000000";

const ONE_OF_EACH: readonly HoldfastError[] = [
  new ConfigurationError([{ field: "lease", message: "must be a duration." }]),
  new InputInvalidError("input", [{ path: "input.market", message: "expected a string" }]),
  new InputTooLargeError(300_000, 262_144),
  new InputNotJsonError("input.price", "is a BigInt"),
  new LeaseLostError(RUN, 7),
  new UnknownJobError("sendmail", ["send-mail"]),
  new DuplicateJobError("send-mail"),
  new KeyConflictError({ job: "send-mail", key: "a", runId: RUN }),
  new RunNotFoundError(RUN),
  new RunAmbiguousError("0199c1", [RUN], false),
  new InstanceNotFoundError("host:1:boot"),
  new InstanceAmbiguousError("host:1", ["host:1:boot"], false),
  new ScheduleNotFoundError("nightly", ["nightly-report"]),
  new DuplicateScheduleError("nightly"),
  new AlertNotFoundError(RUN),
  new AlertAmbiguousError("0199c1", [RUN], false),
  new KeyNotFoundError("deploy"),
  new KeyTakenError("deploy"),
  new ScheduleBusyError("nightly"),
  new ScheduleChangedError({ schedule: "nightly", ifVersion: 3, version: 4 }),
  new DeliveryConflictError("delivery-1", RUN),
  new BackfillRunningError("nightly", RUN),
  new RunsElsewhereError("backup"),
  new InstanceTakenError("w1"),
  new JobNotRemoteError("study"),
  new NotAMonitorError("nightly"),
  new CalendarInUseError("holidays", ["nightly"]),
  new WaitTimeoutError(RUN, 5_000),
  new StoppedError("enqueue"),
  new StoreUnavailableError({ tried: "connect" }),
  new StoreUnsupportedError({ found: "SQLite 3.45.0", needed: "3.51.3", advice: "Update it." }),
  new StoreReadOnlyError({ file: "app.db", tried: "enqueue" }),
  new StoreGoneError({ file: "app.db", isReplaced: true }),
  new OutcomeUnknownError("enqueue"),
  new BatchRefusedError(3, new Error("no")),
  new MigrationError("The tables are newer."),
  new TxMustBeSyncError("ctx.commit"),
  new TxEndedError("ctx.commit"),
  new RunCommittedError(RUN, "ctx.item"),
  new ItemNotJsonError("market-7", "value.price", "is a BigInt"),
  new ItemTooLargeError("market-7", 2_000_000, 1_048_576),
  new ItemConflictError(RUN, "market-7"),
  new ResultConflictError(RUN, 7),
  new ChildFailedError(RUN, "failed", { code: "AWAY", name: "Error", message: "The API is away" }),
  new ResultTooLargeError("publish", 2_000_000, 1_048_576),
  new SignalConflictError("approved", "order-7", 604_800_000),
  new SignalTakenError("approved", "order-7"),
  new StepChangedError("approved", "a sleep", "a step"),
  new StepNameOpenError("sleep"),
  new StepNestedError("a step"),
  new StepNotJsonError("publish", "value.rows[0]", "is a function, which JSON cannot carry"),
  new StepsTooManyError(RUN, 10_000),
  new SuspendedError(RUN),
  new WaitInStepError("ctx.sleep", "an item"),
  new PermanentError("no such customer"),
  new RetryLater({ delay: "5m" }),
  new TimeoutError(7_200_000),
  new CancelledError(RUN),
  new SettlementRefusedError("value out of range"),
  new ShutdownError(),
];

test("every exception of the library is in the sample above", () => {
  const classes = Object.entries(errors)
    .filter(([, value]) => typeof value === "function" && value.prototype instanceof HoldfastError)
    .map(([name]) => name);
  expect(ONE_OF_EACH.map((error) => error.name).sort()).toEqual(classes.sort());
});

test("the list of codes has every code once, each with a description of one line", () => {
  expect(ONE_OF_EACH.map((error) => error.code).sort()).toEqual(
    ERROR_CODES.map(({ code }) => code).sort(),
  );
  for (const { description } of ERROR_CODES) expect(description).toMatch(/^[A-Z][^\n]+\.$/);
});

test.each(ONE_OF_EACH.map((error) => [error.name, error] as const))(
  "%s is an Error whose stack begins with its own name and message",
  (name, error) => {
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error.message).not.toBe("");
    expect(error.stack?.startsWith(`${name}: ${error.message}`)).toBe(true);
    expect(Object.keys(error)).not.toContain("name");
  },
);

test("a configuration error names every problem on a line of its own", () => {
  const error = new ConfigurationError([
    { field: "lease", message: "must be at least 1 s." },
    { field: "retry.attempts", message: "must be a whole number." },
  ]);
  expect(error.message.split("\n")).toEqual([
    "lease: must be at least 1 s.",
    "retry.attempts: must be a whole number.",
  ]);
});

test("an invalid input lists its first ten issues and counts the rest", () => {
  const issues = Array.from({ length: 12 }, (_, i) => ({ path: `input[${i}]`, message: "bad" }));
  const { message } = new InputInvalidError("input", issues);
  expect(message).toContain("input[9]: bad; and 2 more");
  expect(message).not.toContain("input[10]");
});

test("an unknown job is answered with the name that was probably meant", () => {
  const error = new UnknownJobError("market-stduy", ["market-study", "mail"]);
  expect(error.suggestion).toBe("market-study");
  expect(error.message).toContain("Did you mean market-study?");
  expect(new UnknownJobError("x").message).toContain("No job is known.");
});

test("an unreachable database is named without its password, also where the driver repeats it", () => {
  const url = "postgres://app:s3cr3t@db.example:5432/main";
  const error = new StoreUnavailableError({
    tried: "connect",
    url,
    cause: new Error(`getaddrinfo failed for ${url}`),
  });
  expect(error.message).toContain("postgres://app:***@db.example:5432/main");
  expect(error.message).not.toContain("s3cr3t");
  expect(error.url).not.toContain("s3cr3t");
});

test("a refused batch says which member, why, and keeps the cause", () => {
  const cause = new InputTooLargeError(300_000, 262_144);
  const error = new BatchRefusedError(7, cause);
  expect(error.index).toBe(7);
  expect(error.cause).toBe(cause);
  expect(error.message).toMatch(/^Member 7 of the batch was refused: The input has at least/);
});

test("a cause whose message cannot be read does not break the exception around it", () => {
  const hostile = Object.defineProperty(new Error(), "message", {
    get: () => {
      throw new Error("no");
    },
  });
  expect(new BatchRefusedError(0, hostile).message).toContain("Member 0");
});

test("a permanent error takes a code and a cause of its own", () => {
  const cause = new Error("404");
  const error = new PermanentError("no such customer", { cause, code: "CUSTOMER_GONE" });
  expect(error.code).toBe("CUSTOMER_GONE");
  expect(error.cause).toBe(cause);
  expect("cause" in new PermanentError("x")).toBe(false);
});

describe("RetryLater", () => {
  test("carries a delay in milliseconds or an instant, never both", () => {
    expect(new RetryLater({ delay: "1.5h" }).delayMs).toBe(5_400_000);
    expect(new RetryLater({ delay: "1.5h" }).at).toBeUndefined();
    expect(new RetryLater("2030-01-31T09:00:00+01:00").at?.toISOString()).toBe(
      "2030-01-31T08:00:00.000Z",
    );
    expect(new RetryLater(new Date(5)).at).toEqual(new Date(5));
    expect(new RetryLater(new Date(5)).delayMs).toBeUndefined();
  });

  test("does not change when the caller's Date does", () => {
    const given = new Date(5);
    const later = new RetryLater(given);
    given.setTime(9);
    expect(later.at?.getTime()).toBe(5);
  });

  test.each([
    [{ delay: "soon" }, "RetryLater.delay"],
    [{ delay: -1 }, "RetryLater.delay"],
    [{ delay: undefined }, "RetryLater.delay"],
    [new Date(Number.NaN), "RetryLater.at"],
    ["2030-01-31T09:00:00", "RetryLater.at"],
    ["30s", "RetryLater.at"],
    [null, "RetryLater.at"],
    [5_000, "RetryLater.at"],
    [{}, "RetryLater.at"],
  ])("refuses %j at construction and names %s", (when, field) => {
    const make = () => new RetryLater(when as Date);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(field);
  });
});
