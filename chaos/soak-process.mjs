// Runs one process of the soak at default settings: a worker that also schedules, a scheduler alone, or the asker,
// which enqueues at a steady rate and also commits single rows for comparison. Processes that are never killed note
// their memory after a forced collection. It ends when its parent is gone.

import fs from "node:fs";
import readline from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { Draw } from "./seeded-random.mjs";
import { SinkClient } from "./sink-client.mjs";
import { BARE, DRAWN_JOBS, declareSoak } from "./soak-jobs.mjs";

/** @typedef {import("./child-processes.mjs").Orders & import("./soak.mjs").SoakOrders} Orders */

/** @type {{ name: string } & Orders} */
const { name, seed, database, folder, role, sinkPort, ...soak } = JSON.parse(
  process.argv[2] ?? "{}",
);
const library = await import(new URL("../build/index.js", import.meta.url).href);
const append = (/** @type {string} */ file, /** @type {object} */ line) =>
  fs.appendFileSync(`${folder}/${file}-${name}`, `${JSON.stringify(line)}\n`);
const log = (/** @type {object} */ fields) => append("events", { atMs: Date.now(), ...fields });
const holdfast = new library.Holdfast({
  database,
  app: "soak",
  logger: { debug: () => undefined, info: () => undefined, warn: log, error: log },
});
const isAsker = role === "asker";
const sink = isAsker ? null : new SinkClient(sinkPort);
const jobs = declareSoak(holdfast, library, { sink, retentionMs: soak.retentionMs });

const ends = new AbortController();
/** @type {Promise<unknown>[]} */
const habits = [];
let isStopping = false;

const stdin = readline.createInterface({ input: process.stdin });
stdin.on("line", (line) => {
  if (line === "quiet") void becomeQuiet().then(() => fs.writeSync(1, "quiet\n"));
});
stdin.on("close", () => {
  if (!isStopping) process.exit(3);
});
process.on("SIGTERM", async () => {
  isStopping = true;
  await becomeQuiet();
  await holdfast.stop();
  fs.writeSync(1, "stopped\n");
  stdin.close();
  process.stdin.destroy();
});

if (!isAsker) await holdfast.start({ worker: role === "worker" });
if (soak.isSteady) habits.push(each(soak.sampleMs, noteMemory));
if (isAsker) {
  const client = new pg.Client({ connectionString: database, application_name: "bare" });
  await client.connect();
  const draw = new Draw(`soak ${seed}`);
  habits.push(each(() => gapMs(draw), enqueueOne(draw)));
  const bare = new Draw(`bare ${seed}`);
  habits.push(each(() => gapMs(bare), commitOne(client)).then(() => client.end()));
  habits.push(each(soak.pruneMs, () => holdfast.prune()));
}
fs.writeSync(1, "ready\n");

async function becomeQuiet() {
  ends.abort();
  await Promise.all(habits);
}

/** @param {number | (() => number)} ms @param {() => unknown} act */
async function each(ms, act) {
  while (!ends.signal.aborted) {
    const isOver = pause(typeof ms === "number" ? ms : ms(), undefined, { signal: ends.signal });
    await isOver.catch(() => undefined);
    if (!ends.signal.aborted) await act();
  }
}

/** Draws the wait between independent callers. @param {Draw} draw */
function gapMs(draw) {
  return (-Math.log(1 - draw.next()) * 1_000) / soak.rate;
}

/** @param {Draw} draw */
function enqueueOne(draw) {
  let count = 0;
  /** @type {Set<Promise<void>>} */
  const open = new Set();
  habits.push(
    new Promise((resolve) => {
      ends.signal.addEventListener("abort", () => void Promise.all(open).then(resolve));
    }),
  );
  return () => {
    const job = draw.weighted(DRAWN_JOBS);
    const asked = ask({ op: `${name}-${count++}`, job });
    open.add(asked);
    void asked.then(() => open.delete(asked));
  };
}

/** @param {{ op: string, job: string }} question */
async function ask({ op, job }) {
  append("operations", { op, verb: "enqueue", job, is: "asked" });
  try {
    const input = { op, ms: [0, 0], askedAtMs: nowMs() };
    const { id } = await jobs[job].enqueue(input);
    append("operations", { op, is: "answered", answer: { id } });
  } catch (error) {
    const { code, message } = /** @type {any} */ (error);
    append("operations", { op, is: "refused", code, message });
  }
}

/** @param {pg.Client} client */
function commitOne(client) {
  return async () => {
    const atMs = nowMs();
    await client.query(`update ${BARE} set n = n + 1 where id = 1`);
    fs.appendFileSync(`${folder}/bare`, `${atMs.toFixed(0)} ${(nowMs() - atMs).toFixed(3)}\n`);
  };
}

function noteMemory() {
  const collect = /** @type {() => void} */ (/** @type {any} */ (globalThis).gc);
  collect();
  collect();
  const { heapUsed, rss, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  append("memory", { atMs: Date.now(), heapUsed, rss, external, cpuMs: (user + system) / 1_000 });
}

function nowMs() {
  return performance.timeOrigin + performance.now();
}
