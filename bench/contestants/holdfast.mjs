// Holdfast through its public interface, at its default settings, on whichever database the URL names.
// Whatever a user would not write is not written here either.

import { Holdfast } from "../../dist/index.js";

const JOB = "noop";

/** @param {{ url: string, synchronous?: "full" | "normal", lease?: number }} params */
export async function open({ url, synchronous, lease }) {
  let onRun = () => {};
  const holdfast = new Holdfast({
    database: url,
    ...(synchronous === "normal" && { synchronous: "NORMAL" }),
  });
  const job = holdfast.job(JOB, { ...(lease && { lease }), run: async (input) => onRun(input) });
  await holdfast.runs.list({ limit: 1 }); // connects and migrates before the clock starts

  return {
    async enqueue(input) {
      await job.enqueue(input);
    },

    async enqueueMany(inputs, delayMs = 0) {
      await job.enqueueMany(inputs, delayMs > 0 ? { delay: delayMs } : undefined);
    },

    async start(handler) {
      onRun = handler;
      await holdfast.start({ scheduler: false });
    },

    async stop() {
      await holdfast.stop();
    },

    claimStatement() {
      throw new Error("Holdfast does not hand out its claim statement yet.");
    },

    async isDone() {
      for (const status of ["pending", "running"]) {
        const { runs } = await holdfast.runs.list({ status, limit: 1 });
        if (runs.length > 0) return false;
      }
      return true;
    },

    async close() {
      await holdfast.stop();
    },
  };
}
