// One process of the chaos: worker, scheduler and client in one, as an application would be. Its orders
// come as JSON in the first argument; it says "ready" on stdout, and ends when its parent is gone.

import fs from "node:fs";
import readline from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "./client.mjs";
import { declareAll } from "./jobs.mjs";

/** @type {{ name: string, seed: number, database: string, folder: string }} */
const { name, seed, database, folder } = JSON.parse(process.argv[2] ?? "{}");

const library = await import(new URL("../../dist/index.js", import.meta.url).href);

const notes = `${folder}/events-${name}`;
const log = (/** @type {{ event?: string }} */ fields) =>
  fs.appendFileSync(notes, `${JSON.stringify(fields)}\n`);
const holdfast = new library.Holdfast({
  database,
  app: "chaos",
  poll: "200ms",
  logger: { debug: () => undefined, info: () => undefined, warn: log, error: log },
});
const jobs = declareAll(holdfast, library, `${folder}/effects`);
const client = new Client({ name, seed, holdfast, jobs, file: `${folder}/operations-${name}` });

let isStopping = false;
const stdin = readline.createInterface({ input: process.stdin });
stdin.on("line", (line) => {
  if (line === "quiet") client.stop().then(() => fs.writeSync(1, "quiet\n"));
});
stdin.on("close", () => {
  if (!isStopping) process.exit(3);
});

process.on("SIGTERM", async () => {
  if (isStopping) return;
  isStopping = true;
  await client.stop();
  await holdfast.stop({ grace: "1s" });
  fs.writeSync(1, "stopped\n");
  stdin.close();
  process.stdin.destroy();
});

// A server that is away refuses the start; whoever looks after the process tries again, as here.
while (!isStopping) {
  try {
    await holdfast.start({ worker: { concurrency: 8 }, scheduler: true });
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
if (!isStopping) {
  fs.writeSync(1, "ready\n");
  client.start();
}
