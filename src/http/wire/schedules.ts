// Declares the routes of schedules: read, edit, trigger, ticks, timeline.

import { z } from "zod";
import {
  anyJson,
  count,
  cursor,
  duration,
  givenInstant,
  instant,
  instantOrNull,
  limit,
  name,
  note,
  ok,
  page,
  route,
  runStatus,
  uuid,
} from "./schemas.js";

/** How it ticks, beside `cron`, `timezone`, `every` and `at`. */
const rules = {
  dst: z.object({ gap: z.string(), overlap: z.string() }).nullable(),
  from: instantOrNull,
  until: instantOrNull,
  exclude: z.array(z.string()),
  calendars: z.array(z.string()),
  overlap: z.string(),
  missed: z.object({ run: z.string(), within: z.string().nullable(), limit: z.number() }),
  afterFailure: z.string().nullable(),
  grace: z.string(),
  monitor: z.boolean(),
  priority: z.number().nullable(),
  queue: z.string().nullable(),
  tags: z.array(z.string()),
  alerts: z
    .looseObject({})
    .nullable()
    .meta({ description: "its own rules, instead of the general ones; null: none" }),
};

const scheduleSchema = z
  .looseObject({
    name: z.string(),
    job: z.string(),
    input: anyJson,
    status: z.enum(["active", "paused", "ended", "broken"]),
    description: z.string(),
    cron: z.string().nullable(),
    timezone: z.string(),
    every: z.string().nullable(),
    at: instantOrNull,
    nextAt: instantOrNull,
    lastTickAt: instantOrNull,
    lastRunId: uuid.nullable(),
    lastStatus: z.string().nullable(),
    pausedAt: instantOrNull,
    pauseNote: z.string().nullable(),
    brokenAt: instantOrNull,
    brokenError: z.string().nullable(),
    version: z.number(),
    ...rules,
    beganAt: instantOrNull,
    lastRunAt: instantOrNull,
    heldUntil: instantOrNull,
    pausedBy: z.string().nullable(),
    app: z.string().nullable(),
    source: z.enum(["code", "api"]),
    release: z.string().nullable(),
    createdAt: instant,
    updatedAt: instant,
  })
  .meta({ id: "Schedule" });

const tickSchema = z
  .looseObject({
    schedule: z.string(),
    at: instant,
    lastAt: instant,
    count: z.number(),
    outcome: z.enum(["fired", "skipped", "missed"]),
    reason: z.string(),
    lateMs: z.number().nullable(),
    runId: uuid.nullable(),
    runStatus: runStatus
      .nullable()
      .meta({ description: "the status of its run; null: it has none, or the run was removed" }),
    recordedAt: instant,
    recordedBy: z.string().nullable(),
    version: z.number(),
    evidence: z
      .looseObject({})
      .nullable()
      .meta({ description: "the facts behind the reason, for example the run in the way" }),
  })
  .meta({ id: "Tick" });

const backfillSchema = z
  .looseObject({
    id: uuid,
    from: instant,
    to: instant,
    status: z.enum(["running", "done", "cancelled"]),
    total: z.number(),
    made: z.number(),
    passed: z.number(),
    createdAt: instant,
    createdBy: z.string().nullable(),
    endedAt: instantOrNull,
  })
  .meta({ id: "Backfill" });

const previewSchema = { ticks: z.array(instant), notes: z.array(z.string()) };

const explanationSchema = z
  .looseObject({
    schedule: z.string(),
    at: instant,
    tick: instantOrNull,
    outcome: z.enum(["fired", "skipped", "missed", "planned", "due", "no_tick", "unknown"]),
    reason: z.string().nullable(),
    text: z.string(),
    evidence: z.array(z.string()),
    runId: uuid.nullable(),
    before: instantOrNull,
    after: instantOrNull,
  })
  .meta({ id: "Explanation" });

const versionSchema = z
  .looseObject({
    version: z.number(),
    kind: z.string(),
    at: instant,
    by: z.string().nullable(),
    job: z.string(),
    input: anyJson,
    description: z.string(),
    cron: z.string().nullable(),
    timezone: z.string(),
    every: z.string().nullable(),
    ...rules,
  })
  .meta({ id: "ScheduleVersion" });

