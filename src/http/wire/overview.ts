// Declares the routes of the overview: announced jobs, statistics, grouped errors, hints of changes.

import { z } from "zod";
import { count, givenSince, instant, name, page, route, uuid } from "./schemas.js";

const jobSchema = z
  .looseObject({
    name: z.string(),
    queue: z.string(),
    priority: z.number(),
    version: z.number(),
    policy: z.object({
      lease: z.string(),
      timeout: z.string(),
      retry: z.object({
        attempts: z.number(),
        delay: z.string(),
        factor: z.number(),
        max: z.string(),
        jitter: z.number(),
      }),
      onLost: z.enum(["retry", "fail"]),
    }),
    inputSchema: z
      .unknown()
      .meta({ description: "JSON Schema of an input, or null where nobody could tell" }),
  })
  .meta({ id: "Job" });

const totals = {
  total: count,
  completed: count,
  failed: count,
  cancelled: count,
  successRate: z.number().min(0).max(1).nullable(),
  meanMs: z.number().nullable(),
};

const errorSchema = z
  .looseObject({
    fingerprint: z.string(),
    job: z.string(),
    code: z.string(),
    message: z.string(),
    runs: count,
    firstAt: instant,
    lastAt: instant,
    lastRunId: uuid,
  })
  .meta({ id: "ErrorGroup" });

export const OVERVIEW_ROUTES = {
  listJobs: route({
    method: "GET",
    path: "/api/jobs",
    scope: "read",
    summary: "Every job that was announced, by name.",
    answers: { 200: page("jobs", jobSchema) },
  }),
  stats: route({
    method: "GET",
    path: "/api/stats",
    scope: "read",
    summary: "How runs ended: overall, by job, and by hour or day (UTC).",
    query: z.strictObject({
      since: givenSince,
      by: z.enum(["hour", "day"]).optional(),
      job: name.optional(),
    }),
    answers: {
      200: z.object({
        by: z.enum(["hour", "day"]),
        overall: z.object(totals),
        jobs: z.array(z.object({ job: z.string(), ...totals })),
        stretches: z.array(z.object({ at: instant, ...totals })),
      }),
    },
  }),
  events: route({
    method: "GET",
    path: "/api/events",
    scope: "read",
    summary:
      "Hints {type, id, at} that something changed, at least once (SSE); Last-Event-ID goes on, or says refetch.",
    answers: { 200: z.string() },
    media: "text/event-stream",
  }),
  listErrors: route({
    method: "GET",
    path: "/api/errors",
    scope: "read",
    summary: "Failed runs, equal errors of a job together, the one that happened last first.",
    query: z.strictObject({ since: givenSince }),
    answers: {
      200: z.object({
        errors: z.array(errorSchema),
        isCut: z.boolean(),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
} as const;
