// Reads the state of a process from the system: whether it is stopped, and whether it is inside a write or a
// checkpoint of a SQLite file. A stopped process keeps its state for as long as it stays stopped.

import fs from "node:fs";

/** The bytes of the `-shm` file that SQLite locks for a write, and for a checkpoint. */
const WRITE_BYTE = 120;
const CHECKPOINT_BYTE = 121;

/** @typedef {"write" | "checkpoint"} Doing */

/** @param {number} pid */
export function isStopped(pid) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  } catch {
    return false;
  }
}

/** Stops a process and returns when it is stopped or gone. @param {number} pid */
export function stopNow(pid) {
  if (!signal(pid, "SIGSTOP")) return;
  const until = performance.now() + 200;
  while (performance.now() < until && !isStopped(pid));
}

/**
 * Returns the processes that are inside a write or a checkpoint of a SQLite file; none where the system does not report it.
 * @param {string} file
 * @returns {Map<number, Set<Doing>>}
 */
export function busyOn(file) {
  /** @type {Map<number, Set<Doing>>} */
  const busy = new Map();
  let inode = 0;
  let locks = "";
  try {
    inode = fs.statSync(`${file}-shm`).ino;
    locks = fs.readFileSync("/proc/locks", "utf8");
  } catch {
    return busy;
  }
  for (const line of locks.split("\n")) {
    const [, kind, , mode, pid, where, from, to] = line.trim().split(/\s+/);
    if (kind !== "POSIX" || mode !== "WRITE" || !where?.endsWith(`:${inode}`)) continue;
    const holds = (/** @type {number} */ byte) =>
      Number(from) <= byte && (to === "EOF" || Number(to) >= byte);
    const doing = busy.get(Number(pid)) ?? new Set();
    if (holds(WRITE_BYTE)) doing.add("write");
    if (holds(CHECKPOINT_BYTE)) doing.add("checkpoint");
    if (doing.size > 0) busy.set(Number(pid), doing);
  }
  return busy;
}

/**
 * Stops one of these processes inside a write or a checkpoint, and leaves it stopped.
 * @param {{ file: string, doing: Doing, pids: readonly number[], withinMs: number }} params
 * @returns {Promise<number | null>} its pid, or null if none was found
 */
export async function catchBusy({ file, doing, pids, withinMs }) {
  const until = performance.now() + withinMs;
  const mine = new Set(pids);
  while (performance.now() < until) {
    // Polls for four milliseconds, then gives the event loop a turn.
    const pauseAt = performance.now() + 4;
    while (performance.now() < pauseAt) {
      for (const [pid, what] of busyOn(file)) {
        if (!mine.has(pid) || !what.has(doing)) continue;
        stopNow(pid);
        if (busyOn(file).get(pid)?.has(doing)) return pid;
        signal(pid, "SIGCONT");
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return null;
}

/** @param {number} pid @param {NodeJS.Signals} name @returns {boolean} whether it was still there */
function signal(pid, name) {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
