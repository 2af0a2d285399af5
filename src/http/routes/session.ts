// The page's session, and whether this process is well.

import { ROUTES } from "../contract.js";
import { HttpError } from "../problem.js";
import { type Implementation, on, reply } from "../route.js";

export const sessionRoutes: readonly Implementation[] = [
  on(ROUTES.createSession, async (call) => {
    const { access, sessions, ask, body, address, actor } = call;
    const secret = access.secretOf(body.secret, address);
    const cookie = await sessions.begin(ask, secret, { ...actor, who: "page" });
    return reply({ ok: true, scopes: [...secret.scopes] }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.deleteSession, async ({ sessions, ask, actor }) => {
    const cookie = await sessions.end(ask, { ...actor, who: "page" });
    return reply({ ok: true }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.me, async ({ access, ask, address, events }) =>
    reply({ ...(await access.standing(ask, address)), hasEvents: events !== null }),
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
