// One instance with one job and one schedule that is not due, for half a minute.
//
//   node --expose-gc bench/scale/idle-child.mjs URL

import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

const SETTLE_MS = 3000;
const IDLE_MS = 30_000;
const MEBIBYTE = 2 ** 20;
const [, , database] = process.argv;

function memory() {
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss: rss / MEBIBYTE, heap: (heapUsed + external) / MEBIBYTE };
}

const bare = memory();
let statements = 0;
const require = createRequire(new URL("../../dist/index.js", import.meta.url));
const { Client } = require("pg");
const { query } = Client.prototype;
Client.prototype.query = function (...params) {
  statements += 1;
  return query.apply(this, params);
};
const { Holdfast } = await import("../../dist/index.js");
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const holdfast = new Holdfast({ database, logger });
const job = holdfast.job("noop", { run: async () => {} });
await holdfast.schedules.upsert("yearly", { job, cron: "0 0 1 1 *" });
await holdfast.start();
await pause(SETTLE_MS);
const before = process.cpuUsage();
statements = 0;
await pause(IDLE_MS);
const { user, system } = process.cpuUsage(before);
const sent = statements;
const after = memory();
await holdfast.stop();
const rounded = (value) => Number(value.toFixed(1));
console.log(
  JSON.stringify({
    // Counted at the driver of PostgreSQL; there is none to count at for SQLite.
    ...(!database.startsWith("sqlite:") && {
      statementsPerSecond: Number((sent / (IDLE_MS / 1000)).toFixed(2)),
    }),
    cpuMsPerMinute: rounded(((user + system) / 1000 / IDLE_MS) * 60_000),
    residentMebibytes: rounded(after.rss),
    heapMebibytes: rounded(after.heap),
    bareResidentMebibytes: rounded(bare.rss),
    bareHeapMebibytes: rounded(bare.heap),
  }),
);
process.exit();
