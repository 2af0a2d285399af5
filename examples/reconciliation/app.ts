// The Fastify service. The plugin starts the enabled parts when the server is ready and drains them when the server
// closes; with both parts off it only serves its routes, and logs that.

import Fastify, { type FastifyServerOptions } from "fastify";
import { Holdfast } from "holdfast";
import { holdfastFastify } from "holdfast/fastify";
import type { AppDatabase } from "../shared/database.js";
import type { readConfig } from "./config.js";
import * as reconciliation from "./reconciliation.js";

export async function buildApp(
  { scheduler, worker, sharedLock }: ReturnType<typeof readConfig>,
  { db, handle }: AppDatabase,
  chain: reconciliation.ReconciliationOptions["chain"],
  logger: FastifyServerOptions["logger"] = true,
) {
  const app = Fastify({ logger });
  const holdfast = new Holdfast({ database: handle, poll: worker.pollMs });
  const { cron } = scheduler;
  reconciliation.defineReconciliation(holdfast, { db, chain, cron, sharedLock });
  // The scheduler makes the night's runs itself, which takes seconds; workers, here or elsewhere, do them.
  const jobs = [
    ...(scheduler.isEnabled ? [reconciliation.SCHEDULE_PARTIAL] : []),
    ...(worker.isEnabled ? [reconciliation.RECONCILE_ADDRESS] : []),
  ];
  await app.register(holdfastFastify, {
    prefix: "/holdfast",
    holdfast,
    start: { scheduler: scheduler.isEnabled, worker: jobs.length > 0 && { jobs } },
  });
  return { app, holdfast };
}
