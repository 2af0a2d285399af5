// Declares the routes of alerts.

import { z } from "zod";
import {
  anyJson,
  count,
  cursor,
  duration,
  instant,
  instantOrNull,
  limit,
  name,
  page,
  route,
  uuid,
} from "./schemas.js";

const alertSchema = z
  .looseObject({
    id: uuid,
    kind: z.string(),
    severity: z.enum(["warning", "critical"]),
    subject: z.object({
      type: z.enum(["job", "schedule", "instance", "database"]),
      name: z.string(),
    }),
    message: z.string(),
    evidence: anyJson,
    firstAt: instant,
    lastAt: instant,
    resolvedAt: instantOrNull,
    resolvedBy: z.string().nullable(),
    mutedUntil: instantOrNull,
    acknowledgedAt: instantOrNull,
    acknowledgedBy: z.string().nullable(),
    deliveries: z.array(
      z.object({
        destination: z.string(),
        event: z.enum(["opened", "resolved"]),
        state: z.enum(["pending", "sent", "failed"]),
        attempts: count,
        at: instant,
        error: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: "Alert" });

export const ALERT_ROUTES = {
  listAlerts: route({
    method: "GET",
    path: "/api/alerts",
    scope: "read",
    summary: "Alerts, newest first; only open ones by default.",
    query: z.strictObject({
      state: z.enum(["open", "resolved", "all"]).optional(),
      kind: z.string().max(64).optional(),
      subject: name.optional(),
      limit,
      cursor,
    }),
    responses: { 200: page("alerts", alertSchema) },
  }),
  testAlerts: route({
    method: "POST",
    path: "/api/alerts/test",
    scope: "admin",
    summary: "Sends a test alert to every destination of this instance, or to one.",
    body: z.strictObject({ destination: z.string().max(64).optional() }),
    responses: {
      200: z.object({
        ok: z.boolean(),
        deliveries: z.array(
          z.object({ destination: z.string(), ok: z.boolean(), error: z.string().nullable() }),
        ),
      }),
    },
  }),
  getAlert: route({
    method: "GET",
    path: "/api/alerts/{id}",
    scope: "read",
    summary: "One alert with its deliveries.",
    refusals: [404, 409],
    responses: { 200: alertSchema },
  }),
  muteAlert: route({
    method: "POST",
    path: "/api/alerts/{id}/mute",
    scope: "admin",
    summary: "Mutes deliveries about its kind and subject for this time.",
    body: z.strictObject({ for: duration }),
    refusals: [404, 409],
    responses: { 200: alertSchema },
  }),
  acknowledgeAlert: route({
    method: "POST",
    path: "/api/alerts/{id}/acknowledge",
    scope: "admin",
    summary: "Records who has seen it; the alert ends when its condition does.",
    body: z.strictObject({}),
    refusals: [404, 409],
    responses: { 200: alertSchema },
  }),
  resolveAlert: route({
    method: "POST",
    path: "/api/alerts/{id}/resolve",
    scope: "admin",
    summary: "Ends it by hand; if its condition still holds, the next check opens a new one.",
    body: z.strictObject({}),
    refusals: [404, 409],
    responses: { 200: alertSchema },
  }),
} as const;
