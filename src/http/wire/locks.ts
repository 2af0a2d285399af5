// Declares the routes of named locks.

import { z } from "zod";
import { count, cursor, instant, instantOrNull, limit, name, page, route } from "./schemas.js";

const lockSchema = z
  .looseObject({
    name: z.string(),
    fence: z.number(),
    holder: z.string(),
    execution: z.string().nullable(),
    acquiredAt: instant,
    renewedAt: instant,
    until: instant,
    waiting: count,
  })
  .meta({ id: "Lock" });

const grantSchema = z
  .looseObject({
    name: z.string(),
    fence: z.number(),
    holder: z.string(),
    execution: z.string().nullable(),
    state: z.enum(["acquired", "released", "expired", "revoked"]),
    acquiredAt: instant,
    until: instant,
    endedAt: instantOrNull,
    heldMs: z.number().nullable(),
    note: z.string().nullable(),
  })
  .meta({ id: "LockGrant" });

export const LOCK_ROUTES = {
  listLocks: route({
    method: "GET",
    path: "/api/locks",
    scope: "read",
    summary: "The locks that are held now, by name.",
    query: z.strictObject({ limit, cursor }),
    responses: { 200: page("locks", lockSchema) },
  }),
  lockStats: route({
    method: "GET",
    path: "/api/locks/stats",
    scope: "read",
    summary: "Grants of locks by state, within retention.",
    responses: {
      200: z.object({
        acquired: count,
        released: count,
        expired: count,
        revoked: count,
        waiting: count,
      }),
    },
  }),
  lockHistory: route({
    method: "GET",
    path: "/api/locks/history",
    scope: "read",
    summary: "Every grant of a lock within retention, newest first.",
    query: z.strictObject({ name: name.optional(), limit, cursor }),
    responses: { 200: page("grants", grantSchema) },
  }),
  releaseLock: route({
    method: "POST",
    path: "/api/locks/{name}/release",
    scope: "admin",
    summary: "Takes a lock from its holder.",
    body: z.strictObject({ note: z.string().max(500).optional() }),
    responses: {
      200: z.union([
        z.object({
          ok: z.literal(true),
          released: z.literal(true),
          holder: z.string(),
          fence: z.number(),
        }),
        z.object({ ok: z.literal(true), released: z.literal(false) }),
      ]),
    },
  }),
} as const;
