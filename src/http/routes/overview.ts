// Serves the overview: announced jobs, statistics, grouped errors, and the stream of hints that something changed.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // A proxy that buffers responses would hold hints back.
  "x-accel-buffering": "no",
};

export const overviewRoutes: readonly Implementation[] = [
  on(ROUTES.listJobs, async ({ holdfast }) =>
    reply({ jobs: await holdfast.jobs(), nextCursor: null }),
  ),
  on(ROUTES.stats, async ({ holdfast, query }) => reply(await holdfast.stats(given(query)))),
  on(ROUTES.listErrors, async ({ holdfast, query }) => {
    const { errors, isCut } = await holdfast.errors(given(query));
    return reply({ errors, isCut, nextCursor: null });
  }),
  on(ROUTES.events, async ({ events, request }) => {
    // A HEAD request never reads the stream and would never close it.
    if (request.method === "HEAD" || events === null)
      return { status: 200, headers: STREAM_HEADERS, content: null };
    const after = request.headers.get("last-event-id");
    return { status: 200, headers: STREAM_HEADERS, content: events.open(after, request.signal) };
  }),
];
