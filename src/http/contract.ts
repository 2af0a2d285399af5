// The wire: every route with its scope, what it takes and what it answers. The handler validates by
// these schemas, the OpenAPI description is made from them, and the page and the client speak them.
// No code of the engine is imported here.

import { z } from "zod";

export const SCOPES = ["trigger", "enqueue", "worker", "read", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export type Route = {
  readonly method: Method;
  /** Parameters in braces: `/api/runs/{id}`. */
  readonly path: string;
  /** Who may call it; `open` needs no secret. */
  readonly scope: Scope | "open";
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** What it answers by status, in the good case. */
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** What it answers is of. @default "application/json" */
  readonly media?: string;
};

// ── words ──────────────────────────────────────────────────────────────────────────────────────────

const instant = z.iso.datetime().meta({ description: "ISO 8601, UTC, with milliseconds" });
const instantOrNull = instant.nullable();
/** What a caller may write for an instant: checked by the library, which shows a right one. */
const givenInstant = z.string().max(64);
const duration = z.union([z.string().max(64), z.number()]).meta({
  description: 'a duration such as "30s" or "5m", or milliseconds',
});
const seconds = z
  .number()
  .min(0)
  .max(10 * 365 * 86_400);
const count = z.number().int().min(0);
const uuid = z.string();
const anyJson = z.unknown().meta({ description: "any JSON" });
/** No NUL: no database stores one in a text. */
const storable = z.string().regex(/^[^\0]*$/, "must not contain NUL");
const name = storable.max(200);
const limit = z.coerce.number().int().min(1).max(1_000).optional();
const cursor = z.string().max(500).optional();
/** Of items: it has a whole key in it. */
const longCursor = z.string().max(5_000).optional();
const givenSince = z.string().max(64).optional().meta({
  description: 'an instant, or a duration such as "24h": so long ago',
});
const note = z.string().max(2_000).optional();

const storedError = z.looseObject({ code: z.string(), name: z.string(), message: z.string() });

export const runAnswer = z
  .looseObject({
    id: uuid,
    job: z.string(),
    queue: z.string(),
    status: z.enum(["pending", "running", "completed", "failed", "cancelled"]),
    mode: z.enum(["scheduled", "manual", "test", "backfill", "enqueued"]),
    priority: z.number(),
    attempt: z.number(),
    fence: z.number().nullable(),
    input: anyJson,
    result: anyJson,
    error: storedError.nullable(),
    schedule: z.string().nullable(),
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
  })
  .meta({ id: "Run" });

const attemptAnswer = z
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

export const scheduleAnswer = z
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
    brokenError: z.string().nullable(),
    version: z.number(),
    createdAt: instant,
    updatedAt: instant,
  })
  .meta({ id: "Schedule" });

const tickAnswer = z
  .looseObject({
    schedule: z.string(),
    at: instant,
    lastAt: instant,
    count: z.number(),
    outcome: z.enum(["fired", "skipped", "missed"]),
    reason: z.string(),
    lateMs: z.number().nullable(),
    runId: uuid.nullable(),
    recordedAt: instant,
  })
  .meta({ id: "Tick" });

const backfillAnswer = z
  .looseObject({
    id: uuid,
    from: instant,
    to: instant,
    status: z.enum(["running", "done", "cancelled"]),
    total: z.number(),
    made: z.number(),
    passed: z.number(),
  })
  .meta({ id: "Backfill" });

const itemAnswer = z
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

const lineAnswer = z
  .looseObject({
    at: instant,
    level: z.enum(["debug", "info", "warn", "error"]),
    attempt: z.number(),
    message: z.string(),
    fields: z.looseObject({}),
  })
  .meta({ id: "LogLine" });

const batchAnswer = z
  .looseObject({ name: z.string(), then: uuid.nullable() })
  .meta({ id: "Batch" });

const jobAnswer = z
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
  })
  .meta({ id: "Job" });

const lockAnswer = z
  .looseObject({
    name: z.string(),
    fence: z.number(),
    holder: z.string(),
    acquiredAt: instant,
    renewedAt: instant,
    until: instant,
    waiting: count,
  })
  .meta({ id: "Lock" });

