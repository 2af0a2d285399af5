// Reads what was typed: each reader answers with a checked value or refuses it by the option's name.

import { InvalidArgumentError } from "commander";
import type { RunId } from "../../runs/rules/run.js";
import { readDuration } from "../../shared/duration-text.js";
import { ConfigurationError } from "../../shared/errors.js";
import { FRAGMENT_LENGTH_MIN, idFragment, isUuid } from "../../shared/id.js";
import { readInstant } from "../../shared/instant.js";
import { listShort, suggest } from "../../shared/suggest.js";

/** The command was called wrongly: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Turns a refusal of the library into one of an option, under the name that the caller typed. */
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
  const read = readInstant(text);
  if (typeof read === "string") throw new InvalidArgumentError(`It ${read}`);
  return new Date(read);
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

/** An id, or a beginning or an end of one: the instance finds the run that it belongs to. */
export function readRunId(text: string): RunId {
  if (isUuid(text) || idFragment(text) !== null) return text.toLowerCase();
  throw new InvalidArgumentError(
    `It must be a run id, for example ${ID_EXAMPLE}, or at least ${FRAGMENT_LENGTH_MIN} characters of its beginning or end; ` +
      "`holdfast runs list` shows them.",
  );
}

/** The id by which a list goes on. */
export function readCursor(text: string): RunId {
  if (isUuid(text)) return text.toLowerCase();
  throw new InvalidArgumentError(
    `It must be the cursor that the list before it printed, for example ${ID_EXAMPLE}.`,
  );
}

const ID_EXAMPLE = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";

export function readAlertId(text: string): string {
  if (isUuid(text)) return text.toLowerCase();
  throw new InvalidArgumentError(
    "It must be an alert id, for example 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55; `holdfast alerts list` shows them.",
  );
}

/** For what stops or starts everything: it has to be said, so that nobody does it by leaving out a name. */
export function requireAll(isAll: boolean | undefined, others: string): void {
  if (isAll === true) return;
  throw new UsageError(
    `This is for everything on the database: say --all. For one of them: ${others}.`,
  );
}
