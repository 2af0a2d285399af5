// The page's session, and whether this process is well.

import { ROUTES } from "../contract.js";
import { HttpError } from "../problem.js";
import { type Call, type Implementation, on, reply } from "../route.js";

export const sessionRoutes: readonly Implementation[] = [
  on(ROUTES.createSession, async (call) => {
    const { access, sessions, body, address, nowMs } = call;
    const secret = access.secretOf(body.secret, address);
    const cookie = sessions.begin({ secret, nowMs: nowMs(), ...placeOf(call) });
    return reply({ ok: true, scopes: [...secret.scopes] }, 200, { "set-cookie": cookie });
  }),
  on(ROUTES.deleteSession, async (call) => {
    const cookie = call.sessions.end(call.ask, placeOf(call));
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

function placeOf({ ask, basePath }: Pick<Call, "ask" | "basePath">) {
  return { path: basePath || "/", isSecure: new URL(ask.url).protocol === "https:" };
}
