// Runs both workers against the server, each in a process of its own: one run each, ended by that worker.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { holdfast, server, wordCount } from "./server.mjs";

server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = /** @type {import("node:net").AddressInfo} */ (server.address());
const env = {
  ...process.env,
  HOLDFAST_URL: `http://127.0.0.1:${address.port}`,
  HOLDFAST_WORKER_SECRET: "the-worker-secret",
};

/**
 * @param {string} program
 * @param {string} file
 * @param {string} by
 */
async function check(program, file, by) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const worker = spawn(program, [path], { env, stdio: "inherit" });
  const exited = once(worker, "exit");
  try {
    const { id } = await wordCount.enqueue({ text: "nothing is lost" });
    const run = await holdfast.runs.wait(id, { timeout: "5m" });
    assert.equal(run.status, "completed");
    assert.deepEqual(run.result, { words: 3, by });
  } finally {
    worker.kill("SIGTERM");
    await exited;
  }
}

try {
  await check(process.execPath, "./worker.mjs", "client");
  const python = spawnSync("python3", ["--version"]);
  if (python.status === 0) await check("python3", "./worker.py", "python");
  else console.error("SKIPPED: there is no python3 here, so worker.py was NOT checked.");
} finally {
  server.closeAllConnections();
  server.close();
  await holdfast.stop();
}
