// Serves schedules: read, edit, explain, backfill, trigger, ticks and timeline. A trigger that cannot read the database replies
// as skipped, by default with 200: an outside cron must not take that for a failure.

import { ScheduleNotFoundError } from "../../shared/errors.js";
import { isStoreUnreadable, STORE_READ_ERROR } from "../problem.js";
import { isLimited, requireReach } from "../reach.js";
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
    const options = { by, ...given(query) };
    return reply(await acting.schedules.upsert(nameOf(params), given(body) as never, options));
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
  on(ROUTES.explain, async ({ holdfast, params, query }) =>
    reply(await holdfast.schedules.explain(nameOf(params), query.at)),
  ),
  on(ROUTES.versions, async ({ holdfast, params }) =>
    reply({ versions: await holdfast.schedules.versions(nameOf(params)) }),
  ),
  on(ROUTES.listTicks, async ({ holdfast, query: { schedule, ...options } }) =>
    reply(await holdfast.schedules.ticks(schedule ?? null, given(options))),
  ),
  on(ROUTES.timeline, async ({ holdfast, query }) =>
    reply(await holdfast.schedules.timeline(given(query))),
  ),
  on(ROUTES.trigger, async ({ holdfast, acting, params, body, needs, granted, ...rest }) => {
    const { storeErrorStatus } = rest;
    await requireReachOfSchedule({ holdfast, granted }, String(params.name));
    // The scope trigger starts a schedule as it is defined; an input of the caller needs the scope enqueue.
    if (body.input !== undefined) needs("enqueue");
    try {
      const triggered = await acting.schedules.trigger(String(params.name), {
        ...given(body),
        by: granted.by,
      });
      return reply({ ok: true, ...triggered });
    } catch (error) {
      if (!isStoreUnreadable(error)) throw error;
      const skipped = {
        skipped: true,
        reason: STORE_READ_ERROR,
        holder: null,
        until: null,
        nextAt: null,
      };
      return reply({ ok: true, ...skipped }, storeErrorStatus);
    }
  }),
  on(ROUTES.runIfDue, async (call) => {
    const { holdfast, params, body, request, granted, storeErrorStatus } = call;
    try {
      await requireReachOfSchedule({ holdfast, granted }, nameOf(params));
    } catch (error) {
      if (!isStoreUnreadable(error)) throw error;
      const nothing = { holder: null, until: null, nextAt: null };
      return reply(
        { ok: true, skipped: true, reason: STORE_READ_ERROR, ...nothing },
        storeErrorStatus,
      );
    }
    const { signal } = request;
    const answer = await holdfast.runIfDue(nameOf(params), { ...given(body), signal });
    if (!answer.ran) {
      const isUnread = answer.reason === STORE_READ_ERROR;
      return reply({ ok: true, ...answer }, isUnread ? storeErrorStatus : 200);
    }
    const { id, status, attempt, startedAt, finishedAt } = answer.run;
    const run = { id, status, attempt, startedAt, finishedAt };
    return reply({ ok: true, ran: true, run, nextAt: answer.nextAt });
  }),
];

function nameOf(params: Call["params"]): string {
  return String(params.name);
}

/** Passes for a schedule that does not exist: the trigger itself refuses that. */
async function requireReachOfSchedule(limited: Limited, name: string): Promise<void> {
  if (!isLimited(limited.granted)) return;
  const schedule = await limited.holdfast.schedules.get(name);
  if (schedule) await requireReach(limited, schedule.job, schedule.queue);
}

type Limited = Pick<Call, "holdfast" | "granted">;
