// Serves the caller's own rights: the dashboard's session, the settings that it shows, and named keys.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const accessRoutes: readonly Implementation[] = [
  on(ROUTES.createSession, async (call) => {
    const { access, sessions, report, request, caller, body } = call;
    const secret = await access.secretOf(caller, body.secret);
    const actor = { ...call.actor, who: secret.name ?? "page" };
    const cookie = await sessions.begin(request, secret, actor);
    report.signedIn(actor, secret.scopes);
    return reply({ ok: true, scopes: [...secret.scopes] }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.deleteSession, async ({ sessions, request, actor }) => {
    const secret = await sessions.secretOf(request);
    const cookie = await sessions.end(request, { ...actor, who: secret?.name ?? "page" });
    return reply({ ok: true }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.me, async (call) =>
    reply({ ...(await call.access.standing(call.caller)), hasEvents: call.events !== null }),
  ),
  on(ROUTES.settings, async ({ holdfast }) => reply(holdfast.settings())),

  // Named keys
  on(ROUTES.listKeys, async ({ holdfast }) => reply({ keys: await holdfast.keys.list() })),
  on(ROUTES.createKey, async ({ acting, body: { name, ...options } }) =>
    reply(await acting.keys.create(name, given(options)), 201),
  ),
  on(ROUTES.revokeKey, async ({ acting, params }) => {
    await acting.keys.revoke(String(params.name));
    return reply({ ok: true });
  }),
];
