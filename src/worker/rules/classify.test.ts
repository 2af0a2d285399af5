// Real shapes of failures, one row each: what the drivers, clients and Node itself throw.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BatchRefusedError,
  ConfigurationError,
  InputInvalidError,
  InputTooLargeError,
  KeyConflictError,
  LeaseLostError,
  PermanentError,
  RetryLater,
  StoreUnavailableError,
  TimeoutError,
} from "../../shared/errors.js";
import { classifyFailure } from "./classify.js";

function error(members: object, message = "failed", name?: string): Error {
  const made = Object.assign(new Error(message), members);
  return name === undefined ? made : Object.defineProperty(made, "name", { value: name });
}

/** As pg's DatabaseError and postgres.js's PostgresError. */
function pg(code: string): Error {
  return error({ code, severity: "ERROR", routine: "exec_stmt" }, "sql failed", "error");
}

/** As node:sqlite and @photostructure/sqlite. */
function nodeSqlite(errcode: number): Error {
  return error({ code: "ERR_SQLITE_ERROR", errcode, errstr: "…" });
}

/** As better-sqlite3 and libsql. */
function sqlite(code: string): Error {
  return error({ code }, "sql failed", "SqliteError");
}

function errno(code: string, syscall = "connect"): Error {
  return error({ code, errno: -1, syscall }, `${syscall} ${code}`);
}

function fetchFailed(cause: unknown): Error {
  return new TypeError("fetch failed", { cause });
}

/** As axios: a status beside a code of its own. */
function axios(status: number, headers: object = {}): Error {
  const code = status < 500 ? "ERR_BAD_REQUEST" : "ERR_BAD_RESPONSE";
  return error({ isAxiosError: true, code, status, response: { status, headers, data: {} } });
}

/** As ky: a real Response. */
function ky(status: number, headers: Record<string, string> = {}): Error {
  return error({ response: new Response("", { status, headers }), request: {} }, "", "HTTPError");
}

/** As got: the response of node:http. */
function got(statusCode: number, headers: object = {}): Error {
  const members = { code: "ERR_NON_2XX_3XX_RESPONSE", response: { statusCode, headers } };
  return error(members, `Response code ${statusCode}`, "HTTPError");
}

/** As octokit's RequestError. */
function octokit(status: number, headers: object = {}): Error {
  return error({ status, response: { status, headers, url: "", data: {} } }, "", "HttpError");
}

type Row = [name: string, thrown: unknown, retryAfterMs?: number];

