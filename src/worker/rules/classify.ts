// Decides for a failed attempt whether a retry is worth it: transient or permanent, with the reason in words. This file
// holds the only table of such rules. Like failure.ts it never throws. A failure that no rule knows is transient: the
// attempts are bounded, and a wrong "permanent" would lose work that a retry would save. It has no clock, so a
// Retry-After date counts only from the Date header of the same response.

import { PermanentError, RetryLater } from "../../shared/errors.js";
import { isObject, numberProp, prop, textProp } from "../../shared/failure.js";

export type FailureClass = "transient" | "permanent";

export type Classification = { class: FailureClass; retryAfterMs?: number; reason: string };

const CAUSE_COUNT_MAX = 5;
const MEMBER_COUNT_MAX = 20;
const HEADER_COUNT_MAX = 200;
/** A server that requests a longer delay must not delay a run for ever. */
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

/** Looks at the thrown value and down its causes; the outermost one that a rule knows decides. */
export function classifyFailure(thrown: unknown): Classification {
  return classifyChain(thrown) ?? transient("unknown failures are retried");
}

type Rule = (thrown: object) => Classification | undefined;

// Order matters where a value fits two rules: axios puts a code beside a status, and the status
// says more; an AWS throttle is a 400 by status; EPIPE has the shape of a SQLSTATE.
const RULES: readonly Rule[] = [
  byOwnClass,
  byThrottling,
  byHttpStatus,
  bySqlState,
  bySqlite,
  byCode,
  byName,
];

function classifyChain(thrown: unknown): Classification | undefined {
  let link = thrown;
  for (let depth = 0; depth <= CAUSE_COUNT_MAX && isObject(link); depth++) {
    for (const rule of RULES) {
      const found = rule(link);
      if (found !== undefined) return found;
    }
    const ofMembers = byMembers(link);
    if (ofMembers !== undefined) return ofMembers;
    link = prop(link, "cause");
  }
  return undefined;
}

function transient(reason: string, retryAfterMs?: number): Classification {
  return retryAfterMs === undefined
    ? { class: "transient", reason }
    : { class: "transient", retryAfterMs, reason };
}

function permanent(reason: string): Classification {
  return { class: "permanent", reason };
}

// --- The library's own ---------------------------------------------------------------------------

const OWN_PERMANENT_CODES: ReadonlySet<string> = new Set([
  "PERMANENT",
  "CONFIGURATION_INVALID",
  "INPUT_INVALID",
  "INPUT_TOO_LARGE",
  "INPUT_NOT_JSON",
  "JOB_DUPLICATE",
  "KEY_CONFLICT",
  "RUN_NOT_FOUND",
  "RUN_AMBIGUOUS",
  "STORE_UNSUPPORTED",
  "TX_MUST_BE_SYNC",
  "TX_ENDED",
  "RUN_COMMITTED",
  "ITEM_NOT_JSON",
  "ITEM_TOO_LARGE",
  "ITEM_CONFLICT",
  "RESULT_CONFLICT",
  "STEP_NAME_OPEN",
  "STEP_CHANGED",
  "STEP_NESTED",
  "WAIT_IN_STEP",
  "STEPS_TOO_MANY",
  "STEP_NOT_JSON",
  "RESULT_TOO_LARGE",
  "SIGNAL_TAKEN",
  "SIGNAL_CONFLICT",
  "CHILD_FAILED",
]);

// By name and code as well as by class: an application may hold two copies of this package.
function byOwnClass(thrown: object): Classification | undefined {
  if (isInstance(thrown, PermanentError) || textProp(thrown, "name") === "PermanentError") {
    return permanent("the handler threw a PermanentError");
  }
  const code = textProp(thrown, "code");
  if (code !== undefined && OWN_PERMANENT_CODES.has(code)) return permanent(`code ${code}`);
  if (isInstance(thrown, RetryLater) || code === "RETRY_LATER") {
    return transient("the handler asked to be run later", numberProp(thrown, "delayMs"));
  }
  return undefined;
}

function isInstance(value: object, errorClass: typeof PermanentError | typeof RetryLater): boolean {
  try {
    return value instanceof errorClass;
  } catch {
    return false; // A Proxy that throws when asked for its prototype.
  }
}

// --- HTTP ----------------------------------------------------------------------------------------

const THROTTLED =
  /^(?:Throttl\w*|TooManyRequests\w*|ProvisionedThroughputExceeded\w*|RequestLimitExceeded|SlowDown)$/;

function byThrottling(thrown: object): Classification | undefined {
  const name = textProp(thrown, "name");
  const isThrottled = name !== undefined && name.length <= 100 && THROTTLED.test(name);
  if (!isThrottled && !isObject(prop(thrown, "$retryable"))) return undefined;
  return transient(isThrottled ? `throttled: ${name}` : "the client library says it is retryable");
}

