// Turns errors into `application/problem+json` with the library's code in lower case. A mistake of the caller is described in
// full; an internal error gets one fixed sentence, so that no internals leak.

import type { Problem } from "../shared/errors.js";
import { textProp } from "../shared/failure.js";
import { UNREADABLE_CODES } from "../shared/retry-while-unavailable.js";
import type { HttpResponse } from "./request.js";

export type Refusal = {
  readonly status: number;
  /** As on the wire: lower case. */
  readonly error: string;
  readonly detail: string;
  readonly problems?: readonly Problem[];
  readonly headers?: Readonly<Record<string, string>>;
};

/** Thrown anywhere in the pipeline; becomes the response. */
export class HttpError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.detail);
  }
}

const STATUS_BY_CODE: ReadonlyMap<string, number> = new Map(
  Object.entries({
    CONFIGURATION_INVALID: 400,
    INPUT_INVALID: 400,
    INPUT_NOT_JSON: 400,
    INPUT_TOO_LARGE: 413,
    ITEM_NOT_JSON: 400,
    ITEM_TOO_LARGE: 413,
    BATCH_REFUSED: 400,
    LEASE_LOST: 409,
    RESULT_CONFLICT: 409,
    KEY_CONFLICT: 409,
    SIGNAL_CONFLICT: 409,
    SIGNAL_TAKEN: 409,
    STEP_CHANGED: 409,
    STEPS_TOO_MANY: 409,
    STEP_NOT_JSON: 400,
    RESULT_TOO_LARGE: 413,
    DELIVERY_CONFLICT: 409,
    BACKFILL_RUNNING: 409,
    RUNS_ELSEWHERE: 409,
    INSTANCE_TAKEN: 409,
    JOB_NOT_REMOTE: 403,
    NOT_A_MONITOR: 409,
    CALENDAR_IN_USE: 409,
    SCHEDULE_BUSY: 409,
    SCHEDULE_CHANGED: 409,
    JOB_UNKNOWN: 404,
    RUN_NOT_FOUND: 404,
    RUN_AMBIGUOUS: 409,
    ALERT_NOT_FOUND: 404,
    ALERT_AMBIGUOUS: 409,
    INSTANCE_AMBIGUOUS: 409,
    KEY_NOT_FOUND: 404,
    KEY_TAKEN: 409,
    INSTANCE_NOT_FOUND: 404,
    SCHEDULE_NOT_FOUND: 404,
    STORE_UNAVAILABLE: 503,
    STORE_READ_ONLY: 503,
    STORE_GONE: 503,
    OUTCOME_UNKNOWN: 503,
    STOPPED: 503,
  }),
);

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Not authorized",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  408: "Request timeout",
  409: "Conflict",
  413: "Too large",
  415: "Unsupported media type",
  429: "Too many requests",
  431: "Too many headers",
  500: "Internal error",
  503: "Unavailable",
};

/** Replaces messages that name existing things for callers without the scope read. */
const DETAILS_WITHOUT_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    JOB_UNKNOWN: "No job has that name.",
    SCHEDULE_NOT_FOUND: "There is no schedule of that name.",
  }),
);

/** The part of an error that the caller gets; the log has the rest. `mayRead`: the caller has the scope read. */
export function refusalOf(thrown: unknown, { mayRead = true } = {}): Refusal {
  if (thrown instanceof HttpError) return thrown.refusal;
  const code = codeOf(thrown);
  const status = STATUS_BY_CODE.get(code) ?? 500;
  if (status === 500) return INTERNAL;
  const error = code.toLowerCase();
  if (status === 503) return { status, error, detail: "The database cannot be reached now." };
  const unnamed = mayRead ? undefined : DETAILS_WITHOUT_NAMES.get(code);
  if (unnamed !== undefined) return { status, error, detail: unnamed };
  const { message, problems } = thrown as Error & { readonly problems?: readonly Problem[] };
  return { status, error, detail: message, ...(problems === undefined ? {} : { problems }) };
}

/** By its code, not its class: a configuration file may bring its own copy of the library. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error ? (textProp(thrown, "code") ?? "") : "";
}

const INTERNAL: Refusal = {
  status: 500,
  error: "internal",
  detail: "An internal error occurred; the log has it under the request id.",
};

export function refusalResponse(refusal: Refusal, requestId: string): HttpResponse {
  const { status, error, detail, problems } = refusal;
  const body = {
    type: "about:blank",
    title: TITLES[status] ?? "Error",
    status,
    error,
    detail,
    requestId,
    ...(problems === undefined ? {} : { problems }),
  };
  const headers = { ...refusal.headers, "content-type": "application/problem+json" };
  return { status, headers, content: JSON.stringify(body) };
}

/** The reason in a reply to an outside cron whose call found the database unreadable. */
export const STORE_READ_ERROR = "schedule_read_error";

/** Whether certainly nothing was done: the database was not reached, or its tables are not ours. */
export function isStoreUnreadable(thrown: unknown): boolean {
  return UNREADABLE_CODES.includes(codeOf(thrown));
}
