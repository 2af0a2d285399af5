// Runs: looked at, cancelled, retried, removed; one by one or several together.

import type { Runs } from "../../runs/runs.js";
import { RunNotFoundError } from "../../shared/errors.js";
import { HttpError, refusalOf } from "../problem.js";
import { type Call, given, type Implementation, on, reply } from "../route.js";
import { ROUTES } from "../wire/contract.js";

export const runRoutes: readonly Implementation[] = [
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
