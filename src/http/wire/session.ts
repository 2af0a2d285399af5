// The page's session and the probes.

import { z } from "zod";
import { ok, route, SCOPES } from "./schemas.js";

export const HOUSE_ROUTES = {
  metrics: route({
    method: "GET",
    path: "/metrics",
    scope: "read",
    summary:
      "What this process and the database count, as text for Prometheus, or OpenMetrics by Accept.",
    answers: { 200: z.string() },
    media: "text/plain; version=0.0.4",
  }),
  createSession: route({
    method: "POST",
    path: "/api/session",
    scope: "open",
    summary: "A cookie for the page, in exchange for a secret.",
    body: z.strictObject({ secret: z.string().max(1_000) }),
    refusals: [401, 403, 429],
    answers: { 200: z.object({ ok: z.literal(true), scopes: z.array(z.enum(SCOPES)) }) },
  }),
  deleteSession: route({
    method: "DELETE",
    path: "/api/session",
    scope: "open",
    summary: "Ends the page's session.",
    answers: { 200: ok },
  }),
  me: route({
    method: "GET",
    path: "/api/me",
    scope: "open",
    summary:
      "What the caller may do here; asks for nothing and refuses nobody but a peer that guesses secrets.",
    refusals: [429],
    answers: {
      200: z.object({
        scopes: z.array(z.enum(SCOPES)),
        by: z.string().nullable(),
        login: z.enum(["secret", "elsewhere", "none"]).meta({
          description: "how more could be done: a secret, the host's own sign-in, or nothing",
        }),
        hasEvents: z.boolean(),
      }),
    },
  }),
  settings: route({
    method: "GET",
    path: "/api/settings",
    scope: "read",
    summary: "How the instance that answers is set up; no secret is in it.",
    answers: { 200: z.looseObject({ instance: z.string(), database: z.string() }) },
  }),
  healthz: route({
    method: "GET",
    path: "/healthz",
    scope: "open",
    summary: "The process answers; the database is not asked.",
    answers: { 200: ok },
  }),
  readyz: route({
    method: "GET",
    path: "/readyz",
    scope: "open",
    summary: "The database answers too.",
    answers: { 200: ok },
  }),
} as const;
