// Starts the demo as `npm start` does, sees each kind of line, and stops it with Ctrl-C.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const program = path.join(here, "../../dist/cli/main.js");
const config = path.join(here, "holdfast.config.mjs");
// In the folder of the check, so that a demo that somebody has running is left alone.
const args = [program, "dev", config, "--no-reload", "--database", "sqlite:demo.db"];
const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });

const awaited = [
  /✓ customer +run completed/,
  /✓ resize-photo +run completed/,
  /↻ charge-card +attempt failed, the run will be tried again/,
  /✓ charge-card +run completed: attempt [23]/,
  /· write-report +page 5 of 5/,
  /↷ call-courier +run postponed by its handler/,
  /✓ call-courier +run completed/,
  /✓ count-the-till +run completed/,
  /✗ charge-card +run failed.*the card was refused/,
];
let said = "";
child.stdout.setEncoding("utf8").on("data", (chunk) => {
  const isReady = awaited.every((pattern) => pattern.test(said));
  said += chunk;
  if (!isReady && awaited.every((pattern) => pattern.test(said))) child.kill("SIGINT");
});
const code = await new Promise((resolve) => child.once("close", resolve));
assert.equal(code, 0, said);
assert.match(said, /\n\d+ finished, \d+ handed back, 0 abandoned\n$/);
