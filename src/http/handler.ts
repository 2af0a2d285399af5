// `createHandler`: one function from a Request to a Response, for Node, Deno and the edge. It finds
// the route, lets access decide, reads and checks what was sent, and words what comes out. What the
// routes do is in routes/.

import { Hono } from "hono";
import { z } from "zod";
import { systemIds } from "../adapters/chance.js";
import { systemClock } from "../adapters/clock.js";
import { ConfigurationError, type Problem } from "../core/errors.js";
import { describeFailure } from "../core/failure.js";
import { refuseUnknownMembers } from "../core/suggest.js";
import type { Holdfast } from "../engine/holdfast.js";
import type { Logger } from "../telemetry/log.js";
import { Access, type Authorize, requireScope } from "./access.js";
import { readJson } from "./body.js";
import { callbackTokenOf, isCallbackOf } from "./callback.js";
import type { Route } from "./contract/words.js";
import { ROUTES } from "./contract.js";
import { EventFeed } from "./events.js";
import { openapi } from "./openapi.js";
import { assetResponse, PAGE_FOLDERS, pageResponse } from "./page.js";
import { HttpError, problemResponse, refusalOf } from "./problem.js";
import type { Call, Implementation, Reply, Surroundings } from "./route.js";
import { alertRoutes } from "./routes/alerts.js";
import { auditRoutes } from "./routes/audit.js";
import { checkRoutes } from "./routes/check.js";
import { eventRoutes } from "./routes/events.js";
import { lockRoutes } from "./routes/locks.js";
import { metricsRoutes } from "./routes/metrics.js";
import { overviewRoutes } from "./routes/overview.js";
import { pauseRoutes } from "./routes/pause.js";
import { pingRoutes } from "./routes/pings.js";
import { queueRoutes } from "./routes/queues.js";
import { runPartRoutes } from "./routes/run-parts.js";
import { runRoutes } from "./routes/runs.js";
import { scheduleRoutes } from "./routes/schedules.js";
import { sessionRoutes } from "./routes/session.js";
import { tickingRoutes } from "./routes/ticking.js";
import { timelineRoutes } from "./routes/timeline.js";
import { workerRoutes } from "./routes/worker.js";
import { readSecrets, type SecretOptions } from "./secrets.js";
import { Sessions } from "./session.js";

export type HandlerOptions = {
  /** Where it is mounted, for example "/holdfast". @default "" */
  readonly basePath?: string;
  /** Single sign-on: which scopes a request has. Given, no secret counts any more. */
  readonly authorize?: Authorize;
  /** Secrets by scope; several separated by commas. @default HOLDFAST_TRIGGER_SECRET and so on */
  readonly secrets?: SecretOptions;
  /** Scopes without a secret are open to callers on this machine. For development. @default false */
  readonly openOnLoopback?: boolean;
  /** The status of a trigger that found the database unreadable. @default 200 */
  readonly storeErrorStatus?: number;
  /** Whether hints of changes are streamed; false where an answer cannot stay open. @default true */
  readonly events?: boolean;
  /** Where failures inside are told. @default the instance's own */
  readonly logger?: Logger;
};

/** What a server may tell about a connection. */
export type ConnectionInfo = { readonly remoteAddress?: string | undefined };

export type Handler = (request: Request, info?: ConnectionInfo) => Promise<Response>;

const OPTIONS = [
  "basePath",
  "authorize",
  "secrets",
  "openOnLoopback",
  "storeErrorStatus",
  "events",
  "logger",
];
const IMPLEMENTATIONS = [
  ...tickingRoutes,
  ...pingRoutes,
  ...scheduleRoutes,
  ...timelineRoutes,
  ...runRoutes,
  ...runPartRoutes,
  ...lockRoutes,
  ...overviewRoutes,
  ...metricsRoutes,
  ...eventRoutes,
  ...queueRoutes,
  ...checkRoutes,
  ...alertRoutes,
  ...pauseRoutes,
  ...auditRoutes,
  ...workerRoutes,
  ...sessionRoutes,
];
const ids = systemIds();
const REQUEST_ID = /^[\w.:-]{1,100}$/;

export function createHandler(holdfast: Holdfast, options: HandlerOptions = {}): Handler {
  const basePath = readOptions(options);
  const secrets = readSecrets(options.secrets ?? {}, process.env);
  const nowMs = () => systemClock.wallMs();
  const sessions = new Sessions(secrets.signingKey());
  const access = new Access({
    secrets,
    sessions,
    authorize: options.authorize ?? null,
    isOpenHere: options.openOnLoopback ?? false,
    nowMs,
  });
  const around: Surroundings = {
    holdfast,
    access,
    sessions,
    events: options.events === false ? null : new EventFeed({ holdfast, clock: systemClock, ids }),
    nowMs,
    basePath,
    logger: options.logger ?? holdfast.logger,
    storeErrorStatus: options.storeErrorStatus ?? 200,
  };
  const app = routed(around);
  return async (request, info) => app.fetch(request, { address: info?.remoteAddress ?? "unknown" });
}

type Env = { Bindings: { address: string } };

