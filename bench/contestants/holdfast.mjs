// Holdfast through its public interface, at its default settings, on the database of the URL. It uses nothing that a
// user would not write.

import { Holdfast } from "../../build/index.js";
import { ALL_DAYS, FROM_THE_START } from "../../build/store/postgres/claim-hints.js";
import { EXCHANGE } from "../../build/store/postgres/sql/exchange.js";
import { numbered } from "../../build/store/sql/template.js";

const JOB = "noop";
const CLAIMED = 1000;
const CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

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

    /** A claim as a remote worker makes it; returns the number of runs. */
    async claim(limit) {
      const asked = { instance: `bench-${process.pid}`, jobs: [JOB], limit };
      return (await holdfast.remote.claim(asked)).length;
    },

    /** The claim as the store sends it without settlements. */
    claimStatement() {
      const { text, parameters } = numbered(EXCHANGE.claim, {
        name: (plain) => `"holdfast".${plain}`,
        now: CLOCK,
      });
      const values = {
        jobs: [JOB],
        queues: null,
        apart: [],
        isNamed: false,
        suspect: false,
        limit: CLAIMED,
        low: FROM_THE_START,
        ...ALL_DAYS,
        holder: 1,
        token: "00000000-0000-4000-8000-000000000000",
      };
      return { text, values: parameters.map((name) => values[name]), count: CLAIMED };
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