const grantAnswer = z
  .looseObject({
    name: z.string(),
    fence: z.number(),
    holder: z.string(),
    state: z.enum(["acquired", "released", "expired", "revoked"]),
    acquiredAt: instant,
    until: instant,
    endedAt: instantOrNull,
    heldMs: z.number().nullable(),
    note: z.string().nullable(),
  })
  .meta({ id: "LockGrant" });

const instanceAnswer = z
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
  })
  .meta({ id: "Instance" });

const totals = {
  total: count,
  completed: count,
  failed: count,
  cancelled: count,
  successRate: z.number().min(0).max(1).nullable(),
  meanMs: z.number().nullable(),
};

const errorAnswer = z
  .looseObject({
    job: z.string(),
    code: z.string(),
    message: z.string(),
    runs: count,
    firstAt: instant,
    lastAt: instant,
    lastRunId: uuid,
  })
  .meta({ id: "ErrorGroup" });

/** Errors, as RFC 9457 writes them, with the library's code in lower case. */
export const problemAnswer = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    error: z.string(),
    detail: z.string(),
    requestId: z.string(),
    problems: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem" });

const ok = z.object({ ok: z.literal(true) });
const fence = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

const remoteError = z.strictObject({
  code: z.string().min(1).max(64).optional(),
  message: z.string().max(100_000),
  stack: z.string().max(100_000).optional(),
});

const claimedAnswer = z
  .looseObject({
    id: uuid,
    job: z.string(),
    fence: z.number(),
    attempt: z.number(),
    input: anyJson,
    leaseMs: z.number(),
    timeoutMs: z.number(),
    mode: z.string(),
    nominalAt: instantOrNull,
    idempotencyKey: z.string(),
    tags: z.array(z.string()),
  })
  .meta({ id: "ClaimedRun" });

function page<Item extends z.ZodType>(noun: string, item: Item) {
  return z.object({ [noun]: z.array(item), nextCursor: z.string().nullable() });
}

// ── bodies ─────────────────────────────────────────────────────────────────────────────────────────

const enqueueOptions = {
  key: z.string().max(500).optional(),
  at: givenInstant.optional(),
  delay: duration.optional(),
  priority: z.number().optional(),
  queue: name.optional(),
  tags: z.array(z.string()).max(50).optional(),
};

/** As `schedules.upsert` takes it; the library checks what its members mean. */
const scheduleOptions = z.strictObject({
  job: name,
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
});

const ticked = z.object({
  ok: z.literal(true),
  fired: z.array(z.object({ schedule: z.string(), tick: instant, runId: uuid })),
  skipped: z.array(z.object({ schedule: z.string(), tick: instant, reason: z.string() })),
  executed: z.number(),
  dispatched: z.number(),
  reclaimed: z.number(),
  nextWakeAt: instantOrNull,
});

const triggered = z.union([
  z.object({ ok: z.literal(true), runId: uuid }),
  z.object({
    ok: z.literal(true),
    skipped: z.literal(true),
    reason: z.enum(["locked", "paused", "not_due", "schedule_read_error"]),
    holder: z.string().nullable(),
    until: instantOrNull,
    nextAt: instantOrNull,
  }),
]);

// ── routes ─────────────────────────────────────────────────────────────────────────────────────────

function route<const R extends Route>(definition: R): R {
  return definition;
}

