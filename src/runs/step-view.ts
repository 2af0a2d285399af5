// Converts the steps and waits of a run for users: `runs.steps`.

import { ConfigurationError } from "../shared/errors.js";
import { readStoredError, type StoredError } from "../shared/failure.js";
import { readStored } from "../shared/json.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { OpenPlace, RunStepRecord } from "../store/runs/run-steps.js";
import type { Store } from "../store/store.js";
import type { RunId } from "./rules/run.js";
import { STEPS_MAX, type StepKind } from "./rules/steps.js";

/** A step, sleep, wait for a signal, or call of a run. */
export type RunStep = {
  /** Unique in its run. */
  readonly name: string;
  readonly kind: StepKind;
  /** `waiting`: it is open. `failed`, `cancelled`: the called run ended that way. */
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
  /** The value that the handler received. More than 2 KiB is cut: `{ $truncated: true, bytes, preview }`. */
  readonly value: unknown;
  /** Why the called run failed, or the last try of an open step. */
  readonly error: StoredError | null;
};

/** Finished ones in the order in which they were recorded, then the open ones. A page of more than 1 MiB ends early. */
export type RunStepPage = {
  readonly steps: readonly RunStep[];
  readonly nextCursor: string | null;
};

export type RunStepOptions = {
  /** How many. @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export async function stepPage(
  store: Store,
  id: RunId,
  options: RunStepOptions,
): Promise<RunStepPage> {
  const { limit, place } = readOptions(options);
  const { steps, isFollowed } = await store.runs.steps({ id, ...place, limit });
  const last = isFollowed ? steps.at(-1) : undefined;
  return { steps: steps.map(toStep), nextCursor: last ? cursorOf(last, steps, place) : null };
}

/** Where a page begins: after a finished one, and among the open ones after one of these. */
type Place = { readonly after: number; readonly openAfter: OpenPlace | null };

const FIRST_PLACE: Place = { after: 0, openAfter: null };

/** The number of the last finished one; among the open ones also the place of the last, as some may end meanwhile. */
function cursorOf(last: RunStepRecord, steps: readonly RunStepRecord[], before: Place): string {
  const after = Math.max(before.after, ...steps.map(({ no }) => no ?? 0));
  const open = last.no === null ? last : before.openAfter;
  if (open === null) return String(after);
  const place = JSON.stringify([open.startedAt, open.name]);
  return `${after}.${Buffer.from(place).toString("base64url")}`;
}

function readOptions(options: RunStepOptions): { readonly limit: number; readonly place: Place } {
  const { limit = PAGE_DEFAULT, cursor } = options;
  const problems = refuseUnknownMembers(options, ["limit", "cursor"], "runs.steps()");
  problems.push(...limitProblems(limit));
  const place = cursor === undefined ? FIRST_PLACE : placeOf(cursor);
  if (place === null) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { limit, place: place ?? FIRST_PLACE };
}

/** Null: it is no cursor. */
function placeOf(cursor: unknown): Place | null {
  const [, number, open] = /^(\d{1,6})(?:\.([\w-]{1,4000}))?$/.exec(String(cursor)) ?? [];
  const after = Number(number);
  if (!(after <= STEPS_MAX)) return null;
  if (open === undefined) return { after, openAfter: null };
  try {
    const [startedAt, name] = JSON.parse(Buffer.from(open, "base64url").toString());
    const isPlace = Number.isSafeInteger(startedAt) && typeof name === "string";
    return isPlace && !name.includes("\0") ? { after, openAfter: { startedAt, name } } : null;
  } catch {
    return null;
  }
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
