// What workers elsewhere call. A run is named by its id and fence; whoever is too late gets 409 and
// changes nothing.

import { ConfigurationError } from "../../core/errors.js";
import { readInstant } from "../../core/instant.js";
import { ROUTES } from "../contract.js";
import { given, type Implementation, on, reply } from "../route.js";

export const workerRoutes: readonly Implementation[] = [
  on(ROUTES.claimRuns, async ({ holdfast, body, ask }) =>
    reply({ runs: await holdfast.remote.claim({ ...given(body), signal: ask.signal }) }),
  ),
  on(ROUTES.beatRuns, async ({ holdfast, body: { instance, runs } }) =>
    reply(
      await holdfast.remote.heartbeat({ instance, runs: runs.map((run) => grantOf(run, run)) }),
    ),
  ),
  on(ROUTES.beatRun, async ({ holdfast, params, body }) =>
    reply({ ok: true, ...(await holdfast.remote.beat(grantOf(params, body))) }),
  ),
  on(ROUTES.tellProgress, async ({ holdfast, params, body }) => {
    const { fence: _, ...told } = body;
    await holdfast.remote.progress(grantOf(params, body), given(told));
    return reply({ ok: true });
  }),
  on(ROUTES.storeItems, async ({ holdfast, params, body }) => {
    const items = await holdfast.remote.items(grantOf(params, body), body.items.map(given));
    return reply({ ok: true, items });
  }),
  on(ROUTES.appendLogs, async ({ holdfast, params, body }) => {
    const lines = body.lines.map(({ at, level, message }, index) => ({
      level,
      message,
      ...(at === undefined ? {} : { at: instant(at, `lines.${index}.at`) }),
    }));
    await holdfast.remote.logs(grantOf(params, body), lines, body.from);
    return reply({ ok: true });
  }),
  on(ROUTES.completeRun, async ({ holdfast, params, body }) => {
    await holdfast.remote.complete(grantOf(params, body), body.result);
    return reply({ ok: true });
  }),
  on(ROUTES.releaseRun, async ({ holdfast, params, body }) => {
    await holdfast.remote.release(grantOf(params, body));
    return reply({ ok: true });
  }),
  on(ROUTES.failRun, async ({ holdfast, params, body }) => {
    const { fence: _, completionId: __, error, ...rest } = body;
    await holdfast.remote.fail(grantOf(params, body), { error: given(error), ...given(rest) });
    return reply({ ok: true });
  }),
];

function grantOf(params: { readonly id?: string }, { fence }: { readonly fence: number }) {
  return { id: String(params.id).toLowerCase(), fence };
}

function instant(text: string, field: string): Date {
  const read = readInstant(text);
  if (typeof read === "string") throw new ConfigurationError([{ field, message: read }]);
  return new Date(read);
}
