// Serves instances: list them, make one quiet, wake it.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const instanceRoutes: readonly Implementation[] = [
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
];