/** As `schedules.upsert` takes it; the library checks what its members mean. */
const scheduleOptions = z.strictObject({
  job: name.optional().meta({ description: "the job that it runs; a monitor has none" }),
  monitor: z.boolean().optional().meta({
    description: "true: nothing runs here; remote work checks in by /api/ping/{monitor}",
  }),
  cron: z.string().max(1_000).optional(),
  timezone: z.string().max(100).optional(),
  dst: z.looseObject({}).optional(),
  every: duration.optional(),
  at: givenInstant.optional(),
  from: givenInstant.optional(),
  until: givenInstant.optional(),
  exclude: z.array(z.string().max(64)).max(1_000).optional(),
  calendars: z.array(name).max(50).optional(),
  overlap: z.string().optional(),
  missed: z.union([z.string(), z.looseObject({})]).optional(),
  afterFailure: duration.optional(),
  grace: duration.optional(),
  input: anyJson.optional(),
  priority: z.number().optional(),
  queue: name.optional(),
  tags: z.array(z.string()).max(50).optional(),
  alerts: z
    .union([z.literal(false), z.looseObject({})])
    .optional()
    .meta({
      description: 'rules of its own such as {"stale": "30m", "silent": false}; false: none',
    }),
});

const skippedSchema = z.object({
  ok: z.literal(true),
  skipped: z.literal(true),
  reason: z.enum(["locked", "paused", "not_due", "schedule_read_error"]),
  holder: z.string().nullable(),
  until: instantOrNull,
  nextAt: instantOrNull,
});

const triggered = z.union([z.object({ ok: z.literal(true), runId: uuid }), skippedSchema]);

const ranIfDue = z.union([
  z.object({
    ok: z.literal(true),
    ran: z.literal(true),
    run: z.object({
      id: uuid,
      status: runStatus,
      attempt: z.number(),
      startedAt: instantOrNull,
      finishedAt: instantOrNull,
    }),
    nextAt: instantOrNull,
  }),
  skippedSchema,
]);

const ticksSchema = z.object({
  at: instant,
  lastAt: instant,
  count,
  outcome: z.enum(["fired", "skipped", "missed"]),
  reason: z.string(),
  status: runStatus.nullable(),
  lateMs: z.number().nullable(),
  runId: uuid.nullable(),
});

const rowSchema = z
  .object({
    name: z.string(),
    job: z.string(),
    monitor: z.boolean(),
    status: z.enum(["active", "paused", "ended", "broken"]),
    description: z.string(),
    timezone: z.string(),
    nextAt: instantOrNull,
    pausedAt: instantOrNull,
    lastStatus: z.string().nullable(),
    ticks: z.array(ticksSchema),
    planned: z.array(z.object({ at: instant, count })),
  })
  .meta({ id: "TimelineRow" });

