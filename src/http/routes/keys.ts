// Serves the routes of named keys.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const keyRoutes: readonly Implementation[] = [
  on(ROUTES.listKeys, async ({ holdfast }) => reply({ keys: await holdfast.keys.list() })),
  on(ROUTES.createKey, async ({ acting, body: { name, ...options } }) =>
    reply(await acting.keys.create(name, given(options)), 201),
  ),
  on(ROUTES.revokeKey, async ({ acting, params }) => {
    await acting.keys.revoke(String(params.name));
    return reply({ ok: true });
  }),
];
