// Starts the studies as `npm run example market-studies` does, waits for each kind of line, and stops them with Ctrl-C.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../../scripts/market-studies.mjs", import.meta.url));
const child = spawn(process.execPath, [script, "--no-reload"], {
  // In the folder of the check and on a port of its own, so that a running example is left alone.
  env: { ...process.env, HOLDFAST_DATABASE_URL: "sqlite:studies.db" },
  stdio: ["ignore", "pipe", "inherit"],
});

const awaited = [
  /the dashboard: http:\/\/127\.0\.0\.1:\d+\//,
  /schedule updated to its declaration in code: schedule=overnight-studies/,
  /a remote worker accepted the run/,
  /worker {2}\S.*: OPPORTUNITIES/,
  /↻ market-study +attempt failed, the run will be retried.*HTTP_503 listings of DE/,
  /✓ market-study +run completed: attempt [23]/,
  /✗ market-study +run failed.*STUDY_UNKNOWN/,
  /tick fired: schedule=yaris-watch/,
  /worker {2}\S.*: TARGET_BLOCKED/,
  /the worker service is killed/,
  /run reclaimed from a silent holder/,
];
let said = "";
let page = 0;
child.stdout.setEncoding("utf8").on("data", async (chunk) => {
  const isReady = awaited.every((pattern) => pattern.test(said));
  said += chunk;
  if (isReady || !awaited.every((pattern) => pattern.test(said))) return;
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\//.exec(said) ?? [];
  page = (await fetch(url)).status;
  child.kill("SIGINT");
});
// Ends before check-examples.mjs gives up, so that the missing line is named. A slow machine needs a fraction of it.
const deadline = setTimeout(() => child.kill("SIGINT"), 600_000);
const code = await new Promise((resolve) => child.once("close", resolve));
clearTimeout(deadline);
const missing = awaited.filter((pattern) => !pattern.test(said));
assert.deepEqual(missing, [], `lines that did not come: ${missing.join(" ")}\n${said}`);
assert.equal(code, 0, said);
assert.equal(page, 200);
assert.match(said, /\n\d+ finished, \d+ handed back, 0 abandoned\n/);
