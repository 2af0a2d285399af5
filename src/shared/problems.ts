// Gathering what is wrong with options, so that a user sees every mistake at once instead of one at a time.

import { ConfigurationError, type Problem } from "./errors.js";
import { quoteShort } from "./suggest.js";

/** What `take` gives; what it refuses is added to the problems instead, and the fallback stands in for it. */
export function gather<T>(problems: Problem[], take: () => T): T | undefined;
export function gather<T>(problems: Problem[], take: () => T, fallback: T): T;
export function gather<T>(problems: Problem[], take: () => T, fallback?: T): T | undefined {
  try {
    return take();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return fallback;
  }
}

// What is wrong with lists and other nested options. Shared by the readers of schedules and calendars;
// words only, no rules of its own.

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

// Writes where something is inside a value: input.items[2].price, input["odd key"].
// Pure and total: long or strange keys are cut and quoted.

const SEGMENT_COUNT_MAX = 20;

export type PathSegment = string | number | symbol;

export function pathText(root: string, segments: readonly PathSegment[]): string {
  const shown = segments.slice(0, SEGMENT_COUNT_MAX).map(segmentText).join("");
  return segments.length > SEGMENT_COUNT_MAX ? `${root}${shown}…` : `${root}${shown}`;
}

function segmentText(segment: PathSegment): string {
  if (typeof segment === "number") return `[${segment}]`;
  if (typeof segment === "symbol") return `[${String(segment)}]`;
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(segment)) return `.${segment}`;
  const quoted = quoteShort(segment);
  return quoted.startsWith('"') ? `[${quoted}]` : `["${quoted}"]`;
}
