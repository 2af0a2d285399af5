// Declares the routes of runs: enqueue, list, read with their parts, cancel, retry, delete. The compiler compares these schemas
// with `Run` and its parts in test/types/wire.ts.

import { z } from "zod";
import { MODES } from "../../runs/rules/run.js";
import {
  anyJson,
  count,
  cursor,
  duration,
  givenInstant,
  instant,
  instantOrNull,
  limit,
  longCursor,
  name,
  ok,
  page,
  route,
  runStatus,
  storedError,
  uuid,
} from "./schemas.js";

const mode = z.enum(MODES);

export const runSchema = z
  .looseObject({
    id: uuid,
    job: z.string(),
    queue: z.string(),
    status: runStatus,
    mode,
    priority: z.number(),
    attempt: z.number(),
    fence: z.number().nullable(),
    input: anyJson,
    result: anyJson,
    error: storedError.nullable(),
    schedule: z.string().nullable(),
    parent: uuid.nullable().meta({ description: "the run that made it" }),
    nominalAt: instantOrNull,
    createdAt: instant,
    dueAt: instant,
    startedAt: instantOrNull,
    finishedAt: instantOrNull,
    updatedAt: instant,
    durationMs: z.number().nullable(),
    heartbeatAt: instantOrNull,
    holder: z.string().nullable(),
    leaseUntil: instantOrNull,
    cancelRequestedAt: instantOrNull,
    key: z.string().nullable(),
    tags: z.array(z.string()),
    partial: z.boolean(),
    items: z.object({ total: count, byOutcome: z.record(z.string(), count) }),
    progress: z
      .looseObject({
        stage: z.string().nullable(),
        done: z.number().nullable(),
        total: z.number().nullable(),
        at: instant,
        attempt: z.number(),
        stages: z.array(z.object({ stage: z.string(), at: instant })),
      })
      .nullable(),
    waitingFor: z
      .looseObject({ reason: z.string() })
      .nullable()
      .optional()
      .meta({ description: "why it has not begun; only for a single run" }),
    traceId: z.string().nullable(),
  })
  .meta({ id: "Run" });

const attemptSchema = z
  .looseObject({
    attempt: z.number(),
    fence: z.number(),
    holder: z.string(),
    end: z.string(),
    startedAt: instant,
    endedAt: instant,
    error: storedError.nullable(),
  })
  .meta({ id: "Attempt" });

const exchangeSchema = z
  .looseObject({
    attempt: z.number(),
    fence: z.number(),
    at: instant,
    durationMs: z.number(),
    method: z.string(),
    target: z.string(),
    url: z.string(),
    outcome: z.enum(["completed", "accepted", "failed", "unknown", "not_delivered"]),
    status: z.number().nullable(),
    answer: z.string().nullable(),
    error: z.string().nullable(),
    callback: z
      .looseObject({ verb: z.enum(["complete", "fail", "release"]), at: instant })
      .nullable(),
  })
  .meta({ id: "Exchange" });

const stepSchema = z
  .looseObject({
    name: z.string(),
    kind: z.enum(["step", "sleep", "signal", "run"]),
    state: z.enum(["waiting", "done", "timeout", "failed", "cancelled"]),
    startedAt: instant,
    endedAt: instantOrNull,
    until: instantOrNull.meta({ description: "when an open one ends at the latest" }),
    tries: count,
    fence: z.number().nullable(),
    signal: z.string().nullable(),
    key: z.string().nullable(),
    job: z.string().nullable(),
    run: uuid.nullable().meta({ description: "the run that a call made" }),
    value: anyJson,
    error: storedError.nullable(),
  })
  .meta({ id: "Step" });

const itemSchema = z
  .looseObject({
    key: z.string(),
    outcome: z.string(),
    attempt: z.number(),
    startedAt: instant,
    durationMs: z.number(),
    value: anyJson,
    error: storedError.nullable(),
  })
  .meta({ id: "Item" });

const lineSchema = z
  .looseObject({
    at: instant,
    level: z.enum(["debug", "info", "warn", "error"]),
    attempt: z.number(),
    message: z.string(),
    fields: z.looseObject({}),
  })
  .meta({ id: "LogLine" });

const batchSchema = z
  .looseObject({
    name: z.string(),
    scheduled: count,
    errors: z.array(z.looseObject({ index: count, code: z.string(), message: z.string() })),
    completed: count,
    failed: count,
    cancelled: count,
    then: uuid.nullable().meta({ description: "the run that followed the last child" }),
  })
  .meta({ id: "Batch" });

const enqueueOptions = {
  key: z.string().max(500).optional(),
  at: givenInstant.optional(),
  delay: duration.optional(),
  priority: z.number().optional(),
  queue: name.optional(),
  tags: z.array(z.string()).max(50).optional(),
};

