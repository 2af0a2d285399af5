// Handles every call of the API in the same steps: check access, read and validate the request, run the route, and write the
// response or the problem with the security headers.

import { z } from "zod";
import { systemIds } from "../shared/adapters/random.js";
import type { Problem } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { redactError } from "../shared/redact.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Logger } from "../telemetry/log.js";
import {
  type Caller,
  callbackFenceOf,
  callbackTokenOf,
  type Granted,
  requireScope,
} from "./access.js";
import { BODY_BYTES_MAX, OPEN_BODY_BYTES_MAX, readJson } from "./body.js";
import { HttpError, refusalOf, refusalResponse } from "./problem.js";
import { requireLimitable } from "./reach.js";
import type { HttpRequest, HttpResponse } from "./request.js";
import type { Call, Implementation, Reply, RouteContext } from "./router.js";

const ids = systemIds();
const REQUEST_ID = /^[\w.:-]{1,100}$/;
/** No list of the contract is longer. A list of a million numbers would take a second to check. */
const ENTRIES_MAX = 1_000;

type IncomingCall = {
  readonly request: HttpRequest;
  readonly params: Readonly<Record<string, string>>;
  readonly address: string;
};

export async function handleCall(
  { route, handle }: Implementation,
  context: RouteContext,
  { request, params, address }: IncomingCall,
): Promise<HttpResponse> {
  const requestId = requestIdOf(request);
  const caller = { request, address, requestId };
  let granted: Granted = { scopes: new Set(), by: "http" };
  try {
    context.access.refuseForeignChange(request);
    const token = route.isCallback ? callbackTokenOf(request) : null;
    if (route.scope !== "open" && token === null)
      granted = await context.access.grant(caller, route.scope);
    requireLimitable(granted, route);
    for (const name in params) refuseNul(String(params[name]), name);
    // Checked before the body is read: a caller without a valid token must not make us read megabytes.
    const callbackFence =
      token === null ? null : await requireCallback(context, { token, params, caller });
    const scope = route.scope === "open" ? null : route.scope;
    const bytesMax = scope === null ? OPEN_BODY_BYTES_MAX : BODY_BYTES_MAX;
    const actor = { via: "http", who: granted.by, scope, address, requestId } as const;
    const call = {
      ...context,
      // Made on demand: most calls change nothing.
      get acting() {
        return context.holdfast.as(actor);
      },
      request,
      caller,
      requestId,
      address,
      actor,
      params,
      granted,
      needs: (scope) => requireScope(granted, scope),
      query: route.query ? checked(route.query, queryOf(request), "query") : {},
      body: route.body ? checkedBody(route.body, await readJson(request, bytesMax)) : {},
    } as Call;
    if (callbackFence !== null && (call.body as { fence?: number }).fence !== callbackFence)
      await context.access.refuseToken(caller);
    const traceparent = request.headers.get("traceparent");
    const reply = context.holdfast.continueTrace(traceparent, () => handle(call));
    return withSafety(contentOf(await reply), requestId);
  } catch (error) {
    const refusal = refusalOf(error, { mayRead: granted.scopes.has("read") });
    if (refusal.status >= 500) logFailure(context.logger, { error, requestId, path: route.path });
    return withSafety(refusalResponse(refusal, requestId), requestId);
  }
}

/** The fence that the caller's token is valid for. */
async function requireCallback(
  { holdfast, access }: RouteContext,
  call: {
    readonly token: string;
    readonly params: IncomingCall["params"];
    readonly caller: Caller;
  },
): Promise<number> {
  const { token, params, caller } = call;
  const fence = await callbackFenceOf(holdfast, { token, runId: String(params.id) });
  return fence ?? (await access.refuseToken(caller));
}

function contentOf(reply: Reply | HttpResponse): HttpResponse {
  if ("content" in reply) return reply;
  const headers = { ...reply.headers, "content-type": "application/json" };
  return { status: reply.status, headers, content: JSON.stringify(reply.body) };
}

/** Adds the headers to responses outside of the API: the page, its files, an unknown path. */
export function secured(request: HttpRequest, response: HttpResponse): HttpResponse {
  return withSafety(response, requestIdOf(request));
}

