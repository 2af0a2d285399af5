// Schedules: looked at, made, changed, explained.

import { ScheduleNotFoundError } from "../../shared/errors.js";
import { type Call, given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const scheduleRoutes: readonly Implementation[] = [
  on(ROUTES.listSchedules, async ({ holdfast, query }) =>
    reply(await holdfast.schedules.list(given(query))),
  ),
  on(ROUTES.getSchedule, async ({ holdfast, params }) => {
    const schedule = await holdfast.schedules.get(nameOf(params));
    if (!schedule) throw new ScheduleNotFoundError(nameOf(params));
    return reply(schedule);
  }),
  on(ROUTES.putSchedule, async ({ acting, params, query, body, granted: { by } }) => {
    const asked = { by, ...given(query) };
    return reply(await acting.schedules.upsert(nameOf(params), given(body) as never, asked));
  }),
  on(ROUTES.deleteSchedule, async ({ acting, params, granted: { by } }) => {
    await acting.schedules.delete(nameOf(params), { by });
    return reply({ ok: true });
  }),
  on(ROUTES.pauseSchedule, async ({ acting, params, body, granted: { by } }) =>
    reply(await acting.schedules.pause(nameOf(params), body.note, { by })),
  ),
  on(ROUTES.resumeSchedule, async ({ acting, params, granted: { by } }) =>
    reply(await acting.schedules.resume(nameOf(params), { by })),
  ),
  on(ROUTES.backfill, async ({ acting, params, body, granted: { by } }) =>
    reply(await acting.schedules.backfill(nameOf(params), { ...given(body), by })),
  ),
  on(ROUTES.listBackfills, async ({ holdfast, params }) =>
    reply({ backfills: await holdfast.schedules.backfills(nameOf(params)) }),
  ),
  on(ROUTES.preview, async ({ holdfast, params, query }) =>
    reply(await holdfast.schedules.preview(nameOf(params), query.count)),
  ),
  on(ROUTES.previewDefinition, async ({ holdfast, body: { count, job: _, ...options } }) =>
    reply(await holdfast.schedules.previewDefinition(given(options) as never, count)),
  ),
  on(ROUTES.explain, async ({ holdfast, params, query, nowMs }) =>
    reply(await holdfast.schedules.explain(nameOf(params), query.at ?? new Date(nowMs()))),
  ),
  on(ROUTES.versions, async ({ holdfast, params }) =>
    reply({ versions: await holdfast.schedules.versions(nameOf(params)) }),
  ),
  on(ROUTES.listTicks, async ({ holdfast, query: { schedule, ...options } }) =>
    reply(await holdfast.schedules.ticks(schedule ?? null, given(options))),
  ),
];

function nameOf(params: Call["params"]): string {
  return String(params.name);
}

// The ledger of many schedules side by side.

export const timelineRoutes: readonly Implementation[] = [
  on(ROUTES.timeline, async ({ holdfast, query }) =>
    reply(await holdfast.schedules.timeline(given(query))),
  ),
];
