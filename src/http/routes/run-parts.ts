// What belongs to a run, read part by part: its exchanges with a service elsewhere, its items, its log
// lines, the runs and batches it made.

import { RunNotFoundError } from "../../shared/errors.js";
import { type Call, given, type Implementation, on, reply } from "../route.js";
import { ROUTES } from "../wire/contract.js";

const LINES_DEFAULT = 1_000;

export const runPartRoutes: readonly Implementation[] = [
  on(ROUTES.listExchanges, async (call) => {
    const exchanges = await call.holdfast.runs.exchanges(idOf(call));
    return reply(await ofKnownRun(call, { exchanges }, exchanges));
  }),
  on(ROUTES.listItems, async (call) => {
    const page = await call.holdfast.runs.items(idOf(call), given(call.query));
    return reply(await ofKnownRun(call, page, page.items));
  }),
  on(ROUTES.listLogs, async (call) => {
    const { cursor: after, limit = LINES_DEFAULT } = call.query;
    const options = { limit, ...(after === undefined ? {} : { after }) };
    const { lines, cursor } = await call.holdfast.runs.logs(idOf(call), options);
    const nextCursor = lines.length === limit ? cursor : null;
    return reply(await ofKnownRun(call, { lines, nextCursor, cursor }, lines));
  }),
  on(ROUTES.listChildren, async (call) => {
    const page = await call.holdfast.runs.children(idOf(call), given(call.query));
    return reply(await ofKnownRun(call, page, page.runs));
  }),
  on(ROUTES.listBatches, async (call) => {
    const batches = await call.holdfast.runs.batches(idOf(call));
    return reply(await ofKnownRun(call, { batches, nextCursor: null }, batches));
  }),
];

type OfRun = Pick<Call, "holdfast" | "params">;

/** Where there is nothing, there may be no such run either. */
async function ofKnownRun<Page>(call: OfRun, page: Page, found: readonly unknown[]): Promise<Page> {
  if (found.length === 0 && !(await call.holdfast.runs.get(idOf(call))))
    throw new RunNotFoundError(idOf(call));
  return page;
}

function idOf({ params }: OfRun): string {
  return String(params.id);
}
