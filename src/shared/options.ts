// Reads options that several verbs share: the actor, a note, an instant, the name of a job.

import { ConfigurationError } from "./errors.js";
import { readInstant } from "./instant.js";
import { storableText } from "./json.js";
import { requireName } from "./names.js";
import { refuse } from "./problems.js";
import { refuseUnknownMembers } from "./suggest.js";

/** The person or program that made the change; stored with versions, pauses and backfills. */
export type By = { readonly by?: string | undefined };

export function jobName(job: unknown, field: string): string {
  const isJob = typeof job === "object" && job !== null && "name" in job;
  return requireName(isJob ? job.name : job, field);
}

/** Refuses options that are not an object. */
export function requireOptions(value: unknown, field: string): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
  refuse(field, `must be an object such as { cron: "0 2 * * *" }, but is ${kind}.`);
}

export const NOTE_LENGTH_MAX = 2_000;

/** Reads a sentence for people, which is stored with a pause. */
export function readNote(note: unknown, field: string): string | null {
  if (note === undefined || note === null) return null;
  if (typeof note !== "string")
    return refuse(field, `must be a text such as "the API is down", but is ${typeof note}.`);
  if (note.length > NOTE_LENGTH_MAX)
    return refuse(
      field,
      `must have at most ${NOTE_LENGTH_MAX} characters, but has ${note.length}.`,
    );
  return storableText(note, NOTE_LENGTH_MAX);
}

/** Reads the actor, with the rules of a name. */
export function readBy(options: unknown, field: string): string | undefined {
  if (options === undefined) return undefined;
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options as object, ["by"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { by } = options as By;
  return by === undefined ? undefined : requireName(by, `${field}.by`);
}

export function instantMs(value: Date | string, field: string): number {
  const instant = readInstant(value);
  return typeof instant === "string" ? refuse(field, instant) : instant;
}
