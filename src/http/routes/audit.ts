// Who changed what, and instances that are told to be quiet.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const auditRoutes: readonly Implementation[] = [
  on(ROUTES.listAudit, async ({ holdfast, query }) =>
    reply(await holdfast.audit.list(given(query))),
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
