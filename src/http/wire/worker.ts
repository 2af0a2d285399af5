// Declares the routes of remote workers: claim, heartbeat, progress, items, log lines, completion.

import { z } from "zod";
import {
  anyJson,
  duration,
  givenInstant,
  givenName,
  instantOrNull,
  MS_MAX,
  ok,
  route,
  storable,
  storedError,
  uuid,
} from "./schemas.js";

const LINES_MAX = 1_000_000_000;

const fence = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

/** The name that the run was claimed under; left out, the credential alone is compared. */
const claimer = givenName.optional();

const remoteError = z.strictObject({
  code: storable(z.string().min(1).max(64)).optional(),
  message: z.string().max(100_000),
  stack: z.string().max(100_000).optional(),
});

const stepName = storable(z.string().min(1).max(210));

const remoteStep = z
  .object({
    name: z.string(),
    no: z.number(),
    kind: z.enum(["step", "sleep", "signal", "run"]),
    value: anyJson,
    error: z
      .object({ status: z.enum(["failed", "cancelled"]), error: storedError.nullable() })
      .nullable(),
    signal: z.string().nullable(),
    key: z.string().nullable(),
    run: uuid.nullable(),
  })
  .meta({ id: "RemoteStep", description: "what has ended, in the order of `no`" });

const remoteWait = z
  .object({
    name: z.string(),
    kind: z.enum(["retry", "sleep", "signal", "run"]),
    leftMs: z.number().nullable().meta({ description: "until its deadline; null: it has none" }),
    signal: z.string().nullable(),
    key: z.string().nullable(),
    run: uuid.nullable(),
    tries: z.number(),
  })
  .meta({ id: "RemoteWait", description: "a wait that is open" });

const remoteSteps = {
  steps: z.array(remoteStep),
  waits: z.array(remoteWait),
  hasMoreSteps: z.boolean().meta({
    description:
      "the others, and waits that a claim leaves out: POST /api/runs/{id}/steps with `after`",
  }),
};

/** A wait that begins, with the options of `ctx.sleep`, `ctx.waitFor` and `ctx.call`. */
const newWait = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("sleep"),
    name: stepName.optional(),
    time: duration.optional(),
    until: givenInstant.optional(),
  }),
  z.strictObject({
    kind: z.literal("signal"),
    name: stepName.optional(),
    signal: givenName,
    key: z.string().max(500).optional(),
    timeout: duration.optional(),
    since: z.string().max(64).optional().meta({ description: '"any" or an instant' }),
  }),
  z.strictObject({
    kind: z.literal("run"),
    name: stepName.optional(),
    job: givenName,
    input: anyJson.optional(),
    onCancel: z.enum(["cancel", "leave"]).optional(),
    at: givenInstant.optional(),
    delay: duration.optional(),
    priority: z.number().optional(),
    queue: givenName.optional(),
    tags: z.array(z.string()).max(50).optional(),
  }),
  z.strictObject({
    kind: z.literal("retry"),
    name: stepName,
    delayMs: z.number().min(0).max(MS_MAX),
    tries: z.number().int().min(1).max(10_000),
    error: remoteError.optional(),
  }),
]);

/** A wait as callers send it. */
export type NewWaitBody = z.output<typeof newWait>;

const claimedSchema = z
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
    traceparent: z.string().nullable(),
    ...remoteSteps,
  })
  .meta({ id: "ClaimedRun" });

