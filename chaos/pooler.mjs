// Starts PgBouncer in transaction mode in front of a server: each transaction of a client may run in another session.
// PgBouncer ends with this process at the latest.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../scripts/postgres.mjs";

/** @typedef {{ url: string, port: number, stop: () => Promise<void> }} Pooler */

/** The settings that the documentation requires for the role, because a pool loses the settings of a session. */
export const POOLED_SETTINGS = { enable_seqscan: "off", enable_sort: "off", jit: "off" };

const PROGRAMS = ["pgbouncer", "/usr/sbin/pgbouncer"];
const READY_WITHIN_MS = 120_000;

/** @returns {string | null} the program, or null where it is not installed */
export function findPooler() {
  return PROGRAMS.find((name) => spawnSync(name, ["--version"]).status === 0) ?? null;
}

/**
 * @param {{ port: number, sessions?: number }} params the server's port; the number of shared sessions
 * @returns {Promise<Pooler>}
 */
export async function startPooler({ port: serverPort, sessions = 20 }) {
  const program = findPooler();
  if (program === null) throw new Error("PgBouncer is not installed: apt-get install pgbouncer.");
  const port = await freePort();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-pooler-"));
  const file = path.join(folder, "pgbouncer.ini");
  fs.writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = ${sessions}
ignore_startup_parameters = extra_float_digits,options
server_login_retry = 0.2
log_connections = 0
log_disconnections = 0
`,
  );
  const log = fs.openSync(path.join(folder, "log"), "a");
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  if (user.length > 0) fs.chmodSync(folder, 0o755);
  const child = spawn(program, [...user, file], { stdio: ["ignore", log, log] });
  fs.closeSync(log);
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const atExit = () => {
    child.kill("SIGKILL");
    fs.rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", atExit);
  const deadline = performance.now() + READY_WITHIN_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`PgBouncer did not start:\n${fs.readFileSync(path.join(folder, "log"))}`);
    await pause(20);
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    async stop() {
      process.off("exit", atExit);
      child.kill("SIGINT");
      await Promise.race([gone, pause(2_000, undefined, { ref: false })]);
      atExit();
    },
  };
}

/** @param {number} port @returns {Promise<boolean>} */
function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
