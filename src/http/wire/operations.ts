// Declares the routes of the room `operations`: the pass of an outside cron, queues, instances, pause, check, audit, statistics
// and monitoring.

import { z } from "zod";
import { AUDIT_NOUNS } from "../../operations/rules/audit.js";
import {
  count,
  cursor,
  duration,
  givenSince,
  instant,
  instantOrNull,
  limit,
  name,
  note,
  ok,
  page,
  route,
  seconds,
  uuid,
} from "./schemas.js";

// The pass of an outside cron, and reclaiming stale runs now

const ticked = z.object({
  ok: z.literal(true),
  fired: z.array(z.object({ schedule: z.string(), tick: instant, runId: uuid })),
  skipped: z.array(z.object({ schedule: z.string(), tick: instant, reason: z.string() })),
  executed: z.number(),
  dispatched: z.number(),
  reclaimed: z.number(),
  nextWakeAt: instantOrNull,
});

export const TICK_ROUTES = {
  tick: route({
    method: "POST",
    path: "/api/tick",
    scope: "trigger",
    summary: "One bounded pass: fires due ticks, then executes at most `limit` runs.",
    body: z.strictObject({ limit: z.number().optional(), budget: duration.optional() }),
    responses: {
      200: ticked,
      503: z.object({ ok: z.literal(false), reason: z.literal("schedule_read_error") }),
    },
  }),
  cleanup: route({
    method: "POST",
    path: "/api/cleanup",
    scope: "trigger",
    summary:
      "Reclaims runs now from holders that are silent or run too long, by each run's own policy; within a run's lease and timeout only for admin.",
    body: z.strictObject({
      timeoutSeconds: seconds.optional(),
      heartbeatTimeoutSeconds: seconds.optional(),
    }),
    responses: { 200: z.object({ ok: z.literal(true), reclaimed: count, failed: count }) },
  }),
} as const;

// Queues

const queueSchema = z
  .looseObject({
    name: z.string(),
    ready: z.number(),
    waiting: z.number(),
    running: z.number(),
    pausedAt: instantOrNull,
    pauseNote: z.string().nullable(),
  })
  .meta({ id: "Queue" });

export const QUEUE_ROUTES = {
  listQueues: route({
    method: "GET",
    path: "/api/queues",
    scope: "read",
    summary: "Every queue with its ready, waiting and running runs.",
    responses: { 200: z.object({ queues: z.array(queueSchema) }) },
  }),
  pauseQueue: route({
    method: "POST",
    path: "/api/queues/{name}/pause",
    scope: "admin",
    summary: "Pauses a queue: nothing is claimed from it until it is resumed; running runs go on.",
    body: z.strictObject({ note }),
    responses: { 200: queueSchema },
  }),
  resumeQueue: route({
    method: "POST",
    path: "/api/queues/{name}/resume",
    scope: "admin",
    summary: "Resumes a queue.",
    body: z.strictObject({}),
    responses: { 200: queueSchema },
  }),
} as const;

// Instances

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
      .meta({ description: "how far its clock is at least from the database's" }),
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
    responses: { 200: page("instances", instanceSchema) },
  }),
  quietInstance: route({
    method: "POST",
    path: "/api/instances/{id}/quiet",
    scope: "admin",
    summary: "The instance claims and fires nothing new until it is woken; its running runs go on.",
    body: z.strictObject({ note }),
    refusals: [404, 409],
    responses: { 200: ok },
  }),
  wakeInstance: route({
    method: "POST",
    path: "/api/instances/{id}/wake",
    scope: "admin",
    summary: "Wakes a quiet instance: it claims and fires again.",
    body: z.strictObject({}),
    refusals: [404, 409],
    responses: { 200: ok },
  }),
} as const;

// The pause of everything

const pauseSchema = z
  .looseObject({ since: instant, by: z.string().nullable(), note: z.string().nullable() })
  .meta({ id: "Pause" });
const pausedSchema = z.object({ paused: pauseSchema.nullable() });

