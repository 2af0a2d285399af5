// Lists every environment variable that Holdfast reads, and finds variables that look like one of them but are not. Pure.

import { quoteShort, suggest } from "./suggest.js";

export const VARIABLES: readonly string[] = [
  "HOLDFAST_DATABASE_URL",
  "HOLDFAST_APP",
  "HOLDFAST_RELEASE",
  "HOLDFAST_WORKER_ENABLED",
  "HOLDFAST_SCHEDULER_ENABLED",
  "HOLDFAST_PUBLIC_URL",
  "HOLDFAST_POLL_INTERVAL",
  "HOLDFAST_START_TIMEOUT",
  "HOLDFAST_HISTORY_RETENTION_DAYS",
  "HOLDFAST_LOCK_LEASE",
  "HOLDFAST_LOCKING_ENABLED",
  "HOLDFAST_HOST",
  "HOLDFAST_PORT",
  "HOLDFAST_TRUSTED_PROXIES",
  "HOLDFAST_TRIGGER_SECRET",
  "HOLDFAST_ENQUEUE_SECRET",
  "HOLDFAST_WORKER_SECRET",
  "HOLDFAST_READ_SECRET",
  "HOLDFAST_ADMIN_SECRET",
  "HOLDFAST_LOG_LEVEL",
  "HOLDFAST_LOG_FORMAT",
];

const PREFIX = "HOLDFAST_";
/** Variables for tests begin with this after the prefix; they are never a mistake. */
const OF_TESTS = "TEST_";
const NAMED_MAX = 20;

export type UnknownVariable = { readonly variable: string; readonly hint: string };

/** Returns the variables with our prefix that nothing reads, each with a hint. Never returns their values. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
): readonly UnknownVariable[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !name.startsWith(OF_TESTS, PREFIX.length))
    .filter((name) => !VARIABLES.includes(name))
    .sort()
    .slice(0, NAMED_MAX)
    .map((name) => ({ variable: quoteShort(name), hint: hintFor(name) }));
}

function hintFor(name: string): string {
  const known = VARIABLES.map((each) => each.slice(PREFIX.length));
  const own = name.slice(PREFIX.length);
  // A missing or extra word is too far for `suggest`, but easy to recognise.
  const meant =
    suggest(own, known) ??
    known.find((each) => each.startsWith(`${own}_`) || own.startsWith(`${each}_`));
  return meant === undefined
    ? "No variable of Holdfast has a name like this; docs/reference/configuration.md has them all."
    : `Did you mean ${PREFIX}${meant}?`;
}
