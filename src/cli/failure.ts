// Turns errors into one message that says what to do and an exit code, for all commands. Expected errors show no stack; an
// unexpected one shows it, since it is a bug to report. Errors are recognised by their code, not their class: a configuration
// file may bring its own copy of the library.

import { CommanderError } from "commander";
import { textProp } from "../shared/failure.js";
import { EXIT } from "./shell.js";

export type Failure = { readonly exit: number; readonly error: string; readonly message: string };

/** The command was called wrongly: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command could not do its work, for a reason of the command line: exit code 3 by default. */
export class ImpossibleError extends Error {
  override readonly name = "ImpossibleError";
  constructor(
    message: string,
    readonly code = "START_REFUSED",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The thing does not exist, or exists already: exit code 1. */
export class DeclinedError extends Error {
  override readonly name = "DeclinedError";
  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message);
  }
}

const EXIT_OF_CODE: ReadonlyMap<string, number> = new Map([
  ["JOB_UNKNOWN", EXIT.usage],
  ["INPUT_INVALID", EXIT.usage],
  ["INPUT_TOO_LARGE", EXIT.usage],
  ["INPUT_NOT_JSON", EXIT.usage],
  ["KEY_CONFLICT", EXIT.no],
  ["SIGNAL_CONFLICT", EXIT.no],
  ["RUN_NOT_FOUND", EXIT.no],
  ["RUN_AMBIGUOUS", EXIT.no],
  ["WAIT_TIMEOUT", EXIT.no],
  ["ALERT_NOT_FOUND", EXIT.no],
  ["ALERT_AMBIGUOUS", EXIT.no],
  ["INSTANCE_AMBIGUOUS", EXIT.no],
  ["INSTANCE_NOT_FOUND", EXIT.no],
  ["KEY_NOT_FOUND", EXIT.no],
  ["KEY_TAKEN", EXIT.no],
  ["SCHEDULE_NOT_FOUND", EXIT.no],
  ["SCHEDULE_EXISTS", EXIT.no],
  ["SCHEDULE_CHANGED", EXIT.no],
  ["DELIVERY_CONFLICT", EXIT.no],
  ["BACKFILL_RUNNING", EXIT.no],
  ["RUNS_ELSEWHERE", EXIT.no],
  ["NOT_A_MONITOR", EXIT.no],
  ["PROJECT_EXISTS", EXIT.no],
  ["NOT_BEGUN", EXIT.no],
  ["CALENDAR_NOT_FOUND", EXIT.no],
  ["CALENDAR_IN_USE", EXIT.no],
  ["CONFIGURATION_INVALID", EXIT.impossible],
  ["STORE_UNAVAILABLE", EXIT.impossible],
  ["STORE_UNSUPPORTED", EXIT.impossible],
  ["STORE_READ_ONLY", EXIT.impossible],
  ["STORE_GONE", EXIT.impossible],
  ["MIGRATION_REFUSED", EXIT.impossible],
  ["OUTCOME_UNKNOWN", EXIT.impossible],
  ["STOPPED", EXIT.impossible],
  ["START_REFUSED", EXIT.impossible],
  ["CRONTAB_EMPTY", EXIT.impossible],
  ["CRONTAB_UNREADABLE", EXIT.impossible],
]);

const ADVICE: ReadonlyMap<string, string> = new Map([
  ["STORE_UNAVAILABLE", "Check --database, HOLDFAST_DATABASE_URL and whether the server runs."],
  ["ALERT_NOT_FOUND", "`holdfast alerts list --state all` shows them."],
  ["KEY_NOT_FOUND", "`holdfast keys list` shows them."],
  ["SCHEDULE_NOT_FOUND", "`holdfast schedules list` shows them."],
  ["CALENDAR_NOT_FOUND", "`holdfast calendars list` shows them."],
  ["BACKFILL_RUNNING", "On the command line: holdfast schedules backfill <name> --cancel"],
  ["JOB_UNKNOWN", "A job is known once an instance that declares it has started."],
]);

/** Null: no error; the help or the version was printed. */
export function describeExit(thrown: unknown): Failure | null {
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return null;
    if (thrown.code === "commander.help") return usage("Name a command.");
    return usage(
      `${thrown.message.replace(/^error: /, "")}\nAdd --help to see the commands and options.`,
    );
  }
  if (thrown instanceof UsageError) return usage(thrown.message);
  const code = textProp(thrown, "code") ?? "";
  const exit = EXIT_OF_CODE.get(code);
  const message = textProp(thrown, "message") ?? String(thrown);
  if (exit === undefined) {
    const stack = textProp(thrown, "stack") ?? message;
    return { exit: EXIT.impossible, error: "unexpected", message: `Unexpected: ${stack}` };
  }
  const advice = adviceOn(code, message);
  return {
    exit,
    error: code.toLowerCase(),
    message: advice === undefined ? message : `${message}\n${advice}`,
  };
}

function adviceOn(code: string, message: string): string | undefined {
  if (message.includes("a SQLite file that does not exist"))
    return "Check --database and HOLDFAST_DATABASE_URL. `holdfast dev`, `start` and `migrate` make the file.";
  // The server itself reported what is missing, so it runs.
  return message.includes("does not exist") ? undefined : ADVICE.get(code);
}

function usage(message: string): Failure {
  return { exit: EXIT.usage, error: "usage", message };
}
