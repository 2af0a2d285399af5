// Starts the servers that the contestants need, and stops them again.
// PostgreSQL comes from the binaries that npm installed, at full durability; Redis only where the machine has it.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Room enough that neither cache nor checkpoints decide; fsync and its kin keep their defaults, which is on.
 * Commit times are recorded for everybody: by them the scenarios with schedules tell how late a fire was.
 */
const POSTGRES_SETTINGS = {
  shared_buffers: "2GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "30min",
  max_connections: 200,
  track_commit_timestamp: "on",
};

/** @param {Record<string, string>} [more] settings beside those that all have */
export async function startPostgresServer(more = {}) {
  const { startPostgres } = await import("../scripts/postgres.mjs");
  return startPostgres({ settings: { ...POSTGRES_SETTINGS, ...more } });
}

/** Resolves with null if there is no redis-server on the PATH. */
export async function startRedisServer() {
  const found = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  if (found.status !== 0) return null;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-bench-redis-"));
  const port = await freePort();
  const settings = [
    "--port",
    port,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "no",
    "--dir",
    folder,
  ];
  const child = spawn("redis-server", settings.map(String), { stdio: "ignore" });
  for (let tries = 0; (await command(port, "PING").catch(() => "")) !== "+PONG"; tries++) {
    if (tries === 200) throw new Error("redis-server did not answer within 10 s.");
    await pause(50);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    version: /v=(\S+)/.exec(found.stdout)?.[1] ?? "unknown",
    flush: () => command(port, "FLUSHALL"),
    async stop() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await gone;
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** One inline command, one line of answer: all that is needed here, without a client library. */
function command(port, text) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: "127.0.0.1", port }, () => socket.write(`${text}\r\n`));
    socket.setTimeout(60_000, () => socket.destroy(new Error(`Redis did not answer ${text}.`)));
    socket.once("error", reject);
    socket.once("data", (chunk) => {
      resolve(chunk.toString().trim());
      socket.destroy();
    });
  });
}
