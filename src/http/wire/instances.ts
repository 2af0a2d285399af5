// Declares the routes of instances: list them, make one quiet, wake it.

import { z } from "zod";
import { count, cursor, instant, instantOrNull, limit, note, ok, page, route } from "./schemas.js";

const instanceSchema = z
  .looseObject({
    id: z.string(),
    app: z.string().nullable(),
    release: z.string().nullable(),
    jobs: z.array(z.string()),
    isScheduler: z.boolean(),
    isLive: z.boolean(),
    startedAt: instant,
    seenAt: instant,
    retiredAt: instantOrNull,
    held: count,
    skewMs: z
      .number()
      .nullable()
      .meta({ description: "how far its clock is from the database's, as far as that is certain" }),
    quietAt: instantOrNull,
    quietBy: z.string().nullable(),
    quietNote: z.string().nullable(),
  })
  .meta({ id: "Instance" });

export const INSTANCE_ROUTES = {
  listInstances: route({
    method: "GET",
    path: "/api/instances",
    scope: "read",
    summary: "Instances on this database: live ones first, then the newest.",
    query: z.strictObject({ limit, cursor }),
    answers: { 200: page("instances", instanceSchema) },
  }),
  quietInstance: route({
    method: "POST",
    path: "/api/instances/{id}/quiet",
    scope: "admin",
    summary: "This instance claims and fires nothing new until it is woken; what it runs goes on.",
    body: z.strictObject({ note }),
    refusals: [404],
    answers: { 200: ok },
  }),
  wakeInstance: route({
    method: "POST",
    path: "/api/instances/{id}/wake",
    scope: "admin",
    summary: "A quiet instance claims and fires again.",
    body: z.strictObject({}),
    refusals: [404],
    answers: { 200: ok },
  }),
} as const;
