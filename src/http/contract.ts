// The wire: every route with its scope, what it takes and what it answers, by noun in contract/. The
// handler validates by these schemas, the OpenAPI description is made from them, and the page and the
// client speak them. No code of the engine is imported here.

import { ALERTS_ROUTES } from "./contract/alerts.js";
import { AUDIT_ROUTES } from "./contract/audit.js";
import { CHECK_ROUTES } from "./contract/check.js";
import { HOUSE_ROUTES } from "./contract/house.js";
import { LOCKS_ROUTES } from "./contract/locks.js";
import { OVERVIEW_ROUTES } from "./contract/overview.js";
import { PAUSE_ROUTES } from "./contract/pause.js";
import { PINGS_ROUTES } from "./contract/pings.js";
import { QUEUES_ROUTES } from "./contract/queues.js";
import { RUNS_ROUTES } from "./contract/runs.js";
import { SCHEDULES_ROUTES } from "./contract/schedules.js";
import { TICKING_ROUTES } from "./contract/ticking.js";
import { TIMELINE_ROUTES } from "./contract/timeline.js";
import { WORKER_ROUTES } from "./contract/worker.js";

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
