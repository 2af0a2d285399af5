// Converts the steps and waits of a run for users: `runs.steps`.

import { ConfigurationError } from "../shared/errors.js";
import { readStoredError, type StoredError } from "../shared/failure.js";
import { readStored } from "../shared/json.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { RunStepRecord } from "../store/run-steps.js";
import type { Store } from "../store/store.js";
import type { RunId } from "./rules/run.js";
import { STEPS_MAX, type StepKind } from "./rules/steps.js";

/** A step, sleep, wait for a signal, or call of a run. */
export type RunStep = {
  /** Unique in its run. */
  readonly name: string;
  readonly kind: StepKind;
  /** `waiting`: it is open. `failed`, `cancelled`: the called run ended so. */
  readonly state: "waiting" | "done" | "timeout" | "failed" | "cancelled";
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  /** When an open wait ends at the latest, or an open step is tried again; null: no time ends it. */
  readonly until: Date | null;
  /** How often a step was tried. */
  readonly tries: number;
  /** The fence under which its end was recorded. */
  readonly fence: number | null;
  readonly signal: string | null;
  /** The key of the signal. */
  readonly key: string | null;
  /** The job of a call. */
  readonly job: string | null;
  /** The run that a call made. */
  readonly run: RunId | null;
  /** What the handler was given. More than 2 KiB is cut: `{ $truncated: true, bytes, preview }`. */
  readonly value: unknown;
  /** Why the called run failed, or the last try of an open step. */
  readonly error: StoredError | null;
};

/** Finished ones in the order in which they were recorded; the open ones follow on the last page. */
export type RunStepPage = {
  readonly steps: readonly RunStep[];
  readonly nextCursor: string | null;
};

export type RunStepOptions = {
  /** How many finished ones. @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export async function stepPage(
  store: Store,
  id: RunId,
  options: RunStepOptions,
): Promise<RunStepPage> {
  const { limit, after } = readOptions(options);
  const { ended, open } = await store.runs.steps({ id, after, limit: limit + 1 });
  const { page, last } = pageOf(ended, limit);
  const shown = last === null ? [...page, ...open] : page;
  return { steps: shown.map(toStep), nextCursor: last === null ? null : String(last.no) };
}

function readOptions(options: RunStepOptions): { readonly limit: number; readonly after: number } {
  const { limit = PAGE_DEFAULT, cursor = "0" } = options;
  const problems = refuseUnknownMembers(options, ["limit", "cursor"], "runs.steps()");
  problems.push(...limitProblems(limit));
  const after = /^\d{1,6}$/.test(cursor) ? Number(cursor) : Number.NaN;
  if (!(after <= STEPS_MAX)) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { limit, after };
}

function toStep(record: RunStepRecord): RunStep {
  const { kind, key, child, no: _, ...shown } = record;
  return {
    ...shown,
    state: stateOf(record),
    startedAt: new Date(record.startedAt),
    endedAt: record.endedAt === null ? null : new Date(record.endedAt),
    until: record.until === null ? null : new Date(record.until),
    kind,
    key: kind === "signal" ? key : null,
    job: kind === "run" ? key : null,
    run: child,
    value: stepValue(record),
    error: errorOf(record),
  };
}

function stateOf({ kind, endedAt, value, error }: RunStepRecord): RunStep["state"] {
  if (endedAt === null) return "waiting";
  if (kind === "signal" && value === null) return "timeout";
  if (kind !== "run" || error === null) return "done";
  return callEnd(error).status === 3 ? "cancelled" : "failed";
}

/** A signal is stored with the time at which it came. */
function stepValue({ kind, value }: RunStepRecord): unknown {
  if (value === null) return null;
  const read = readStored(value);
  if (kind !== "signal" || typeof read !== "object" || read === null) return read;
  return "value" in read ? read.value : read;
}

function errorOf({ kind, error }: RunStepRecord): StoredError | null {
  const json = kind === "run" && error !== null ? callEnd(error).error : error;
  return typeof json === "string" ? readStoredError(json) : null;
}

function callEnd(json: string): { readonly status?: unknown; readonly error?: unknown } {
  const read = readStored(json);
  return typeof read === "object" && read !== null ? read : {};
}
