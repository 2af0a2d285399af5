// The same worker with `holdfast/client`: it claims, renews, repeats what was lost, and drains on SIGTERM.

import { createClient } from "holdfast/client";

const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

const client = createClient({
  url: process.env.HOLDFAST_URL ?? "http://127.0.0.1:4780",
  secret: process.env.HOLDFAST_WORKER_SECRET ?? "",
});

await client.work({
  concurrency: 4,
  signal: stopping.signal,
  jobs: {
    "word-count": async (/** @type {{ text: string }} */ input, ctx) => {
      ctx.log(`attempt ${ctx.attempt} of ${ctx.runId}`);
      return { words: input.text.split(/\s+/).filter(Boolean).length, by: "client" };
    },
  },
});
