// Plays the crontab: a backup that fails, and a retry of it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { holdfast, server } from "./server.mjs";

server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = /** @type {import("node:net").AddressInfo} */ (server.address());
const env = {
  ...process.env,
  HOLDFAST_URL: `http://127.0.0.1:${address.port}`,
  HOLDFAST_TRIGGER_SECRET: "the-trigger-secret",
};

/** @param {string[]} command */
async function watched(...command) {
  const script = fileURLToPath(new URL("./watched.sh", import.meta.url));
  const crontab = spawn("sh", [script, "backup", ...command], { env, stdio: "inherit" });
  const [code] = await once(crontab, "exit");
  const backup = await holdfast.schedules.get("backup");
  assert.equal(backup?.beganAt, null);
  const run = await holdfast.runs.get(backup?.lastRunId ?? "");
  return { code, status: run?.status, error: run?.error?.message };
}

try {
  if (spawnSync("curl", ["--version"]).status === 0) {
    const failed = await watched("sh", "-c", "exit 7");
    assert.deepEqual(failed, { code: 7, status: "failed", error: "exit code 7" });
    assert.deepEqual(await watched("true"), { code: 0, status: "completed", error: undefined });
    console.log("the backup failed, was tried again, and checked in both times");
  } else console.error("SKIPPED: there is no curl here, so watched.sh was NOT checked.");
} finally {
  server.closeAllConnections();
  server.close();
  await holdfast.stop();
}
