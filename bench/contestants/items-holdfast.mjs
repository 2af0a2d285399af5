// Items of one run through the public interface, on the database of the URL.

import { Holdfast } from "../../dist/index.js";

/** @param {{ url: string }} params */
export async function open({ url }) {
  const holdfast = new Holdfast({ database: url });
  let begun;
  const context = new Promise((resolve) => {
    begun = resolve;
  });
  let end;
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  const job = holdfast.job("study", {
    async run(_, ctx) {
      begun(ctx);
      await ended;
    },
  });
  await holdfast.start({ scheduler: false });
  await job.enqueue({});
  const ctx = await context;
  return {
    item: (key, value) => ctx.item(key, () => value),
    async close() {
      end();
      await holdfast.stop();
    },
  };
}
