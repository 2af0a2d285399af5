// Describes named keys on the wire.

import { z } from "zod";
import { duration, givenName, instant, instantOrNull, name, ok, route, SCOPES } from "./schemas.js";

const names = z.array(z.string()).nullable();

const keyAnswer = z
  .looseObject({
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    jobs: names,
    queues: names,
    createdAt: instant,
    createdBy: z.string(),
    expiresAt: instantOrNull,
    isExpired: z.boolean(),
    lastUsedAt: instantOrNull.meta({ description: "to the hour" }),
  })
  .meta({ id: "Key" });

const createdAnswer = z
  .looseObject({
    ...keyAnswer.shape,
    secret: z.string().meta({ description: "shown in this answer and never again" }),
  })
  .meta({ id: "CreatedKey" });

export const KEY_ROUTES = {
  listKeys: route({
    method: "GET",
    path: "/api/keys",
    scope: "admin",
    summary: "Every named key: scopes, limits, who made it, last use, expiry; no secret is in it.",
    answers: { 200: z.object({ keys: z.array(keyAnswer) }) },
  }),
  createKey: route({
    method: "POST",
    path: "/api/keys",
    scope: "admin",
    summary: "Makes a named key; its secret is in this answer alone.",
    body: z.strictObject({
      name: givenName,
      scopes: z.array(z.enum(SCOPES)).min(1),
      jobs: z.array(name).optional(),
      queues: z.array(name).optional(),
      expires: duration.optional(),
    }),
    refusals: [409],
    answers: { 201: createdAnswer },
  }),
  revokeKey: route({
    method: "DELETE",
    path: "/api/keys/{name}",
    scope: "admin",
    summary: "Revokes a named key; it opens nothing any more, and its sessions have ended.",
    refusals: [404],
    answers: { 200: ok },
  }),
} as const;