export const ROUTES = {
  tick: route({
    method: "POST",
    path: "/api/tick",
    scope: "trigger",
    summary: "One bounded pass: fires what is due, then executes at most `limit` runs.",
    body: z.strictObject({ limit: z.number().optional(), budget: duration.optional() }),
    answers: { 200: ticked },
  }),
  cleanup: route({
    method: "POST",
    path: "/api/cleanup",
    scope: "trigger",
    summary: "Takes back now what silent or endless holders have, by each run's own policy.",
    body: z.strictObject({
      timeoutSeconds: seconds.optional(),
      heartbeatTimeoutSeconds: seconds.optional(),
    }),
    answers: { 200: z.object({ ok: z.literal(true), reclaimed: count, failed: count }) },
  }),
  trigger: route({
    method: "POST",
    path: "/api/schedules/{name}/trigger",
    scope: "trigger",
    summary: "A run by hand or by an outside cron; with an input it needs the scope enqueue.",
    body: z.strictObject({
      mode: z.enum(["manual", "test"]).optional(),
      ifDue: z.boolean().optional(),
      deliveryId: z.string().max(500).optional(),
      input: anyJson.optional(),
    }),
    answers: { 200: triggered },
  }),
  enqueue: route({
    method: "POST",
    path: "/api/jobs/{name}/runs",
    scope: "enqueue",
    summary: "Stores a run of a job.",
    body: z.strictObject({ input: anyJson.optional(), ...enqueueOptions }),
    answers: {
      201: z.object({ id: uuid, deduplicated: z.literal(false) }),
      200: z.object({ id: uuid, deduplicated: z.literal(true) }),
    },
  }),
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
    answers: { 200: page("schedules", scheduleAnswer) },
  }),
  getSchedule: route({
    method: "GET",
    path: "/api/schedules/{name}",
    scope: "read",
    summary: "One schedule.",
    answers: { 200: scheduleAnswer },
  }),
  putSchedule: route({
    method: "PUT",
    path: "/api/schedules/{name}",
    scope: "admin",
    summary: "Makes a schedule or changes it; an equal one changes nothing.",
    body: scheduleOptions,
    answers: { 200: z.object({ schedule: scheduleAnswer, warnings: z.array(z.string()) }) },
  }),
  deleteSchedule: route({
    method: "DELETE",
    path: "/api/schedules/{name}",
    scope: "admin",
    summary: "Deletes a schedule; its runs and its ledger stay.",
    answers: { 200: ok },
  }),
  pauseSchedule: route({
    method: "POST",
    path: "/api/schedules/{name}/pause",
    scope: "admin",
    summary: "Fires no more until it is resumed.",
    body: z.strictObject({ note }),
    answers: { 200: scheduleAnswer },
  }),
  resumeSchedule: route({
    method: "POST",
    path: "/api/schedules/{name}/resume",
    scope: "admin",
    summary: "Fires again, from now on.",
    body: z.strictObject({}),
    answers: { 200: scheduleAnswer },
  }),
  backfill: route({
    method: "POST",
    path: "/api/schedules/{name}/backfill",
    scope: "admin",
    summary: "Runs for the ticks of a range, one after the other.",
    body: z.strictObject({ from: givenInstant, to: givenInstant, all: z.boolean().optional() }),
    answers: { 200: backfillAnswer },
  }),
  listBackfills: route({
    method: "GET",
    path: "/api/schedules/{name}/backfills",
    scope: "read",
    summary: "The backfills of a schedule, newest first.",
    answers: { 200: z.object({ backfills: z.array(backfillAnswer) }) },
  }),
  preview: route({
    method: "GET",
    path: "/api/schedules/{name}/preview",
    scope: "read",
    summary: "The next ticks.",
    query: z.strictObject({ count: z.coerce.number().int().min(1).max(1_000).optional() }),
    answers: { 200: z.looseObject({}) },
  }),
  explain: route({
    method: "GET",
    path: "/api/schedules/{name}/explain",
    scope: "read",
    summary: "Why there was a run at an instant, or why not.",
    query: z.strictObject({ at: givenInstant.optional() }),
    answers: { 200: z.looseObject({}) },
  }),
  versions: route({
    method: "GET",
    path: "/api/schedules/{name}/versions",
    scope: "read",
    summary: "Every definition that it had, the first one first.",
    answers: { 200: z.object({ versions: z.array(z.looseObject({ version: z.number() })) }) },
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
    answers: { 200: page("ticks", tickAnswer) },
  }),
  listRuns: route({
    method: "GET",
    path: "/api/runs",
    scope: "read",
    summary: "Runs, newest first.",
    query: z.strictObject({
      status: z.enum(["pending", "running", "completed", "failed", "cancelled"]).optional(),
      job: name.optional(),
      schedule: name.optional(),
      mode: z.enum(["scheduled", "manual", "test", "backfill", "enqueued"]).optional(),
      tag: name.optional(),
      text: z.string().max(500).optional(),
      limit,
      cursor,
    }),
    answers: { 200: page("runs", runAnswer) },
  }),
  getRun: route({
    method: "GET",
    path: "/api/runs/{id}",
    scope: "read",
    summary: "One run.",
    answers: { 200: runAnswer },
  }),
  listAttempts: route({
    method: "GET",
    path: "/api/runs/{id}/attempts",
    scope: "read",
    summary: "Every attempt of a run, the first one first.",
    answers: { 200: z.object({ attempts: z.array(attemptAnswer) }) },
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
    answers: { 200: page("items", itemAnswer) },
  }),
  listLogs: route({
    method: "GET",
    path: "/api/runs/{id}/logs",
    scope: "read",
    summary: "The log lines kept with a run, oldest first; `cursor` goes on to lines yet to come.",
    query: z.strictObject({ limit, cursor }),
    answers: {
      200: z.object({
        lines: z.array(lineAnswer),
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
      status: z.enum(["pending", "running", "completed", "failed", "cancelled"]).optional(),
      batch: name.optional(),
      limit,
      cursor,
    }),
    answers: { 200: page("runs", runAnswer) },
  }),
  listBatches: route({
    method: "GET",
    path: "/api/runs/{id}/batches",
    scope: "read",
    summary: "The batches that a run made, in their order, with what became of their runs.",
    answers: { 200: page("batches", batchAnswer) },
  }),
  listJobs: route({
    method: "GET",
    path: "/api/jobs",
    scope: "read",
    summary: "Every job that was announced, by name.",
    answers: { 200: page("jobs", jobAnswer) },
  }),
  listInstances: route({
    method: "GET",
    path: "/api/instances",
    scope: "read",
    summary: "Instances on this database: live ones first, then the newest.",
    query: z.strictObject({ limit, cursor }),
    answers: { 200: page("instances", instanceAnswer) },
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
    answers: {
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
    answers: { 200: z.string() },
    media: "text/event-stream",
  }),
  listErrors: route({
    method: "GET",
    path: "/api/errors",
    scope: "read",
    summary: "Failed runs, equal errors of a job together, the one that happened last first.",
    query: z.strictObject({ since: givenSince }),
    answers: {
      200: z.object({
        errors: z.array(errorAnswer),
        isCut: z.boolean(),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
  listLocks: route({
    method: "GET",
    path: "/api/locks",
    scope: "read",
    summary: "The locks that are held now, by name.",
    query: z.strictObject({ limit, cursor }),
    answers: { 200: page("locks", lockAnswer) },
  }),
  lockStats: route({
    method: "GET",
    path: "/api/locks/stats",
    scope: "read",
    summary: "Grants of locks by state, within retention.",
    answers: {
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
    answers: { 200: page("grants", grantAnswer) },
  }),
  releaseLock: route({
    method: "POST",
    path: "/api/locks/{name}/release",
    scope: "admin",
    summary: "Takes a lock from whoever holds it.",
    body: z.strictObject({ note: z.string().max(500).optional() }),
    answers: {
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
  claimRuns: route({
    method: "POST",
    path: "/api/worker/claim",
    scope: "worker",
    summary: "Claims runs for a worker elsewhere; waits up to `waitMs` for the first.",
    body: z.strictObject({
      instance: name.min(1),
      claimId: z.string().min(1).max(200).optional(),
      jobs: z.array(name.min(1)).min(1).max(1_000),
      limit: z.number().int().min(1).max(100),
      waitMs: z.number().int().min(0).max(60_000).optional(),
    }),
    answers: { 200: z.object({ runs: z.array(claimedAnswer) }) },
  }),
  beatRuns: route({
    method: "POST",
    path: "/api/worker/heartbeat",
    scope: "worker",
    summary: "Renews what a worker elsewhere holds, in one call.",
    body: z.strictObject({
      instance: name.min(1),
      runs: z.array(z.strictObject({ id: uuid, fence })).max(1_000),
    }),
    answers: {
      200: z.object({
        held: z.array(z.object({ id: uuid, leaseMs: z.number(), cancel: z.boolean() })),
        lost: z.array(uuid),
      }),
    },
  }),
  beatRun: route({
    method: "POST",
    path: "/api/runs/{id}/heartbeat",
    scope: "worker",
    summary: "Renews one run.",
    body: z.strictObject({ fence }),
    answers: { 200: z.object({ ok: z.literal(true), leaseMs: z.number(), cancel: z.boolean() }) },
  }),
  tellProgress: route({
    method: "POST",
    path: "/api/runs/{id}/progress",
    scope: "worker",
    summary: "How far a run is; counts as a heartbeat.",
    body: z.strictObject({
      fence,
      stage: z.string().min(1).max(200).optional(),
      done: z.number().min(0).optional(),
      total: z.number().min(0).optional(),
    }),
    answers: { 200: ok },
  }),
  storeItems: route({
    method: "POST",
    path: "/api/runs/{id}/items",
    scope: "worker",
    summary: "Stores items of a run; an equal one again is a no-op.",
    body: z.strictObject({
      fence,
      items: z
        .array(
          z.strictObject({
            key: z.string().min(1).max(500),
            outcome: z.string().min(1).max(200).optional(),
            value: anyJson.optional(),
            error: remoteError.optional(),
            durationMs: z.number().min(0).optional(),
          }),
        )
        .max(1_000),
    }),
    answers: {
      200: z.object({
        ok: z.literal(true),
        items: z.array(z.object({ key: z.string(), status: z.enum(["stored", "conflict"]) })),
      }),
    },
  }),
  appendLogs: route({
    method: "POST",
    path: "/api/runs/{id}/logs",
    scope: "worker",
    summary: "Log lines that are kept with the run.",
    body: z.strictObject({
      fence,
      from: z.number().int().min(1).optional(),
      lines: z
        .array(
          z.strictObject({
            at: givenInstant.optional(),
            level: z.enum(["debug", "info", "warn", "error"]),
            message: z.string().max(100_000),
          }),
        )
        .max(1_000),
    }),
    answers: { 200: ok },
  }),
  completeRun: route({
    method: "POST",
    path: "/api/runs/{id}/complete",
    scope: "worker",
    summary: "Ends a run well; asked again it answers the same.",
    body: z.strictObject({
      fence,
      completionId: z.string().max(200).optional(),
      result: anyJson.optional(),
    }),
    answers: { 200: ok },
  }),
  failRun: route({
    method: "POST",
    path: "/api/runs/{id}/fail",
    scope: "worker",
    summary: "Ends an attempt badly; the run is retried by its own policy.",
    body: z.strictObject({
      fence,
      completionId: z.string().max(200).optional(),
      error: remoteError,
      permanent: z.boolean().optional(),
      retryAfterMs: z.number().min(0).optional(),
    }),
    answers: { 200: ok },
  }),
  cancelRun: route({
    method: "POST",
    path: "/api/runs/{id}/cancel",
    scope: "admin",
    summary: "A pending run at once; a running one is told to stop.",
    body: z.strictObject({}),
    answers: {
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
    summary: "One attempt more for a failed or cancelled run.",
    body: z.strictObject({}),
    answers: { 200: ok },
  }),
  cancelRuns: route({
    method: "POST",
    path: "/api/runs/cancel",
    scope: "admin",
    summary: "Cancels several runs; each has its own answer.",
    body: z.strictObject({ ids: z.array(uuid).min(1).max(1_000) }),
    answers: { 200: z.object({ ok: z.literal(true), runs: z.array(z.looseObject({ id: uuid })) }) },
  }),
  retryRuns: route({
    method: "POST",
    path: "/api/runs/retry",
    scope: "admin",
    summary: "Retries several runs; each has its own answer.",
    body: z.strictObject({ ids: z.array(uuid).min(1).max(1_000) }),
    answers: { 200: z.object({ ok: z.literal(true), runs: z.array(z.looseObject({ id: uuid })) }) },
  }),
  deleteRun: route({
    method: "DELETE",
    path: "/api/runs/{id}",
    scope: "admin",
    summary: "Removes a run that has ended, with its history.",
    answers: { 200: ok },
  }),
  createSession: route({
    method: "POST",
    path: "/api/session",
    scope: "open",
    summary: "A cookie for the page, in exchange for a secret.",
    body: z.strictObject({ secret: z.string().max(1_000) }),
    answers: { 200: z.object({ ok: z.literal(true), scopes: z.array(z.enum(SCOPES)) }) },
  }),
  deleteSession: route({
    method: "DELETE",
    path: "/api/session",
    scope: "open",
    summary: "Ends the page's session.",
    answers: { 200: ok },
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
