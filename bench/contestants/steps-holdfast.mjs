// Durable steps and sleeps through the public interface.

import { Holdfast } from "../../dist/index.js";

/** A run has at most 10,000 steps. */
const RUNS = 16;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const holdfast = new Holdfast({ database: url, poll: "100ms" });
  const contexts = [];
  let end;
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  const steps = holdfast.job("steps", {
    async run(_, ctx) {
      contexts.push(ctx);
      await ended;
    },
  });
  const sleeps = holdfast.job("sleeps", {
    async run({ rounds }, ctx) {
      for (let round = 0; round < rounds; round++) await ctx.sleep(1, { name: `nap-${round}` });
    },
  });
  await holdfast.start({ scheduler: false, worker: { concurrency: RUNS + 16 } });
  return {
    async ready() {
      await steps.enqueueMany(Array.from({ length: RUNS }, () => ({})));
      while (contexts.length < RUNS) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    step: (number, value) => contexts[number % RUNS].step(`step-${number}`, () => value),
    async resume({ runs, rounds }) {
      const made = await sleeps.enqueueMany(Array.from({ length: runs }, () => ({ rounds })));
      await Promise.all(made.map(({ id }) => holdfast.runs.wait(id, { timeout: "10m" })));
    },
    async close() {
      end();
      await holdfast.stop();
    },
  };
}
