// The wire: every route with its scope, what it takes and what it answers, by noun in contract/. The
// handler validates by these schemas, the OpenAPI description is made from them, and the page and the
// client speak them. No code of the engine is imported here.

import { ALERTS_ROUTES } from "./alerts.js";
import { AUDIT_ROUTES } from "./audit.js";
import { CHECK_ROUTES } from "./check.js";
import { PINGS_ROUTES } from "./check-ins.js";
import { LOCKS_ROUTES } from "./locks.js";
import { OVERVIEW_ROUTES } from "./overview.js";
import { PAUSE_ROUTES } from "./pause.js";
import { QUEUES_ROUTES } from "./queues.js";
import { RUNS_ROUTES } from "./runs.js";
import { SCHEDULES_ROUTES, TIMELINE_ROUTES } from "./schedules.js";
import { HOUSE_ROUTES } from "./session.js";
import { TICKING_ROUTES } from "./tick.js";
import { WORKER_ROUTES } from "./worker.js";

export const ROUTES = {
  ...TICKING_ROUTES,
  ...PINGS_ROUTES,
  ...SCHEDULES_ROUTES,
  ...TIMELINE_ROUTES,
  ...RUNS_ROUTES,
  ...OVERVIEW_ROUTES,
  ...LOCKS_ROUTES,
  ...QUEUES_ROUTES,
  ...CHECK_ROUTES,
  ...ALERTS_ROUTES,
  ...PAUSE_ROUTES,
  ...AUDIT_ROUTES,
  ...WORKER_ROUTES,
  ...HOUSE_ROUTES,
} as const;
