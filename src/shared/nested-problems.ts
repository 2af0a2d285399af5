// What is wrong with lists and other nested options. Shared by the readers of schedules and calendars;
// words only, no rules of its own.

import { ConfigurationError, type Problem } from "./errors.js";
import { gather } from "./problems.js";

/** More than these of one list help nobody: its other entries are usually wrong in the same way. */
export const PROBLEMS_OF_LIST_MAX = 20;

export type ListRule<T> = {
  readonly field: string;
  readonly countMax: number;
  /** A right list, for the message. */
  readonly example: string;
  readonly read: (value: unknown, field: string) => T;
};

/** Every entry of a list as `read` gives it; all wrong ones are named together. */
export function readList<T>(value: unknown, rule: ListRule<T>): T[] {
  const { field, countMax, example, read } = rule;
  if (!Array.isArray(value)) {
    return refuse(field, `must be an array such as ${example}, but is ${kindOf(value)}.`);
  }
  const entries: readonly unknown[] = value;
  if (entries.length > countMax) {
    refuse(field, `must have at most ${countMax} entries, but has ${entries.length}.`);
  }
  const problems: Problem[] = [];
  const found: T[] = [];
  // By index, as a hole in the array is a missing entry and must be refused like one.
  for (let index = 0; index < entries.length; index++) {
    const entry = gather(problems, () => read(entries[index], `${field}[${index}]`));
    if (entry !== undefined) found.push(entry);
    if (problems.length >= PROBLEMS_OF_LIST_MAX) break;
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return found;
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}

export function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