export const RUN_ROUTES = {
  enqueue: route({
    method: "POST",
    path: "/api/jobs/{name}/runs",
    scope: "enqueue",
    isLimitable: true,
    summary: "Stores a run of a job.",
    body: z.strictObject({ input: anyJson.optional(), ...enqueueOptions }),
    refusals: [404, 409],
    responses: {
      201: z.object({ id: uuid, deduplicated: z.literal(false) }),
      200: z.object({ id: uuid, deduplicated: z.literal(true) }),
    },
  }),
  listRuns: route({
    method: "GET",
    path: "/api/runs",
    scope: "read",
    summary: "Runs, newest first.",
    query: z.strictObject({
      status: runStatus.optional(),
      waiting: z.enum(["true"]).optional().meta({ description: "only suspended runs" }),
      job: name.optional(),
      schedule: name.optional(),
      mode: mode.optional(),
      tag: name.optional(),
      text: z.string().max(500).optional(),
      from: givenInstant.optional(),
      to: givenInstant.optional(),
      limit,
      cursor,
    }),
    responses: { 200: page("runs", runSchema) },
  }),
  getRun: route({
    method: "GET",
    path: "/api/runs/{id}",
    scope: "read",
    summary: "One run.",
    refusals: [404, 409],
    responses: { 200: runSchema },
  }),
  listAttempts: route({
    method: "GET",
    path: "/api/runs/{id}/attempts",
    scope: "read",
    summary: "Every attempt of a run, oldest first.",
    refusals: [404, 409],
    responses: { 200: z.object({ attempts: z.array(attemptSchema) }) },
  }),
  listExchanges: route({
    method: "GET",
    path: "/api/runs/{id}/exchanges",
    scope: "read",
    summary: "Every dispatch of a run to a remote service, with its response.",
    refusals: [404, 409],
    responses: { 200: z.object({ exchanges: z.array(exchangeSchema) }) },
  }),
  listItems: route({
    method: "GET",
    path: "/api/runs/{id}/items",
    scope: "read",
    summary: "The items of a run, by key or the slowest first.",
    query: z.strictObject({
      outcome: name.optional(),
      sort: z.enum(["slowest"]).optional(),
      limit,
      cursor: longCursor,
    }),
    refusals: [404, 409],
    responses: { 200: page("items", itemSchema) },
  }),
  listSteps: route({
    method: "GET",
    path: "/api/runs/{id}/steps",
    scope: "read",
    summary: "The finished steps and waits of a run in their order, then the open ones.",
    query: z.strictObject({ limit, cursor: longCursor }),
    refusals: [404, 409],
    responses: { 200: page("steps", stepSchema) },
  }),
  listLogs: route({
    method: "GET",
    path: "/api/runs/{id}/logs",
    scope: "read",
    summary: "The log lines kept with a run, oldest first; `cursor` goes on to lines yet to come.",
    query: z.strictObject({ limit, cursor }),
    refusals: [404, 409],
    responses: {
      200: z.object({
        lines: z.array(lineSchema),
        nextCursor: z.string().nullable(),
        cursor: z.string().nullable(),
      }),
    },
  }),
  listChildren: route({
    method: "GET",
    path: "/api/runs/{id}/children",
    scope: "read",
    summary: "The runs that a run made, newest first.",
    query: z.strictObject({
      status: runStatus.optional(),
      batch: name.optional(),
      limit,
      cursor,
    }),
    refusals: [404, 409],
    responses: { 200: page("runs", runSchema) },
  }),
  listBatches: route({
    method: "GET",
    path: "/api/runs/{id}/batches",
    scope: "read",
    summary: "The batches that a run made, in order, with the outcomes of their runs.",
    refusals: [404, 409],
    responses: { 200: page("batches", batchSchema) },
  }),
  cancelRun: route({
    method: "POST",
    path: "/api/runs/{id}/cancel",
    scope: "admin",
    summary: "Cancels a pending run at once; a running one is asked to stop.",
    body: z.strictObject({}),
    refusals: [404, 409],
    responses: {
      200: z.object({
        ok: z.literal(true),
        status: z.enum(["cancelled", "requested", "already_terminal"]),
      }),
    },
  }),
  retryRun: route({
    method: "POST",
    path: "/api/runs/{id}/retry",
    scope: "admin",
    summary: "Gives a failed or cancelled run one more attempt.",
    body: z.strictObject({
      fromStep: z
        .string()
        .max(250)
        .optional()
        .describe(
          "Forgets this finished step or wait and all recorded after it; they are done again.",
        ),
    }),
    refusals: [404, 409],
    responses: { 200: ok },
  }),
  cancelRuns: route({
    method: "POST",
    path: "/api/runs/cancel",
    scope: "admin",
    summary: "Cancels several runs; each gets its own result.",
    body: z.strictObject({ ids: z.array(uuid).min(1).max(1_000) }),
    responses: {
      200: z.object({ ok: z.literal(true), runs: z.array(z.looseObject({ id: uuid })) }),
    },
  }),
  retryRuns: route({
    method: "POST",
    path: "/api/runs/retry",
    scope: "admin",
    summary: "Retries several runs; each gets its own result.",
    body: z.strictObject({ ids: z.array(uuid).min(1).max(1_000) }),
    responses: {
      200: z.object({ ok: z.literal(true), runs: z.array(z.looseObject({ id: uuid })) }),
    },
  }),
  deleteRun: route({
    method: "DELETE",
    path: "/api/runs/{id}",
    scope: "admin",
    summary: "Deletes a run that has ended, with its history.",
    refusals: [404, 409],
    responses: { 200: ok },
  }),
} as const;
