// Declares the check-in routes of monitored work: started, done, failed.

import { z } from "zod";
import { instantOrNull, route, uuid } from "./schemas.js";

const pinged = z.object({
  ok: z.literal(true),
  state: z.enum(["start", "ok", "fail"]),
  tick: instantOrNull.meta({ description: "the tick that it counts for" }),
  runId: uuid.nullable(),
  repeated: z.boolean(),
  paused: z.boolean(),
  nextDeadlineAt: instantOrNull,
});
const deliveryId = z.string().max(500).optional();
/** Other members are allowed and ignored: the heartbeat of another Holdfast sends some. */
const anything = z.looseObject({});
const scope = "trigger";
const responses = { 200: pinged };

export const CHECK_IN_ROUTES = {
  ping: route({
    method: "POST",
    path: "/api/ping/{monitor}",
    scope,
    summary: "Checks in for a monitor: the work is done.",
    body: anything.extend({ deliveryId }),
    refusals: [404, 409],
    responses,
  }),
  pingStart: route({
    method: "POST",
    path: "/api/ping/{monitor}/start",
    scope,
    summary: "Checks in for a monitor: the work began, and its end is expected.",
    body: anything,
    refusals: [404, 409],
    responses,
  }),
  pingFail: route({
    method: "POST",
    path: "/api/ping/{monitor}/fail",
    scope,
    summary: "Checks in for a monitor: the work failed.",
    body: z.strictObject({ reason: z.string().max(10_000).optional(), deliveryId }),
    refusals: [404, 409],
    responses,
  }),
} as const;
