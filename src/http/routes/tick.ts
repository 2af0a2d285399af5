// Serves the calls of an outside cron: one bounded pass, and reclaiming stale runs now. A pass that cannot read the database
// runs nothing and replies 503 with its reason.

import { isStoreUnreadable, STORE_READ_ERROR } from "../problem.js";
import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const tickRoutes: readonly Implementation[] = [
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
];