export const WORKER_ROUTES = {
  claimRuns: route({
    method: "POST",
    path: "/api/worker/claim",
    scope: "worker",
    isLimitable: true,
    summary: "Claims runs for a remote worker; waits up to `waitMs` for the first.",
    refusals: [409],
    body: z.strictObject({
      instance: givenName,
      claimId: z.string().min(1).max(200).optional(),
      jobs: z.array(givenName).min(1).max(1_000),
      limit: z.number().int().min(1).max(100),
      waitMs: z.number().int().min(0).max(60_000).optional(),
    }),
    responses: { 200: z.object({ runs: z.array(claimedSchema) }) },
  }),
  beatRuns: route({
    method: "POST",
    path: "/api/worker/heartbeat",
    scope: "worker",
    isLimitable: true,
    summary: "Renews all runs of a remote worker in one call.",
    refusals: [409],
    body: z.strictObject({
      instance: givenName,
      runs: z.array(z.strictObject({ id: uuid, fence })).max(1_000),
    }),
    responses: {
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
    isLimitable: true,
    isCallback: true,
    summary: "Renews one run.",
    body: z.strictObject({ instance: claimer, fence }),
    refusals: [409],
    responses: { 200: z.object({ ok: z.literal(true), leaseMs: z.number(), cancel: z.boolean() }) },
  }),
  tellProgress: route({
    method: "POST",
    path: "/api/runs/{id}/progress",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary: "Stores the progress of a run; counts as a heartbeat.",
    body: z.strictObject({
      instance: claimer,
      fence,
      stage: givenName.optional(),
      done: z.number().min(0).optional(),
      total: z.number().min(0).optional(),
    }),
    refusals: [409],
    responses: { 200: ok },
  }),
  releaseRun: route({
    method: "POST",
    path: "/api/runs/{id}/release",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary:
      "Hands a run back: it is ready at once for other workers, and its attempt does not count.",
    body: z.strictObject({ instance: claimer, fence }),
    refusals: [409],
    responses: { 200: ok },
  }),
  storeSteps: route({
    method: "POST",
    path: "/api/runs/{id}/steps",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary:
      "Stores finished steps of a run. With `after` it records the ends of waits that are over, and returns what is stored after that number.",
    body: z.strictObject({
      instance: claimer,
      fence,
      steps: z
        .array(
          z.strictObject({
            name: stepName,
            value: anyJson.optional(),
            tries: z.number().int().min(1).max(10_000).optional(),
            durationMs: z.number().min(0).max(MS_MAX).optional(),
          }),
        )
        .max(1_000)
        .optional(),
      after: z.number().int().min(0).max(LINES_MAX).optional(),
    }),
    refusals: [409],
    responses: {
      200: z.object({
        ok: z.literal(true),
        stored: z.array(z.object({ name: z.string(), no: z.number() })),
        ...remoteSteps,
      }),
    },
  }),
  waitRun: route({
    method: "POST",
    path: "/api/runs/{id}/wait",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary:
      "Begins waits of a run and suspends it: when one ends the run is claimed anew, with a new fence. `suspend: false` only begins them.",
    body: z.strictObject({
      instance: claimer,
      fence,
      waits: z.array(newWait).max(1_000).optional(),
      suspend: z.boolean().optional(),
      retries: z
        .array(stepName)
        .max(1_000)
        .optional()
        .meta({ description: "steps that wait for their next try; other retries are forgotten" }),
    }),
    refusals: [403, 404, 409],
    responses: {
      200: z.object({
        ok: z.literal(true),
        state: z.enum(["held", "suspended"]),
        wakeInMs: z.number().nullable(),
        waits: z.array(remoteWait),
      }),
    },
  }),
  storeItems: route({
    method: "POST",
    path: "/api/runs/{id}/items",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary: "Stores items of a run; storing an equal item again changes nothing.",
    body: z.strictObject({
      instance: claimer,
      fence,
      items: z
        .array(
          z.strictObject({
            key: storable(z.string().min(1).max(500)),
            outcome: givenName.optional(),
            value: anyJson.optional(),
            error: remoteError.optional(),
            durationMs: z.number().min(0).max(MS_MAX).optional(),
          }),
        )
        .max(1_000),
    }),
    refusals: [409],
    responses: {
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
    isLimitable: true,
    isCallback: true,
    summary: "Stores log lines with the run.",
    body: z.strictObject({
      instance: claimer,
      fence,
      from: z.number().int().min(1).max(LINES_MAX).optional(),
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
    refusals: [409],
    responses: { 200: ok },
  }),
  completeRun: route({
    method: "POST",
    path: "/api/runs/{id}/complete",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary:
      "Completes a run. A repetition with an equal result gets the same response, with another result 409.",
    refusals: [409],
    body: z.strictObject({
      instance: claimer,
      fence,
      completionId: z.string().max(200).optional(),
      result: anyJson.optional(),
    }),
    responses: { 200: ok },
  }),
  failRun: route({
    method: "POST",
    path: "/api/runs/{id}/fail",
    scope: "worker",
    isLimitable: true,
    isCallback: true,
    summary: "Fails an attempt; the run is retried by its own policy.",
    body: z.strictObject({
      instance: claimer,
      fence,
      completionId: z.string().max(200).optional(),
      error: remoteError,
      permanent: z.boolean().optional(),
      retryAfterMs: z.number().min(0).max(MS_MAX).optional(),
    }),
    refusals: [409],
    responses: { 200: ok },
  }),
} as const;
