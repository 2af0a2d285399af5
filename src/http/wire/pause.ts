// Declares the routes of the pause of everything.

import { z } from "zod";
import { instant, note, route } from "./schemas.js";

const pauseSchema = z
  .looseObject({ since: instant, by: z.string().nullable(), note: z.string().nullable() })
  .meta({ id: "Pause" });
const pausedSchema = z.object({ paused: pauseSchema.nullable() });

export const PAUSE_ROUTES = {
  getPause: route({
    method: "GET",
    path: "/api/pause",
    scope: "read",
    summary: "Whether everything is paused: since when, by whom and why, or null.",
    answers: { 200: pausedSchema },
  }),
  pauseAll: route({
    method: "POST",
    path: "/api/pause",
    scope: "admin",
    summary:
      "Nothing fires and nothing is claimed, anywhere, until it is resumed; what runs goes on.",
    body: z.strictObject({ note }),
    answers: { 200: pausedSchema },
  }),
  resumeAll: route({
    method: "POST",
    path: "/api/resume",
    scope: "admin",
    summary:
      "Lifts the pause of everything, and it alone; answers with the one that was on, or null.",
    body: z.strictObject({}),
    answers: { 200: z.object({ ok: z.literal(true), lifted: pauseSchema.nullable() }) },
  }),
} as const;
