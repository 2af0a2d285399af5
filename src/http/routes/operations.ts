// Serves the room `operations`: the pass of an outside cron, queues, instances, pause, check, audit, statistics and monitoring.

import { CONTENT_TYPES } from "../../telemetry/exposition.js";
import { HttpError, isStoreUnreadable, STORE_READ_ERROR } from "../problem.js";
import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // A proxy that buffers responses would hold hints back.
  "x-accel-buffering": "no",
};

export const operationRoutes: readonly Implementation[] = [
  // The pass of an outside cron. One that cannot read the database runs nothing and replies 503 with its reason.
  on(ROUTES.tick, async ({ holdfast, body }) => {
    try {
      return reply(await holdfast.tick(given(body)));
    } catch (error) {
      if (!isStoreUnreadable(error)) throw error;
      return reply({ ok: false, reason: STORE_READ_ERROR }, 503);
    }
  }),

  on(ROUTES.cleanup, async ({ acting, body, granted }) => {
    const { timeoutSeconds, heartbeatTimeoutSeconds } = body;
    const report = await acting.cleanup({
      // Only an admin may take runs from living holders.
      respectLeases: !granted.scopes.has("admin"),
      ...(timeoutSeconds === undefined ? {} : { timeout: timeoutSeconds * 1_000 }),
      ...(heartbeatTimeoutSeconds === undefined
        ? {}
        : { heartbeatTimeout: heartbeatTimeoutSeconds * 1_000 }),
    });
    return reply({ ok: true, ...report });
  }),

  // Queues
  on(ROUTES.listQueues, async ({ holdfast }) => reply({ queues: await holdfast.queues.list() })),
  on(ROUTES.pauseQueue, async ({ acting, params, body }) =>
    reply(await acting.queues.pause(String(params.name), body.note)),
  ),
  on(ROUTES.resumeQueue, async ({ acting, params }) =>
    reply(await acting.queues.resume(String(params.name))),
  ),

  // Instances
  on(ROUTES.listInstances, async ({ holdfast, query }) =>
    reply(await holdfast.instances.list(given(query))),
  ),
  on(ROUTES.quietInstance, async ({ acting, params, body }) => {
    await acting.instances.quiet(String(params.id), body.note);
    return reply({ ok: true });
  }),
  on(ROUTES.wakeInstance, async ({ acting, params }) => {
    await acting.instances.wake(String(params.id));
    return reply({ ok: true });
  }),

  // The pause of everything
  on(ROUTES.getPause, async ({ holdfast }) => reply({ paused: await holdfast.paused() })),
  on(ROUTES.pauseAll, async ({ acting, body, granted: { by } }) =>
    reply({ paused: await acting.pause({ ...given(body), by }) }),
  ),
  on(ROUTES.resumeAll, async ({ acting, granted: { by } }) =>
    reply({ ok: true, lifted: await acting.resume({ by }) }),
  ),

  // The consistency check
  on(ROUTES.check, async ({ holdfast, query }) => reply(await holdfast.check(given(query)))),

  // The audit trail
  on(ROUTES.listAudit, async ({ holdfast, query }) =>
    reply(await holdfast.audit.list(given(query))),
  ),

  // Announced jobs, statistics, grouped errors and hints of changes
  on(ROUTES.listJobs, async ({ holdfast }) =>
    reply({ jobs: await holdfast.jobs(), nextCursor: null }),
  ),
  on(ROUTES.stats, async ({ holdfast, query }) => reply(await holdfast.stats(given(query)))),
  on(ROUTES.listErrors, async ({ holdfast, query }) => {
    const { errors, isCut } = await holdfast.errors(given(query));
    return reply({ errors, isCut, nextCursor: null });
  }),
  on(ROUTES.events, async ({ events, request, access, caller }) => {
    // A HEAD request never reads the stream and would never close it.
    if (request.method === "HEAD" || events === null)
      return { status: 200, headers: STREAM_HEADERS, content: null };
    const after = request.headers.get("last-event-id");
    const recheck = () => access.recheck(caller, "read");
    const content = events.open({ after, signal: request.signal, recheck });
    return { status: 200, headers: STREAM_HEADERS, content };
  }),

  // Monitoring
  on(ROUTES.metrics, async ({ holdfast, request }) => {
    const accept = request.headers.get("accept") ?? "";
    const format = accept.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    const content = await holdfast.metrics({ format });
    return { status: 200, headers: { "content-type": CONTENT_TYPES[format] }, content };
  }),
  on(ROUTES.healthz, async () => reply({ ok: true })),
  on(ROUTES.readyz, async ({ holdfast }) => {
    try {
      await holdfast.runs.list({ limit: 1 });
      return reply({ ok: true });
    } catch {
      throw new HttpError({
        status: 503,
        error: "store_unavailable",
        detail: "The database cannot be reached.",
      });
    }
  }),
];
