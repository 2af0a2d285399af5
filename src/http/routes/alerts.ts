// Serves alerts: list, read, mute, acknowledge, resolve, test the delivery.

import { AlertNotFoundError } from "../../shared/errors.js";
import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const alertRoutes: readonly Implementation[] = [
  on(ROUTES.listAlerts, async ({ holdfast, query }) =>
    reply(await holdfast.alerts.list(given(query) as never)),
  ),
  on(ROUTES.testAlerts, async ({ holdfast, body }) =>
    reply(await holdfast.alerts.test(given(body))),
  ),
  on(ROUTES.getAlert, async ({ holdfast, params }) => {
    const id = String(params.id);
    const alert = await holdfast.alerts.get(id);
    if (!alert) throw new AlertNotFoundError(id);
    return reply(alert);
  }),
  on(ROUTES.muteAlert, async ({ acting, params, body }) =>
    reply(await acting.alerts.mute(String(params.id), body.for)),
  ),
  on(ROUTES.acknowledgeAlert, async ({ acting, params, granted: { by } }) =>
    reply(await acting.alerts.acknowledge(String(params.id), { by })),
  ),
  on(ROUTES.resolveAlert, async ({ acting, params, granted: { by } }) =>
    reply(await acting.alerts.resolve(String(params.id), { by })),
  ),
];
