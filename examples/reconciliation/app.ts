// The Fastify service. The plugin starts what is enabled when the server is ready and drains it when the
// server closes; with both parts off it serves its routes, starts nothing and says so.

import Fastify, { type FastifyInstance } from "fastify";
import { Holdfast } from "holdfast";
import { holdfastFastify } from "holdfast/fastify";
import type pg from "pg";
import type { AppDatabase } from "../shared/database.js";
import type { Config } from "./config.js";
import {
  type Chain,
  defineReconciliation,
  RECONCILE_ADDRESS,
  SCHEDULE_PARTIAL,
} from "./reconciliation.js";

export async function buildApp(
  config: Config,
  around: {
    readonly db: AppDatabase;
    readonly chain: Chain;
    readonly logger?: object | boolean;
    readonly secrets?: { readonly admin?: string; readonly read?: string };
  },
): Promise<{ readonly app: FastifyInstance; readonly holdfast: Holdfast }> {
  const { db, chain, logger = true, secrets = {} } = around;
  const app = Fastify({ logger } as object) as FastifyInstance;
  const holdfast = new Holdfast({ database: db.handle, poll: config.worker.pollMs });
  const { sharedLock: number } = config;
  defineReconciliation(holdfast, {
    db,
    chain,
    cron: config.scheduler.cron,
    ...(number !== null && { sharedLock: { pool: db.handle as unknown as pg.Pool, number } }),
  });
  // The scheduler makes the night's runs itself, which takes seconds; workers, here or elsewhere, do them.
  const jobs = [
    ...(config.scheduler.isEnabled ? [SCHEDULE_PARTIAL] : []),
    ...(config.worker.isEnabled ? [RECONCILE_ADDRESS] : []),
  ];
  await app.register(holdfastFastify, {
    prefix: "/holdfast",
    holdfast,
    secrets,
    start: { scheduler: config.scheduler.isEnabled, worker: jobs.length > 0 && { jobs } },
  });
  app.get("/reconciliations", () =>
    db.query("select * from reconciliations order by day desc, address limit 100"),
  );
  return { app, holdfast };
}
