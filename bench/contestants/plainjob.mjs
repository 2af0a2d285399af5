// plainjob on better-sqlite3. It has no batching: it does one job at a time. It sets `synchronous` itself when the
// queue is made, so ours is set after that.

import Database from "better-sqlite3";
import { better, defineQueue, defineWorker } from "plainjob";

const JOB = "noop";
const quiet = { error() {}, warn() {}, info() {}, debug() {} };

/** @param {{ url: string, synchronous: "full" | "normal" }} params */
export async function open({ url, synchronous }) {
  const database = new Database(url.replace(/^sqlite:/, ""));
  const queue = defineQueue({ connection: better(database), logger: quiet });
  database.pragma(`synchronous = ${synchronous}`);
  let worker;
  let running;

  return {
    async enqueue(input) {
      queue.add(JOB, input);
    },

    async enqueueMany(inputs, delayMs = 0) {
      queue.addMany(JOB, inputs, { delay: delayMs });
    },

    async start(onRun) {
      const settings = { queue, logger: quiet, pollIntervall: 10 };
      worker = defineWorker(JOB, (job) => onRun(JSON.parse(job.data)), settings);
      running = worker.start();
    },

    async stop() {
      await worker.stop();
      await running;
    },

    async isDone() {
      return (
        queue.countJobs({ type: JOB, status: 0 }) + queue.countJobs({ type: JOB, status: 1 }) === 0
      );
    },

    async close() {
      queue.close();
    },
  };
}
