// Runs an instance that executes one waiting run, reports that, and reports its memory after some idle time.

import { setTimeout as pause } from "node:timers/promises";
import { Holdfast } from "../dist/index.js";

const IDLE_MS = 1_500;
const holdfast = new Holdfast({ database: process.argv[2] });
const begun = new Promise((resolve) => {
  holdfast.job("noop", { run: () => resolve() });
});
await holdfast.start({ scheduler: false });
await begun;
process.stdout.write("begun\n");
await pause(IDLE_MS);
process.stdout.write(`${process.memoryUsage.rss()}\n`);
await holdfast.stop();
