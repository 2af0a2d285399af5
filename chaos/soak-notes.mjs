// Reads the notes of a soak besides operations and effects, with times since its start.

import fs from "node:fs";
import path from "node:path";
import { readLines } from "./process-notes.mjs";

/** @typedef {import("./soak-verdict.mjs").Memory} Memory */

/** @param {string} folder @param {number} startedAt */
export function readBare(folder, startedAt) {
  return fs
    .readFileSync(path.join(folder, "bare"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [at, ms] = line.split(" ").map(Number);
      return { atMs: (at ?? 0) - startedAt, ms: ms ?? 0 };
    });
}

/** @param {string} folder @param {number} startedAt @returns {Record<string, Memory[]>} */
export function readMemory(folder, startedAt) {
  const names = fs.readdirSync(folder).filter((name) => name.startsWith("memory-"));
  return Object.fromEntries(
    names.map((name) => [
      name.slice("memory-".length),
      readLines(path.join(folder, name)).map((each) => ({ ...each, atMs: each.atMs - startedAt })),
    ]),
  );
}
