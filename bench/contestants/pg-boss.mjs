// pg-boss at its best settings. It keeps finished jobs (by updating them in place), as Holdfast keeps history. Its
// maintenance and its cron are off: they would only disturb the measurement.

import pg from "pg";
import { PgBoss } from "pg-boss";

const QUEUE = "noop";

/** @param {{ url: string, tuning: "throughput" | "latency" }} params */
export async function open({ url, tuning }) {
  // NOTIFY makes every insert slower, so only the pickup measurement uses it.
  const notify = tuning === "latency";
  const boss = new PgBoss({
    connectionString: url,
    max: 20,
    supervise: false,
    schedule: false,
    useListenNotify: notify,
  });
  boss.on("error", () => {});
  boss.on("warning", () => {});
  await boss.start();
  await boss.createQueue(QUEUE);
  await boss.updateQueue(QUEUE, { notify });
  const probe = new pg.Pool({ connectionString: url, max: 1 });
  probe.on("error", () => {});

  return {
    async enqueue(input) {
      await boss.send(QUEUE, input);
    },

    async enqueueMany(inputs, delayMs = 0) {
      const startAfter = delayMs > 0 ? new Date(Date.now() + delayMs) : undefined;
      await boss.insert(
        QUEUE,
        inputs.map((data) => ({ data, startAfter })),
      );
    },

    async start(onRun) {
      const settings = {
        batchSize: 2000,
        burstWhenBatchFull: true,
        localConcurrency: 2,
        pollingIntervalSeconds: 0.5,
      };
      await boss.work(QUEUE, settings, async (jobs) => {
        for (const job of jobs) onRun(job.data);
      });
    },

    async stop() {
      await boss.offWork(QUEUE);
    },

    async isDone() {
      const { rows } = await probe.query(
        "select not exists (select from pgboss.job where name = $1 and state < 'completed' and start_after <= now()) as done",
        [QUEUE],
      );
      return rows[0].done;
    },

    async close() {
      await boss.stop({ graceful: false, close: true });
      await probe.end();
    },
  };
}
