// Declares the routes that an outside cron calls: one bounded pass, and reclaiming stale runs now.

import { z } from "zod";
import { count, duration, instant, instantOrNull, route, seconds, uuid } from "./schemas.js";

const ticked = z.object({
  ok: z.literal(true),
  fired: z.array(z.object({ schedule: z.string(), tick: instant, runId: uuid })),
  skipped: z.array(z.object({ schedule: z.string(), tick: instant, reason: z.string() })),
  executed: z.number(),
  dispatched: z.number(),
  reclaimed: z.number(),
  nextWakeAt: instantOrNull,
});

export const TICK_ROUTES = {
  tick: route({
    method: "POST",
    path: "/api/tick",
    scope: "trigger",
    summary: "One bounded pass: fires what is due, then executes at most `limit` runs.",
    body: z.strictObject({ limit: z.number().optional(), budget: duration.optional() }),
    answers: {
      200: ticked,
      503: z.object({ ok: z.literal(false), reason: z.literal("schedule_read_error") }),
    },
  }),
  cleanup: route({
    method: "POST",
    path: "/api/cleanup",
    scope: "trigger",
    summary:
      "Takes back now what silent or endless holders have, by each run's own policy; within a run's own lease and timeout only for admin.",
    body: z.strictObject({
      timeoutSeconds: seconds.optional(),
      heartbeatTimeoutSeconds: seconds.optional(),
    }),
    answers: { 200: z.object({ ok: z.literal(true), reclaimed: count, failed: count }) },
  }),
} as const;
