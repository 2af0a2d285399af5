// The world for real, on a database that has its history already: an instance at work, and its page.

import { setTimeout as pause } from "node:timers/promises";
import { chanceOf, declareWorld } from "./world.mjs";

/**
 * @param {{ file: string, dist: string, port?: number, database?: string }} params
 * @returns {Promise<{ url: string, holdfast: import("../../src/engine/holdfast.js").Holdfast, end: () => Promise<void> }>}
 */
export async function serveWorld({ file, dist, port = 0 }) {
  const { Holdfast, PermanentError } = await import(`${dist}/index.js`);
  const { createAnswerer } = await import(`${dist}/http/handler.js`);
  const { serve } = await import(`${dist}/http/serve.js`);
  const quiet = () => undefined;
  /** @param {number} seed */
  const begin = async (seed) => {
    const made = new Holdfast({
      database: `sqlite:${file}`,
      app: "markets",
      release: "2026.11.2",
      logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    });
    declareWorld(made, {
      sleep: (duration, signal) =>
        pause(Number.parseFloat(duration) * unitOf(duration), undefined, { signal }),
      chance: chanceOf(seed),
      PermanentError,
    });
    await made.start({ worker: { concurrency: 6 } });
    return made;
  };
  const holdfast = await begin(7);
  const others = [await begin(8), await begin(9)];
  const answerer = createAnswerer(holdfast, { openOnLoopback: true });
  const served = await serve({ answerer, host: "127.0.0.1", port });
  return {
    url: served.url,
    holdfast,
    end: async () => {
      served.drain();
      await Promise.all([holdfast, ...others].map((each) => each.stop({ grace: 0 })));
      await served.close();
    },
  };
}

/** @param {string} duration */
function unitOf(duration) {
  if (duration.endsWith("ms")) return 1;
  return duration.endsWith("m") ? 60_000 : 1_000;
}
