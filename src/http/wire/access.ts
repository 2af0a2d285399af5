// Declares the routes about the caller's own rights: the dashboard's session, the settings that it shows, and named keys.

import { z } from "zod";
import { duration, givenName, instant, instantOrNull, name, ok, route, SCOPES } from "./schemas.js";

// Sessions

export const SESSION_ROUTES = {
  createSession: route({
    method: "POST",
    path: "/api/session",
    scope: "open",
    summary: "Signs the page in: returns a cookie for a secret.",
    body: z.strictObject({ secret: z.string().max(1_000) }),
    refusals: [401, 403, 429],
    responses: { 200: z.object({ ok: z.literal(true), scopes: z.array(z.enum(SCOPES)) }) },
  }),
  deleteSession: route({
    method: "DELETE",
    path: "/api/session",
    scope: "open",
    summary: "Signs the page out.",
    responses: { 200: ok },
  }),
  me: route({
    method: "GET",
    path: "/api/me",
    scope: "open",
    summary: "The caller's scopes; needs no secret and refuses only a peer that guesses secrets.",
    refusals: [429],
    responses: {
      200: z.object({
        scopes: z.array(z.enum(SCOPES)),
        by: z.string().nullable(),
        login: z.enum(["secret", "elsewhere", "none"]).meta({
          description:
            "how to get more scopes: with a secret, through the host's own sign-in, or not at all",
        }),
        hasEvents: z.boolean(),
      }),
    },
  }),
  settings: route({
    method: "GET",
    path: "/api/settings",
    scope: "read",
    summary: "The settings of the instance that responds, without secrets.",
    responses: { 200: z.looseObject({ instance: z.string(), database: z.string() }) },
  }),
} as const;

// Named keys

const names = z.array(z.string()).nullable();

const keySchema = z
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

const createdKeySchema = z
  .looseObject({
    ...keySchema.shape,
    secret: z.string().meta({ description: "only this response has it" }),
  })
  .meta({ id: "CreatedKey" });

export const KEY_ROUTES = {
  listKeys: route({
    method: "GET",
    path: "/api/keys",
    scope: "admin",
    summary:
      "Every named key with scopes, limits, author, last use and expiry, without its secret.",
    responses: { 200: z.object({ keys: z.array(keySchema) }) },
  }),
  createKey: route({
    method: "POST",
    path: "/api/keys",
    scope: "admin",
    summary: "Creates a named key; only this response has its secret.",
    body: z.strictObject({
      name: givenName,
      scopes: z.array(z.enum(SCOPES)).min(1),
      jobs: z.array(name).optional(),
      queues: z.array(name).optional(),
      expires: duration.optional(),
    }),
    refusals: [409],
    responses: { 201: createdKeySchema },
  }),
  revokeKey: route({
    method: "DELETE",
    path: "/api/keys/{name}",
    scope: "admin",
    summary: "Revokes a named key and ends its sessions.",
    refusals: [404],
    responses: { 200: ok },
  }),
} as const;
