// Runs the instances of the screenshots in real time on a database with history: it serves the page of one of them, and
// the service that it dispatches offers to.

import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { chanceOf, declareWorld } from "./world.mjs";

/**
 * @param {{ file: string, modules: string, port?: number, database?: string }} params
 * @returns {Promise<{ url: string, holdfast: import("../../src/holdfast.js").Holdfast, end: () => Promise<void> }>}
 */
export async function serveWorld({ file, modules, port = 0 }) {
  const { Holdfast, PermanentError } = await import(`${modules}/index.js`);
  const { createHttpHandler } = await import(`${modules}/http/handler.js`);
  const { serve } = await import(`${modules}/http/server.js`);
  const quiet = () => undefined;
  const desks = await startDesks((grant) => holdfast.remote.complete(grant, { price: 23_450 }));
  /** @param {number} seed */
  const begin = async (seed) => {
    const made = new Holdfast({
      database: `sqlite:${file}`,
      app: "markets",
      release: "2026.11.2",
      publicUrl: "https://jobs.example.com",
      workers: {
        desks: { url: desks.url, secret: "only-for-the-pictures", allowPrivateNetwork: true },
      },
      logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    });
    declareWorld(made, {
      sleep: (duration, signal) =>
        pause(Number.parseFloat(duration) * unitOf(duration), undefined, { signal }),
      chance: chanceOf(seed),
      PermanentError,
    });
    made.job("price-offer", { worker: "desks", retry: { attempts: 3, delay: "2s" } });
    await made.start({ worker: { concurrency: 6 } });
    return made;
  };
  const holdfast = await begin(7);
  const others = [await begin(8), await begin(9)];
  const handler = createHttpHandler(holdfast, { openOnLoopback: true });
  const served = await serve({ handler, host: "127.0.0.1", port });
  return {
    url: served.url,
    holdfast,
    end: async () => {
      served.drain();
      await Promise.all([holdfast, ...others].map((each) => each.stop({ grace: 0 })));
      await served.close();
      desks.stop();
    },
  };
}

/**
 * Starts a service that is busy at first, then accepts runs and calls back when they are done.
 * @param {(grant: { id: string, fence: number }) => Promise<void>} complete
 */
async function startDesks(complete) {
  let calls = 0;
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    calls += 1;
    await pause(180);
    if (calls === 1) {
      response.writeHead(503).end('{"why":"all desks are taken","token":"d41f"}');
      return;
    }
    response.writeHead(202).end();
    const { runId, fence } = JSON.parse(text);
    await pause(6_000);
    await complete({ id: runId, fence });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${address.port}/offers`, stop: () => server.close() };
}

/** @param {string} duration */
function unitOf(duration) {
  if (duration.endsWith("ms")) return 1;
  return duration.endsWith("m") ? 60_000 : 1_000;
}
