// Collects the mistakes in options, so that a user sees all of them at once.

import { ConfigurationError, type Problem } from "./errors.js";
import { quoteShort } from "./suggest.js";

/** Returns the result of `take`. If `take` refuses, its problems are collected and the fallback is returned. */
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

/** More problems of one list do not help: its other entries are usually wrong in the same way. */
export const PROBLEMS_OF_LIST_MAX = 20;

export type ListRule<T> = {
  readonly field: string;
  readonly countMax: number;
  /** A correct list, for the message. */
  readonly example: string;
  readonly read: (value: unknown, field: string) => T;
};

/** Reads every entry of a list. One exception names all wrong entries. */
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
  // By index: a hole in the array is a missing entry and must be refused like one.
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

const SEGMENT_COUNT_MAX = 20;

export type PathSegment = string | number | symbol;

/** Writes the path of a member: input.items[2].price, input["odd key"]. Long or strange keys are cut and quoted. */
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