const TRANSIENT_4XX: ReadonlySet<number> = new Set([408, 425, 429]);

// fetch and ky: response.status; axios, octokit, OpenAI: status; got, Stripe, Fastify, undici:
// statusCode; AWS: $metadata.httpStatusCode.
function byHttpStatus(thrown: object): Classification | undefined {
  const response = prop(thrown, "response");
  const status = [
    prop(thrown, "status"),
    prop(thrown, "statusCode"),
    prop(response, "status"),
    prop(response, "statusCode"),
    prop(prop(thrown, "$metadata"), "httpStatusCode"),
  ].find(isHttpStatus);
  if (status === undefined) return undefined;
  if (status < 500 && !TRANSIENT_4XX.has(status)) return permanent(`HTTP status ${status}`);
  return transient(`HTTP status ${status}`, retryAfterMs(thrown, response));
}

function isHttpStatus(status: unknown): status is number {
  return Number.isInteger(status) && Number(status) >= 400 && Number(status) <= 599;
}

function retryAfterMs(thrown: object, response: unknown): number | undefined {
  const places = [
    prop(response, "headers"),
    prop(thrown, "headers"),
    prop(thrown, "responseHeaders"),
    prop(prop(thrown, "$response"), "headers"),
  ];
  const headers = places.find((place) => header(place, "retry-after") !== undefined);
  const text = header(headers, "retry-after");
  if (text === undefined) return undefined;
  const seconds = /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  const ms = seconds === undefined ? untilDate(text, header(headers, "date")) : seconds * 1_000;
  return ms === undefined ? undefined : Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS);
}

function untilDate(text: string, sentAt: string | undefined): number | undefined {
  const until = httpDateMs(text);
  const sent = httpDateMs(sentAt);
  return until === undefined || sent === undefined ? undefined : until - sent;
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

function httpDateMs(text: string | undefined): number | undefined {
  const ms = text !== undefined && HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** One header of a Headers object, or of a plain object in whatever case, as trimmed text. */
function header(headers: unknown, name: string): string | undefined {
  if (!isObject(headers)) return undefined;
  try {
    const get = prop(headers, "get");
    const found: unknown =
      typeof get === "function" ? get.call(headers, name) : prop(headers, keyOf(headers, name));
    const first: unknown = Array.isArray(found) ? found[0] : found;
    const text = typeof first === "number" ? String(first) : first;
    return typeof text === "string" && text.length <= 100 ? text.trim() : undefined;
  } catch {
    return undefined;
  }
}

function keyOf(headers: object, name: string): string {
  const keys = Object.keys(headers).slice(0, HEADER_COUNT_MAX);
  return keys.find((key) => key.toLowerCase() === name) ?? name;
}

// --- Databases -----------------------------------------------------------------------------------

const TRANSIENT_SQL_STATES = /^(?:08...|53...|57P0[123]|57014|40001|40P01|55P03|25006)$/;
const PERMANENT_SQL_STATES = /^(?:22|23|42)...$/;
/** A table or schema that is missing may be made by a migration that has not run yet. */
const MISSING_SQL_STATES = /^(?:42P01|3F000)$/;
const MISSING_SQLITE = /^no such table\b|: no such table\b/;

function bySqlState(thrown: object): Classification | undefined {
  const code = textProp(thrown, "code");
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return undefined;
  const isPostgres =
    textProp(thrown, "severity") !== undefined || textProp(thrown, "routine") !== undefined;
  if (!isPostgres) return undefined;
  if (MISSING_SQL_STATES.test(code)) return transient(`PostgreSQL ${code}: migrate first`);
  if (TRANSIENT_SQL_STATES.test(code)) return transient(`PostgreSQL ${code}`);
  if (PERMANENT_SQL_STATES.test(code)) return permanent(`PostgreSQL ${code}`);
  return transient(`PostgreSQL ${code}, which no rule knows`);
}

// By primary result code. FULL, CANTOPEN, NOMEM and the like pass when a disk or a process is freed;
// CORRUPT, NOTADB and READONLY do not pass by waiting.
const SQLITE_RESULTS: ReadonlyMap<number, readonly [name: string, to: FailureClass]> = new Map([
  [1, ["SQLITE_ERROR", "permanent"]],
  [2, ["SQLITE_INTERNAL", "transient"]],
  [3, ["SQLITE_PERM", "permanent"]],
  [4, ["SQLITE_ABORT", "transient"]],
  [5, ["SQLITE_BUSY", "transient"]],
  [6, ["SQLITE_LOCKED", "transient"]],
  [7, ["SQLITE_NOMEM", "transient"]],
  [8, ["SQLITE_READONLY", "permanent"]],
  [9, ["SQLITE_INTERRUPT", "transient"]],
  [10, ["SQLITE_IOERR", "transient"]],
  [11, ["SQLITE_CORRUPT", "permanent"]],
  [13, ["SQLITE_FULL", "transient"]],
  [14, ["SQLITE_CANTOPEN", "transient"]],
  [15, ["SQLITE_PROTOCOL", "transient"]],
  [17, ["SQLITE_SCHEMA", "transient"]],
  [18, ["SQLITE_TOOBIG", "permanent"]],
  [19, ["SQLITE_CONSTRAINT", "permanent"]],
  [20, ["SQLITE_MISMATCH", "permanent"]],
  [21, ["SQLITE_MISUSE", "permanent"]],
  [23, ["SQLITE_AUTH", "permanent"]],
  [25, ["SQLITE_RANGE", "permanent"]],
  [26, ["SQLITE_NOTADB", "permanent"]],
]);

// better-sqlite3, libsql and sqlite3 carry the name as `code`; node:sqlite carries the extended
// number as `errcode`, whose low byte is the primary one.
function bySqlite(thrown: object): Classification | undefined {
  const code = textProp(thrown, "code");
  const isOfSqlite = code === "ERR_SQLITE_ERROR" || code?.startsWith("SQLITE_ERROR") === true;
  if (isOfSqlite && MISSING_SQLITE.test(textProp(thrown, "message") ?? ""))
    return transient("SQLite has no such table: migrate first");
  if (code === "ERR_SQLITE_ERROR") {
    const found = SQLITE_RESULTS.get((numberProp(thrown, "errcode") ?? 0) & 0xff);
    return found && { class: found[1], reason: found[0] };
  }
  if (code === undefined || !code.startsWith("SQLITE_")) return undefined;
  for (const [name, failureClass] of SQLITE_RESULTS.values()) {
    const isOfName = code === name || code.startsWith(`${name}_`);
    if (isOfName) return { class: failureClass, reason: name };
  }
  return undefined;
}

// --- Network, TLS, names -------------------------------------------------------------------------

// ENOTFOUND is here: a restarting resolver returns it for names that exist, and a mistyped name
// costs only the attempts that are left. ERR_TLS_HANDSHAKE_TIMEOUT is a slow network, not a bad
// certificate, so these rows come before the TLS ones.
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "ENETDOWN",
  "ENETUNREACH",
  "ENETRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EBUSY",
  "EMFILE",
  "ENFILE",
  "ERR_NETWORK",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_TLS_HANDSHAKE_TIMEOUT",
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
]);