const TRANSIENT: Row[] = [
  ["PostgreSQL 08006 connection failure", pg("08006")],
  ["PostgreSQL 08P01 protocol violation", pg("08P01")],
  ["PostgreSQL 53300 too many connections", pg("53300")],
  ["PostgreSQL 57P01 admin shutdown", pg("57P01")],
  ["PostgreSQL 57P02 crash shutdown", pg("57P02")],
  ["PostgreSQL 57P03 cannot connect now", pg("57P03")],
  ["PostgreSQL 57014 statement timeout", pg("57014")],
  ["PostgreSQL 40001 serialization failure", pg("40001")],
  ["PostgreSQL 40P01 deadlock", pg("40P01")],
  ["PostgreSQL 55P03 lock not available", pg("55P03")],
  ["PostgreSQL 25006 read-only after failover", pg("25006")],
  ["PostgreSQL XX000, which no rule knows", pg("XX000")],
  ["PostgreSQL 42P01, a table that is not migrated yet", pg("42P01")],
  ["PostgreSQL 3F000, a schema that is not migrated yet", pg("3F000")],
  [
    "node:sqlite, a table that is not migrated yet",
    error({ code: "ERR_SQLITE_ERROR", errcode: 1 }, "no such table: orders"),
  ],
  [
    "better-sqlite3, a table that is not migrated yet",
    error({ code: "SQLITE_ERROR" }, "no such table: orders", "SqliteError"),
  ],
  ["postgres.js connection closed", error({ code: "CONNECTION_CLOSED", errno: "…" })],
  ["a pg pool that waited too long", new Error("timeout exceeded when trying to connect")],
  ["SQLITE_BUSY", sqlite("SQLITE_BUSY")],
  ["SQLITE_BUSY_SNAPSHOT", sqlite("SQLITE_BUSY_SNAPSHOT")],
  ["SQLITE_LOCKED_SHAREDCACHE", sqlite("SQLITE_LOCKED_SHAREDCACHE")],
  ["SQLITE_IOERR_WRITE", sqlite("SQLITE_IOERR_WRITE")],
  ["SQLITE_FULL", sqlite("SQLITE_FULL")],
  ["SQLITE_CANTOPEN", sqlite("SQLITE_CANTOPEN")],
  ["node:sqlite errcode 5, busy", nodeSqlite(5)],
  ["node:sqlite errcode 517, busy snapshot", nodeSqlite(517)],
  ["node:sqlite errcode 6, locked", nodeSqlite(6)],
  ["node:sqlite errcode 778, disk I/O error", nodeSqlite(778)],
  ["ECONNRESET", errno("ECONNRESET", "read")],
  ["ECONNREFUSED", errno("ECONNREFUSED")],
  ["ECONNABORTED", errno("ECONNABORTED")],
  ["EPIPE, whose code looks like a SQLSTATE", errno("EPIPE", "write")],
  ["ETIMEDOUT", errno("ETIMEDOUT")],
  ["EAI_AGAIN", errno("EAI_AGAIN", "getaddrinfo")],
  ["ENOTFOUND", errno("ENOTFOUND", "getaddrinfo")],
  ["ENETUNREACH", errno("ENETUNREACH")],
  ["EHOSTUNREACH", errno("EHOSTUNREACH")],
  [
    "Node's AggregateError of two refused addresses",
    Object.assign(new AggregateError([errno("ECONNREFUSED"), errno("ECONNREFUSED")]), {
      code: "ECONNREFUSED",
    }),
  ],
  ["fetch failed, connection refused", fetchFailed(errno("ECONNREFUSED"))],
  ["fetch failed, undici connect timeout", fetchFailed(error({ code: "UND_ERR_CONNECT_TIMEOUT" }))],
  ["fetch failed, undici socket closed", fetchFailed(error({ code: "UND_ERR_SOCKET" }))],
  ["undici headers timeout", error({ code: "UND_ERR_HEADERS_TIMEOUT" })],
  ["undici body timeout", error({ code: "UND_ERR_BODY_TIMEOUT" })],
  ["fetch failed without a cause", new TypeError("fetch failed")],
  ["node-fetch's FetchError", error({ type: "system", code: "ECONNRESET" }, "", "FetchError")],
  ["axios without an answer", error({ isAxiosError: true, code: "ERR_NETWORK" })],
  ["axios timeout", error({ isAxiosError: true, code: "ECONNABORTED" }, "timeout of 5 ms")],
  ["a slow TLS handshake", error({ code: "ERR_TLS_HANDSHAKE_TIMEOUT" })],
  ["AbortSignal.timeout", new DOMException("The operation timed out", "TimeoutError")],
  ["an aborted fetch", new DOMException("This operation was aborted", "AbortError")],
  ["Node's AbortError", error({ code: "ABORT_ERR" }, "aborted", "AbortError")],
  ["axios 503", axios(503)],
  ["axios 408", axios(408)],
  ["axios 425", axios(425)],
  ["axios 429 with Retry-After in seconds", axios(429, { "retry-after": "7" }), 7_000],
  ["got 502", got(502)],
  ["got 429, Retry-After as a list", got(429, { "retry-after": ["3"] }), 3_000],
  ["ky 429 with real Headers", ky(429, { "Retry-After": "120" }), 120_000],
  ["ky 500", ky(500)],
  ["octokit 429, another case", octokit(429, { "Retry-After": 60 }), 60_000],
  [
    "OpenAI's APIError",
    error({ status: 429, headers: new Headers({ "retry-after": "2" }) }),
    2_000,
  ],
  [
    "the AI SDK's APICallError",
    error({ statusCode: 529, responseHeaders: { "retry-after": "5" } }),
    5_000,
  ],
  ["an undici ResponseError", error({ code: "UND_ERR_RESPONSE", statusCode: 504, headers: {} })],
  ["Stripe's rate limit", error({ type: "StripeRateLimitError", statusCode: 429, headers: {} })],
  ["AWS 503", error({ $fault: "server", $metadata: { httpStatusCode: 503 } })],
  [
    "an AWS throttle, which is a 400 by status",
    error({ $metadata: { httpStatusCode: 400 } }, "", "ThrottlingException"),
  ],
  ["AWS says retryable", error({ $retryable: {}, $metadata: { httpStatusCode: 400 } })],
  [
    "Retry-After as a date beside the Date it was sent",
    axios(503, {
      date: "Sun, 06 Nov 1994 08:49:37 GMT",
      "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT",
    }),
    30_000,
  ],
  [
    "Retry-After as a date alone, not usable",
    axios(503, { "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT" }),
  ],
  [
    "Retry-After in the past is at once",
    axios(503, {
      date: "Sun, 06 Nov 1994 08:50:07 GMT",
      "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT",
    }),
    0,
  ],
  ["Retry-After beyond a day is a day", axios(503, { "retry-after": "99999999999" }), 86_400_000],
  ["Retry-After that is nonsense", axios(503, { "retry-after": "-5" })],
  ["Retry-After of 1 MB", axios(503, { "retry-after": "9".repeat(1_000_000) })],
  ["a wrapped serialization failure (Drizzle)", new Error("query failed", { cause: pg("40001") })],
  ["an AggregateError with one that may pass", new AggregateError([pg("23505"), errno("EPIPE")])],
  ["an AggregateError with one unknown", new AggregateError([pg("23505"), new Error("?")])],
  ["RetryLater with a delay", new RetryLater({ delay: "5m" }), 300_000],
  ["RetryLater at a time", new RetryLater("2030-01-31T09:00:00Z")],
  ["the attempt's own time-out", new TimeoutError(5_000)],
  ["a lost lease", new LeaseLostError("r1", 1)],
  ["an unreachable store", new StoreUnavailableError({ tried: "connect" })],
  ["a bare Error", new Error("it did not work")],
  ["a status that is no HTTP error", error({ status: 200 })],
  ["a gRPC code", error({ code: 14, details: "unavailable" })],
  ["a Prisma code without a severity", error({ code: "22P02" })],
  ["null", null],
  ["undefined", undefined],
  ["a string", "42P01"],
  ["a number", 404],
  ["an empty object", {}],
];

