// Declares the route of the audit trail.

import { z } from "zod";
import { AUDIT_NOUNS } from "../../operations/rules/audit.js";
import { cursor, givenSince, instant, limit, name, page, route } from "./schemas.js";

const auditSchema = z
  .looseObject({
    id: z.string(),
    at: instant,
    via: z.enum(["code", "cli", "http"]),
    who: z.string(),
    scope: z.string().nullable(),
    address: z.string().nullable(),
    requestId: z.string().nullable(),
    verb: z.string(),
    noun: z.enum(AUDIT_NOUNS),
    name: z.string().nullable(),
    note: z.string().nullable(),
    change: z.string().nullable(),
  })
  .meta({ id: "AuditEntry" });

export const AUDIT_ROUTES = {
  listAudit: route({
    method: "GET",
    path: "/api/audit",
    scope: "read",
    summary: "Who changed what, from where, when and why; newest first.",
    query: z.strictObject({
      since: givenSince,
      noun: z.enum(AUDIT_NOUNS).optional(),
      name: name.optional(),
      who: z.string().max(300).optional(),
      limit,
      cursor,
    }),
    answers: { 200: page("entries", auditSchema) },
  }),
} as const;
