// Runs one process of a round like an application: a worker that also schedules and sends requests, a scheduler alone,
// or a server of the HTTP API. Its orders are JSON in the first argument. It prints "ready" on stdout, and ends when its
// parent is gone.

import fs from "node:fs";
import readline from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "./client.mjs";
import { declareAll } from "./jobs.mjs";
import { POLL_MS } from "./plan.mjs";
import { recorded } from "./recorder.mjs";
import { SinkClient } from "./sink-client.mjs";

/** @type {{ name: string, skewMs: number } & import("./child-processes.mjs").Orders} */
const { name, skewMs, seed, database, folder, role, sinkPort, httpPort, isRecorded } = JSON.parse(
  process.argv[2] ?? "{}",
);

const modules = new URL("../build/", import.meta.url).href;
const library = await import(`${modules}index.js`);
const { storeFor } = await import(`${modules}store/open.js`);

const notes = `${folder}/events-${name}`;
const log = (/** @type {{ event?: string }} */ fields) =>
  fs.appendFileSync(notes, `${JSON.stringify({ atMs: Date.now() - skewMs, ...fields })}\n`);
const { noteTriggers } = isRecorded
  ? await import(`${modules}testing/simulator/checkers/row-changes.js`)
  : {};
/** @type {any} */
let store = null;
const holdfast = new library.Holdfast(
  {
    database,
    app: "chaos",
    poll: `${POLL_MS}ms`,
    logger: { debug: () => undefined, info: () => undefined, warn: log, error: log },
  },
  {
    // The same store as the library makes; kept here to simulate a full disk.
    store: (/** @type {any} */ config, /** @type {any} */ { clock, random }) => {
      store = storeFor({ ...config, clock, random, mayCreate: true });
      return isRecorded ? recorded(store, name, noteTriggers()) : store;
    },
  },
);
const jobs = declareAll(holdfast, library, new SinkClient(sinkPort));
const client = new Client({ name, seed, holdfast, jobs, file: `${folder}/operations-${name}` });
const asks = role === "worker";

let isStopping = false;
const stdin = readline.createInterface({ input: process.stdin });
stdin.on("line", (line) => {
  if (line === "quiet") client.stop().then(() => fs.writeSync(1, "quiet\n"));
  if (line === "full" || line === "room") limitPages(line === "full");
});
stdin.on("close", () => {
  if (!isStopping) process.exit(3);
});

/** From now on SQLite reports a full disk as soon as the file would have to grow. */
function limitPages(/** @type {boolean} */ isFull) {
  try {
    const { handle } = store;
    const { page_count: now } = handle.prepare("select * from pragma_page_count").get();
    handle.exec(`pragma max_page_count = ${isFull ? now : 1_073_741_823}`);
  } catch {
    // Not open yet, or locked just now: this process then sees no full disk.
  }
}

/** @type {{ drain(): void, close(): Promise<void> } | null} */
let served = null;

process.on("SIGTERM", async () => {
  if (isStopping) return;
  isStopping = true;
  await client.stop();
  served?.drain();
  await holdfast.stop({ grace: "1s" });
  await served?.close();
  fs.writeSync(1, "stopped\n");
  stdin.close();
  process.stdin.destroy();
});

// If the database is away, the start fails; this loop retries it like a supervisor would.
while (!isStopping) {
  try {
    await holdfast.start({
      worker: role === "worker" ? { concurrency: 8 } : false,
      scheduler: role !== "http",
    });
    break;
  } catch (error) {
    if (!(error instanceof library.HoldfastError)) throw error;
    const { code, message } = /** @type {Error & { code: string }} */ (error);
    if (code === "STOPPED") break;
    const refused = { event: "start.refused", code, message };
    log(refused);
    await pause(200);
  }
}
if (!isStopping && role === "http") {
  const { createHttpHandler } = await import(`${modules}http/handler.js`);
  const { serve } = await import(`${modules}http/server.js`);
  const handler = createHttpHandler(holdfast, { openOnLoopback: true, logger: { error: log } });
  served = await serve({ handler, host: "127.0.0.1", port: httpPort });
}
if (!isStopping) {
  fs.writeSync(1, "ready\n");
  if (asks) client.start();
}
