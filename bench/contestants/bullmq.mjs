// BullMQ at its best settings. Its Redis has no persistence: acknowledged jobs are in memory only. Finished jobs are
// removed, which is the faster of its two ways.

import { Queue, Worker } from "bullmq";

const QUEUE = "noop";

/** @param {{ url: string }} params */
export async function open({ url }) {
  const { hostname, port, pathname } = new URL(url);
  const connection = {
    host: hostname,
    port: Number(port),
    db: Number(pathname.slice(1)),
    maxRetriesPerRequest: null,
  };
  const queue = new Queue(QUEUE, {
    connection,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  await queue.waitUntilReady();
  let worker;
  let running;

  return {
    async enqueue(input) {
      await queue.add(QUEUE, input);
    },

    async enqueueMany(inputs, delayMs = 0) {
      const opts = delayMs > 0 ? { delay: delayMs } : undefined;
      await queue.addBulk(inputs.map((data) => ({ name: QUEUE, data, opts })));
    },

    async start(onRun) {
      worker = new Worker(QUEUE, async (job) => onRun(job.data), {
        connection,
        concurrency: 200,
        autorun: false,
      });
      worker.on("error", () => {});
      await worker.waitUntilReady();
      running = worker.run();
    },

    async stop() {
      await worker.close();
      await running;
    },

    async isDone() {
      const { waiting, active } = await queue.getJobCounts("waiting", "active");
      return waiting + active === 0;
    },

    async close() {
      await queue.close();
    },
  };
}
