// What was expected against what became of it, on the wire.

import { z } from "zod";
import {
  count,
  cursor,
  duration,
  givenInstant,
  instant,
  instantOrNull,
  limit,
  name,
  route,
  uuid,
} from "./schemas.js";

const ticksAnswer = z.object({
  at: instant,
  lastAt: instant,
  count,
  outcome: z.enum(["fired", "skipped", "missed"]),
  reason: z.string(),
  status: z.enum(["pending", "running", "completed", "failed", "cancelled"]).nullable(),
  lateMs: z.number().nullable(),
  runId: uuid.nullable(),
});

const rowAnswer = z
  .object({
    name: z.string(),
    job: z.string(),
    monitor: z.boolean(),
    status: z.enum(["active", "paused", "ended", "broken"]),
    description: z.string(),
    timezone: z.string(),
    nextAt: instantOrNull,
    pausedAt: instantOrNull,
    lastStatus: z.string().nullable(),
    ticks: z.array(ticksAnswer),
    planned: z.array(z.object({ at: instant, count })),
  })
  .meta({ id: "TimelineRow" });

export const TIMELINE_ROUTES = {
  timeline: route({
    method: "GET",
    path: "/api/timeline",
    scope: "read",
    summary:
      "Ticks of many schedules over a stretch of time, with their runs, and what is planned.",
    query: z.strictObject({
      from: givenInstant,
      to: givenInstant,
      cell: duration.optional(),
      schedule: name.optional(),
      job: name.optional(),
      limit,
      cursor,
    }),
    refusals: [404],
    answers: {
      200: z.object({
        now: instant,
        from: instant,
        to: instant,
        cellMs: z.number(),
        schedules: z.array(rowAnswer),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
} as const;
