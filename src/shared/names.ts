// Checks names of jobs, schedules and queues, keys, tags, and priorities. Pure. A refused value is a ConfigurationError
// that names the field and shows a correct value.

import { refuse } from "./problems.js";
import { TRACE_TAG } from "./trace-context.js";

export const NAME_LENGTH_MAX = 200;
export const KEY_LENGTH_MAX = 500;
export const TAG_COUNT_MAX = 50;
export const PRIORITY_MAX = 100;

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Returns a name of 1 to 200 characters that a log line, a URL and a terminal can show. */
export function requireName(value: unknown, field: string): string {
  return requireText(value, { field, lengthMax: NAME_LENGTH_MAX, example: "market-study" });
}

/** Returns a key of 1 to 500 characters, with the rules of a name. */
export function requireKey(value: unknown, field: string): string {
  return requireText(value, { field, lengthMax: KEY_LENGTH_MAX, example: "order-1042" });
}

/** Returns up to 50 tags, each with the rules of a name, without repetitions. */
export function requireTags(value: unknown, field: string): string[] {
  if (!Array.isArray(value)) {
    refuse(field, `must be an array of texts such as ["eu", "nightly"], but is ${kindOf(value)}.`);
  }
  const tags: readonly unknown[] = value;
  if (tags.length > TAG_COUNT_MAX) {
    refuse(field, `must have at most ${TAG_COUNT_MAX} tags, but has ${tags.length}.`);
  }
  // Array.from, not map: a hole in the array is a missing tag and must be refused like one.
  return [...new Set(Array.from(tags, (tag, index) => requireTag(tag, `${field}[${index}]`)))];
}

function requireTag(value: unknown, field: string): string {
  const tag = requireText(value, { field, lengthMax: NAME_LENGTH_MAX, example: "nightly" });
  if (!tag.startsWith(TRACE_TAG)) return tag;
  return refuse(field, `must not begin with "${TRACE_TAG}", which is reserved for traces.`);
}

/** Returns a whole number from −100 to 100; larger is more urgent. */
export function requirePriority(value: unknown, field: string): number {
  const isPriority =
    typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= PRIORITY_MAX;
  if (isPriority) return value + 0; // Adding 0 turns −0, which no database stores, into 0.
  const shown = typeof value === "number" ? value : kindOf(value);
  return refuse(
    field,
    `must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX} such as 10, but is ${shown}.`,
  );
}

type TextRule = { readonly field: string; readonly lengthMax: number; readonly example: string };

function requireText(value: unknown, { field, lengthMax, example }: TextRule): string {
  const right = `a text of 1 to ${lengthMax} characters such as "${example}"`;
  if (typeof value !== "string") return refuse(field, `must be ${right}, but is ${kindOf(value)}.`);
  if (value === "") return refuse(field, `must be ${right}, but is empty.`);
  if (value.length > lengthMax) {
    return refuse(field, `must be ${right}, but has ${value.length} characters.`);
  }
  if (CONTROL.test(value)) {
    return refuse(field, `must be ${right}, without control characters: ${JSON.stringify(value)}.`);
  }
  if (LONE_SURROGATE.test(value)) {
    return refuse(field, `must be ${right}, of whole characters: ${JSON.stringify(value)}.`);
  }
  if (value.trim() !== value) {
    return refuse(field, `must not begin or end with a space: ${JSON.stringify(value)}.`);
  }
  return value;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
