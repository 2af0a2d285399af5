// Composes the HTTP handler for servers: one function from a Request to a Response, for Node, Deno and the edge. This file finds the
// route; pipeline.ts handles the call, routes/ do the work. The folder translates HTTP into calls of a `Holdfast` and back. It must
// never send SQL, decide what the library decides, or reply with details of an internal error.

import type { Holdfast } from "../holdfast.js";
import { systemClock } from "../shared/adapters/clock.js";
import { systemIds } from "../shared/adapters/random.js";
import { ConfigurationError } from "../shared/errors.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Logger } from "../telemetry/log.js";
import { Access, type Authorize } from "./access.js";
import { NamedKeys, readSecrets, type SecretOptions } from "./credentials.js";
import { EventFeed } from "./events.js";
import { AccessReport, ADDRESS_UNKNOWN } from "./guessing.js";
import { openapi } from "./openapi.js";
import { Origins, originProblems, readTrustedProxies, type TrustedProxies } from "./origin.js";
import { assetResponse, isLostVisitor, isPagePath, pageResponse } from "./page.js";
import { handleCall, refused, secured } from "./pipeline.js";
import { HttpError } from "./problem.js";
import { type HttpRequest, type HttpResponse, requestOf, responseOf } from "./request.js";
import { type RouteContext, Router } from "./router.js";
import { accessRoutes } from "./routes/access.js";
import { alertRoutes } from "./routes/alerts.js";
import { checkInRoutes } from "./routes/check-ins.js";
import { lockRoutes } from "./routes/locks.js";
import { operationRoutes } from "./routes/operations.js";
import { runRoutes } from "./routes/runs.js";
import { scheduleRoutes } from "./routes/schedules.js";
import { signalRoutes } from "./routes/signals.js";
import { workerRoutes } from "./routes/worker.js";
import { Sessions } from "./session.js";
import { ROUTES } from "./wire/contract.js";
import type { Route } from "./wire/schemas.js";

export type HandlerOptions = {
  /** The path that it is mounted at, for example "/holdfast". @default "" */
  readonly basePath?: string | undefined;
  /** Single sign-on: returns the scopes of a request. If it is set, secrets no longer count. */
  readonly authorize?: Authorize | undefined;
  /** Secrets by scope; several separated by commas. @default HOLDFAST_TRIGGER_SECRET and so on */
  readonly secrets?: SecretOptions | undefined;
  /**
   * Scopes without a secret are open to callers on this machine. For development. The handler judges the peer by the
   * `remoteAddress` that its server passes. @default false
   */
  readonly openOnLoopback?: boolean | undefined;
  /**
   * Origins, besides the server's own and that of `publicUrl`, whose pages may send changes without a secret, for example under
   * `authorize`. @default []
   */
  readonly trustedOrigins?: readonly string[] | undefined;
  /**
   * Addresses and networks ("10.0.0.0/8") of proxies whose X-Forwarded-For is believed: the client that they name is delayed
   * after wrong secrets, logged and audited. @default HOLDFAST_TRUSTED_PROXIES, else none: the peer counts
   */
  readonly trustedProxies?: readonly string[] | undefined;
  /** The status of a trigger that found the database unreadable. @default 200 */
  readonly storeErrorStatus?: number | undefined;
  /** Whether hints of changes are streamed; false if a response cannot stay open. @default true */
  readonly events?: boolean | undefined;
  /** Logs internal failures. @default the instance's logger */
  readonly logger?: Logger | undefined;
};

/** The facts that a server passes about a connection. */
export type ConnectionInfo = { readonly remoteAddress?: string | undefined };

export type Handler = (request: Request, info?: ConnectionInfo) => Promise<Response>;

const OPTIONS = [
  "basePath",
  "authorize",
  "secrets",
  "openOnLoopback",
  "trustedOrigins",
  "trustedProxies",
  "storeErrorStatus",
  "events",
  "logger",
];
const IMPLEMENTATIONS = [
  ...runRoutes,
  ...signalRoutes,
  ...scheduleRoutes,
  ...checkInRoutes,
  ...lockRoutes,
  ...alertRoutes,
  ...workerRoutes,
  ...operationRoutes,
  ...accessRoutes,
];
const ids = systemIds();

/** The handler on plain values: our own servers call it directly. */
export type HttpHandler = (request: HttpRequest, info?: ConnectionInfo) => Promise<HttpResponse>;