export function refused(request: HttpRequest, error: HttpError): HttpResponse {
  const requestId = requestIdOf(request);
  return withSafety(refusalResponse(error.refusal, requestId), requestId);
}

/** Adds the security headers that every response has. */
function withSafety({ status, headers, content }: HttpResponse, requestId: string): HttpResponse {
  const safe = {
    "cache-control": "no-store",
    ...headers,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "x-request-id": requestId,
  };
  return { status, headers: safe, content };
}

/** Uses the caller's own id if it is valid, so that both logs can be compared. */
function requestIdOf(request: HttpRequest): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : ids.unique();
}

function queryOf(request: HttpRequest): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URL(request.url).searchParams) {
    refuseNul(value, name);
    query[name] = value;
  }
  return query;
}

/** PostgreSQL cannot store NUL in text, so such a value matches nothing. */
function refuseNul(value: string, field: string): void {
  if (!value.includes("\0")) return;
  const message = "must not contain NUL";
  throw new HttpError({
    status: 400,
    error: "text_invalid",
    detail: `${field.slice(0, 100)}: ${message}`,
    problems: [{ field: field.slice(0, 100), message }],
  });
}

/** Allows NUL, and any number of entries, where the contract says "any JSON": it is stored escaped. */
function refuseNulWithin(schema: z.ZodType | undefined, value: unknown, field: string): void {
  if (schema instanceof z.ZodUnknown) return;
  if (typeof value === "string") refuseNul(value, field);
  if (typeof value !== "object" || value === null) return;
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (size > ENTRIES_MAX) throw tooManyEntries(field);
  for (const [key, member] of Object.entries(value)) {
    refuseNul(key, field);
    refuseNulWithin(memberOf(schema, key, member), member, Array.isArray(value) ? field : key);
  }
}

function tooManyEntries(field: string): HttpError {
  const message = `must have at most ${ENTRIES_MAX} entries`;
  const problems = [{ field, message }];
  return new HttpError({
    status: 400,
    error: "body_invalid",
    detail: `${field}: ${message}`,
    problems,
  });
}

/** Undefined: the contract does not define it. */
function memberOf(
  schema: z.ZodType | undefined,
  key: string,
  member: unknown,
): z.ZodType | undefined {
  if (schema instanceof z.ZodObject)
    return needed(schema.shape[key] as z.ZodType | undefined, member);
  if (schema instanceof z.ZodArray) return needed(schema.element as z.ZodType, member);
  if (schema instanceof z.ZodRecord) return needed(schema.valueType as z.ZodType, member);
  return undefined;
}

/** The schema without optional and nullable wrappers; of a union with kinds the one that this value says it is. */
function needed(schema: z.ZodType | undefined, value: unknown): z.ZodType | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return needed(schema.unwrap() as z.ZodType, value);
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return schema;
  const name = schema.def.discriminator;
  const kind = (value as Readonly<Record<string, unknown>> | null)?.[name];
  return (schema.options as readonly z.ZodObject[]).find(
    ({ shape }) => (shape[name] as z.ZodLiteral).value === kind,
  );
}

function checkedBody(schema: z.ZodType, value: unknown): unknown {
  refuseNulWithin(schema, value, "body");
  return checked(schema, value, "body");
}

function checked(schema: z.ZodType, value: unknown, where: "query" | "body"): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues
    .slice(0, 20)
    .flatMap((issue) => problemsOf(issue, schema, where));
  throw new HttpError({
    status: 400,
    error: `${where}_invalid`,
    detail: problems.map(({ field, message }) => `${field}: ${message}`).join("\n"),
    problems,
  });
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType, where: string): readonly Problem[] {
  const field = issue.path.length === 0 ? where : issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys" || issue.path.length > 0)
    return [{ field, message: issue.message.slice(0, 500) }];
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  const given = Object.fromEntries(issue.keys.map((key) => [key, true]));
  return refuseUnknownMembers(given, known, where);
}

function logFailure(
  logger: Logger,
  fields: { error: unknown; requestId: string; path: string },
): void {
  try {
    const error = redactError(describeFailure(fields.error));
    logger.error({ ...fields, error }, "a request failed");
  } catch {
    // A failing logger must not lose the response.
  }
}
