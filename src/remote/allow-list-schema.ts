// Inputs that choose among what a configuration lists: checked when they are given, and again when the
// run begins, since a run outlives the configuration that it was made under.

import type { StandardSchema, StandardSchemaIssue } from "../shared/schema.js";
import { listShort, quoteShort, suggest } from "../shared/suggest.js";

/** A check of one member: what is wrong with it, or null. */
type Check = (value: unknown) => string | null;

/** An object with these members and no other. */
export function chosenInput<Input>(checks: Readonly<Record<string, Check>>): StandardSchema<Input> {
  return {
    "~standard": {
      version: 1,
      vendor: "holdfast",
      validate(value) {
        const issues = issuesOf(value, checks);
        return issues.length > 0 ? { issues } : { value: value as Input };
      },
    },
  };
}

function issuesOf(value: unknown, checks: Readonly<Record<string, Check>>): StandardSchemaIssue[] {
  const known = Object.keys(checks);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [{ message: `must be an object with ${listShort(known)}` }];
  const given = value as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given)
    .filter((member) => !known.includes(member))
    .map((member) => ({
      path: [member],
      message: `is not known${meant(member, known)}; known: ${listShort(known)}`,
    }));
  const wrong = Object.entries(checks).flatMap(([member, check]) => {
    const message = check(given[member]);
    return message === null ? [] : [{ path: [member], message }];
  });
  return [...unknown, ...wrong];
}

/** One of these names. */
export function nameOf(what: string, names: readonly string[]): Check {
  return (value) => {
    if (typeof value === "string" && names.includes(value)) return null;
    const hint = typeof value === "string" ? meant(value, names) : "";
    return `must be one of the ${what} that the configuration lists: ${listShort(names)}${hint}`;
  };
}

function meant(word: string, known: readonly string[]): string {
  const found = suggest(word, known);
  return found === undefined ? "" : `; did you mean ${quoteShort(found)}?`;
}
