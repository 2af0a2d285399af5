// The stream of hints, as server-sent events.

import { type Implementation, on } from "../router.js";
import { ROUTES } from "../wire/contract.js";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // Proxies that gather answers would keep hints back.
  "x-accel-buffering": "no",
};

export const eventRoutes: readonly Implementation[] = [
  on(ROUTES.events, async ({ events, ask }) => {
    // Whoever asks for the head alone would never read, and never leave.
    if (ask.method === "HEAD" || events === null)
      return { status: 200, headers: HEADERS, content: null };
    const after = ask.headers.get("last-event-id");
    return { status: 200, headers: HEADERS, content: events.open(after, ask.signal) };
  }),
];
