// Serves signals: stores a fact that runs wait for.

import { type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const signalRoutes: readonly Implementation[] = [
  on(ROUTES.sendSignal, async ({ holdfast, params, body: { key, value = null } }) =>
    reply({ ok: true, ...(await holdfast.signal(String(params.name), { key, value })) }),
  ),
];
