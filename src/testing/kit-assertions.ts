// Makes assertion errors that every test framework shows well: Node's AssertionError with the expected and the actual
// value, and a message that describes the actual one.

import { AssertionError } from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";
import { waitingText } from "../runs/pending-reason.js";
import type { Run, RunDetails } from "../runs/view.js";

const SHOWN_MAX = 10;

/** Whether `found` has everything that `wanted` has; members that `wanted` leaves out do not matter. */
export function contains(found: unknown, wanted: unknown): boolean {
  if (!isPlain(wanted) || !isPlain(found)) return isDeepStrictEqual(found, wanted);
  return Object.entries(wanted).every(
    ([name, value]) => Object.hasOwn(found, name) && contains(found[name], value),
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fail(params: {
  readonly message: string;
  readonly actual: unknown;
  readonly expected: unknown;
  readonly operator: string;
  readonly from: (...args: never[]) => unknown;
}): never {
  const { from, ...rest } = params;
  throw new AssertionError({ ...rest, stackStartFn: from });
}

/** Lists a few values, each on a line of its own. */
export function listed(values: readonly unknown[]): string {
  if (values.length === 0) return "  (none)";
  const lines = values.slice(0, SHOWN_MAX).map((value) => `  ${shown(value)}`);
  const left = values.length - lines.length;
  return [...lines, ...(left > 0 ? [`  … and ${left} more`] : [])].join("\n");
}

export function shown(value: unknown): string {
  return typeof value === "string" ? value : inspect(value, { depth: 4, breakLength: 120 });
}

/** Describes a run in one line. */
export function inWords(run: Run | RunDetails): string {
  const { job, schedule, status, attempt, error, input } = run;
  const cause = schedule === null ? "" : `, schedule "${schedule}"`;
  const at = (run.nominalAt ?? run.dueAt).toISOString();
  const why = error === null ? "" : `: ${error.message}`;
  const waitingFor = "waitingFor" in run ? run.waitingFor : null;
  const waits = waitingFor ? `, waits ${waitingText(waitingFor)}` : "";
  return `${job} ${shown(input)} of ${at}${cause}: ${status} at attempt ${attempt}${why}${waits}`;
}
