// The Fastify service. The plugin starts the enabled parts when the server is ready and drains them when the server
// closes; with both parts off it only serves its routes, and logs that.

import Fastify, { type FastifyInstance } from "fastify";
import { Holdfast } from "holdfast";
import { holdfastFastify } from "holdfast/fastify";
import { sql } from "kysely";
import type { AppDatabase } from "../shared/database.js";
import type { Config } from "./config.js";
import {
  type Chain,
  defineReconciliation,
  RECONCILE_ADDRESS,
  SCHEDULE_PARTIAL,
} from "./reconciliation.js";

export type Around = {
  readonly database: AppDatabase;
  readonly chain: Chain;
  readonly logger?: object | boolean;
  readonly secrets?: { readonly admin?: string; readonly read?: string };
};

export async function buildApp({ scheduler, worker, sharedLock: number }: Config, around: Around) {
  const { database, chain, logger = true, secrets = {} } = around;
  const { db, handle } = database;
  const app = Fastify({ logger } as object) as FastifyInstance;
  const holdfast = new Holdfast({ database: handle, poll: worker.pollMs });
  const sharedLock = number && "connect" in handle ? { pool: handle, number } : null;
  defineReconciliation(holdfast, { db, chain, cron: scheduler.cron, sharedLock });
  // The scheduler makes the night's runs itself, which takes seconds; workers, here or elsewhere, do them.
  const jobs = [
    ...(scheduler.isEnabled ? [SCHEDULE_PARTIAL] : []),
    ...(worker.isEnabled ? [RECONCILE_ADDRESS] : []),
  ];
  await app.register(holdfastFastify, {
    prefix: "/holdfast",
    holdfast,
    secrets,
    start: { scheduler: scheduler.isEnabled, worker: jobs.length > 0 && { jobs } },
  });
  app.get("/reconciliations", async () => {
    const newest = sql`select * from reconciliations order by day desc, address limit 100`;
    return (await newest.execute(db)).rows;
  });
  return { app, holdfast };
}
