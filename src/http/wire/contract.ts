// Declares every route of the HTTP API, one file per noun: its scope, its parameters, its responses.
// The pipeline validates calls by these schemas, openapi.ts describes them, the dashboard and the client use their types.
// This folder holds declarations and imports nothing but pure constants: never the engine, a store or Node.

import { ALERT_ROUTES } from "./alerts.js";
import { AUDIT_ROUTES } from "./audit.js";
import { CHECK_ROUTES } from "./check.js";
import { CHECK_IN_ROUTES } from "./check-ins.js";
import { INSTANCE_ROUTES } from "./instances.js";
import { KEY_ROUTES } from "./keys.js";
import { LOCK_ROUTES } from "./locks.js";
import { OVERVIEW_ROUTES } from "./overview.js";
import { PAUSE_ROUTES } from "./pause.js";
import { PROBE_ROUTES } from "./probes.js";
import { QUEUE_ROUTES } from "./queues.js";
import { RUN_ROUTES } from "./runs.js";
import { SCHEDULE_ROUTES } from "./schedules.js";
import { SESSION_ROUTES } from "./session.js";
import { TICK_ROUTES } from "./tick.js";
import { WORKER_ROUTES } from "./worker.js";

export const ROUTES = {
  ...TICK_ROUTES,
  ...CHECK_IN_ROUTES,
  ...SCHEDULE_ROUTES,
  ...RUN_ROUTES,
  ...OVERVIEW_ROUTES,
  ...LOCK_ROUTES,
  ...QUEUE_ROUTES,
  ...CHECK_ROUTES,
  ...ALERT_ROUTES,
  ...PAUSE_ROUTES,
  ...AUDIT_ROUTES,
  ...INSTANCE_ROUTES,
  ...KEY_ROUTES,
  ...WORKER_ROUTES,
  ...SESSION_ROUTES,
  ...PROBE_ROUTES,
} as const;