export const PAUSE_ROUTES = {
  getPause: route({
    method: "GET",
    path: "/api/pause",
    scope: "read",
    summary: "The pause of everything with its time, author and reason, or null.",
    responses: { 200: pausedSchema },
  }),
  pauseAll: route({
    method: "POST",
    path: "/api/pause",
    scope: "admin",
    summary:
      "Pauses everything: no instance fires or claims until it is resumed; running runs go on.",
    body: z.strictObject({ note }),
    responses: { 200: pausedSchema },
  }),
  resumeAll: route({
    method: "POST",
    path: "/api/resume",
    scope: "admin",
    summary:
      "Lifts the pause of everything and no other pause; returns the pause that was lifted, or null.",
    body: z.strictObject({}),
    responses: { 200: z.object({ ok: z.literal(true), lifted: pauseSchema.nullable() }) },
  }),
} as const;

// The consistency check

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
    summary: "Checks the tables for broken promises in one snapshot, with evidence.",
    query: z.strictObject({ timeout: duration.optional() }),
    responses: { 200: z.object({ ok: z.boolean(), checks: z.array(checkSchema) }) },
  }),
} as const;

// The audit trail

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
    responses: { 200: page("entries", auditSchema) },
  }),
} as const;

// Announced jobs, statistics, grouped errors and hints of changes

const jobSchema = z
  .looseObject({
    name: z.string(),
    queue: z.string(),
    priority: z.number(),
    version: z.number(),
    policy: z.object({
      lease: z.string(),
      timeout: z.string(),
      retry: z.object({
        attempts: z.number(),
        delay: z.string(),
        factor: z.number(),
        max: z.string(),
        jitter: z.number(),
      }),
      onLost: z.enum(["retry", "fail"]),
    }),
    inputSchema: z
      .unknown()
      .meta({ description: "JSON Schema of an input, or null if it is unknown" }),
  })
  .meta({ id: "Job" });

const totals = {
  total: count,
  completed: count,
  failed: count,
  cancelled: count,
  successRate: z.number().min(0).max(1).nullable(),
  meanMs: z.number().nullable(),
};

const errorSchema = z
  .looseObject({
    fingerprint: z.string(),
    job: z.string(),
    code: z.string(),
    message: z.string(),
    runs: count,
    firstAt: instant,
    lastAt: instant,
    lastRunId: uuid,
  })
  .meta({ id: "ErrorGroup" });

export const OVERVIEW_ROUTES = {
  listJobs: route({
    method: "GET",
    path: "/api/jobs",
    scope: "read",
    summary: "Every announced job, by name.",
    responses: { 200: page("jobs", jobSchema) },
  }),
  stats: route({
    method: "GET",
    path: "/api/stats",
    scope: "read",
    summary: "How runs ended: overall, by job, and by hour or day (UTC).",
    query: z.strictObject({
      since: givenSince,
      by: z.enum(["hour", "day"]).optional(),
      job: name.optional(),
    }),
    responses: {
      200: z.object({
        by: z.enum(["hour", "day"]),
        overall: z.object(totals),
        jobs: z.array(z.object({ job: z.string(), ...totals })),
        stretches: z.array(z.object({ at: instant, ...totals })),
      }),
    },
  }),
  events: route({
    method: "GET",
    path: "/api/events",
    scope: "read",
    summary:
      "Hints {type, id, at} that something changed, at least once (SSE); Last-Event-ID goes on, or says refetch.",
    responses: { 200: z.string() },
    media: "text/event-stream",
  }),
  listErrors: route({
    method: "GET",
    path: "/api/errors",
    scope: "read",
    summary: "Failed runs grouped by job and error, the latest first.",
    query: z.strictObject({ since: givenSince }),
    responses: {
      200: z.object({
        errors: z.array(errorSchema),
        isCut: z.boolean(),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
} as const;

// Monitoring: metrics, liveness, readiness

export const PROBE_ROUTES = {
  metrics: route({
    method: "GET",
    path: "/metrics",
    scope: "read",
    summary:
      "Metrics of this process and the database as text for Prometheus, or OpenMetrics by Accept.",
    responses: { 200: z.string() },
    media: "text/plain; version=0.0.4",
  }),
  healthz: route({
    method: "GET",
    path: "/healthz",
    scope: "open",
    summary: "The process is alive; the database is not queried.",
    responses: { 200: ok },
  }),
  readyz: route({
    method: "GET",
    path: "/readyz",
    scope: "open",
    summary: "The database can be reached too.",
    responses: { 200: ok },
  }),
} as const;
