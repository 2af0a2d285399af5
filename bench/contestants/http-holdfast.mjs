// Holdfast's own server: an enqueue, and a tick on a database without due work, by HTTP with a secret each.

import { createHttpHandler } from "../../build/http/handler.js";
import { serve } from "../../build/http/server.js";
import { Holdfast } from "../../build/index.js";

const secret = "a-secret-of-the-benchmark-only";

/** @param {{ url: string }} params */
export async function open({ url }) {
  const holdfast = new Holdfast({ database: url });
  holdfast.job("letter", { run: () => undefined });
  // Announces the job; it neither fires nor claims during the measurement.
  await holdfast.start({ scheduler: false, worker: false });
  const handler = createHttpHandler(holdfast, { secrets: { enqueue: secret, trigger: secret } });
  const served = await serve({ handler, host: "127.0.0.1", port: 0 });
  return {
    url: served.url,
    calls: {
      enqueue: {
        path: "/api/jobs/letter/runs",
        headers: { authorization: `Bearer ${secret}` },
        body: { input: { number: 1, address: "someone@example.org" } },
      },
      tick: {
        path: "/api/tick",
        headers: { authorization: `Bearer ${secret}` },
        body: { limit: 5 },
      },
    },
    async close() {
      await served.close();
      await holdfast.stop();
    },
  };
}
