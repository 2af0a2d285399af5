// What an outside cron calls: one pass, a trigger, taking back what fell silent.

import { z } from "zod";
import {
  anyJson,
  count,
  duration,
  instant,
  instantOrNull,
  route,
  seconds,
  uuid,
} from "./schemas.js";

const ticked = z.object({
  ok: z.literal(true),
  fired: z.array(z.object({ schedule: z.string(), tick: instant, runId: uuid })),
  skipped: z.array(z.object({ schedule: z.string(), tick: instant, reason: z.string() })),
  executed: z.number(),
  dispatched: z.number(),
  reclaimed: z.number(),
  nextWakeAt: instantOrNull,
});

const triggered = z.union([
  z.object({ ok: z.literal(true), runId: uuid }),
  z.object({
    ok: z.literal(true),
    skipped: z.literal(true),
    reason: z.enum(["locked", "paused", "not_due", "schedule_read_error"]),
    holder: z.string().nullable(),
    until: instantOrNull,
    nextAt: instantOrNull,
  }),
]);

export const TICKING_ROUTES = {
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
  trigger: route({
    method: "POST",
    path: "/api/schedules/{name}/trigger",
    scope: "trigger",
    isLimitable: true,
    summary:
      "Stores a run by hand or by an outside cron; a worker or a tick executes it. With an input it needs the scope enqueue.",
    body: z.strictObject({
      mode: z.enum(["manual", "test"]).optional(),
      ifDue: z.boolean().optional(),
      deliveryId: z.string().max(500).optional(),
      input: anyJson.optional(),
    }),
    refusals: [404, 409],
    answers: { 200: triggered },
  }),
} as const;
