// What an outside cron calls: one bounded pass, one schedule by its name, or taking back what is stale. A database that cannot
// be read runs nothing, and says so in a way that a cron does not take for a failure.

import { ROUTES } from "../contract.js";
import { codeOf } from "../problem.js";
import { given, type Implementation, on, reply } from "../route.js";

const READ_ERROR = "schedule_read_error";

export const tickingRoutes: readonly Implementation[] = [
  on(ROUTES.tick, async ({ holdfast, body }) => {
    try {
      return reply(await holdfast.tick(given(body)));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return reply({ ok: false, reason: READ_ERROR }, 503);
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

  on(ROUTES.trigger, async ({ acting, params, body, needs, granted, storeErrorStatus }) => {
    // A caller with the scope trigger alone may start what is there, not say what it works on.
    if (body.input !== undefined) needs("enqueue");
    try {
      const answer = await acting.schedules.trigger(String(params.name), {
        ...given(body),
        by: granted.by,
      });
      return reply({ ok: true, ...answer });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      const skipped = {
        skipped: true,
        reason: READ_ERROR,
        holder: null,
        until: null,
        nextAt: null,
      };
      return reply({ ok: true, ...skipped }, storeErrorStatus);
    }
  }),

  on(ROUTES.enqueue, async ({ holdfast, params, body }) => {
    const { input = null, ...options } = body;
    const answer = await holdfast.enqueue(String(params.name), input, given(options));
    return reply(answer, answer.deduplicated ? 200 : 201);
  }),
];

/** Certainly nothing was done: the database was not reached, or its tables are not ours. */
function isUnreadable(error: unknown): boolean {
  return UNREADABLE.includes(codeOf(error));
}

const UNREADABLE = [
  "STORE_UNAVAILABLE",
  "STORE_READ_ONLY",
  "STORE_GONE",
  "STORE_UNSUPPORTED",
  "MIGRATION_REFUSED",
];
