// Serves the dashboard's session: sign in, sign out, the caller's rights, the settings of this instance.

import { type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const sessionRoutes: readonly Implementation[] = [
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
];
