// Declares every route of the HTTP API, one file per room: its scope, its parameters, its responses.
// The pipeline validates calls by these schemas, openapi.ts describes them, the dashboard and the client use their types.
// This folder holds declarations and imports nothing but pure constants: never the engine, a store or Node.

import { KEY_ROUTES, SESSION_ROUTES } from "./access.js";
import { ALERT_ROUTES } from "./alerts.js";
import { CHECK_IN_ROUTES } from "./check-ins.js";
import { LOCK_ROUTES } from "./locks.js";
import {
  AUDIT_ROUTES,
  CHECK_ROUTES,
  INSTANCE_ROUTES,
  OVERVIEW_ROUTES,
  PAUSE_ROUTES,
  PROBE_ROUTES,
  QUEUE_ROUTES,
  TICK_ROUTES,
} from "./operations.js";
import { RUN_ROUTES } from "./runs.js";
import { SCHEDULE_ROUTES } from "./schedules.js";
import { SIGNAL_ROUTES } from "./signals.js";
import { WORKER_ROUTES } from "./worker.js";

export const ROUTES = {
  ...TICK_ROUTES,
  ...CHECK_IN_ROUTES,
  ...SCHEDULE_ROUTES,
  ...RUN_ROUTES,
  ...SIGNAL_ROUTES,
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
