// What the system says about a process: whether it is stopped, and whether it is inside of a write or a
// checkpoint of a SQLite file. Both are true of a stopped process for as long as it stays stopped.

import fs from "node:fs";

/** Where in the `-shm` file SQLite locks while it writes, and while it moves the log into the file. */
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

/** Stops a process and answers once it stands still, or is gone. @param {number} pid */
export function stopNow(pid) {
  if (!signal(pid, "SIGSTOP")) return;
  const until = performance.now() + 200;
  while (performance.now() < until && !isStopped(pid));
}

/**
 * Which processes write to a SQLite file, or move its log, right now. Nothing where the system does not tell.
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
 * Stops one of these processes while it is at it, and leaves it stopped.
 * @param {{ file: string, doing: Doing, pids: readonly number[], withinMs: number }} params
 * @returns {Promise<number | null>} its pid, or null where none was met
 */
export async function catchBusy({ file, doing, pids, withinMs }) {
  const until = performance.now() + withinMs;
  const mine = new Set(pids);
  while (performance.now() < until) {
    // Looks for four milliseconds, then lets others of this process have a turn.
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
