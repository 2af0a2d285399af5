// Measures a call over HTTP: an enqueue, and a tick with nothing due, on Holdfast's own server, beside a bare Hono route that
// does one INSERT. One process serves, another one calls over 16 connections that stay open.

import { withProcesses } from "../processes.mjs";

const CALLERS = 16;

function httpScenario({ name, title, call }) {
  return {
    name,
    title,
    engines: ["postgres"],
    isFor: ({ http }) => http !== undefined,
    unit: "calls/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const place = await places.fresh(contestant, {});
      try {
        return await withProcesses(contestant, 2, async (server, client) => {
          const { url, calls } = await server.ask("serveHttp", { url: place.url });
          const figures = await client.ask("postFor", {
            url,
            call: calls[call],
            callers: CALLERS,
            warmMs: sizes.enqueueMs,
            ms: sizes.enqueueMs,
          });
          await server.ask("closeHttp");
          return figures;
        });
      } finally {
        await place.drop();
      }
    },
  };
}

export const httpScenarios = [
  httpScenario({ name: "http-enqueue", title: "enqueue by HTTP, 16 connections", call: "enqueue" }),
  httpScenario({
    name: "http-tick",
    title: "tick by HTTP with nothing due, 16 connections",
    call: "tick",
  }),
];
