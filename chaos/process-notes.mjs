// Reads and counts the notes that the processes wrote to their folder.

import fs from "node:fs";
import path from "node:path";

/** @param {string} folder @returns {import("./checks.mjs").Operation[]} */
export function readOperations(folder) {
  /** @type {Map<string, any>} */
  const operations = new Map();
  for (const name of fs.readdirSync(folder).filter((each) => each.startsWith("operations-"))) {
    for (const line of readLines(path.join(folder, name))) {
      if (line.is === "asked") operations.set(line.op, { ...line, is: "unknown" });
      else operations.set(line.op, { ...operations.get(line.op), ...line });
    }
  }
  return [...operations.values()];
}

/** @param {string} folder @returns {import("./checks.mjs").Effect[]} */
export function readEffects(folder) {
  return fs
    .readFileSync(path.join(folder, "effects"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [what = "", run = "", fence, attempt, pid] = line.split(" ");
      return { what, run, fence: Number(fence), attempt: Number(attempt), pid: Number(pid) };
    });
}

/** Reads lines of JSON; the last line of a killed process may be torn. @param {string} file @returns {any[]} */
export function readLines(file) {
  return fs
    .readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
}

/** @param {import("./checks.mjs").Operation[]} operations */
export function operationCounts(operations) {
  /** @type {Record<string, number>} */
  const counts = { asked: operations.length, answered: 0, refused: 0, unknown: 0 };
  for (const { is, verb } of operations) {
    counts[is] = (counts[is] ?? 0) + 1;
    counts[verb] = (counts[verb] ?? 0) + 1;
  }
  return counts;
}

/** Returns the log lines of all processes with their writers, in the order of time. @param {string} folder */
export function readEvents(folder) {
  return fs
    .readdirSync(folder)
    .filter((each) => each.startsWith("events-"))
    .flatMap((name) =>
      readLines(path.join(folder, name)).map((line) => ({ by: name.slice(7), ...line })),
    )
    .sort((a, b) => a.atMs - b.atMs);
}

/**
 * Counts rare events that a campaign should reach; otherwise it proves little.
 * @param {Pick<import("./checks.mjs").History, "tables" | "operations" | "effects">} history
 * @param {string} folder
 */
export function rarities({ tables, operations, effects }, folder) {
  const attempts = (/** @type {number} */ ended) =>
    tables.attempts.filter((attempt) => attempt.ended === ended).length;
  const begun = effects.filter(({ what }) => what === "begin");
  const lostForGood = tables.outcomes.filter(({ error }) => error?.includes("LEASE_EXPIRED"));
  /** @type {Record<string, number>} */
  const events = {};
  for (const { event } of readEvents(folder)) events[event] = (events[event] ?? 0) + 1;
  return {
    takeovers: attempts(1) + lostForGood.length,
    handedBack: attempts(4),
    timeouts: attempts(2),
    later: attempts(3),
    leasesLost: events["run.lost"] ?? 0,
    staleRefused: events["run.stale"] ?? 0,
    storeFailures: events["store.failed"] ?? 0,
    startsRefused: events["start.refused"] ?? 0,
    repeatedEffects: begun.length - new Set(begun.map(({ run }) => run)).size,
    deduplicated: operations.filter(({ answer }) => answer?.deduplicated === true).length,
    conflicts: operations.filter(({ code }) => code === "KEY_CONFLICT").length,
    lateTicks: tables.ticks.filter(({ reason }) => reason === 1 || reason === 2).length,
    missedTicks: tables.ticks.filter(({ outcome }) => outcome === 2).length,
    skippedTicks: tables.ticks.filter(({ outcome }) => outcome === 1).length,
  };
}
