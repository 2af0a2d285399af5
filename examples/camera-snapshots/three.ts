// `npm run example camera-snapshots`: starts the cameras and three instances, each in a process of its own, and prints
// the state of their locks every ten seconds. Ctrl-C stops all of them gracefully.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startCameras } from "./cameras.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const cli = path.resolve(here, "../../dist/cli/main.js");
const secret = process.env.HOLDFAST_ADMIN_SECRET || "camera-snapshots-admin";
const PORT = Number(process.env.PORT || 4796);

// Long enough to be killed in the middle of one.
const cameras = await startCameras({ takesMs: 2_000 });
const instances = [0, 1, 2].map((at) => startInstance(PORT + at));
console.log(`dashboard: http://127.0.0.1:${PORT}/  (secret: ${secret})`);

function startInstance(port: number): ChildProcess {
  const child = spawn(process.execPath, [cli, "start", path.join(here, "holdfast.config.ts")], {
    env: {
      // Short, so that a takeover can be watched; the default is six minutes.
      HOLDFAST_LOCK_LEASE: "15s",
      SNAPSHOT_LEASE: "10s",
      ...process.env,
      HOLDFAST_PORT: String(port),
      HOLDFAST_ADMIN_SECRET: secret,
      CAMERAS_URL: process.env.CAMERAS_URL || cameras.url,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const tell = (line: string) => console.log(`${child.pid} | ${line}`);
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", tell);
  child.once("exit", (code, signal) => tell(`ended: ${signal ?? code}`));
  return child;
}

const telling = setInterval(async () => {
  const headers = { authorization: `Bearer ${secret}` };
  // Any instance will do; one that is starting, or was killed, does not respond.
  const answers = instances.map((_, at) =>
    fetch(`http://127.0.0.1:${PORT + at}/api/locks/stats`, { headers }),
  );
  const first = await Promise.any(answers).catch(() => null);
  if (first !== null) console.log("locks:", await first.text());
}, 10_000);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    clearInterval(telling);
    await Promise.all(instances.map(ended));
    await cameras.close();
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