export function createHandler(holdfast: Holdfast, options: HandlerOptions = {}): Handler {
  return handlerOf(createHttpHandler(holdfast, options));
}

export function handlerOf(handler: HttpHandler): Handler {
  return async (request, info) =>
    responseOf(await handler(requestOf(request), info), request.method);
}

export function createHttpHandler(holdfast: Holdfast, options: HandlerOptions = {}): HttpHandler {
  const basePath = readOptions(options);
  const secrets = readSecrets(options.secrets ?? {}, process.env);
  const proxies = readTrustedProxies(options.trustedProxies, process.env);
  const nowMs = () => systemClock.wallMs();
  const { publicUrl } = holdfast.settings();
  const isHttps = publicUrl?.startsWith("https:") ?? false;
  const keys = new NamedKeys(holdfast);
  const sessions = new Sessions({ holdfast, secrets, keys, basePath, isHttps });
  const report = new AccessReport(holdfast, nowMs);
  const access = new Access({
    secrets,
    keys,
    sessions,
    origins: new Origins({
      publicUrl,
      trusted: options.trustedOrigins ?? [],
      hasSecrets: options.authorize === undefined,
    }),
    authorize: options.authorize ?? null,
    isOpenOnLoopback: options.openOnLoopback ?? false,
    nowMs,
    report,
  });
  const context: RouteContext = {
    holdfast,
    access,
    report,
    sessions,
    events: options.events === false ? null : new EventFeed({ holdfast, clock: systemClock, ids }),
    nowMs,
    basePath,
    logger: options.logger ?? holdfast.logger,
    storeErrorStatus: options.storeErrorStatus ?? 200,
  };
  return routed(context, proxies);
}

/** The function that serves one path. */
type Place = (call: {
  readonly request: HttpRequest;
  readonly params: Params;
  readonly address: string;
}) => Promise<HttpResponse>;
type Params = Readonly<Record<string, string>>;

function routed(context: RouteContext, proxies: TrustedProxies): HttpHandler {
  const { basePath } = context;
  const router = placesOf(context);
  return async (request, info) => {
    const path = pathOf(request.url);
    if (!path.startsWith(basePath)) return refused(request, notFound());
    const rest = path.slice(basePath.length);
    const method = request.method === "HEAD" ? "GET" : request.method;
    const found = router.find(method, rest);
    if (found === null) {
      if (method === "GET" && isPagePath(rest))
        return secured(request, await pageResponse(basePath));
      if (method === "GET" && isLostVisitor(rest, request))
        return secured(request, await pageResponse(basePath, 404));
      return refused(request, notFound());
    }
    if ("methods" in found) return refused(request, notAllowed(found.methods));
    return found.value({
      request,
      params: found.params,
      address: proxies.callerOf(request, info?.remoteAddress ?? ADDRESS_UNKNOWN),
    });
  };
}

function placesOf(context: RouteContext): Router<Place> {
  const router = new Router<Place>();
  const isServed = (route: Route) => route !== ROUTES.events || context.events !== null;
  for (const implementation of IMPLEMENTATIONS.filter(({ route }) => isServed(route))) {
    const { method, path } = implementation.route;
    router.add(method, path, (call) => handleCall(implementation, context, call));
  }
  let description: string | null = null;
  router.add("GET", "/openapi.json", async ({ request }) => {
    description ??= JSON.stringify(openapi(context.basePath, isServed));
    const headers = { "content-type": "application/json" };
    return secured(request, { status: 200, headers, content: description });
  });
  router.add("GET", "/assets/{name}", async ({ request, params }) => {
    const asset = await assetResponse(String(params.name), request);
    return asset === null ? refused(request, notFound()) : secured(request, asset);
  });
  return router;
}

/** The path as sent, without resolving `..`: such a path matches no route. */
function pathOf(url: string): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.slice(from).search(/[?#]/);
  return from < 0 ? "/" : end < 0 ? url.slice(from) : url.slice(from, from + end);
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

function readOptions(options: HandlerOptions): string {
  const problems = refuseUnknownMembers(options, OPTIONS, "createHandler()");
  const { basePath = "", storeErrorStatus = 200, events = true, trustedOrigins = [] } = options;
  problems.push(...originProblems(trustedOrigins));
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