export const SCHEDULE_ROUTES = {
  listSchedules: route({
    method: "GET",
    path: "/api/schedules",
    scope: "read",
    summary: "Schedules by name.",
    query: z.strictObject({
      job: name.optional(),
      app: name.optional(),
      status: z.enum(["active", "paused", "ended", "broken"]).optional(),
      limit,
      cursor,
    }),
    responses: { 200: page("schedules", scheduleSchema) },
  }),
  getSchedule: route({
    method: "GET",
    path: "/api/schedules/{name}",
    scope: "read",
    summary: "One schedule.",
    refusals: [404],
    responses: { 200: scheduleSchema },
  }),
  putSchedule: route({
    method: "PUT",
    path: "/api/schedules/{name}",
    scope: "admin",
    summary: "Creates or changes a schedule; an equal definition changes nothing.",
    query: z.strictObject({
      ifVersion: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .meta({ description: "409 unless it is at this version; 0: unless there is none" }),
    }),
    body: scheduleOptions,
    refusals: [404, 409],
    responses: { 200: z.object({ schedule: scheduleSchema, warnings: z.array(z.string()) }) },
  }),
  deleteSchedule: route({
    method: "DELETE",
    path: "/api/schedules/{name}",
    scope: "admin",
    summary: "Deletes a schedule; its runs and its ledger stay.",
    refusals: [404, 409],
    responses: { 200: ok },
  }),
  pauseSchedule: route({
    method: "POST",
    path: "/api/schedules/{name}/pause",
    scope: "admin",
    summary: "Pauses a schedule until it is resumed.",
    body: z.strictObject({ note }),
    refusals: [404, 409],
    responses: { 200: scheduleSchema },
  }),
  resumeSchedule: route({
    method: "POST",
    path: "/api/schedules/{name}/resume",
    scope: "admin",
    summary: "Resumes a schedule from now on.",
    body: z.strictObject({}),
    refusals: [404, 409],
    responses: { 200: scheduleSchema },
  }),
  backfill: route({
    method: "POST",
    path: "/api/schedules/{name}/backfill",
    scope: "admin",
    summary: "Makes runs for the ticks of a range, one after the other.",
    body: z.strictObject({ from: givenInstant, to: givenInstant, all: z.boolean().optional() }),
    refusals: [404, 409],
    responses: { 200: backfillSchema },
  }),
  listBackfills: route({
    method: "GET",
    path: "/api/schedules/{name}/backfills",
    scope: "read",
    summary: "The backfills of a schedule, newest first.",
    responses: { 200: z.object({ backfills: z.array(backfillSchema) }) },
  }),
  preview: route({
    method: "GET",
    path: "/api/schedules/{name}/preview",
    scope: "read",
    summary: "The next ticks.",
    query: z.strictObject({ count: z.coerce.number().int().min(1).max(1_000).optional() }),
    refusals: [404],
    responses: { 200: z.object(previewSchema) },
  }),
  previewDefinition: route({
    method: "POST",
    path: "/api/schedules/preview",
    scope: "read",
    summary: "Previews a definition that is not stored yet: description, next ticks, warnings.",
    body: scheduleOptions.extend({
      count: z.number().int().min(1).max(1_000).optional(),
    }),
    responses: {
      200: z.object({
        ...previewSchema,
        description: z.string(),
        warnings: z.array(z.string()),
      }),
    },
  }),
  explain: route({
    method: "GET",
    path: "/api/schedules/{name}/explain",
    scope: "read",
    summary:
      "Explains why a run was or was not made at an instant; without `at`, for the last tick.",
    query: z.strictObject({ at: givenInstant.optional() }),
    refusals: [404],
    responses: { 200: explanationSchema },
  }),
  versions: route({
    method: "GET",
    path: "/api/schedules/{name}/versions",
    scope: "read",
    summary: "Every definition of a schedule, oldest first.",
    responses: { 200: z.object({ versions: z.array(versionSchema) }) },
  }),
  listTicks: route({
    method: "GET",
    path: "/api/ticks",
    scope: "read",
    summary: "The ledger, newest first: of one schedule, or of all.",
    query: z.strictObject({
      schedule: name.optional(),
      from: givenInstant.optional(),
      to: givenInstant.optional(),
      outcome: z.enum(["fired", "skipped", "missed"]).optional(),
      limit,
      cursor,
    }),
    responses: { 200: page("ticks", tickSchema) },
  }),
  trigger: route({
    method: "POST",
    path: "/api/schedules/{name}/trigger",
    scope: "trigger",
    isLimitable: true,
    summary:
      "Stores a run by hand or for an outside cron; a worker or a tick executes it. An input needs the scope enqueue.",
    body: z.strictObject({
      mode: z.enum(["manual", "test"]).optional(),
      ifDue: z.boolean().optional(),
      deliveryId: z.string().max(500).optional(),
      input: anyJson.optional(),
    }),
    refusals: [404, 409],
    responses: { 200: triggered },
  }),
  runIfDue: route({
    method: "POST",
    path: "/api/schedules/{name}/run-if-due",
    scope: "trigger",
    isLimitable: true,
    summary: "Executes the schedule if it is due and free, and replies when its run has ended.",
    body: z.strictObject({ deadline: duration.optional() }),
    refusals: [404],
    responses: { 200: ranIfDue },
  }),
  timeline: route({
    method: "GET",
    path: "/api/timeline",
    scope: "read",
    summary: "Ticks of many schedules over a period, with their runs and the planned ticks.",
    query: z.strictObject({
      from: givenInstant,
      to: givenInstant,
      cell: duration.optional(),
      schedule: name.optional(),
      job: name.optional(),
      limit,
      cursor,
    }),
    refusals: [404],
    responses: {
      200: z.object({
        now: instant,
        from: instant,
        to: instant,
        cellMs: z.number(),
        schedules: z.array(rowSchema),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
} as const;
