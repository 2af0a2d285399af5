// Declares the route of the consistency check.

import { z } from "zod";
import { count, duration, route } from "./schemas.js";

const checkSchema = z
  .looseObject({
    name: z.string(),
    ok: z.boolean(),
    violations: count,
    evidence: z.array(z.record(z.string(), z.unknown())),
    promise: z.string().nullable(),
    unfinished: z.boolean(),
    error: z.string().nullable(),
    tookMs: z.number(),
  })
  .meta({ id: "Check" });

export const CHECK_ROUTES = {
  check: route({
    method: "GET",
    path: "/api/check",
    scope: "read",
    summary: "Which promises the tables break, in one snapshot, with evidence.",
    query: z.strictObject({ timeout: duration.optional() }),
    answers: { 200: z.object({ ok: z.boolean(), checks: z.array(checkSchema) }) },
  }),
} as const;
