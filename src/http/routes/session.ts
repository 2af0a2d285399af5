// The page's session, and whether this process is well.

import { HttpError } from "../problem.js";
import { type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const sessionRoutes: readonly Implementation[] = [
  on(ROUTES.createSession, async (call) => {
    const { access, sessions, report, ask, body } = call;
    const secret = await access.secretOf(call, body.secret);
    const actor = { ...call.actor, who: "page" };
    const cookie = await sessions.begin(ask, secret, actor);
    report.signedIn(actor, secret.scopes);
    return reply({ ok: true, scopes: [...secret.scopes] }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.deleteSession, async ({ sessions, ask, actor }) => {
    const cookie = await sessions.end(ask, { ...actor, who: "page" });
    return reply({ ok: true }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.me, async (call) =>
    reply({ ...(await call.access.standing(call)), hasEvents: call.events !== null }),
  ),
  on(ROUTES.settings, async ({ holdfast }) => reply(holdfast.settings())),
  on(ROUTES.healthz, async () => reply({ ok: true })),
  on(ROUTES.readyz, async ({ holdfast }) => {
    try {
      await holdfast.runs.list({ limit: 1 });
      return reply({ ok: true });
    } catch {
      throw new HttpError({
        status: 503,
        error: "store_unavailable",
        detail: "The database does not answer.",
      });
    }
  }),
];
