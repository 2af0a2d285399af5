// The stream of hints, as server-sent events.

import { ROUTES } from "../contract.js";
import { type Implementation, on } from "../route.js";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // Proxies that gather answers would keep hints back.
  "x-accel-buffering": "no",
};

export const eventRoutes: readonly Implementation[] = [
  on(ROUTES.events, async ({ events, request }) => {
    // Whoever asks for the head alone would never read, and never leave.
    if (request.method === "HEAD" || events === null)
      return new Response(null, { headers: HEADERS });
    const after = request.headers.get("last-event-id");
    return new Response(events.open(after, request.signal), { headers: HEADERS });
  }),
];
