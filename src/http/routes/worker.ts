// Serves remote workers. A run is named by its id and fence; a call with an old fence gets 409 and changes nothing.

import { serverInternals } from "../../instance/server-internals.js";
import type { RemoteNewWait } from "../../remote/remote-steps.js";
import { ConfigurationError } from "../../shared/errors.js";
import { readInstant } from "../../shared/instant.js";
import { callbackTokenOf } from "../access.js";
import { HttpError } from "../problem.js";
import { callerOf, requireJob, requireReach } from "../reach.js";
import { type Call, given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";
import type { NewWaitBody } from "../wire/worker.js";

export const workerRoutes: readonly Implementation[] = [
  on(ROUTES.claimRuns, async ({ holdfast, body, request, granted, access, caller }) => {
    for (const job of body.jobs) requireJob(granted, job);
    const worker = {
      ...callerOf(granted, body.instance),
      recheck: () => access.recheck(caller, "worker"),
    };
    const runs = await holdfast.remote.claim({ ...given(body), signal: request.signal }, worker);
    return reply({ runs });
  }),
  on(ROUTES.beatRuns, async ({ holdfast, body: { instance, runs }, granted }) => {
    const grants = runs.map((run) => grantOf(run, run));
    const caller = callerOf(granted, instance);
    return reply(await holdfast.remote.heartbeat({ instance, runs: grants }, caller));
  }),
  on(ROUTES.beatRun, async (call) =>
    reply({ ok: true, ...(await call.holdfast.remote.beat(await claimedGrant(call))) }),
  ),
  on(ROUTES.tellProgress, async (call) => {
    const { holdfast, body } = call;
    const { fence: _, instance: __, ...progress } = body;
    await holdfast.remote.progress(await claimedGrant(call), given(progress));
    return reply({ ok: true });
  }),
  on(ROUTES.storeSteps, async (call) => {
    const { steps = [], after } = call.body;
    const asked = { steps: steps.map(given), ...(after === undefined ? {} : { after }) };
    const stored = await call.holdfast.remote.steps(await claimedGrant(call), asked);
    return reply({ ok: true, ...stored });
  }),
  on(ROUTES.waitRun, async (call) => {
    const { holdfast, body } = call;
    const { fence: _, instance: __, waits = [], ...rest } = body;
    const grant = await claimedGrant(call);
    const called = waits.flatMap((wait) => (wait.kind === "run" ? [wait] : []));
    const lanes = new Map(
      called.map(({ job, queue }) => [JSON.stringify([job, queue]), { job, queue }]),
    );
    for (const lane of lanes.values()) await requireCallable(call, lane);
    const asked = { ...given(rest), waits: waits.map((wait) => newWait(given(wait))) };
    return reply({ ok: true, ...(await holdfast.remote.wait(grant, asked)) });
  }),
  on(ROUTES.storeItems, async (call) => {
    const { holdfast, body } = call;
    const items = await holdfast.remote.items(await claimedGrant(call), body.items.map(given));
    return reply({ ok: true, items });
  }),
  on(ROUTES.appendLogs, async (call) => {
    const { holdfast, body } = call;
    const lines = body.lines.map(({ at, level, message }, index) => ({
      level,
      message,
      ...(at === undefined ? {} : { at: instant(at, `lines.${index}.at`) }),
    }));
    await holdfast.remote.logs(await claimedGrant(call), lines, body.from);
    return reply({ ok: true });
  }),
  on(ROUTES.completeRun, async (call) => {
    const { holdfast, body } = call;
    await holdfast.remote.complete(await claimedGrant(call), body.result);
    return reply({ ok: true });
  }),
  on(ROUTES.releaseRun, async (call) => {
    await call.holdfast.remote.release(await claimedGrant(call));
    return reply({ ok: true });
  }),
  on(ROUTES.failRun, async (call) => {
    const { holdfast, body } = call;
    const { fence: _, completionId: __, instance: ___, error, ...rest } = body;
    await holdfast.remote.fail(await claimedGrant(call), { error: given(error), ...given(rest) });
    return reply({ ok: true });
  }),
];

/**
 * A worker may call jobs that it could claim itself, a service with a callback token those of its own target. All other jobs,
 * such as those that this server executes, need the scope enqueue; otherwise the holder of one run could start every job.
 */
async function requireCallable(
  { holdfast, granted, request, params, body }: Call<typeof ROUTES.waitRun>,
  { job, queue }: { readonly job: string; readonly queue: string | undefined },
): Promise<void> {
  await requireReach({ holdfast, granted }, job, queue);
  if (granted.scopes.has("enqueue")) return;
  const internals = holdfast[serverInternals];
  const token = callbackTokenOf(request);
  const { id: runId, fence } = grantOf(params, body);
  const isOwn =
    token === null
      ? await internals.isRemote(job)
      : internals.isCallbackToken({ token, runId, fence, job });
  if (isOwn) return;
  throw new HttpError({
    status: 403,
    error: "scope_missing",
    detail:
      token === null
        ? 'To call a job that no remote worker executes, the secret needs the scope "enqueue" as well.'
        : "With a callback token only jobs of the same target can be called.",
  });
}

/** JSON has no instants: a sleep until one is written in a member of its own. */
function newWait(wait: NewWaitBody): RemoteNewWait {
  if (wait.kind !== "sleep") return wait as RemoteNewWait;
  const { until, time, ...rest } = wait;
  if ((until === undefined) === (time === undefined)) {
    const message = 'must be given, or until, and not both: { kind: "sleep", time: "10m" }';
    throw new ConfigurationError([{ field: "waits.time", message }]);
  }
  return { ...rest, time: until === undefined ? (time as string) : instant(until, "waits.until") };
}

type OfRun = Pick<Call, "holdfast" | "granted" | "params"> & {
  readonly body: { readonly fence: number; readonly instance?: string | undefined };
};

/** The grant of the run in the path. A worker must have claimed it; a callback token was checked by the pipeline. */
async function claimedGrant({ holdfast, granted, params, body }: OfRun) {
  const grant = grantOf(params, body);
  if (granted.scopes.has("worker"))
    await holdfast.remote.requireClaimer(grant, callerOf(granted, body.instance));
  return grant;
}

function grantOf(params: { readonly id?: string }, { fence }: { readonly fence: number }) {
  return { id: String(params.id).toLowerCase(), fence };
}

function instant(text: string, field: string): Date {
  const read = readInstant(text);
  if (typeof read === "string") throw new ConfigurationError([{ field, message: read }]);
  return new Date(read);
}
