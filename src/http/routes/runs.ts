// Serves runs: enqueue, list, read with their parts, cancel, retry and delete, one by one or several together.

import type { Runs } from "../../runs/runs.js";
import { RunNotFoundError } from "../../shared/errors.js";
import { HttpError, refusalOf } from "../problem.js";
import { requireReach } from "../reach.js";
import { type Call, given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

const LINES_DEFAULT = 1_000;

export const runRoutes: readonly Implementation[] = [
  on(ROUTES.enqueue, async ({ holdfast, params, body, granted }) => {
    const { input = null, ...options } = body;
    const job = String(params.name);
    await requireReach({ holdfast, granted }, job, options.queue);
    const stored = await holdfast.enqueue(job, input, given(options));
    return reply(stored, stored.deduplicated ? 200 : 201);
  }),
  on(ROUTES.listRuns, async ({ holdfast, query: { waiting, ...query } }) =>
    reply(
      await holdfast.runs.list({
        ...given(query),
        ...(waiting === undefined ? {} : { waiting: true }),
      }),
    ),
  ),
  on(ROUTES.getRun, async ({ holdfast, params }) => {
    const run = await holdfast.runs.get(idOf(params));
    if (!run) throw new RunNotFoundError(idOf(params));
    return reply(run);
  }),
  on(ROUTES.listAttempts, async ({ holdfast, params }) => {
    const attempts = await holdfast.runs.attempts(idOf(params));
    if (attempts.length === 0 && !(await holdfast.runs.get(idOf(params))))
      throw new RunNotFoundError(idOf(params));
    return reply({ attempts });
  }),
  on(ROUTES.cancelRun, async ({ acting, params }) => {
    const status = await acting.runs.cancel(idOf(params));
    if (status === "not_found") throw new RunNotFoundError(idOf(params));
    return reply({ ok: true, status });
  }),
  on(ROUTES.retryRun, async ({ acting, params, body }) => {
    const outcome = await acting.runs.retry(idOf(params), given(body));
    if (outcome === "pending") return reply({ ok: true });
    if (outcome === "not_found") throw new RunNotFoundError(idOf(params));
    throw conflict(
      outcome === "completed" ? "run_completed" : "run_not_terminal",
      outcome === "completed"
        ? "The run has completed; enqueue a new one to do the work again."
        : "The run has not ended yet.",
    );
  }),
  on(ROUTES.deleteRun, async ({ acting, params }) => {
    const outcome = await acting.runs.delete(idOf(params));
    if (outcome === "not_found") throw new RunNotFoundError(idOf(params));
    if (outcome === "not_terminal")
      throw conflict("run_not_terminal", "The run has not ended yet; cancel it first.");
    return reply({ ok: true });
  }),
  on(ROUTES.cancelRuns, async ({ acting, body }) =>
    reply({ ok: true, runs: await each(body.ids, (id) => acting.runs.cancel(id)) }),
  ),
  on(ROUTES.retryRuns, async ({ acting, body }) =>
    reply({ ok: true, runs: await each(body.ids, (id) => acting.runs.retry(id)) }),
  ),

  // The parts of a run.
  on(ROUTES.listExchanges, async (call) => {
    const exchanges = await call.holdfast.runs.exchanges(idOf(call.params));
    return reply(await ofKnownRun(call, { exchanges }, exchanges));
  }),
  on(ROUTES.listItems, async (call) => {
    const page = await call.holdfast.runs.items(idOf(call.params), given(call.query));
    return reply(await ofKnownRun(call, page, page.items));
  }),
  on(ROUTES.listSteps, async (call) => {
    const page = await call.holdfast.runs.steps(idOf(call.params), given(call.query));
    return reply(await ofKnownRun(call, page, page.steps));
  }),
  on(ROUTES.listLogs, async (call) => {
    const { cursor: after, limit = LINES_DEFAULT } = call.query;
    const options = { limit, ...(after === undefined ? {} : { after }) };
    const page = await call.holdfast.runs.logs(idOf(call.params), options);
    return reply(await ofKnownRun(call, page, page.lines));
  }),
  on(ROUTES.listChildren, async (call) => {
    const page = await call.holdfast.runs.children(idOf(call.params), given(call.query));
    return reply(await ofKnownRun(call, page, page.runs));
  }),
  on(ROUTES.listBatches, async (call) => {
    const batches = await call.holdfast.runs.batches(idOf(call.params));
    return reply(await ofKnownRun(call, { batches, nextCursor: null }, batches));
  }),
];

/** Acts on one run after the other, each in its own transaction: a conflict on one run does not fail the others. */
async function each(
  ids: readonly string[],
  act: (id: string) => ReturnType<Runs["cancel"]> | ReturnType<Runs["retry"]>,
): Promise<readonly { readonly id: string; readonly status: string }[]> {
  const results: { id: string; status: string }[] = [];
  for (const id of ids) results.push({ id, status: await act(id).catch(statusOf) });
  return results;
}

/** A conflict (409) becomes the status of this run; any other error fails the whole call. */
function statusOf(thrown: unknown): string {
  const { status, error } = refusalOf(thrown);
  if (status !== 409) throw thrown;
  return error;
}

function conflict(error: string, detail: string): HttpError {
  return new HttpError({ status: 409, error, detail });
}

function idOf(params: Call["params"]): string {
  return String(params.id);
}

type OfRun = Pick<Call, "holdfast" | "params">;

/** Returns the page. If it is empty, throws for a run that does not exist. */
async function ofKnownRun<Page>(call: OfRun, page: Page, found: readonly unknown[]): Promise<Page> {
  if (found.length === 0 && !(await call.holdfast.runs.get(idOf(call.params))))
    throw new RunNotFoundError(idOf(call.params));
  return page;
}
