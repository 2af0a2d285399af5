// Dispatch from Deno: what an edge function sends to a worker service, and what the service says back.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { createReceiver } from "holdfast";
import { expect } from "vitest";
import { EXAMPLES, POSTGRES_URL, placed } from "./places.js";
import { listen } from "./studies-system.js";

const SECRET = "a-secret-for-the-worker";

placed("postgres").skipIf(POSTGRES_URL === undefined)(
  "a tick in Deno sends a run to a worker service, and stores its items and its end",
  async ({ place }) => {
    const worker = createReceiver({
      secret: SECRET,
      jobs: {
        study: async (input, ctx) => {
          await ctx.progress({ stage: "asking" });
          await ctx.item("a", { price: 3 });
          return { studied: input };
        },
      },
    });
    place.after(() => worker.stop({ graceMs: 0 }));
    const url = await listen(() => (request) => worker.receive(request));
    const map = path.join(EXAMPLES, "opening-signals/import_map.json");
    const flags = ["-A", "--unstable-sloppy-imports", `--import-map=${map}`];
    const program = path.join(import.meta.dirname, "dispatch.deno.ts");
    const { stdout } = await promisify(execFile)(
      path.resolve(EXAMPLES, "../node_modules/.bin/deno"),
      ["run", ...flags, program],
      {
        timeout: 120_000,
        env: {
          ...process.env,
          DATABASE_URL: place.url,
          WORKER_URL: `${url}/`,
          WORKER_SECRET: SECRET,
        },
      },
    );
    expect(JSON.parse(stdout.split("\n").findLast((line) => line.startsWith("{")) ?? "")).toEqual({
      dispatched: 1,
      status: "completed",
      result: { studied: { market: "eu" } },
      items: { total: 1, byOutcome: { ok: 1 } },
    });
  },
);