const PERMANENT_CODES: ReadonlySet<string> = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_INVALID_RETURN_VALUE",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
  "ERR_INVALID_URL",
]);

const TLS_CODES =
  /^(?:CERT_|CRL_|ERR_TLS_|SELF_SIGNED_|UNABLE_TO_|DEPTH_ZERO_|HOSTNAME_MISMATCH$|INVALID_CA$)/;

function byCode(thrown: object): Classification | undefined {
  const code = textProp(thrown, "code");
  if (code === undefined || code.length > 100) return undefined;
  if (TRANSIENT_CODES.has(code)) return transient(`network: ${code}`);
  if (PERMANENT_CODES.has(code)) return permanent(`code ${code}`);
  if (code.startsWith("UND_ERR_")) return transient(`network: ${code}`);
  if (TLS_CODES.test(code)) return permanent(`TLS: ${code}`);
  return undefined;
}

const VALIDATION_NAMES: ReadonlySet<string> = new Set(["ZodError", "ValiError", "ValidationError"]);

function byName(thrown: object): Classification | undefined {
  const name = textProp(thrown, "name");
  if (name === "TimeoutError") return transient("timed out");
  if (name === "AbortError") return transient("aborted");
  if (name !== undefined && VALIDATION_NAMES.has(name)) return permanent(`validation: ${name}`);
  return undefined;
}

/** An AggregateError is permanent only if all its members are: one transient member is worth a retry. */
function byMembers(thrown: object): Classification | undefined {
  const members = prop(thrown, "errors");
  const count = numberProp(members, "length") ?? 0;
  if (textProp(thrown, "name") !== "AggregateError" || count === 0) return undefined;
  let found: Classification | undefined;
  for (let index = 0; index < Math.min(count, MEMBER_COUNT_MAX); index++) {
    const ofMember = classifyMember(prop(members, index));
    if (ofMember.class === "transient") return ofMember;
    found ??= ofMember;
  }
  return found;
}

function classifyMember(member: unknown): Classification {
  if (!isObject(member)) return transient("unknown failures are retried");
  for (const rule of RULES) {
    const found = rule(member);
    if (found !== undefined) return found;
  }
  return transient("unknown failures are retried");
}
