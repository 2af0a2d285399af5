// Declares the routes of the dashboard's session: sign in, sign out, the caller's rights, the settings of this instance.

import { z } from "zod";
import { ok, route, SCOPES } from "./schemas.js";

export const SESSION_ROUTES = {
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
} as const;
