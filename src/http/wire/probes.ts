// Declares the routes that monitoring calls: metrics, liveness, readiness.

import { z } from "zod";
import { ok, route } from "./schemas.js";

export const PROBE_ROUTES = {
  metrics: route({
    method: "GET",
    path: "/metrics",
    scope: "read",
    summary:
      "What this process and the database count, as text for Prometheus, or OpenMetrics by Accept.",
    answers: { 200: z.string() },
    media: "text/plain; version=0.0.4",
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
