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
    const answer = await holdfast.enqueue(job, input, given(options));
    return reply(answer, answer.deduplicated ? 200 : 201);
  }),
  on(ROUTES.listRuns, async ({ holdfast, query }) => reply(await holdfast.runs.list(given(query)))),
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
  on(ROUTES.retryRun, async ({ acting, params }) => {
    const answer = await acting.runs.retry(idOf(params));
    if (answer === "pending") return reply({ ok: true });
    if (answer === "not_found") throw new RunNotFoundError(idOf(params));
    throw conflict(
      answer === "completed" ? "run_completed" : "run_not_terminal",
      answer === "completed"
        ? "The run has completed; enqueue a new one to do the work again."
        : "The run has not ended yet.",
    );
  }),
  on(ROUTES.deleteRun, async ({ acting, params }) => {
    const answer = await acting.runs.delete(idOf(params));
    if (answer === "not_found") throw new RunNotFoundError(idOf(params));
    if (answer === "not_terminal")
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
  on(ROUTES.listLogs, async (call) => {
    const { cursor: after, limit = LINES_DEFAULT } = call.query;
    const options = { limit, ...(after === undefined ? {} : { after }) };
    const { lines, cursor } = await call.holdfast.runs.logs(idOf(call.params), options);
    const nextCursor = lines.length === limit ? cursor : null;
    return reply(await ofKnownRun(call, { lines, nextCursor, cursor }, lines));
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

/** One after the other: each is a transaction of its own, and what one is refused for does not fail its neighbours. */
async function each(
  ids: readonly string[],
  act: (id: string) => ReturnType<Runs["cancel"]> | ReturnType<Runs["retry"]>,
): Promise<readonly { readonly id: string; readonly status: string }[]> {
  const answers: { id: string; status: string }[] = [];
  for (const id of ids) answers.push({ id, status: await act(id).catch(statusOf) });
  return answers;
}

/** What stands against it, as the answer for this run alone; anything else ends them all. */
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

/** Where there is nothing, there may be no such run either. */
async function ofKnownRun<Page>(call: OfRun, page: Page, found: readonly unknown[]): Promise<Page> {
  if (found.length === 0 && !(await call.holdfast.runs.get(idOf(call.params))))
    throw new RunNotFoundError(idOf(call.params));
  return page;
}
