// Serves named locks: list, statistics, history, release by an operator.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const lockRoutes: readonly Implementation[] = [
  on(ROUTES.listLocks, async ({ holdfast, query }) =>
    reply(await holdfast.locks.list(given(query))),
  ),
  on(ROUTES.lockStats, async ({ holdfast }) => reply(await holdfast.locks.stats())),
  on(ROUTES.lockHistory, async ({ holdfast, query }) =>
    reply(await holdfast.locks.history(given(query))),
  ),
  on(ROUTES.releaseLock, async ({ acting, params, body }) =>
    reply({ ok: true, ...(await acting.locks.release(String(params.name), body.note)) }),
  ),
];
