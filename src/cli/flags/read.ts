// Names of schedules and calendars as they are typed: an unknown one is answered with the one that
// was probably meant.

import type { Holdfast } from "../../holdfast.js";
import type { Calendar } from "../../schedules/calendars.js";
import type { Schedule } from "../../schedules/view.js";
import { ScheduleNotFoundError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { requireName } from "../../shared/names.js";
import { quoteShort, suggest } from "../../shared/suggest.js";
import { DeclinedError } from "../failure.js";
import { refusing, UsageError } from "./usage.js";

const SUGGESTED_FROM_MAX = 1_000;

export function readName(text: string): string {
  return refusing(() => requireName(text, "name"));
}

/** What is asked about one schedule; where there is none, the error says which one was meant. */
export async function aboutSchedule<T>(
  params: { readonly holdfast: Holdfast; readonly name: string },
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
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
export async function readInput(text: string): Promise<unknown> {
  if (text !== "-") return readJson(text);
  standard ??= standardInput();
  return readJson(await standard);
}

/** It can be read once, also by a command that begins again. */
let standard: Promise<string> | null = null;

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      `The input is not JSON: ${why}. Quote it for the shell, for example '{"market":"eu"}'.`,
    );
  }
}

async function standardInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += chunk;
  return text;
}
