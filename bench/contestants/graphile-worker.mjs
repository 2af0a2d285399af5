// graphile-worker at its best settings. It keeps no history: a finished job is deleted.
// The pool is ours and connected beforehand, so that a start costs it as little as possible.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const JOB = "noop";
const quiet = new Logger(() => () => {});

/** Batches for throughput; for pickup the local queue is off, since it only adds a hop to a single job. */
const SETTINGS = {
  throughput: {
    concurrentJobs: 50,
    localQueue: { size: 2000 },
    completeJobBatchDelay: 5,
    failJobBatchDelay: 5,
  },
  latency: { concurrentJobs: 10 },
};

/** @param {{ url: string, tuning: "throughput" | "latency" }} params */
export async function open({ url, tuning }) {
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  pool.on("error", () => {});
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  await utils.migrate();
  let runner;

  return {
    async enqueue(input) {
      await utils.addJob(JOB, input);
    },

    async enqueueMany(inputs, delayMs = 0) {
      const runAt = delayMs > 0 ? new Date(Date.now() + delayMs) : undefined;
      await utils.addJobs(inputs.map((payload) => ({ identifier: JOB, payload, runAt })));
    },

    async start(onRun) {
      runner = await run({
        pgPool: pool,
        logger: quiet,
        noHandleSignals: true,
        crontab: "",
        taskList: { [JOB]: async (input) => onRun(input) },
        preset: { worker: SETTINGS[tuning] },
      });
    },

    async stop() {
      await runner.stop();
    },

    async isDone() {
      const { rows } = await pool.query(
        "select not exists (select from graphile_worker._private_jobs where run_at <= now()) as done",
      );
      return rows[0].done;
    },

    async close() {
      await utils.release();
      await pool.end();
    },
  };
}