function routed(around: Surroundings): Hono<Env> {
  const { basePath } = around;
  const app = new Hono<Env>();
  const isServed = (route: Route) => route !== ROUTES.events || around.events !== null;
  const implementations = IMPLEMENTATIONS.filter(({ route }) => isServed(route));
  for (const implementation of implementations) {
    const { method, path } = implementation.route;
    app.on(method, basePath + honoPath(path), (c) =>
      answer(implementation, around, {
        request: c.req.raw,
        params: c.req.param(),
        address: c.env.address,
      }),
    );
  }
  app.get(`${basePath}/openapi.json`, () => json(openapi(basePath, isServed)));
  app.get(`${basePath}/assets/:name`, async (c) => {
    const asset = await assetResponse(c.req.param("name"), c.req.raw);
    return asset === null ? refused(c.req.raw, notFound()) : secured(asset);
  });
  const pages = PAGE_FOLDERS.flatMap((folder) => [`/${folder}`, `/${folder}/*`]);
  for (const path of [...(basePath === "" ? [] : [""]), "/", ...pages])
    app.get(basePath + path, async () => secured(await pageResponse(basePath)));
  for (const [path, methods] of methodsByPath(implementations))
    app.all(basePath + honoPath(path), (c) => refused(c.req.raw, notAllowed(methods)));
  app.notFound((c) => refused(c.req.raw, notFound()));
  return app;
}

type Asked = {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly address: string;
};

async function answer(
  { route, handle }: Implementation,
  around: Surroundings,
  { request, params, address }: Asked,
): Promise<Response> {
  const requestId = requestIdOf(request);
  try {
    const token = route.isCallback ? callbackTokenOf(request) : null;
    const granted =
      route.scope === "open" || token !== null
        ? { scopes: new Set<never>(), by: "http" }
        : await around.access.grant(request, route.scope, address);
    for (const [name, value] of Object.entries(params)) refuseNul(value, name);
    const actor = { via: "http", who: granted.by, scope: route.scope, address, requestId } as const;
    const call = {
      ...around,
      // Made where it is asked for: most calls change nothing.
      get acting() {
        return around.holdfast.as(actor);
      },
      request,
      requestId,
      address,
      params,
      granted,
      needs: (scope) => requireScope(granted, scope),
      query: route.query ? checked(route.query, queryOf(request), "query") : {},
      body: route.body ? checked(route.body, await readJson(request), "body") : {},
    } as Call;
    if (token !== null) await requireCallback(call, token);
    const traceparent = request.headers.get("traceparent");
    const reply = around.holdfast.continueTrace(traceparent, () => handle(call));
    return told(await reply, requestId);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal.status >= 500) tell(around.logger, { error, requestId, path: route.path });
    return secured(problemResponse(refusal, requestId), requestId);
  }
}

/** The fence is in the body, so such a call is judged when its body has been read and checked. */
async function requireCallback(call: Call, token: string): Promise<void> {
  const { fence } = call.body as { readonly fence?: number };
  const grant = { token, runId: String(call.params.id), fence: fence ?? 0 };
  if (!(await isCallbackOf(call.holdfast, grant))) throw call.access.badToken(call.address);
}

function told(reply: Reply | Response, requestId: string): Response {
  if (reply instanceof Response) return secured(reply, requestId);
  return secured(json(reply.body, reply.status, reply.headers), requestId);
}

function json(body: unknown, status = 200, headers: Reply["headers"] = {}): Response {
  return secured(
    new Response(JSON.stringify(body), {
      status,
      headers: { ...headers, "content-type": "application/json" },
    }),
  );
}

/** On every answer, whatever it is. */
function secured(response: Response, requestId?: string): Response {
  const { headers } = response;
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  headers.set("x-frame-options", "DENY");
  headers.set("cross-origin-resource-policy", "same-origin");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  if (requestId !== undefined) headers.set("x-request-id", requestId);
  return response;
}

function refused(request: Request, error: HttpError): Response {
  const requestId = requestIdOf(request);
  return secured(problemResponse(error.refusal, requestId), requestId);
}

/** A caller's own id goes through, so that its log and ours can be put side by side. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : ids.unique();
}

function queryOf(request: Request): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URL(request.url).searchParams) {
    refuseNul(value, name);
    query[name] = value;
  }
  return query;
}

/** No database stores one in a text, so nothing can be found by it. */
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

function tell(logger: Logger, fields: { error: unknown; requestId: string; path: string }): void {
  try {
    const error = describeFailure(fields.error);
    logger.error({ ...fields, error }, "a request failed");
  } catch {
    // A logger that fails must not take the answer down with it.
  }
}

function notFound(): HttpError {
  return new HttpError({ status: 404, error: "not_found", detail: "There is no such route." });
}

function notAllowed(methods: readonly string[]): HttpError {
  return new HttpError({
    status: 405,
    error: "method_not_allowed",
    detail: `This route takes ${methods.join(", ")}.`,
    headers: { allow: methods.join(", ") },
  });
}

function methodsByPath(
  implementations: readonly Implementation[],
): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>();
  for (const { route } of implementations)
    methods.set(route.path, [...(methods.get(route.path) ?? []), route.method]);
  return methods;
}

function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

function readOptions(options: HandlerOptions): string {
  const problems = refuseUnknownMembers(options, OPTIONS, "createHandler()");
  const { basePath = "", storeErrorStatus = 200, events = true } = options;
  if (typeof events !== "boolean")
    problems.push({ field: "createHandler().events", message: "must be true or false" });
  const isPath = typeof basePath === "string" && /^(\/[\w.~-]+)*$/.test(basePath);
  if (!isPath) {
    problems.push({
      field: "createHandler().basePath",
      message: 'must be empty or begin with a slash and not end with one, for example "/holdfast"',
    });
  }
  if (!Number.isInteger(storeErrorStatus) || storeErrorStatus < 200 || storeErrorStatus > 599) {
    problems.push({
      field: "createHandler().storeErrorStatus",
      message: "must be an HTTP status, for example 200 or 503",
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return basePath;
}
