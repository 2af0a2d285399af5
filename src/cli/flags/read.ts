// Reads values of flags and arguments for the commands: each reader returns a checked value or refuses it by the option's name.

import { InvalidArgumentError } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { RunId } from "../../runs/rules/run.js";
import type { Calendar } from "../../schedules/calendars.js";
import type { Schedule } from "../../schedules/view.js";
import { readDuration } from "../../shared/duration.js";
import { ConfigurationError, ScheduleNotFoundError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { FRAGMENT_LENGTH_MIN, idFragment, isUuid } from "../../shared/id.js";
import { readInstant } from "../../shared/instant.js";
import { requireName } from "../../shared/names.js";
import { listShort, quoteShort, suggest } from "../../shared/suggest.js";
import { DeclinedError, UsageError } from "../failure.js";

/** Turns a refusal of the library into one of the option that the user typed. */
export function refusing<T>(take: () => T): T {
  try {
    return take();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new InvalidArgumentError(error.problems.map(({ message }) => `It ${message}`).join(" "));
  }
}

export function readDurationFlag(text: string): number {
  const read = readDuration(text);
  if (typeof read === "string") throw new InvalidArgumentError(`It ${read}`);
  return read;
}

export function readInstantFlag(text: string): Date {
  const read = readInstant(asIso(text));
  if (typeof read === "string")
    throw new InvalidArgumentError(
      `It ${read.replace("a Date or ISO text with a zone", "a time with its zone")}`,
    );
  return new Date(read);
}

/** Reads an instant that was given as several arguments. */
export function readInstantWords(words: readonly string[], field: string): Date {
  const text = words.join(" ");
  try {
    return readInstantFlag(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new UsageError(`${field} ${JSON.stringify(text)}: ${error.message.replace(/^It /, "")}`);
  }
}

/** As tables and explanations print it: "2030-01-31 09:00:00Z", "Thu 2030-01-31 10:00:00 +01:00", "2030-01-31 09:00 UTC". */
const PRINTED = /^(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d) (\d\d:\d\d[\d:.]*) ?(Z|UTC|[+-]\d\d:\d\d)$/;

function asIso(text: string): string {
  return text.replace(
    PRINTED,
    (_, day, time, zone) => `${day}T${time}${zone === "UTC" ? "Z" : zone}`,
  );
}

export function wholeNumber(range: { readonly min: number; readonly max: number }) {
  const { min, max } = range;
  return (text: string): number => {
    const value = /^-?\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

export function oneOf<T extends string>(allowed: readonly T[]) {
  return (text: string): T => {
    const found = allowed.find((each) => each === text);
    if (found !== undefined) return found;
    const meant = suggest(text, allowed);
    const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
    throw new InvalidArgumentError(`It must be one of ${listShort(allowed)}.${hint}`);
  };
}

/** A run id, or its beginning or end; the instance finds the run. */
export const readRunId = readId("a run id", "runs list");
/** An alert id, or its beginning or end; the instance finds the alert. */
export const readAlertId = readId("an alert id", "alerts list");

function readId(what: string, command: string) {
  return (text: string): string => {
    if (isUuid(text) || idFragment(text) !== null) return text.toLowerCase();
    throw new InvalidArgumentError(
      `It must be ${what}, for example ${ID_EXAMPLE}, or at least ${FRAGMENT_LENGTH_MIN} characters of its beginning or end; ` +
        `\`holdfast ${command}\` shows them.`,
    );
  };
}

/** The id after which a list continues. */
export function readCursor(text: string): RunId {
  if (isUuid(text)) return text.toLowerCase();
  throw new InvalidArgumentError(
    `It must be the cursor that the list before it printed, for example ${ID_EXAMPLE}.`,
  );
}

const ID_EXAMPLE = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";

/** Commands that stop or start everything need --all, so that nobody does it by forgetting a name. */
export function requireAll(isAll: boolean | undefined, others: string): void {
  if (isAll === true) return;
  throw new UsageError(
    `This affects everything on the database: add --all to confirm. For a single one: ${others}.`,
  );
}

const SUGGESTED_FROM_MAX = 1_000;

export function readName(text: string): string {
  return refusing(() => requireName(text, "name"));
}

/** Calls `act` for a schedule. If the schedule does not exist, the error suggests a similar name. */
export async function aboutSchedule<T>(
  params: { readonly holdfast: Holdfast; readonly name: string },
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (textProp(error, "code") !== "SCHEDULE_NOT_FOUND") throw error;
    throw await unknownSchedule(params);
  }
}

export async function requireSchedule(holdfast: Holdfast, name: string): Promise<Schedule> {
  const found = await holdfast.schedules.get(name);
  if (found) return found;
  throw await unknownSchedule({ holdfast, name });
}

export async function unknownSchedule(params: {
  readonly holdfast: Holdfast;
  readonly name: string;
}): Promise<ScheduleNotFoundError> {
  const { holdfast, name } = params;
  const { schedules } = await holdfast.schedules.list({ limit: SUGGESTED_FROM_MAX });
  return new ScheduleNotFoundError(
    name,
    schedules.map((each) => each.name),
  );
}

export async function requireCalendar(holdfast: Holdfast, name: string): Promise<Calendar> {
  const calendars = await holdfast.calendars.list();
  const found = calendars.find((each) => each.name === name);
  if (found) return found;
  const known = calendars.map((each) => each.name);
  const meant = suggest(name, known);
  const hint = meant === undefined ? "" : ` Did you mean ${quoteShort(meant)}?`;
  throw new DeclinedError(`There is no calendar ${quoteShort(name)}.${hint}`, "CALENDAR_NOT_FOUND");
}

// Inputs of runs as they are typed: JSON on the command line, or from standard input.

/** The value of a JSON text; `-` reads it from standard input. */
export async function readInput(text: string, what = "The input"): Promise<unknown> {
  if (text !== "-") return readJson(text, what);
  standard ??= standardInput();
  return readJson(await standard, what);
}

/** Standard input can be read only once, even if the command retries. */
let standard: Promise<string> | null = null;

function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      `${what} is not JSON: ${why}. Quote it for the shell, for example '{"market":"eu"}'.`,
    );
  }
}

async function standardInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += chunk;
  return text;
}
