// Declares the routes of queues.

import { z } from "zod";
import { instantOrNull, note, route } from "./schemas.js";

const queueSchema = z
  .looseObject({
    name: z.string(),
    ready: z.number(),
    waiting: z.number(),
    running: z.number(),
    pausedAt: instantOrNull,
    pauseNote: z.string().nullable(),
  })
  .meta({ id: "Queue" });

export const QUEUE_ROUTES = {
  listQueues: route({
    method: "GET",
    path: "/api/queues",
    scope: "read",
    summary: "Every queue with what is ready, waits and runs in it.",
    answers: { 200: z.object({ queues: z.array(queueSchema) }) },
  }),
  pauseQueue: route({
    method: "POST",
    path: "/api/queues/{name}/pause",
    scope: "admin",
    summary: "Nothing is claimed from it until it is resumed; what runs goes on.",
    body: z.strictObject({ note }),
    answers: { 200: queueSchema },
  }),
  resumeQueue: route({
    method: "POST",
    path: "/api/queues/{name}/resume",
    scope: "admin",
    summary: "Claimed from again.",
    body: z.strictObject({}),
    answers: { 200: queueSchema },
  }),
} as const;
