// What an outside cron calls: one bounded pass, one schedule by its name, or taking back what is stale. A database that cannot
// be read runs nothing, and says so in a way that a cron does not take for a failure.

import { hosting } from "../../instance/server-internals.js";
import { codeOf } from "../problem.js";
import { isLimited, requireJob, requireQueue } from "../reach.js";
import { type Call, given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

const READ_ERROR = "schedule_read_error";

export const tickingRoutes: readonly Implementation[] = [
  on(ROUTES.tick, async ({ holdfast, body }) => {
    try {
      return reply(await holdfast.tick(given(body)));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return reply({ ok: false, reason: READ_ERROR }, 503);
    }
  }),

  on(ROUTES.cleanup, async ({ acting, body, granted }) => {
    const { timeoutSeconds, heartbeatTimeoutSeconds } = body;
    const report = await acting.cleanup({
      // Only an admin may take runs from living holders.
      respectLeases: !granted.scopes.has("admin"),
      ...(timeoutSeconds === undefined ? {} : { timeout: timeoutSeconds * 1_000 }),
      ...(heartbeatTimeoutSeconds === undefined
        ? {}
        : { heartbeatTimeout: heartbeatTimeoutSeconds * 1_000 }),
    });
    return reply({ ok: true, ...report });
  }),

  on(ROUTES.trigger, async ({ holdfast, acting, params, body, needs, granted, ...rest }) => {
    const { storeErrorStatus } = rest;
    await requireReachOfSchedule({ holdfast, granted }, String(params.name));
    // A caller with the scope trigger alone may start what is there, not say what it works on.
    if (body.input !== undefined) needs("enqueue");
    try {
      const answer = await acting.schedules.trigger(String(params.name), {
        ...given(body),
        by: granted.by,
      });
      return reply({ ok: true, ...answer });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      const skipped = {
        skipped: true,
        reason: READ_ERROR,
        holder: null,
        until: null,
        nextAt: null,
      };
      return reply({ ok: true, ...skipped }, storeErrorStatus);
    }
  }),

  on(ROUTES.enqueue, async ({ holdfast, params, body, granted }) => {
    const { input = null, ...options } = body;
    const job = String(params.name);
    await requireReach({ holdfast, granted }, job, options.queue);
    const answer = await holdfast.enqueue(job, input, given(options));
    return reply(answer, answer.deduplicated ? 200 : 201);
  }),
];

type Limited = Pick<Call, "holdfast" | "granted">;

/** `queue`: the run's own; left out, it goes to the job's. */
async function requireReach({ holdfast, granted }: Limited, job: string, queue?: string | null) {
  requireJob(granted, job);
  if (granted.queues) requireQueue(granted, queue ?? (await holdfast[hosting].queueOf(job)));
}

/** A schedule that is not there is for the trigger to refuse. */
async function requireReachOfSchedule(limited: Limited, name: string): Promise<void> {
  if (!isLimited(limited.granted)) return;
  const schedule = await limited.holdfast.schedules.get(name);
  if (schedule) await requireReach(limited, schedule.job, schedule.queue);
}

/** Certainly nothing was done: the database was not reached, or its tables are not ours. */
function isUnreadable(error: unknown): boolean {
  return UNREADABLE.includes(codeOf(error));
}

const UNREADABLE = [
  "STORE_UNAVAILABLE",
  "STORE_READ_ONLY",
  "STORE_GONE",
  "STORE_UNSUPPORTED",
  "MIGRATION_REFUSED",
];
