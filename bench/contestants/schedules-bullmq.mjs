// BullMQ's job schedulers. Its scheduler is its worker, and taking a job makes the next one, so the worker runs here; a
// fire counts as soon as its job was taken (`processedOn`). Nothing is durable.

import { Queue, Worker } from "bullmq";

const QUEUE = "schedules";
const CALLERS = 200;
const LOOK_MS = 50;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const { hostname, port, pathname } = new URL(url);
  const connection = {
    host: hostname,
    port: Number(port),
    db: Number(pathname.slice(1)),
    maxRetriesPerRequest: null,
  };
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  let worker;

  return {
    async seed({ label, count, atMs }) {
      const at = new Date(atMs);
      const pattern = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
      let made = 0;
      const caller = async () => {
        while (made < count) {
          const number = made++;
          const data = { number, atMs };
          await queue.upsertJobScheduler(
            `${label}-${number}`,
            { pattern, tz: "UTC" },
            { name: label, data },
          );
        }
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
    },

    async start() {
      worker = new Worker(QUEUE, async () => {}, { connection, concurrency: 200, autorun: false });
      worker.on("error", () => {});
      await worker.waitUntilReady();
      void worker.run();
    },

    async watch({ atMs, count, before = 0, until }) {
      await until(async () => (await queue.getCompletedCount()) >= before + count, LOOK_MS);
      const jobs = await queue.getJobs(["completed"], 0, -1);
      return jobs.filter(({ data }) => data.atMs === atMs).map((job) => job.processedOn - atMs);
    },

    async close() {
      await worker?.close(true);
      await queue.close();
    },
  };
}
