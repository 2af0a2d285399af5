// Serves the pause of everything: read, set, lift.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const pauseRoutes: readonly Implementation[] = [
  on(ROUTES.getPause, async ({ holdfast }) => reply({ paused: await holdfast.paused() })),
  on(ROUTES.pauseAll, async ({ acting, body, granted: { by } }) =>
    reply({ paused: await acting.pause({ ...given(body), by }) }),
  ),
  on(ROUTES.resumeAll, async ({ acting, granted: { by } }) =>
    reply({ ok: true, lifted: await acting.resume({ by }) }),
  ),
];
