// Declares the route of signals: facts that runs wait for with `ctx.waitFor`.

import { z } from "zod";
import { anyJson, route } from "./schemas.js";

export const SIGNAL_ROUTES = {
  // Not for credentials that are limited to jobs or queues: a signal reaches runs of every job.
  sendSignal: route({
    method: "POST",
    path: "/api/signals/{name}",
    scope: "enqueue",
    summary: "Sends a signal to the runs that wait for it, now or later.",
    body: z.strictObject({
      key: z.string().meta({ description: "an id that sender and waiting run know" }),
      value: anyJson.optional(),
    }),
    refusals: [409],
    responses: {
      200: z.object({
        ok: z.literal(true),
        repeated: z.boolean().meta({ description: "an equal value was stored before" }),
      }),
    },
  }),
} as const;