const PERMANENT: Row[] = [
  ["PermanentError", new PermanentError("no such customer")],
  ["PermanentError with a code of its own", new PermanentError("gone", { code: "ECONNRESET" })],
  ["PermanentError of a second copy of the package", error({ code: "GONE" }, "", "PermanentError")],
  ["a wrapped PermanentError", new Error("step 3", { cause: new PermanentError("gone") })],
  ["ConfigurationError", new ConfigurationError([])],
  ["InputInvalidError", new InputInvalidError("input", [])],
  ["InputTooLargeError", new InputTooLargeError(2, 1)],
  ["KeyConflictError", new KeyConflictError({ job: "j", key: "k", runId: "r" })],
  ["a batch refused for its input", new BatchRefusedError(1, new InputInvalidError("input", []))],
  ["a ZodError", error({ issues: [] }, "invalid", "ZodError")],
  ["a ValidationError", error({ errors: [] }, "invalid", "ValidationError")],
  ["PostgreSQL 22P02 invalid text", pg("22P02")],
  ["PostgreSQL 22021 NUL in a text", pg("22021")],
  ["PostgreSQL 23505 unique violation", pg("23505")],
  ["PostgreSQL 23503 foreign key violation", pg("23503")],
  ["PostgreSQL 42601 syntax error", pg("42601")],
  ["a wrapped unique violation (Drizzle)", new Error("query failed", { cause: pg("23505") })],
  ["SQLITE_CONSTRAINT_UNIQUE", sqlite("SQLITE_CONSTRAINT_UNIQUE")],
  ["SQLITE_MISMATCH", sqlite("SQLITE_MISMATCH")],
  ["SQLITE_ERROR", sqlite("SQLITE_ERROR")],
  ["SQLITE_READONLY_DBMOVED", sqlite("SQLITE_READONLY_DBMOVED")],
  ["SQLITE_CORRUPT", sqlite("SQLITE_CORRUPT")],
  ["SQLITE_NOTADB", sqlite("SQLITE_NOTADB")],
  ["node:sqlite errcode 1, no such table", nodeSqlite(1)],
  ["node:sqlite errcode 1555, primary key", nodeSqlite(1_555)],
  ["node:sqlite errcode 2067, unique", nodeSqlite(2_067)],
  ["a certificate for another name", error({ code: "ERR_TLS_CERT_ALTNAME_INVALID" })],
  ["an expired certificate", error({ code: "CERT_HAS_EXPIRED" })],
  ["a self-signed certificate", error({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" })],
  ["a self-signed chain", error({ code: "SELF_SIGNED_CERT_IN_CHAIN" })],
  ["an unverifiable certificate", error({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" })],
  ["fetch failed for a certificate", fetchFailed(error({ code: "CERT_HAS_EXPIRED" }))],
  ["fetch of what is no URL", fetchFailed(error({ code: "ERR_INVALID_URL" }, "Invalid URL"))],
  ["undici called wrongly", error({ code: "UND_ERR_INVALID_ARG" })],
  ["axios 404", axios(404)],
  ["axios 400 with Retry-After, which does not help", axios(400, { "retry-after": "1" })],
  ["got 401", got(401)],
  ["ky 422", ky(422)],
  ["octokit 403", octokit(403)],
  ["http-errors 409", error({ status: 409, statusCode: 409, expose: true })],
  ["AWS 404", error({ $metadata: { httpStatusCode: 404 } }, "", "NoSuchKey")],
  ["an AggregateError, all permanent", new AggregateError([pg("23505"), axios(404)])],
];

describe("classifyFailure", () => {
  test.each(TRANSIENT)("%s is transient", (_, thrown, retryAfterMs) => {
    const found = classifyFailure(thrown);
    expect(found.class).toBe("transient");
    expect(found.retryAfterMs).toBe(retryAfterMs);
    expect(found.reason).not.toBe("");
  });

  test.each(PERMANENT)("%s is permanent", (_, thrown) => {
    const found = classifyFailure(thrown);
    expect(found.class).toBe("permanent");
    expect(found).not.toHaveProperty("retryAfterMs");
    expect(found.reason).not.toBe("");
  });

  test.each(["08006", "53300", "57P01", "57014", "40001", "40P01", "55P03", "25006"])(
    "PostgreSQL %s is transient by a rule, not for want of one",
    (code) => {
      expect(classifyFailure(pg(code)).reason).toBe(`PostgreSQL ${code}`);
    },
  );

  test("the outermost failure that a rule knows decides, not its cause", () => {
    const gone = error({ status: 404 });
    gone.cause = errno("ECONNRESET");
    expect(classifyFailure(gone).class).toBe("permanent");
  });

  test("causes are looked through five deep, and a circle of them ends", () => {
    let deep: Error = pg("23505");
    for (let i = 0; i < 5; i++) deep = new Error("wrapped", { cause: deep });
    expect(classifyFailure(deep).class).toBe("permanent");
    expect(classifyFailure(new Error("once more", { cause: deep })).class).toBe("transient");
    const circle = new Error("a");
    circle.cause = circle;
    expect(classifyFailure(circle).class).toBe("transient");
  });

  test("nothing thrown can make it throw", () => {
    const throwing = () => {
      throw new Error("hostile");
    };
    const handler = new Proxy({}, { get: () => throwing }) as ProxyHandler<object>;
    const hostile = new Proxy(new Error(), handler);
    expect(classifyFailure(hostile)).toEqual(classifyFailure(undefined));
    // fast-check itself asks values questions, so the hostile ones are put in afterwards.
    const odd = [hostile, [hostile], { get: throwing }, { length: 1e9 }];
    const member = fc.oneof(fc.anything(), fc.nat(odd.length - 1));
    const members = fc.record(
      {
        name: fc.constantFrom("AggregateError", "X"),
        status: fc.constantFrom(404, 503),
        code: member,
        response: member,
        headers: member,
        errors: member,
        cause: member,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(members, fc.anything(), (given, other) => {
        const entries = Object.entries(given).map(([key, value]) => {
          return [key, typeof value === "number" ? (odd[value] ?? value) : value];
        });
        for (const thrown of [Object.fromEntries(entries), other]) {
          expect(["transient", "permanent"]).toContain(classifyFailure(thrown).class);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
